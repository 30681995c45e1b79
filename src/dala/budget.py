"""Limits on the time, iterations and memory of work: ``with dala.limits(...):``.

Code that spends something reads :func:`current` or :func:`deadline` before it does. A scope
belongs to its thread or task. Work that Dala moves to a thread of its own takes the scope of its
caller along (:func:`capture`, :func:`applied`).
"""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass
from typing import Final, Self, TypeVar

from dala import forks
from dala.arguments import Integer, Quantity
from dala.errors import Cancelled, CommandTimeout, LimitExceeded
from dala.resources import Account


@dataclass(frozen=True)
class Limits:
    """Limits, made by :func:`limits`; None is no limit. A context manager.

    Attributes:
        time: seconds, counted from the beginning of the block, or of the call of a kernel.
        iterations: loop iterations of a kernel at one position of its output.
        memory: bytes.

    >>> import dala
    >>> dala.limits(time=2, iterations=1000)
    Limits(time=2.0, iterations=1000, memory=None)
    """

    time: float | None = None
    iterations: int | None = None
    memory: int | None = None

    def tighter(self, other: Limits) -> Limits:
        """Return the smaller of each limit.

        >>> import dala
        >>> dala.limits(time=2).tighter(dala.limits(time=3, memory=10))
        Limits(time=2.0, iterations=None, memory=10)
        """
        return Limits(*map(_least, astuple(self), astuple(other)))

    def __enter__(self) -> Self:
        _scope.set(_within(_scope.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        scope = _scope.get()
        _scope.set(scope.outer if scope is not None else None)


class Token:
    """Something that can be cancelled: a command, or the work of a surface.

    >>> token = Token()
    >>> token.watch(lambda why: print("ended:", why))
    >>> token.cancel("cancelled")
    ended: cancelled
    >>> token.cancelled
    'cancelled'
    """

    __slots__ = ("_watching", "cancelled")

    def __init__(self) -> None:
        #: Why it was cancelled, or None.
        self.cancelled: str | None = None
        self._watching: dict[Callable[[str], None], None] = {}

    def cancel(self, why: str) -> None:
        """Cancel, and call everything that watches. Takes no lock; safe in finalizers."""
        if self.cancelled is None:
            self.cancelled = why
        for stop in list(self._watching):
            stop(why)

    def watch(self, stop: Callable[[str], None]) -> None:
        """Call a function when this is cancelled, or at once if it was."""
        self._watching[stop] = None
        if self.cancelled is not None:
            stop(self.cancelled)

    def unwatch(self, stop: Callable[[str], None]) -> None:
        """Stop watching."""
        self._watching.pop(stop, None)


@dataclass(frozen=True, eq=False)
class Scope:
    """The limits in force inside a block: its own and those around it, and when its time ends."""

    limits: Limits
    #: The clock (``time.monotonic()``) at which the time ends, or None.
    deadline: float | None
    #: The seconds that were given until then.
    seconds: float | None
    outer: Scope | None
    #: What cancels the work, or None.
    token: Token | None = None
    #: The memory budgets that allocations count against, innermost first.
    accounts: tuple[Account, ...] = ()

    def check(self, call: str) -> None:
        """Raise CommandTimeout after the deadline, and Cancelled if the work was cancelled."""
        if self.token is not None and self.token.cancelled is not None:
            raise cancelled(call, self.token.cancelled)
        if self.deadline is not None and clock.monotonic() >= self.deadline:
            raise timed_out(call, self.seconds)


_scope: ContextVar[Scope | None] = ContextVar("dala_limits", default=None)

#: The accounts of the surface or scene that this thread or task works for.
_charged: ContextVar[tuple[Account, ...]] = ContextVar("dala_accounts", default=())

#: :func:`capture` as a C function, for calls that take microseconds.
find_scope: Final[Callable[[], Scope | None]] = _scope.get

_NONE: Final = Limits()

Number = TypeVar("Number", int, float)
Item = TypeVar("Item")


def limits(
    time: float | None = None, iterations: int | None = None, memory: int | None = None
) -> Limits:
    """Limit the time and memory of a ``with`` block, or, given to a kernel, of one call of it.

    Blocks can be nested: the tighter limit holds. A block affects its own thread or task, and the
    work that Dala does for it on other threads.

    Args:
        time: seconds from the beginning of the block. Kernels end at that time with
            CommandTimeout.
        iterations: the loop iterations that a kernel may make at one position of its output, over
            all its loops. A kernel that makes more ends with LimitExceeded.
        memory: the bytes that the work of the block may allocate. More raises LimitExceeded.

    Raises:
        ParameterError: a limit is not a positive number.

    >>> import dala
    >>> from dala.gpu.compute import buffer, relu
    >>> with dala.limits(time=60, iterations=1_000_000):
    ...     relu(buffer([-1.0, 2.0], device="cpu")).read_list()
    [0.0, 2.0]
    >>> dala.limits(time=-1)
    Traceback (most recent call last):
    dala.errors.ParameterError: dala.limits: time must be a positive number of seconds, or None ...
    """
    words = "a positive number of {}, or None for no limit"
    seconds = Quantity(0, above=True, words=words.format("seconds"))
    counts = [
        Integer(1, words=words.format(unit)).check_optional(
            "dala.limits", name, int(n) if isinstance(n, float) and n.is_integer() else n
        )
        for name, unit, n in (("iterations", "iterations", iterations), ("memory", "bytes", memory))
    ]
    return Limits(seconds.check_optional("dala.limits", "time", time), *counts)


def current() -> Limits:
    """Return the limits in force here: the tightest of all blocks around this call.

    >>> import dala
    >>> with dala.limits(memory=1000), dala.limits(time=60, memory=2000):
    ...     current().memory
    1000
    >>> current()
    Limits(time=None, iterations=None, memory=None)
    """
    scope = _scope.get()
    return _NONE if scope is None else scope.limits


def deadline() -> float | None:
    """Return when the time of the blocks around this call ends, by ``time.monotonic()``, or None.

    >>> deadline() is None
    True
    """
    scope = _scope.get()
    return None if scope is None else scope.deadline


def check_deadline(call: str) -> None:
    """Raise CommandTimeout or Cancelled if the work around this call has to end.

    >>> check_deadline("blur")
    """
    scope = _scope.get()
    if scope is not None:
        scope.check(call)


def checked(items: Iterable[Item], call: str) -> Iterator[Item]:
    """Yield items, with :func:`check_deadline` before each: for loops over the contents of files.

    >>> list(checked([1, 2], "blur"))
    [1, 2]
    """
    for item in items:
        scope = _scope.get()
        if scope is not None:
            scope.check(call)
        yield item


def pause(changed: threading.Condition, seconds: float, call: str) -> None:
    """Wait on a condition, no longer than so long and than the time of the blocks around this call.

    It returns after half a second at the latest, so that Ctrl-C works on every platform: call it in
    a loop.

    >>> changed = threading.Condition()
    >>> with changed:
    ...     pause(changed, 0.001, "open_source")
    """
    until = deadline()
    if until is not None:
        seconds = min(seconds, until - clock.monotonic())
    changed.wait(max(min(seconds, 0.5), 0))
    check_deadline(call)


@contextmanager
def ending(stop: Callable[[], object]) -> Iterator[None]:
    """Call a function, on another thread, if the time of the blocks around this call ends.

    For one call of a library that can be ended. A command that is cancelled calls it, too.

    >>> with ending(lambda: print("not called")):
    ...     pass
    """
    scope = _scope.get()
    if scope is None:
        yield
        return
    over = forks.event()

    def watch(why: str = "") -> None:
        stop()

    def wait(seconds: float) -> None:
        if not over.wait(seconds):
            stop()

    if scope.token is not None:
        scope.token.watch(watch)
    if scope.deadline is not None:
        left = max(scope.deadline - clock.monotonic(), 0.0)
        forks.thread(wait, name="dala deadline", args=(left,)).start()
    try:
        yield
    finally:
        over.set()
        if scope.token is not None:
            scope.token.unwatch(watch)


def timed_out(call: str, seconds: float | None) -> CommandTimeout:
    """Return the error of work that was ended by ``dala.limits(time=seconds)``.

    >>> print(timed_out("blur", 0.5))
    blur: ended after the 0.5 s of dala.limits(time=0.5). Allow more time, or do less work.
    """
    shown = f"{seconds:g}" if seconds is not None else "?"
    return CommandTimeout(
        f"{call}: ended after the {shown} s of dala.limits(time={shown}). Allow more time, or do "
        "less work.",
        call=call,
        argument="time",
        got=seconds,
    )


def cancelled(call: str, why: str) -> Cancelled:
    """Return the error of work that was cancelled.

    >>> print(cancelled("blur", "cancelled"))
    blur: cancelled. Its output is undefined.
    """
    return Cancelled(f"{call}: {why}. Its output is undefined.", call=call)


def limit_exceeded(call: str, limit: int) -> LimitExceeded:
    """Return the error of a kernel that makes more iterations than its limit.

    >>> print(limit_exceeded("count", 100))  # doctest: +ELLIPSIS
    count: iterations must be at most 100 at each position, got more. Allow more iterations...
    """
    error = LimitExceeded(
        f"{call}: iterations must be at most {limit} at each position, got more. Allow more "
        "iterations with dala.limits(iterations=), or loop less.",
        call=call,
    )
    error.argument, error.expected = "iterations", f"at most {limit}"
    return error


def capture() -> Scope | None:
    """Return the scope of this thread or task, to apply it on another with :func:`applied`.

    >>> capture() is None
    True
    """
    return _scope.get()


def scope_of(token: Token, own: Limits | None = None, outer: Scope | None = None) -> Scope:
    """Return the scope of work that a token cancels: within a captured one, with limits of its own.

    >>> scope_of(Token(), limits(iterations=3)).limits.iterations
    3
    """
    made = _within(outer, own or _NONE)
    return Scope(made.limits, made.deadline, made.seconds, None, token, made.accounts)


@contextmanager
def applied(scope: Scope | None) -> Iterator[None]:
    """Run a block in a captured scope. Its deadline is that of the block it was captured in.

    >>> with applied(None):
    ...     current().time
    """
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)


def accounts() -> tuple[Account, ...]:
    """Return the memory budgets that allocations count against here, beside the process's.

    >>> import dala
    >>> with dala.limits(memory=1000):
    ...     [account.limit for account in accounts()]
    [1000]
    """
    scope, found = _scope.get(), _charged.get()
    if scope is None or not scope.accounts:
        return found
    return found + tuple(each for each in scope.accounts if each not in found)


class Charging:
    """A block whose allocations count against the memory budgets of an object, its accounts.

    Args:
        accounts: the budgets, beside those of objects around the block.
        alone: only these, and those of ``dala.limits``: what the block allocates belongs to its
            caller, not to the objects that work for it.

    >>> from dala.resources import Account
    >>> with Charging((Account("the example", 100, ""),)):
    ...     len(accounts())
    1
    """

    __slots__ = ("_accounts", "_alone", "_token")

    def __init__(self, accounts: tuple[Account, ...], *, alone: bool = False) -> None:
        self._accounts = accounts
        self._alone = alone

    def __enter__(self) -> Self:
        around = () if self._alone else _charged.get()
        if around:  # each budget once, or scenes in scenes would double them
            around = tuple(each for each in around if each not in self._accounts)
        self._token = _charged.set(self._accounts + around)
        return self

    def __exit__(self, *_: object) -> None:
        _charged.reset(self._token)


def _within(outer: Scope | None, own: Limits) -> Scope:
    until, seconds = None, own.time
    if seconds is not None:
        until = clock.monotonic() + min(seconds, threading.TIMEOUT_MAX)
    whole, accounts = own, () if outer is None else outer.accounts
    if own.memory is not None:
        advice = "Allow more, or do less work."
        block = Account(f"the block of dala.limits(memory={own.memory})", own.memory, advice)
        accounts = (block, *accounts)
    if outer is not None:
        whole = own.tighter(outer.limits)
        if outer.deadline is not None and (until is None or outer.deadline <= until):
            until, seconds = outer.deadline, outer.seconds
    token = None if outer is None else outer.token
    return Scope(whole, until, seconds, outer, token, accounts)


def _least(a: Number | None, b: Number | None) -> Number | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
