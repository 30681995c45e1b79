"""Make the n-th operation of a kind fail: an allocation, a file, a compiler or a thread.

Faults are injected by a profile function, which sees every call that our modules make, also those
of C code. So there is nothing to switch on in the library, nothing that costs it time, and no call
that could be forgotten. Threads that are started meanwhile are profiled too.
"""

from __future__ import annotations

import errno
import gc
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import dala
from dala import resources

#: C functions by kind, with their error.
ALLOCATE = {"empty", "zeros", "empty_like", "zeros_like", "full", "copy", "tobytes"}
FILES = {"open", "replace", "rename", "write", "fsync", "mkstemp"}

#: Seconds that threads may take to end.
PATIENCE = 5.0


@dataclass
class Fault:
    """A fault that was asked for, and whether it happened."""

    number: int
    kinds: tuple[str, ...] = ("allocation", "file", "compiler", "thread")
    count: int = 0
    #: The call that failed, as "kind: function in module:line".
    where: str = ""
    lock: Any = field(default_factory=threading.Lock)

    def watch(self, frame: FrameType, event: str, argument: Any) -> None:
        """Raise at the n-th call of the kinds; the profile function of all threads."""
        if self.where or event not in ("call", "c_call"):
            return
        found = _fault(frame, event, argument)
        if found is None or found[0] not in self.kinds:
            return
        with self.lock:
            self.count += 1
            if self.count != self.number or self.where:
                return
            kind, name, caller, error = found
            module = caller.f_globals.get("__name__", "")
            self.where = f"{kind}: {name} in {module}:{caller.f_lineno}"
        raise error


def _fault(
    frame: FrameType, event: str, argument: Any
) -> tuple[str, str, FrameType, Exception] | None:
    if event == "c_call":
        name = getattr(argument, "__name__", "")
        if name in ALLOCATE and _is_numpy(argument):
            caller = _ours(frame, 2)
            if caller is not None:
                return "allocation", name, caller, MemoryError("injected")
        elif name in FILES and _is_file(argument):
            caller = _ours(frame, 4)
            if caller is not None:
                error = OSError(errno.ENOSPC, "No space left on device (injected)")
                return "file", name, caller, error
        return None
    code = frame.f_code
    if code.co_name == "start" and code.co_filename == threading.__file__:
        caller = _ours(frame.f_back, 3)
        if caller is not None:
            return "thread", "start", caller, RuntimeError("can't start new thread (injected)")
    elif code.co_name in ("parse_assembly", "link") and "llvmlite" in code.co_filename:
        caller = _ours(frame.f_back, 2)
        if caller is not None:
            return "compiler", code.co_name, caller, RuntimeError("LLVM failed (injected)")
    return None


def _is_numpy(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    return str(module).startswith("numpy")


def _is_file(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    kind = getattr(owner, "__name__", type(owner).__name__)
    return kind in ("io", "posix", "nt", "_io") or type(owner).__module__ == "_io"


def _ours(frame: FrameType | None, depth: int) -> FrameType | None:
    """Return the frame of the library that makes a call, through a few others at most."""
    for _ in range(depth):
        if frame is None:
            return None
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("dala.") and name != "dala.forks":
            return frame
        frame = frame.f_back
    return None


@contextmanager
def failing(number: int, *kinds: str) -> Iterator[Fault]:
    """Let the n-th call of some kinds (by default, of all) fail within the block."""
    fault = Fault(number, kinds) if kinds else Fault(number)
    threading.setprofile(fault.watch)
    sys.setprofile(fault.watch)
    try:
        yield fault
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class State:
    """What an operation must leave as it was."""

    objects: dict[str, int]
    threads: tuple[str, ...]
    descriptors: int
    files: tuple[str, ...]


#: Threads that stay: those of the CPU engine and of the shared stream.
KEPT = ("dala-cpu", "dala-stream", "MainThread", "pytest")


def state(folder: pathlib.Path) -> State:
    """Return the live objects, threads, descriptors and files."""
    gc.collect()
    objects = {kind: row["count"] for kind, row in resources.snapshot().items() if row["count"]}
    threads = [t.name for t in threading.enumerate() if not t.name.startswith(KEPT)]
    opened = pathlib.Path("/proc/self/fd")
    descriptors = len(os.listdir(opened)) if opened.exists() else 0
    return State(objects, tuple(sorted(threads)), descriptors, tuple(sorted(os.listdir(folder))))


def settled(folder: pathlib.Path, wanted: State) -> State:
    """Return the state, after threads that are ending have ended."""
    end = time.monotonic() + PATIENCE
    while (found := state(folder)) != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return found


def drive(
    operation: Callable[[pathlib.Path], object],
    folder: pathlib.Path,
    *kinds: str,
    most: int = 10_000,
) -> list[str]:
    """Let an operation fail at its first, second, third, ... call until it succeeds.

    Returns the calls that failed. Raises AssertionError at a leak, an unexpected error, or if the
    operation does not work afterwards.
    """
    expected = operation(folder)
    operation(folder)
    before = state(folder)
    failed: list[str] = []
    for number in range(1, most + 1):
        error: BaseException | None = None
        value: object = None
        with failing(number, *kinds) as fault:
            try:
                value = operation(folder)
            except Exception as raised:
                error = raised
        if not fault.where:
            assert error is None, f"without a fault: {error!r}"
            assert value == expected
            return failed
        failed.append(fault.where)
        if error is None:
            assert value == expected, f"a wrong result after {fault.where}"
        else:
            good = isinstance(error, dala.DalaError | MemoryError | OSError)
            assert good, f"{fault.where} raised {error!r}"
            error.__traceback__ = error.__context__ = error.__cause__ = None
        error = value = None
        found = settled(folder, before)
        assert found == before, f"left by {fault.where}: {found}, before {before}"
        assert operation(folder) == expected, f"after {fault.where}"
    return failed
