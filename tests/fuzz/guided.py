"""Fuzz guided by coverage: inputs that reach a line first are kept, and mutated further.

    python -m tests.fuzz.guided --seconds 540 --jobs 16 --out $OUT    # all targets
    python -m tests.fuzz.guided svg messages --seconds 60             # some, on all cores

All targets together take the seconds, and each gets an equal share of the processors. A new kind of
error counts as a new line. The result is one file, ``fuzz.json``: runs, lines reached, the longest
call, and inputs that failed, for each target and process. An input that fails is also kept in the
target's corpus. It needs no other package; with Atheris: ``tests.fuzz.with_atheris``.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz import targets
from tests.fuzz.__main__ import ENOUGH, ROOM, Slot, limit_memory, replay_command
from tests.fuzz.coverage import LineCoverage
from tests.fuzz.target import Failed, Target, digest

#: Processes of each target at most. Each takes what those before it have found.
PIECES = 4
#: Bytes of an input that is mutated further, and how many there are.
LARGEST, MOST = 1 << 15, 4000
#: Kinds of errors that count as new lines.
KINDS = 200
#: Seconds that a process takes to start, and of one input.
START = 2.0
PATIENCE = 60.0
#: What processes of targets report.
Rows = list[dict[str, Any]]
_VALUES = re.compile(r"0x[0-9a-f]+|[0-9]+|'[^']*'?|\"[^\"]*\"?")


class Guide:
    """The inputs of a target that reached something first, shared by its processes in a folder."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.lines = LineCoverage()
        self.kinds: set[str] = set()
        self.found = 0

    def start(self) -> None:
        """Read what others have found."""
        self.lines.start()
        kept = [path.read_bytes() for path in sorted(self.folder.iterdir())[:MOST]]
        self.target.corpus.extend(data for data in kept if len(data) <= LARGEST)
        for data in list(self.target.corpus):
            self.look(data)

    def look(self, data: bytes) -> str:
        """Read an input; keep it if it reached a line, or an error, that no other did."""
        before = self.lines.count, len(self.kinds)
        how, what = self.target.outcome(data)
        if how == "refused" and len(self.kinds) < KINDS:
            self.kinds.add(_VALUES.sub("", what)[:80])
        return how if before == (self.lines.count, len(self.kinds)) else f"new {how}"

    def keep(self, data: bytes) -> None:
        """Mutate an input further."""
        if len(data) <= LARGEST and len(self.target.corpus) < MOST:
            self.target.corpus.append(data)
            (self.folder / digest(data)).write_bytes(data)
            self.found += 1


def work(name: str, seconds: float, seed: int, slot: Slot, folder: Path) -> dict[str, Any]:
    """Read inputs of a target for so long; return what happened."""
    end = time.monotonic() + seconds
    target = targets.make(name)
    for data in target.seeds():  # libraries load before lines are counted and memory is limited
        target.check(data)
    limit_memory(target)
    guide = Guide(target, folder)
    guide.start()
    counts: Counter[str] = Counter()
    failures: list[dict[str, str]] = []
    longest, number = (0.0, b""), 0
    start = random.Random(seed).randrange(1 << 40)
    while time.monotonic() < end and len(failures) < ENOUGH:
        data = target.input(seed, start + number)
        number += 1
        begin = time.monotonic()
        slot.begin(0, data)
        try:
            how = guide.look(data)
            if how.startswith("new "):
                guide.keep(data)
            counts[how.removeprefix("new ")] += 1
        except Failed as error:
            failures.append(failure(target, data, str(error)))
        slot.end()
        longest = max(longest, (time.monotonic() - begin, data))
    return {
        "target": name, "seed": seed, "runs": number, "read": counts["read"],
        "refused": counts["refused"], "lines": guide.lines.count, "errors": len(guide.kinds),
        "kept": guide.found, "longest_s": round(longest[0], 3),
        "longest_input": base64.b64encode(longest[1][:4096]).decode(), "failures": failures,
    }  # fmt: skip


def failure(target: Target, data: bytes, why: str) -> dict[str, str]:
    """Keep an input that failed, and describe it."""
    path = target.keep(data)
    shown = base64.b64encode(data[:ROOM]).decode()
    return {"why": why[-1500:], "replay": replay_command(path), "input": shown}


