"""Commands: work that was submitted, how it goes, and waiting for its end.

A :class:`Command` holds the progress of its work and none of the work itself, so that keeping one
keeps no buffer. What is pending is known by id to all; of what has ended, the last few thousand are
remembered, so that a plain id can still be asked about.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import suppress
from copy import copy
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self

from dala.errors import CommandTimeout, FreedError, ParameterError, UnknownCommand

if TYPE_CHECKING:
    from concurrent.futures import Future

#: Commands remembered by id after their end.
REMEMBERED: Final = 4096

_ids = count(1)
_pending: dict[int, CommandState] = {}
_ended: dict[int, CommandState] = {}
_lock = threading.Lock()


class CommandState:
    """How one command goes: shared by its Command and by the stream that runs it.

    The future's result is the error, or None.
    """

    __slots__ = ("dropped", "future", "id", "name", "told")

    def __init__(self, name: str) -> None:
        self.id = next(_ids)
        self.name = name
        self.future = _running()
        #: True once nobody holds the Command.
        self.dropped = False
        #: True once somebody has seen the error.
        self.told = False
        _pending[self.id] = self

    def end(self, error: BaseException | None = None) -> None:
        """Tells all who wait that the work has ended, well or with an error."""
        with _lock:
            _ended[self.id] = self
            _pending.pop(self.id, None)
            if len(_ended) > REMEMBERED:
                del _ended[next(iter(_ended))]
        self.future.set_result(error)

    @property
    def error(self) -> BaseException | None:
        """What went wrong, or None; None as well while the work is pending."""
        if not self.future.done():
            return None
        self.told = True
        return self.future.result()

    def tell(self) -> None:
        """Logs an error that nobody has seen, and that perhaps nobody will."""
        if self.told or not self.future.done() or self.future.result() is None:
            return
        import logging

        self.told = True
        logging.getLogger("dala").error(
            "dala: %s. The Command was dropped without a look at its error.", self.future.result()
        )

    def outcome(self, call: str, timeout: float | None) -> BaseException | None:
        """Waits for the end and gives what went wrong, or None; CommandTimeout if it takes long."""
        if timeout is not None:
            timeout = seconds(call, timeout)
        try:
            return self.future.result(timeout)
        except TimeoutError:
            raise CommandTimeout(
                f"{call}: command {self.id}, {self.name}, has not ended within {timeout:g} s. It "
                "goes on; wait again, or longer."
            ) from None

    def wait(self, call: str, timeout: float | None) -> None:
        """Waits for the end; raises the work's error, or CommandTimeout."""
        error = self.outcome(call, timeout)
        self.told = True
        if error is not None:
            raise _again(error)


def _again(error: BaseException) -> BaseException:
    """The error for one more to raise: raised itself, it would keep the frames of all who did."""
    try:
        made = copy(error)
    except Exception:  # some errors are made in a way that copying does not know
        return error
    if type(made) is not type(error):
        return error
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)


def _running() -> Future[BaseException | None]:
    from concurrent.futures import Future  # here, because it takes long to import

    future: Future[BaseException | None] = Future()
    future.set_running_or_notify_cancel()  # a task that is cancelled does not cancel the work
    return future


def seconds(call: str, timeout: float) -> float:
    """A timeout that the system can wait for, checked."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout != timeout:
        raise ParameterError(
            f"{call}: timeout must be a number of seconds, or None to wait as long as it takes; "
            f"{timeout!r} came."
        )
    return min(max(float(timeout), 0.0), threading.TIMEOUT_MAX)


class Command(int):
    """Work that was submitted: an int, which is its id, that can be waited for and awaited.

    >>> from dala.gpu.compute import buffer, submit
    >>> a = buffer([1.0, 2.0], device="cpu")
    >>> command = submit(
    ...     {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": a, "params": {}}
    ... )
    >>> command.result(timeout=60)
    >>> command.done(), command.error, command.name
    (True, None, "run_kernel('relu')")
    """

    _progress: CommandState

    def __new__(cls, progress: CommandState) -> Self:
        made = int.__new__(cls, progress.id)
        made._progress = progress
        return made

    @property
    def name(self) -> str:
        """What it does, such as "run_kernel('blur')"."""
        return self._progress.name

    @property
    def error(self) -> BaseException | None:
        """What went wrong, or None; None as well while it is pending. Never waits."""
        return self._progress.error

    def done(self) -> bool:
        """True once it has ended, well or not."""
        return self._progress.future.done()

    def result(self, timeout: float | None = None) -> None:
        """Waits for the end; what was computed is in the output buffer.

        Raises:
            CommandTimeout: it has not ended after ``timeout`` seconds; it goes on.
            DalaError: what went wrong in it; the message names the command.
        """
        self._progress.wait("Command.result", timeout)

    def poll(self) -> str:
        """How it goes, as :func:`poll`."""
        return poll(self)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the end, as :func:`wait`."""
        wait(self, timeout)

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio  # here, because it takes longer to import than all of this package

        error = yield from asyncio.wrap_future(self._progress.future).__await__()
        self._progress.told = True
        if error is not None:
            raise _again(error)

    def __del__(self) -> None:
        with suppress(Exception):  # at exit modules may be gone
            self._progress.dropped = True
            self._progress.tell()

    def __repr__(self) -> str:
        future, state = self._progress.future, "pending"
        if future.done():
            state = "completed" if future.result() is None else "failed"
        return f"<Command {int(self)} {self.name} {state}>"

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # a copy elsewhere is an id and nothing more


def poll(command: int) -> str:
    """How a command goes: "pending" or "completed"; raises its error if it has failed.

    Args:
        command: a Command, or its id. An id is remembered while the command is pending and until
            4096 others have ended after it.

    Raises:
        UnknownCommand: no command has this id.
    """
    progress = _find("poll", command)
    if not progress.future.done():
        return "pending"
    progress.wait("poll", None)
    return "completed"


def wait(command: int, timeout: float | None = None) -> None:
    """Waits until a command, given itself or by its id, has ended; raises its error if it failed.

    Raises:
        UnknownCommand: no command has this id.
        CommandTimeout: it has not ended after ``timeout`` seconds; it goes on.
    """
    _find("wait", command).wait("wait", timeout)


def _find(call: str, command: object) -> CommandState:
    if isinstance(command, Command):
        return command._progress
    if not isinstance(command, int) or isinstance(command, bool):
        raise UnknownCommand(
            f"{call}: a Command or its id is expected, {type(command).__name__} came. "
            "submit(...) gives one."
        )
    found = _pending.get(command) or _ended.get(command)
    if found is None:
        raise UnknownCommand(
            f"{call}: there is no command {command}. Ids come from submit(...); of those that have "
            f"ended, the last {REMEMBERED} are remembered."
        )
    return found


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it
    for progress in list(_pending.values()):
        progress.future = _running()
        progress.told = True  # it is no news: the parent is told how it ends
        progress.end(
            FreedError(
                f"command {progress.id}, {progress.name}, stayed behind in the parent process. "
                "Submit it again."
            )
        )


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
