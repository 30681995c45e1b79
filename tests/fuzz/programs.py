"""Random programs on all engines, compared with the reference engine.

    python -m tests.fuzz.programs --minutes 2 --jobs 2
    python -m tests.fuzz.programs --programs 20000 --jobs 16 --engines cpu,webgpu
    python -m tests.fuzz.programs --mutated --programs 20000 --jobs 16   # kernel texts
    python -m tests.fuzz.programs --seeds 17:18 --show                   # one program

Program number n is the same on every machine: all pairs of a float type (f32, f64) and an int type
(s32, u32, s64, u8) take turns. Its floats must agree within the bound that was computed when it was
drawn, its ints exactly. Mutated texts have no bounds: each must run on every engine, or be refused
by every engine. A program that fails is kept in ``tests/fuzz/corpus/programs``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import dala
from dala.gpu import compute
from tests.fuzz.target import CORPUS
from tests.fuzz.targets.kernels import INTS, REALS, Kernels, text_of
from tests.support.disagreements import answer, compare
from tests.support.engines import targets
from tests.support.programs import Program, random_program
from tests.support.tolerances import NUMPY

KEPT = CORPUS / "programs"
#: Seconds for one program on one engine, and iterations of its loops at one position.
LIMITS = dala.limits(time=60, iterations=100_000)
PAIRS = [(real, whole) for whole in INTS for real in REALS]


def program_of(number: int) -> Program:
    """Return the program of a number."""
    return random_program(number, *PAIRS[number % len(PAIRS)])


def devices(engines: str) -> dict[str, str]:
    """Return the devices of this machine by name, those of the given engines only."""
    wanted = engines.split(",")
    found = {
        name: device
        for name, device in targets().items()
        if device is not None and name != "reference"
    }
    chosen = {n: d for n, d in found.items() if any(n.startswith(w) for w in wanted)}
    if not chosen:
        sys.exit(f"There is no such engine here: {engines}. There are: {', '.join(found)}.")
    return chosen


def differences(program: Program, chosen: dict[str, str], counts: Counter[str]) -> list[str]:
    """Return what devices compute differently from the reference engine."""
    found = []
    try:
        with LIMITS:
            expected = answer(program, "reference")
    except dala.DalaError as error:  # programs are valid as they are drawn
        return [f"on reference: {type(error).__name__}: {error}"]
    for name, device in chosen.items():
        with dala.device(device):
            if not program.dtypes <= set(compute.supported_dtypes()):
                continue
        try:
            with dala.limits(time=60):  # code that counts iterations is other code on the CPU
                got = answer(program, device)
        except dala.DalaError as error:
            found.append(f"on {name}: {type(error).__name__}: {error}")
            continue
        counts[name] += 1
        if wrong := compare(program, name, got, expected):
            found.append(wrong)
    return found


def run_text(text: str, chosen: dict[str, str], counts: Counter[str]) -> list[str]:
    """Run a kernel text on all devices; return where it ends otherwise than on the reference."""
    try:
        made = compute.kernel(text)
    except dala.DalaError:
        counts["refused"] += 1
        return []
    outcomes = {}
    for name, device in {"reference": "reference", **chosen}.items():
        with dala.device(device):
            supported = set(compute.supported_dtypes())
            try:
                with LIMITS:
                    inputs = [sample(arg.kind, arg.dtype or "f32") for arg in made.decl.args]
                    params = {p.name: 2 for p in made.params if p.required and not p.size}
                    out = None if inputs else compute.buffer_zeros((13,), "f32")
                    made(*(compute.from_array(a) for a in inputs), out=out, **params).numpy()
                    outcomes[name] = "ran"
                    counts[name] += 1
            except dala.UnsupportedDtype:
                if supported >= set(NUMPY):
                    raise
            except (dala.CommandTimeout, dala.LimitExceeded):
                counts["limited"] += 1
            except dala.DalaError as error:
                outcomes[name] = type(error).__name__
    if len(set(outcomes.values())) > 1:
        return [f"ends in different ways: {outcomes}"]
    counts["refused"] += "ran" not in outcomes.values()
    return []


def sample(kind: str, dtype: str) -> np.ndarray:
    """Return an input for an argument of a kind."""
    if kind in ("pixel", "image"):
        return np.arange(5 * 7 * 4, dtype=np.uint8).reshape(5, 7, 4)
    return (np.arange(13) * 37 % 101).astype(NUMPY[dtype])


def keep(number: int, program: Program | str, why: list[str]) -> Path:
    """Save a program that failed, with what is needed to compare it again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if isinstance(program, str):
        path = KEPT / f"text_{number}.txt"
        path.write_bytes(program.encode("utf-8", "surrogatepass"))
        return path
    path = KEPT / f"program_{number}.json"
    facts = {
        "floats": program.floats, "reals": program.reals, "ints": program.ints,
        "error": program.error, "why": why, "source": program.source.splitlines(),
    }  # fmt: skip
    path.write_text(json.dumps(facts, indent=1) + "\n")
    return path


