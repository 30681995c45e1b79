"""Fuzz everything that reads bytes: all targets in turn, in processes of their own.

    python -m tests.fuzz --minutes 10 --jobs 2              # all targets
    python -m tests.fuzz streams --count 100000 --jobs 16   # a number of inputs of one target
    python -m tests.fuzz shaders --count 1000000 --minutes 9 --jobs 16   # at most nine minutes
    python -m tests.fuzz --replay tests/fuzz/corpus/cube/0123456789abcdef

Each input must end in a result or in one of our errors, within the time and the memory of
``--patience`` and of its target, and a share of them is read twice and must end alike. An input
that fails is kept in ``tests/fuzz/corpus/TARGET``, and the command to replay it is printed. Input
number n of a seed is the same on every machine and for every number of jobs.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import targets
from tests.fuzz.target import Failed, Target

#: The state of a worker that its parent reads after a crash: when the input began, its size, its
#: target's index, then the input.
HEAD = struct.Struct("<dII")
ROOM = 1 << 18
#: Every so many inputs, one is read twice.
TWICE = 16
#: Seconds that a worker spends on a target before it takes the next.
SLICE = 5.0
#: Failures after which a worker ends.
ENOUGH = 10


class Slot:
    """The input that a worker reads, in memory shared with its parent."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "r+b")  # noqa: SIM115
        self._map = mmap.mmap(self._file.fileno(), ROOM)

    def begin(self, target: int, data: bytes) -> None:
        part = data[: ROOM - HEAD.size]
        self._map[HEAD.size : HEAD.size + len(part)] = part
        self._map[: HEAD.size] = HEAD.pack(time.monotonic(), len(part), target)

    def end(self) -> None:
        self._map[:8] = bytes(8)

    def current(self) -> tuple[float, int, bytes] | None:
        """Return since when, for which target and with which input a worker is busy."""
        since, size, target = HEAD.unpack(self._map[: HEAD.size])
        return (since, target, self._map[HEAD.size : HEAD.size + size]) if since else None


