"""Memory budgets: how many bytes Dala's objects may hold, checked before they are allocated.

There is a limit for the process, for each surface, for each scene, for each block of
``dala.limits(memory=...)``, and for each graphics card whose size is known or set. :func:`reserve`
checks all that apply and counts the bytes at once; :func:`release` gives them back, also from
finalizers. The counts are those of :mod:`dala.resources`, so that there is one place that knows
what is alive.

Reservations are exact: no two threads can both take the last bytes. Small buffers outside of any
block are only counted, and compared with the limit of the process every few hundred changes.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import deque
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from dala import budget, forks, resources
from dala.errors import MemoryLimitExceeded, ParameterError
from dala.resources import Account

#: The share of the machine's memory that the process may use for Dala's objects.
PROCESS_SHARE: Final = 0.8
#: The share of the machine's memory that one surface, or one scene, may use.
OBJECT_SHARE: Final = 0.25
#: What one surface or scene may use on machines with less memory, in bytes.
OBJECT_LEAST: Final = 1 << 30
#: The environment variable with the limit of the process.
VARIABLE: Final = "DALA_MEMORY"
#: The environment variable with the limit of each graphics card.
CARD_VARIABLE: Final = "DALA_GPU_MEMORY"
#: Buffers of fewer bytes are compared with the limit of the process only now and then.
EXACT_FROM: Final = 1 << 18

#: More bytes than any machine has.
NO_LIMIT: Final = 1 << 62

#: Whose bytes they are: the accounts that were charged beside the process.
Accounts: TypeAlias = tuple[Account, ...]
#: A number of bytes: an int, or text such as "8 GiB", "500 MB" or "50%".
MemorySize: TypeAlias = int | str

_UNITS: Final = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(%|[kmgt]?(?:ib|b)?)\s*", re.IGNORECASE)

_lock = forks.rlock()
#: The budgets of graphics cards by engine.
_cards: dict[str, Account] = {}
_set_limit: int | None = None
_is_set = False


# reserving ----------------------------------------------------------------------------------------
def reserve(
    kind: str, engine: str, nbytes: int, call: str, accounts: Accounts | None = None
) -> Accounts:
    """Count bytes that are about to be allocated, or raise where a limit would be exceeded.

    Args:
        kind: the kind of object, as in ``dala.diagnostics()``.
        engine: where the memory is: the id of an engine, or "host".
        nbytes: how many bytes.
        call: the call that needs them, for the error.
        accounts: whose they are; by default those of the blocks around this call.

    Returns:
        The accounts to give to :func:`release`.

    Raises:
        MemoryLimitExceeded: a limit would be exceeded; nothing was counted.

    >>> held = reserve("doc-example", "host", 1000, "example")
    >>> release("doc-example", "host", 1000, held)
    """
    accounts = _with_card(budget.accounts() if accounts is None else accounts, engine)
    with _lock:
        check(nbytes, call, accounts, host=resources.in_host_memory(kind, engine))
        _count(kind, engine, nbytes, accounts)
    return accounts


def _with_card(accounts: Accounts, engine: str) -> Accounts:
    return (*accounts, _cards[engine]) if engine in _cards else accounts


def _count(kind: str, engine: str, nbytes: int, accounts: Accounts) -> None:
    resources.track(kind, engine, nbytes)
    for account in accounts:
        account.charge(nbytes)


def release(kind: str, engine: str, nbytes: int, accounts: Accounts) -> None:
    """Give reserved bytes back. Never waits; safe in finalizers.

    >>> release("doc-example", "host", 10, reserve("doc-example", "host", 10, "example"))
    """
    resources.untrack(kind, engine, nbytes)
    for account in accounts:
        account.charge(-nbytes)


class Held:
    """The bytes of one object whose size changes, in host memory or on an engine.

    >>> held = Held("doc-example", ())
    >>> held.resize(100, "example")
    >>> held.nbytes
    100
    >>> held.release()
    """

    __slots__ = ("_accounts", "_counted", "_engine", "_kind")

    def __init__(self, kind: str, accounts: Accounts, engine: str = "host") -> None:
        self._kind = kind
        self._engine = engine
        self._accounts = _with_card(accounts, engine)
        #: The bytes that are counted, or nothing. A deque, whose pop is atomic.
        self._counted: deque[int] = deque()

    @property
    def nbytes(self) -> int:
        """The bytes that are counted."""
        return next(iter(self._counted), 0)

    def resize(self, nbytes: int, call: str) -> None:
        """Count so many bytes from now on, or raise where that would exceed a limit.

        The number is that of before where it raises. Fewer bytes than before are never refused.
        """
        if nbytes == self.nbytes:
            return
        with _lock:
            more = nbytes - self.nbytes
            if more > 0:
                host = resources.in_host_memory(self._kind, self._engine)
                check(more, call, self._accounts, host=host)
            self.release()
            self._take(nbytes)

    def settle(self, nbytes: int) -> None:
        """Count so many bytes from now on, beyond limits too: they are allocated already."""
        if nbytes != self.nbytes:
            with _lock:
                self.release()
                self._take(nbytes)

    def move(self, accounts: Accounts) -> None:
        """Count the bytes against other accounts from now on, beyond their limits too."""
        with _lock:
            nbytes = self.nbytes
            self.release()
            self._accounts = _with_card(accounts, self._engine)
            self._take(nbytes)

    def release(self) -> None:
        """Give all bytes back. Safe in finalizers, and to call twice."""
        with contextlib.suppress(IndexError):
            release(self._kind, self._engine, self._counted.pop(), self._accounts)

    def _take(self, nbytes: int) -> None:
        if nbytes:
            _count(self._kind, self._engine, nbytes, self._accounts)
            self._counted.append(nbytes)


def check(nbytes: int, call: str, accounts: Accounts | None = None, *, host: bool = True) -> None:
    """Raise where so many more bytes would exceed a limit, and count nothing.

    For memory that Dala does not keep, such as the pixels of a picture that is being decoded.

    >>> check(1000, "load_image")
    >>> check(1 << 60, "load_image")
    Traceback (most recent call last):
    dala.errors.MemoryLimitExceeded: load_image: needs 1024 PiB of memory, and this process uses ...
    """
    if accounts is None:
        accounts = budget.accounts()
    for account in accounts:
        if nbytes > account.limit - account.used:
            raise _exceeded(
                call, nbytes, account.used, account.limit, account.owner, account.advice
            )
    limit = process_limit()
    if host and limit is not None and nbytes > limit - resources.host_bytes():
        advice = (
            f"Free something, or raise the limit with {VARIABLE} or dala.set_memory_limit(...)."
        )
        raise _exceeded(call, nbytes, resources.host_bytes(), limit, "this process", advice)


def check_copy(nbytes: int, call: str) -> None:
    """Raise where a copy of something that was passed in would exceed a limit.

    A view may have far more elements than there is memory, such as one of ``np.broadcast_to``.

    >>> check_copy(1 << 60, "blur")
    Traceback (most recent call last):
    dala.errors.MemoryLimitExceeded: blur: needs 1024 PiB of memory, and this process uses ...
    """
    if nbytes >= EXACT_FROM:
        check(nbytes, call)


def _exceeded(
    call: str, asked: int, used: int, limit: int, owner: str, advice: str
) -> MemoryLimitExceeded:
    return MemoryLimitExceeded(
        f"{call}: needs {human(asked)} of memory, and {owner} uses {human(used)} of its "
        f"{human(limit)}. {advice}",
        call=call,
        asked=asked,
        used=used,
        limit=limit,
    )


# limits -------------------------------------------------------------------------------------------
def process_limit() -> int | None:
    """Return the bytes that all objects of this process may hold in host memory; None is no limit.

    >>> process_limit() > 0
    True
    """
    limit = _set_limit if _is_set else _default_limit()
    if resources.too_many:
        resources.set_alarm(NO_LIMIT if limit is None else limit)
    return limit


def set_memory_limit(limit: MemorySize | None) -> None:
    """Set how much memory all of Dala's objects in this process may hold.

    Objects that exist are kept; what would exceed the limit is refused with MemoryLimitExceeded.
    The default is the environment variable ``DALA_MEMORY``, or 80% of the machine's memory or of
    the control group that the process runs in. The memory of graphics cards does not count.

    Args:
        limit: bytes, or text such as "8 GiB", "500 MB" or "50%" of the machine's memory; None for
            no limit.

    >>> import dala
    >>> dala.set_memory_limit("2 GiB")
    >>> dala.memory.process_limit()
    2147483648
    >>> dala.set_memory_limit("80%")
    """
    global _set_limit, _is_set
    _set_limit = None if limit is None else parse_size("dala.set_memory_limit", "limit", limit)
    _is_set = True
    resources.set_alarm(NO_LIMIT if _set_limit is None else _set_limit)


def add_card(engine: str, name: str, nbytes: int | None) -> None:
    """Count the buffers of an engine against a graphics card's memory, not against the process's.

    The limit is ``DALA_GPU_MEMORY``, or 80% of the card's memory; none if neither is known.

    Args:
        engine: the engine's id.
        name: the name of the card, for errors.
        nbytes: its memory, or None if the system does not tell.

    >>> add_card("example", "A card", 1000)
    >>> reserve("buffer", "example", 900, "copy")
    Traceback (most recent call last):
    dala.errors.MemoryLimitExceeded: copy: needs 900 bytes of memory, and A card (example) uses ...
    """
    resources.has_own_memory(engine)
    limit = _limit_of(CARD_VARIABLE, nbytes, name)
    with _lock:
        if limit is None:
            _cards.pop(engine, None)
        elif engine in _cards:
            _cards[engine].limit = limit  # it was lost and opened again
        else:
            advice = f"Free something, or set the limit with {CARD_VARIABLE}."
            _cards[engine] = Account(f"{name} ({engine})", limit, advice)


def object_limit(call: str, memory: MemorySize | None) -> int:
    """Return the limit of one surface or scene: the given one, or a quarter of the memory.

    >>> object_limit("create_surface", "100 MiB")
    104857600
    """
    if memory is not None:
        return parse_size(call, "memory", memory)
    return max(int(machine_bytes() * OBJECT_SHARE), OBJECT_LEAST)


def new_accounts(call: str, owner: str, memory: MemorySize | None) -> Accounts:
    """Return the accounts of a new surface or scene: its own, and those of the blocks around.

    >>> [account.limit for account in new_accounts("Scene", "the scene", 1000)]
    [1000]
    """
    advice = f"Free something, or give it more: {call}(..., memory='8 GiB')."
    own = Account(owner, object_limit(call, memory), advice)
    return (own, *budget.accounts())


@cache
def _default_limit() -> int | None:
    return _limit_of(VARIABLE, machine_bytes(), "the machine")


def _limit_of(variable: str, nbytes: int | None, owner: str) -> int | None:
    """Return the limit that an environment variable sets, or the usual share of a memory."""
    text = os.environ.get(variable, "").strip()
    if not text and nbytes is not None:
        return int(nbytes * PROCESS_SHARE)
    if text.lower() in ("", "none", "unlimited"):
        return None
    size = parse_size("dala", variable, text)
    if not text.endswith("%"):
        return size
    if nbytes is None:
        expected = f"bytes, since the memory of {owner} is not known"
        raise ParameterError.invalid("dala", variable, expected, text)
    return int(nbytes * size / machine_bytes())


def parse_size(call: str, argument: str, size: MemorySize) -> int:
    """Return a number of bytes from an int or a text. Units are powers of 1024.

    >>> parse_size("example", "limit", "1.5 KiB")
    1536
    """
    number = -1
    if isinstance(size, int) and not isinstance(size, bool):
        number = size
    elif isinstance(size, str) and (found := _SIZE.fullmatch(size)) is not None:
        if found[2] == "%":
            number = int(machine_bytes() * float(found[1]) / 100)
        else:
            number = int(float(found[1]) * (1 << _UNITS[found[2][:1].lower()]))
    if number < 1:
        expected = "a positive number of bytes, or text such as '8 GiB' or '50%'"
        raise ParameterError.invalid(call, argument, expected, size)
    return number


def human(nbytes: int) -> str:
    """Return a number of bytes for people.

    >>> human(12), human(3 << 20), human(int(1.26 * (1 << 30)))
    ('12 bytes', '3 MiB', '1.3 GiB')
    """
    if nbytes < 1024:
        return f"{nbytes} bytes"
    size = float(nbytes)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        size /= 1024
        if size < 1023.95 or unit == "PiB":
            break
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


# the machine --------------------------------------------------------------------------------------
@cache
def machine_bytes() -> int:
    """Return the memory that this process may use: the machine's, or its control group's.

    >>> machine_bytes() > 1 << 20
    True
    """
    return min((size for size in _machine_sizes() if size > 0), default=1 << 46)


def _machine_sizes() -> list[int]:
    sizes = _group_sizes(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    if sys.platform == "win32":
        return [*sizes, _windows_bytes()]
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        sizes.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return [size for size in sizes if 0 < size < NO_LIMIT]  # larger ones mean no limit


def _group_sizes(root: Path, membership: Path) -> list[int]:
    """Return the limits of the control group of this process, and of the groups around it."""
    try:
        lines = membership.read_text().splitlines()
    except (OSError, UnicodeError):
        return []
    found = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers and path:  # version 2
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):  # a limit of an outer group holds, too
            try:
                found.append(int((base.joinpath(*parts[:depth]) / name).read_text()))
            except (OSError, ValueError):
                continue  # "max", or a path of another namespace
    return found


def _windows_bytes() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
        ]

    status = Status(length=ctypes.sizeof(Status))
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 - unknown on other systems
    return int(status.total) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else 0
