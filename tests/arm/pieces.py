"""What runs on ARM: pieces of the suite, each in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO

from tests.arm import root

#: Tests that say nothing under QEMU, by the start of their names, with the reason.
LEFT_OUT: dict[str, str] = {
    "tests/engine/answers/test_mutations.py::test_a_handful": (
        "about the table, not the processor; each mutant would compile all of Dala's sources"
    ),
    "tests/engine/test_swiftshader.py": "the root has no GPU",
    "tests/engine/limits/test_looks.py::test_the_most_work_between_two_looks": (
        "a limit of processor time, and QEMU takes ten times as much"
    ),
}

#: The processor of `make test`, and that of `make test-arm` if no other is asked for.
NEON = "neoverse-n1"
#: Seconds after which a piece has failed: several times what the longest takes.
LIMIT = 3600


@dataclass(frozen=True)
class Piece:
    """Arguments of Python that test something, and for pytest those of pytest."""

    name: str
    command: tuple[str, ...]
    pytest: bool = True
    #: Part of `make test`.
    quick: bool = False
    #: Arguments of this machine's Python for what the piece compares with, on AVX2.
    before: tuple[str, ...] = ()
    processor: str = NEON

    @property
    def arguments(self) -> tuple[str, ...]:
        if not self.pytest:
            return self.command
        return (
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.arm.plugin",
            "-p",
            "no:cacheprovider",
            *self.command,
        )


@dataclass
class Result:
    """What came of a piece."""

    sources: str
    seconds: float
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)


def pieces(processor: str = NEON) -> list[Piece]:
    """Return all pieces, those that tell most first."""
    bits = str(root.RESULTS / processor / "avx2.npz")
    found = [
        Piece(
            "bits",
            ("-m", "tests.arm.rows", bits),
            pytest=False,
            quick=True,
            before=("-m", "tests.arm.rows", "--write", bits),
        ),
        Piece("tiny", ("tests/engine/test_tiny.py", "tests/fuzz/test_programs.py"), quick=True),
    ]
    if (root.REPOSITORY / "src/dala/cli/selftest.py").exists():
        command = ("-m", "dala", "selftest", "--device", "cpu")
        few = (*command, "--share", "few", "--only", "resize")
        found.insert(0, Piece("few answers", few, pytest=False, quick=True))
        found.insert(1, Piece("answers", command, pytest=False))
    taken = {name for piece in found for name in piece.command}
    for path in sorted((root.REPOSITORY / "tests/engine").rglob("test_*.py")):
        name = path.relative_to(root.REPOSITORY).as_posix()
        if "webgpu" not in path.parts and name not in taken:
            found.append(Piece(name.removeprefix("tests/").removesuffix(".py"), (name,)))
    return [replace(piece, processor=processor) for piece in found]


def run(piece: Piece) -> Result:
    """Run a piece and keep its result and its output."""
    detail = _path(piece, "tests")
    detail.parent.mkdir(parents=True, exist_ok=True)
    detail.unlink(missing_ok=True)
    began = time.monotonic()
    if piece.before and not {"avx2", "fma"} <= processor_flags():
        return Result(sources(), 0.0, skipped={f"{piece.name}: this processor has no AVX2": 1})
    with open(_path(piece, "log"), "w") as log:
        status = 0
        if piece.before:
            env = os.environ | {"DALA_CPU": "avx2", "PYTHONPATH": str(root.REPOSITORY / "src")}
            status = _status([sys.executable, *piece.before], env, log)
        if not status:
            env = root.environment() | {"ARM_RESULTS": str(detail)}
            status = _status([str(root.python(piece.processor)), *piece.arguments], env, log)
    result = Result(sources(), time.monotonic() - began)
    if detail.exists():
        vars(result).update(json.loads(detail.read_text()))
    if status not in (0, 5) and not result.failed:  # 5: no test was selected
        result.failed.append(f"{piece.name}: ended with status {status}")
    elif not piece.pytest:
        result.passed = 1
    _path(piece, "json").write_text(json.dumps(vars(result)))
    return result


def _status(command: Sequence[str], env: Mapping[str, str], log: IO[str]) -> int:
    """Run a command with all that it starts; return its status, -9 if it took too long."""
    process = subprocess.Popen(
        command,
        cwd=root.REPOSITORY,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def processor_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def known(piece: Piece) -> Result | None:
    """Return the result of an earlier run without failures, if no source changed since."""
    try:
        result = Result(**json.loads(_path(piece, "json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return result if result.sources == sources() and not result.failed else None


def output(piece: Piece) -> str:
    return _path(piece, "log").read_text(errors="replace")


def _path(piece: Piece, suffix: str) -> Path:
    folder = root.RESULTS / piece.processor
    return folder / f"{piece.name.replace('/', '.').replace(' ', '_')}.{suffix}"


@cache
def sources() -> str:
    """Return a digest of everything that results depend on."""
    digest = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((root.REPOSITORY / folder).rglob("*.py")):
            digest.update(path.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def summary(results: dict[str, Result]) -> Iterator[str]:
    """Yield lines: what was not run and why, what failed, and counts."""
    skipped, left_out = Counter[str](), Counter[str]()
    for result in results.values():
        skipped.update(result.skipped)
        left_out.update(result.left_out)
        yield from (f"FAILED {name}" for name in result.failed)
    for what, reasons in (("skipped", skipped), ("left out", left_out)):
        yield from (f"{what} {count}: {reason}" for reason, count in reasons.most_common())
    passed = sum(r.passed for r in results.values())
    failed = sum(len(r.failed) for r in results.values())
    minutes = sum(r.seconds for r in results.values()) / 60
    yield (
        f"{passed} passed, {failed} failed, {skipped.total()} skipped, {left_out.total()} left "
        f"out, in {len(results)} pieces that took {minutes:.0f} minutes"
    )
