"""Commands: handles of submitted work, to wait for it and to get its error.

A :class:`Command` refers to the state of its work and not to its buffers, so it keeps no buffer
alive. Pending commands and the last few thousand ended ones can be found by id.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from copy import copy
from itertools import count
from typing import TYPE_CHECKING, Final, Self

from dala import forks
from dala.errors import CommandTimeout, FreedError, ParameterError, UnknownCommand

if TYPE_CHECKING:
    from concurrent.futures import Future

#: The number of ended commands that can be found by id.
ENDED_KEPT: Final = 4096

_ids = count(1)
_pending: dict[int, CommandState] = {}
_ended: dict[int, CommandState] = {}
_lock = forks.lock()


class CommandState:
    """The state of a command, shared by its Command and the stream that runs it.

    The result of the future is the command's error, or None.
    """

    def __init__(self, name: str) -> None:
        self.id = next(_ids)
        self.name = name
        self.future = _running()
        #: Cancels the work.
        self.on_cancel: Callable[[], bool] = lambda: False
        #: True after the Command was garbage collected.
        self.dropped = False
        #: True after the error was raised in a caller or logged.
        self.reported = False
        _pending[self.id] = self

    def end(self, error: BaseException | None = None) -> None:
        """Mark the work as ended, with or without an error, and wake waiting threads."""
        with _lock:
            _ended[self.id] = self
            _pending.pop(self.id, None)
            if len(_ended) > ENDED_KEPT:
                del _ended[next(iter(_ended))]
        self.on_cancel = lambda: False  # it would keep the work alive
        self.future.set_result(error)

    @property
    def error(self) -> BaseException | None:
        """The error, or None; None also while the work is pending."""
        if not self.future.done():
            return None
        self.reported = True
        return self.future.result()

    def log_error(self) -> None:
        """Log an error that was not raised in a caller."""
        if self.reported or not self.future.done() or self.future.result() is None:
            return
        import logging

        self.reported = True
        logging.getLogger("dala").error(
            "dala: %s. The Command was dropped without checking its error.", self.future.result()
        )

    def outcome(self, call: str, timeout: float | None) -> BaseException | None:
        """Wait for the end and return the error or None; raise CommandTimeout after ``timeout``."""
        if timeout is not None:
            timeout = seconds(call, timeout)
        try:
            return self.future.result(timeout)
        except TimeoutError:
            raise CommandTimeout(
                f"{call}: command {self.id}, {self.name}, has not ended within {timeout:g} s. It "
                "continues; wait again, or longer.",
                call=call,
                argument="timeout",
            ) from None

    def wait(self, call: str, timeout: float | None) -> None:
        """Wait for the end; raise the error of the work, or CommandTimeout."""
        error = self.outcome(call, timeout)
        self.reported = True
        if error is not None:
            raise _copy_of(error)


def _copy_of(error: BaseException) -> BaseException:
    """Copy an error to raise it: the original would keep the frames of all callers alive."""
    try:
        made = copy(error)
    except Exception:  # an error that cannot be copied
        return error
    if type(made) is not type(error):
        return error
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)


def _running() -> Future[BaseException | None]:
    from concurrent.futures import Future  # slow to import

    future: Future[BaseException | None] = Future()
    future.set_running_or_notify_cancel()  # cancelling a task does not cancel the work
    return future


def seconds(call: str, timeout: float) -> float:
    """Check a timeout and clamp it to the system's limit."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout != timeout:
        raise ParameterError.invalid(
            call, "timeout", "a number of seconds, or None for no limit", timeout
        )
    return min(max(float(timeout), 0.0), threading.TIMEOUT_MAX)


class Command(int):
    """A handle of submitted work, which can be awaited. It is an int: the command's id.

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
        """A description, such as "run_kernel('blur')"."""
        return self._progress.name

    @property
    def error(self) -> BaseException | None:
        """The error, or None if there is none or the command is pending. Never waits."""
        return self._progress.error

    def done(self) -> bool:
        """Return True if the command has ended, with or without an error."""
        return self._progress.future.done()

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end. The result is in the output buffer.

        Raises:
            CommandTimeout: the command has not ended after ``timeout`` seconds; it continues.
            DalaError: the work failed; the message names the command.
        """
        self._progress.wait("Command.result", timeout)

    def cancel(self) -> bool:
        """End the command early; waiting for it then raises Cancelled.

        A command that has not started ends at once. A kernel that runs on the CPU ends within a
        few milliseconds. A GPU finishes what it has started. The output buffer of a command that
        had started is undefined: parts of it may be written.

        Returns:
            True if the command ends early; False if it has ended, or will, as a GPU has it.

        >>> from dala.gpu.compute import buffer, submit
        >>> command = submit({"op": "barrier"})
        >>> command.wait()
        >>> command.cancel()
        False
        """
        self._progress.reported = True
        return self._progress.on_cancel()

    def poll(self) -> str:
        """Return the state, like :func:`poll`."""
        return poll(self)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end, like :func:`wait`."""
        wait(self, timeout)

    def __await__(self) -> Generator[object, None, None]:
        import asyncio  # slow to import

        error = yield from asyncio.wrap_future(self._progress.future).__await__()
        self._progress.reported = True
        if error is not None:
            raise _copy_of(error)

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be exiting
            self._progress.dropped = True
            self._progress.log_error()

    def __repr__(self) -> str:
        future, state = self._progress.future, "pending"
        if future.done():
            state = "completed" if future.result() is None else "failed"
        return f"<Command {int(self)} {self.name} {state}>"

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # pickle only the id


def poll(command: int) -> str:
    """Return "pending" or "completed"; raise the error of a failed command.

    Args:
        command: a Command, or its id. Ids stay valid until 4096 other commands have ended after it.

    Raises:
        UnknownCommand: no command has this id.

    >>> from dala.gpu.compute import poll, submit
    >>> command = submit({"op": "barrier"})
    >>> command.wait()
    >>> poll(command)
    'completed'
    """
    progress = _find("poll", command)
    if not progress.future.done():
        return "pending"
    progress.wait("poll", None)
    return "completed"


def wait(command: int, timeout: float | None = None) -> None:
    """Wait for the end of a command; raise its error if it failed.

    Args:
        command: a Command, or its id.
        timeout: the longest time to wait, in seconds; None for no limit.

    Raises:
        UnknownCommand: no command has this id.
        CommandTimeout: the command has not ended after ``timeout`` seconds; it continues.

    >>> from dala.gpu.compute import submit, wait
    >>> wait(submit({"op": "barrier"}))
    """
    _find("wait", command).wait("wait", timeout)


def _find(call: str, command: object) -> CommandState:
    if isinstance(command, Command):
        return command._progress
    if not isinstance(command, int) or isinstance(command, bool):
        raise UnknownCommand.invalid(
            call, "command", "a Command or its id", command, "submit(...) returns one."
        )
    found = _pending.get(command) or _ended.get(command)
    if found is None:
        raise UnknownCommand(
            f"{call}: no command {command}. submit(...) returns ids; of ended commands, the last "
            f"{ENDED_KEPT} are kept.",
            call=call,
            argument="command",
        )
    return found


def _after_fork() -> None:
    for progress in list(_pending.values()):
        progress.future = _running()
        progress.reported = True  # the parent reports it
        progress.end(
            FreedError(
                f"command {progress.id}, {progress.name}, belongs to the parent process. "
                "Submit it again."
            )
        )


forks.in_child(_after_fork)