def report(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def limit_memory(target: Target) -> None:
    """Let allocations beyond a target's share fail: MemoryError is not one of our errors."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + target.memory, hard))


def work(args: argparse.Namespace) -> None:
    """Read inputs until the time or the count is over."""
    faulthandler.enable()
    slot = Slot(args.slot)
    made = {name: targets.make(name) for name in args.targets}
    for target in made.values():  # libraries load before memory is limited
        for data in target.seeds():
            target.check(data)
    done = dict.fromkeys(made, args.first)
    failures = 0
    end = time.monotonic() + args.minutes * 60
    while done and time.monotonic() < end:
        for index, (name, target) in enumerate(made.items()):
            if name not in done:
                continue
            if args.limit_memory:
                limit_memory(target)
            counts: Counter[str] = Counter()
            slowest = 0.0
            until = min(time.monotonic() + SLICE, end)
            while time.monotonic() < until:
                number = done[name]
                if args.count and number >= args.count:
                    del done[name]
                    break
                done[name] += args.jobs
                data = target.input(args.seed, number)
                begin = time.monotonic()
                slot.begin(index, data)
                try:
                    counts[target.check(data, twice=number % TWICE == 0)] += 1
                except Failed as error:
                    failures += 1
                    path = target.keep(data)
                    report(failed=name, why=str(error)[:600], file=str(path), number=number)
                slot.end()
                slowest = max(slowest, time.monotonic() - begin)
            report(target=name, counts=counts, slowest=slowest, next=done.get(name))
            if failures >= ENOUGH:
                return


class Worker:
    """A process that reads inputs, and what its parent knows of it."""

    def __init__(self, args: argparse.Namespace, index: int, folder: Path) -> None:
        self.args, self.index, self.folder = args, index, folder
        self.starts = 0
        self.first = index
        self.start()

    def start(self) -> None:
        self.starts += 1
        state = self.folder / f"slot{self.index}"
        state.write_bytes(bytes(ROOM))
        self.slot = Slot(state)
        self.log = self.folder / f"log{self.index}.{self.starts}"
        a = self.args
        command = [sys.executable, "-m", "tests.fuzz", *a.targets, "--worker", "--slot", str(state)]
        command += ["--seed", str(a.seed), "--jobs", str(a.jobs), "--first", str(self.first)]
        command += ["--minutes", str(max((a.ends - time.monotonic()) / 60, 0.01))]
        command += ["--count", str(a.count)]
        command += [] if a.limit_memory else ["--no-limit-memory"]
        with open(self.log, "w") as out, open(f"{self.log}.err", "w") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, stdin=subprocess.DEVNULL
            )

    def watch(self) -> str | None:
        """Return why the input that the worker reads has failed, if it has."""
        busy = self.slot.current()
        code = self.process.poll()
        if code is None:
            if busy and time.monotonic() - busy[0] > self.args.patience:
                self.process.kill()
                self.process.wait()
                return f"took more than {self.args.patience:g} s"
            return None
        if code and busy:
            return f"ended the process with {code}: {Path(f'{self.log}.err').read_text()[-1500:]}"
        if code:
            sys.exit(f"A worker failed: {Path(f'{self.log}.err').read_text()[-3000:]}")
        return None


def lead(args: argparse.Namespace) -> int:
    """Start workers, watch them, and print what they count; return the number of failures."""
    failures: list[str] = []
    args.ends = time.monotonic() + args.minutes * 60
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workers = [Worker(args, n, folder) for n in range(args.jobs)]
        live = list(workers)
        while live:
            time.sleep(0.2)
            for worker in list(live):
                why = worker.watch()
                if why is not None:
                    busy = worker.slot.current()
                    assert busy is not None
                    target = targets.make(args.targets[busy[1]])
                    path = target.keep(busy[2])
                    failures.append(f"{target.name}: {why}\n  {replay_command(path)}")
                    if worker.starts < ENOUGH and time.monotonic() < args.ends:
                        worker.first = skip_to(worker)
                        worker.start()
                        continue
                if worker.process.poll() is not None:
                    live.remove(worker)
        totals: dict[str, Counter[str]] = {name: Counter() for name in args.targets}
        slowest: Counter[str] = Counter()
        for log in sorted(folder.glob("log*")):
            if log.suffix == ".err":
                continue
            for facts in reports(log):
                if "failed" in facts:
                    where = replay_command(Path(facts["file"]))
                    failures.append(f"{facts['failed']}: {facts['why']}\n  {where}")
                else:
                    totals[facts["target"]].update(facts["counts"])
                    slow = slowest[facts["target"]]
                    slowest[facts["target"]] = max(slow, facts["slowest"])  # type: ignore[assignment]
    for name, counts in totals.items():
        sys.stdout.write(
            f"{name}: {counts.total():,} inputs, {counts['read']:,} read, "
            f"{counts['refused']:,} refused, slowest {slowest[name]:.2f} s\n"
        )
    seconds = time.monotonic() - begin
    total = sum(counts.total() for counts in totals.values())
    sys.stdout.write(f"{total:,} inputs in {seconds:.0f} s with {args.jobs} jobs, ")
    sys.stdout.write(f"{len(failures)} failures\n")
    for failure in failures:
        sys.stdout.write(f"\n{failure}\n")
    return len(failures)


def reports(log: Path) -> Iterator[dict[str, Any]]:
    """Yield what a worker reported; libraries may have written lines between."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def skip_to(worker: Worker) -> int:
    """Return a number after those that a worker has read, of its own residue."""
    last = worker.first
    for facts in reports(worker.log):
        last = max(last, facts.get("next") or 0)
    return last + worker.args.jobs * 1000


def replay_command(path: Path) -> str:
    shown = os.path.relpath(path)
    return f"{os.path.basename(sys.executable)} -m tests.fuzz --replay {shown}"


def replay(path: Path) -> int:
    """Read one kept input in this process, and say how it ends."""
    target = targets.make(path.resolve().parent.name)
    data = path.read_bytes()
    sys.stdout.write(f"{target.name}, {len(data)} bytes: {data[:200]!a}\n")
    sys.stdout.write(f"{target.outcome(data)}\n{target.check(data)}\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets.TABLE))
    parser.add_argument("--minutes", type=float, help="at most; by default 1, or none with a count")
    parser.add_argument("--count", type=int, default=0, help="inputs of each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds for one input")
    parser.add_argument("--replay", type=Path, help="a kept input to read again")
    parser.add_argument("--limit-memory", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--slot", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.replay:
        return replay(args.replay)
    missing = [name for name in args.targets if name not in targets.available()]
    if missing:
        parser.error(f"not a target, or its package is missing: {', '.join(missing)}")
    args.targets = args.targets or targets.available()
    if args.minutes is None:
        args.minutes = float("inf") if args.count else 1.0
    if args.worker:
        work(args)
        return 0
    return 1 if lead(args) else 0


if __name__ == "__main__":
    sys.exit(main())