class Process:
    """One process of a target."""

    def __init__(self, name: str, seconds: float, seed: int, folder: Path, kept: Path) -> None:
        self.name, self.seed = name, seed
        self.state = folder / f"slot-{name}-{seed}"
        self.state.write_bytes(bytes(ROOM))
        self.slot = Slot(self.state)
        self.errors = open(f"{self.state}.err", "w+")  # noqa: SIM115
        corpus = kept / name
        corpus.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.guided", name, "--worker", str(self.state)]
        command += ["--seconds", str(seconds), "--seed", str(seed), "--corpus", str(corpus)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.until = time.monotonic() + seconds + PATIENCE

    def result(self) -> dict[str, Any] | None:
        """Return what a process wrote, or that it crashed or hangs; None while it works."""
        busy = self.slot.current()
        late = busy is not None and time.monotonic() - busy[0] > PATIENCE
        if self.process.poll() is None and not late and time.monotonic() < self.until:
            return None
        self.process.kill()
        out = self.process.communicate()[0].decode(errors="replace").strip().splitlines()
        if self.process.returncode == 0 and out and not late:
            found: dict[str, Any] = json.loads(out[-1])
            return found
        self.errors.seek(0)
        why = "it hangs" if late else f"ended with {self.process.returncode}"
        why = f"{why}: {self.errors.read()[-1200:]}"
        row: dict[str, Any] = {"target": self.name, "seed": self.seed, "runs": 0, "failures": []}
        found = {"why": why, "replay": ""}
        if busy is not None:
            found = failure(targets.make(self.name), busy[2], why)
        row["failures"].append(found)
        return row


def lead(
    names: list[str],
    seconds: float,
    jobs: int,
    seed: int,
    save: Callable[[Rows], None],
    kept: Path | None = None,
) -> Rows:
    """Run the processes of all targets; return their results, which are saved as they come."""
    rounds = -(-len(names) * min(PIECES, jobs) // jobs)
    waiting = [(names[n % len(names)], n // len(names)) for n in range(rounds * jobs)]
    running: list[Process] = []
    rows = []
    begin, started = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, n = waiting.pop(0)
                end = begin + seconds * (started // jobs + 1) / rounds
                piece, started = max(end - time.monotonic() - START, 1), started + 1
                here = Path(folder)
                running.append(Process(name, piece, seed * 100 + n, here, kept or here / "kept"))
            time.sleep(0.1)
            for process in list(running):
                if (row := process.result()) is not None:
                    running.remove(process)
                    rows.append(row)
                    save(rows)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the totals of each target."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        total = found.setdefault(
            row["target"], {"runs": 0, "lines": 0, "kept": 0, "longest_s": 0.0, "failures": 0}
        )
        for key in ("runs", "kept"):
            total[key] += row.get(key, 0)
        for key in ("lines", "longest_s"):
            total[key] = max(total[key], row.get(key, 0))
        total["failures"] += len(row["failures"])
    return dict(sorted(found.items()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets.TABLE))
    parser.add_argument("--seconds", type=float, default=60.0, help="of all targets together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the folder of fuzz.json")
    parser.add_argument("--kept", type=Path, help="goes on from the inputs in this folder")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--corpus", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    missing = [name for name in args.targets if name not in targets.available()]
    if missing:
        parser.error(f"not a target, or its package is missing: {', '.join(missing)}")
    if args.worker:
        faulthandler.enable()
        row = work(args.targets[0], args.seconds, args.seed, Slot(args.worker), args.corpus)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
        os._exit(0)  # threads of an input may go on
    begin = time.monotonic()

    def save(rows: Rows) -> None:
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            facts = {"seconds": round(time.monotonic() - begin), "jobs": args.jobs}
            facts |= {"seed": args.seed, "python": sys.version}
            found = {**facts, "targets": summary(rows), "processes": rows}
            (args.out / "fuzz.json").write_text(json.dumps(found, indent=1) + "\n")

    names = args.targets or targets.available()
    rows = lead(names, args.seconds, args.jobs, args.seed, save, args.kept)
    totals = summary(rows)
    for name, total in totals.items():
        sys.stdout.write(f"{name}: {json.dumps(total)}\n")
    for row in rows:
        for each in row["failures"]:
            sys.stdout.write(f"\n{row['target']}: {each['why']}\n  {each['replay']}\n")
    failed = sum(total["failures"] for total in totals.values())
    took = round(time.monotonic() - begin)
    sys.stdout.write(
        f"{len(rows)} processes in {took} s with {args.jobs} jobs, {failed} failures\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