def kept_programs() -> list[tuple[str, Program]]:
    """Return the programs that once failed, by the names of their files."""
    found = []
    for path in sorted(KEPT.glob("*.json")):
        facts = json.loads(path.read_text())
        source = "\n".join(facts["source"]) + "\n"
        program = Program(source, facts["floats"], facts["error"], facts["reals"], facts["ints"])
        found.append((path.name, program))
    return found


def work(args: argparse.Namespace) -> int:
    """Run programs of this worker; return the number of failures."""
    chosen = devices(args.engines)
    counts: Counter[str] = Counter()
    failures = 0
    first, last = (int(n) for n in args.seeds.split(":"))
    end = time.monotonic() + args.minutes * 60
    texts = Kernels() if args.mutated else None
    number = first + args.worker
    while number < last and time.monotonic() < end and failures < 10:
        program: Program | str
        if texts is not None:
            program = text_of(texts.input(1, number))
            wrong = run_text(program, chosen, counts)
        else:
            program = program_of(number)
            wrong = differences(program, chosen, counts)
        counts["programs"] += 1
        if args.show:
            sys.stdout.write(program if isinstance(program, str) else program.source)
        if wrong:
            failures += 1
            path = keep(number, program, wrong)
            sys.stdout.write(f"FAILED {number}: {'; '.join(wrong)} [{path}]\n")
        number += args.jobs
    sys.stdout.write(f"COUNTS {json.dumps(counts)}\n")
    return failures


def lead(args: argparse.Namespace) -> int:
    """Start workers and add up what they count."""
    begin = time.monotonic()
    workers = []
    for n in range(args.jobs):
        command = [sys.executable, "-m", "tests.fuzz.programs", "--worker", str(n)]
        command += ["--jobs", str(args.jobs), "--minutes", str(args.minutes)]
        command += ["--engines", args.engines, "--seeds", args.seeds]
        command += ["--mutated"] * args.mutated
        environment = {**os.environ, "DALA_THREADS": os.environ.get("DALA_THREADS", "1")}
        workers.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        )
    counts: Counter[str] = Counter()
    failed = []
    for worker in workers:
        out, _ = worker.communicate()
        for line in out.splitlines():
            if line.startswith("COUNTS "):
                counts.update(json.loads(line[7:]))
            elif line.startswith("FAILED "):
                failed.append(line)
        if worker.returncode not in (0, 1):
            failed.append(f"FAILED a worker ended with {worker.returncode}")
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    sys.stdout.write(f"{listed}; {time.monotonic() - begin:.0f} s with {args.jobs} jobs, ")
    sys.stdout.write(f"{len(failed)} failures\n")
    sys.stdout.write("".join(f"{line}\n" for line in failed))
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument(
        "--programs", type=int, default=0, help="how many; default: until the time is over"
    )
    parser.add_argument("--seeds", default="", help="FIRST:LAST, numbers of programs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engines", default="cpu,webgpu", help="beginnings of names, with commas")
    parser.add_argument("--mutated", action="store_true", help="mutated kernel texts, not compared")
    parser.add_argument("--show", action="store_true", help="print each program")
    parser.add_argument("--worker", type=int, default=-1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.seeds = args.seeds or f"0:{args.programs or 10**9}"
    if args.worker < 0 and (args.jobs == 1 or args.show):
        args.worker, args.jobs = 0, 1
    if args.worker >= 0:
        return 1 if work(args) else 0
    return 1 if lead(args) else 0


if __name__ == "__main__":
    sys.exit(main())
