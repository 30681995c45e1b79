"""Make the n-th call of an operation across the border fail, for n = 1, 2, 3, ...

:mod:`tests.support.borders` knows the calls: allocations, files, sockets, threads, compilers,
devices, codecs, pictures, models. Here an operation is driven through all of them, and what it must
leave as it was is compared.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import gc
import hashlib
import os
import pathlib
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import dala
from dala import resources
from dala.gpu.compute import buffer
from tests.support import borders

#: Seconds that threads may take to end.
PATIENCE = 60.0
#: Seconds after which an operation counts as hanging.
HANGS = 60.0
#: Packages whose errors must not reach users as they are.
FOREIGN = ("av", "wgpu", "onnxruntime", "PIL", "freetype", "uharfbuzz", "PyOpenColorIO", "llvmlite")


class Hung(BaseException):
    """An operation that did not end."""


@contextmanager
def failing(number: int, *kinds: str) -> Iterator[borders.Faults]:
    """Let the n-th call of some kinds (by default, of all) fail within the block."""
    borders.rewrite()
    borders.FAULTS.start(number, kinds)
    try:
        yield borders.FAULTS
    finally:
        borders.FAULTS.stop()


@contextmanager
def no_longer_than(seconds: float, what: str) -> Iterator[None]:
    """Raise Hung in a block that waits for longer. On the main thread only."""

    def end(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback(all_threads=True)
        raise Hung(f"{what}: it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class State:
    """What an operation must leave as it was."""

    objects: dict[str, int]
    threads: tuple[str, ...]
    descriptors: int
    #: Names of files, with digests of their contents.
    files: tuple[tuple[str, str], ...]


#: Threads that stay: those of the CPU engine and of the shared stream.
KEPT = ("dala-cpu", "dala-stream", "MainThread", "pytest")


def state(folder: pathlib.Path) -> State:
    """Return the live objects, threads, descriptors and files."""
    gc.collect()
    objects = {kind: row["count"] for kind, row in resources.snapshot().items() if row["count"]}
    threads = [t.name for t in threading.enumerate() if not t.name.startswith(KEPT)]
    opened = pathlib.Path("/proc/self/fd")
    descriptors = len(os.listdir(opened)) if opened.exists() else 0
    files = ((path.name, digest(path)) for path in sorted(folder.rglob("*")))
    return State(objects, tuple(sorted(threads)), descriptors, tuple(files))


def digest(path: pathlib.Path) -> str:
    """Return a digest of a file's bytes; of Matroska files, which have a random number, none."""
    if path.suffix == ".mkv" or not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def settled(folder: pathlib.Path, wanted: State, *, files: bool = True) -> State:
    """Return the state, after threads that are ending have ended.

    Without ``files``, those may differ, and are taken for the wanted ones.
    """
    end = time.monotonic() + PATIENCE
    while True:
        found = state(folder)
        if not files:
            found = dataclasses.replace(found, files=wanted.files)
        if found == wanted or time.monotonic() > end:
            return found
        time.sleep(0.01)


def drive(
    operation: Callable[[pathlib.Path], object],
    folder: pathlib.Path,
    *kinds: str,
    most: int = 10_000,
    exempt: Mapping[str, str] | None = None,
) -> list[str]:
    """Let an operation fail at its first, second, third, ... call until it succeeds.

    ``exempt`` names calls ("kind: function in module") whose faults may change the result and its
    files, with the reason. Returns the calls that failed. Raises AssertionError at a leak, an
    unexpected error, or if the operation does not work afterwards.
    """
    expected = operation(folder)
    borders.rewrite()
    assert operation(folder) == expected, "it does not do the same twice"
    gc.collect()
    gc.freeze()  # what lives now is not searched again and again
    try:
        return _drive(operation, folder, kinds, most, expected, exempt or {})
    finally:
        gc.unfreeze()


def _drive(
    operation: Callable[[pathlib.Path], object],
    folder: pathlib.Path,
    kinds: tuple[str, ...],
    most: int,
    expected: object,
    exempt: Mapping[str, str],
) -> list[str]:
    before = state(folder)
    failed: list[str] = []
    problems: list[str] = []
    for number in range(1, most + 1):
        error: BaseException | None = None
        value: object = None
        with no_longer_than(HANGS, f"fault {number}"), failing(number, *kinds) as fault:
            try:
                value = operation(folder)
            except Exception as raised:
                error = raised
        where = fault.where
        if not where:
            assert error is None, f"without a fault: {error!r}"
            assert value == expected, "without a fault, the result differs"
            break
        failed.append(where)
        exempted = where.rpartition(":")[0] in exempt
        if error is not None:
            problems += wrong_error(error, where)
            clear(error)
        elif value != expected and not exempted:
            problems.append(f"{where}: a wrong result, {value!r:.300}")
        error = value = None
        found = settled(folder, before, files=not exempted)
        if found != before:
            problems.append(f"{where}: left {found}, before {before}")
            before = found
        with no_longer_than(HANGS, f"after {where}"):
            take_late_errors()
            if operation(folder) != expected:
                problems.append(f"{where}: the next call differs")
    assert not problems, "\n".join(problems)
    return failed


def take_late_errors() -> None:
    """Wait for the device. An error in work that no call has waited for is raised by the next."""
    for _ in range(3):
        try:
            buffer([0.0]).read_list()
            return
        except dala.DeviceError as error:
            late = error
    raise AssertionError(f"the device does not recover: {late}")


def clear(error: BaseException | None) -> None:
    """Drop what the tracebacks of an error and of its causes keep alive."""
    while error is not None:
        error.__traceback__, error, after = None, error.__context__, error
        after.__context__ = after.__cause__ = None


def wrong_error(error: BaseException, where: str) -> list[str]:
    """Return what is wrong with an error: users expect ours, MemoryError and OSError."""
    good = isinstance(error, dala.DalaError | MemoryError | OSError)
    foreign = type(error).__module__.partition(".")[0] in FOREIGN
    if good and not foreign:
        return []
    trace = traceback.format_tb(error.__traceback__)
    return [f"{where} raised {type(error).__module__}.{error!r} by {''.join(trace[1:4])}"]
