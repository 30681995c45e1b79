"""Locks, threads and pools that are reset or gone in a forked child.

``fork()`` copies one thread. A lock that another thread held stays held in the child for ever, and
work that another thread did is never finished. So everything that threads share is made here, and
is reset in a child before any other code runs there:

>>> guard = lock()  # free in a child, also if a thread of the parent held it
>>> with guard:
...     guard.locked()
True
>>> worker = thread(print, name="example", args=("hello",))
>>> worker.start()
hello
>>> worker.join()

State that is reset in some other way registers a function with :func:`in_child`. Objects that live
by a thread remember the :func:`generation` in which they were made, and raise in a later one.

Libraries that are in the middle of a native call cannot be reset. They are called under a
:func:`native_lock`: a fork waits until it is free, and the child can go on using the library.
"""

from __future__ import annotations

import atexit
import functools
import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, ClassVar, Final, ParamSpec, Protocol, TypeVar

from dala.errors import DeviceError, FreedError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a fork waits for the native calls of other threads. The longest are compilations.
NATIVE_SECONDS: Final = 5.0
#: Seconds that a fork waits for imports of other threads.
IMPORT_SECONDS: Final = 2.0
#: The packages whose imports it waits for: ours, those that we use, and the standard library. A
#: program's own module may run for as long as the program.
_IMPORTED: Final = sys.stdlib_module_names | {
    "dala", "llvmlite", "wgpu", "cffi", "rendercanvas", "av", "PIL", "onnxruntime", "numpy"
}  # fmt: skip


class _Resettable(Protocol):
    def _at_fork_reinit(self) -> None: ...


_generation = 0
#: Locks, conditions and events. The standard library resets its own by the same method.
_locks: weakref.WeakSet[_Resettable] = weakref.WeakSet()
_resets: dict[int, Callable[[], Callable[[], object] | None]] = {}
_native: weakref.WeakSet[NativeLock] = weakref.WeakSet()
_held: list[NativeLock] = []


def generation() -> int:
    """Return the number of forks that lie between this process and the first one.

    >>> generation()
    0
    """
    return _generation


def lock() -> threading.Lock:
    """Return a lock that is free in a forked child."""
    return _registered(threading.Lock())


def rlock() -> threading.RLock:
    """Return a re-entrant lock that is free in a forked child."""
    return _registered(threading.RLock())


def latch() -> threading.Lock:
    """Return a lock that is held, for another thread to release once. It is not reset in a child.

    >>> latch().locked()
    True
    """
    made = threading.Lock()
    made.acquire()
    return made


def condition(lock: threading.Lock | threading.RLock | None = None) -> threading.Condition:
    """Return a condition that no thread waits for in a forked child; its lock is free there.

    >>> changed = condition()
    >>> with changed:
    ...     changed.notify_all()
    """
    return _registered(_Condition(rlock() if lock is None else lock))


def event() -> threading.Event:
    """Return an event that stays set or unset in a forked child.

    >>> event().is_set()
    False
    """
    return _registered(threading.Event())


def _registered(made: T) -> T:
    _locks.add(made)  # type: ignore[arg-type]  # typeshed omits the method
    return made


class _Condition(threading.Condition):
    """A condition whose ``with`` runs no Python code, so that Ctrl-C cannot leave it locked."""

    __enter__ = property(operator.attrgetter("_enter"))
    __exit__ = property(operator.attrgetter("_exit"))

    def __init__(self, lock: threading.Lock | threading.RLock) -> None:
        super().__init__(lock)
        self._enter, self._exit = lock.__enter__, lock.__exit__


class _Semaphore(threading.Semaphore):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self._initial = value
        _registered(self)

    def _at_fork_reinit(self) -> None:
        super().__init__(self._initial)


class cached_property(functools.cached_property[T]):  # noqa: N801 - as the standard library's
    """``functools.cached_property``, whose lock is free in a forked child.

    Python 3.11 holds a lock of the class while the value is computed; later versions have none.

    >>> class Square:
    ...     @cached_property
    ...     def area(self):
    ...         return 4
    >>> Square().area
    4
    """

    def __init__(self, function: Callable[..., T]) -> None:
        super().__init__(function)
        held = getattr(self, "lock", None)
        if held is not None:
            _registered(held)


def semaphore(value: int) -> threading.Semaphore:
    """Return a semaphore that has its first value again in a forked child.

    >>> semaphore(1).acquire(blocking=False)
    True
    """
    return _Semaphore(value)


class ThreadLocal(threading.local):
    """Attributes of each thread. Its owner replaces it in a forked child.

    >>> class Depth(ThreadLocal):
    ...     value = 0
    >>> Depth().value
    0
    """


def at_child_exit(function: Callable[[], object]) -> None:
    """Call a function when this process ends, also in one that multiprocessing has forked.

    >>> at_child_exit(lambda: None)
    """
    atexit.register(function)
    if "multiprocessing" in sys.modules:  # whose forked children run no atexit functions
        from multiprocessing.util import Finalize, register_after_fork

        # It forgets what was to be called at the end, and then calls this.
        register_after_fork(function, lambda kept: Finalize(None, kept, exitpriority=0))


def simple_queue() -> SimpleQueue[T]:
    """Return an unbounded queue that is safe to use in finalizers.

    Its owner replaces it in a forked child; see :func:`in_child`.

    >>> simple_queue().empty()
    True
    """
    return SimpleQueue()


def thread(
    target: Callable[..., object], *, name: str, args: tuple[object, ...] = ()
) -> threading.Thread:
    """Return a thread that does not delay the end of the program. In a child it is not alive.

    ``start()`` raises DeviceError where the system has no more threads.

    >>> thread(print, name="example").is_alive()
    False
    """
    return _Thread(target=target, name=name, args=args, daemon=True)


class _Thread(threading.Thread):
    def start(self) -> None:
        try:
            super().start()
        except RuntimeError as error:
            raise _no_thread(self.name, error) from None


def _no_thread(name: str, error: RuntimeError) -> DeviceError:
    return DeviceError(
        f"{name}: cannot start a thread ({error}). Close objects that have threads, or raise the "
        "system's limit."
    )


def pool(workers: int, name: str) -> ThreadPoolExecutor:
    """Return a pool of threads. A forked child must not use it: check :func:`generation`.

    ``submit()`` raises DeviceError where the system has no more threads.

    >>> with pool(1, "example") as threads:
    ...     threads.submit(lambda: 6 * 7).result()
    42
    """
    return _pool_class()(workers, name)


@functools.cache
def _pool_class() -> type[ThreadPoolExecutor]:
    from concurrent.futures import Future, ThreadPoolExecutor  # slow to import

    class Pool(ThreadPoolExecutor):
        def submit(self, work: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
            try:
                return super().submit(work, *args, **named)
            except RuntimeError as error:
                if "start new thread" not in str(error):
                    raise
                raise _no_thread("a pool", error) from None

    return Pool


def in_child(reset: Callable[[], object]) -> None:
    """Call a function in a forked child, after the locks were reset, in the order of registration.

    A method is registered weakly: it is not called after its object was collected.

    >>> in_child(lambda: None)
    """
    if getattr(reset, "__self__", None) is None:
        _resets[id(reset)] = lambda: reset
        return
    method = weakref.WeakMethod(reset)
    key = id(method)
    _resets[key] = method
    weakref.finalize(reset.__self__, _resets.pop, key, None).atexit = False  # type: ignore[attr-defined]


class NativeLock:
    """A re-entrant lock around calls of a library whose state cannot be reset.

    In a child that was forked during a call that did not end in time, entering it raises.
    """

    #: Acquires one, and records that it waited; None where no trace runs.
    waits: ClassVar[Callable[[NativeLock], None] | None] = None

    def __init__(self, library: str, settle: Callable[[], object] | None = None) -> None:
        self.library = library
        self._lock = threading.RLock()
        self._broken = False
        #: Waits for calls that finalizers make without the lock.
        self.settle = settle

    def __enter__(self) -> None:
        if self._broken:
            raise DeviceError(
                f"{self.library} cannot be used in this process: it was forked while another "
                f"thread of its parent was in a call that took more than {NATIVE_SECONDS:g} s. "
                "Start processes with multiprocessing.get_context('spawn')."
            )
        if NativeLock.waits is None:
            self._lock.acquire()
        else:
            NativeLock.waits(self)

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire it, as the method of ``threading.Lock``."""
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        """Release it."""
        self._lock.release()

    def reset(self) -> None:
        """Mark it as broken, in a child that was forked while another thread held it."""
        self._broken = True
        self._lock = threading.RLock()


def native_lock(library: str, settle: Callable[[], object] | None = None) -> NativeLock:
    """Return a lock for the calls of a library: a fork waits for it, up to 5 s.

    A fork that holds it calls ``settle``, to wait for calls that are made without it.

    >>> guard = native_lock("LLVM")
    >>> with guard, guard:
    ...     pass
    """
    made = NativeLock(library, settle)
    with _adding:  # not between the hooks of a fork
        _native.add(made)
    return made


_adding = NativeLock("dala.forks")


class Home:
    """The process that an object was made in.

    >>> Home().here
    True
    """

    __slots__ = ("_generation",)

    def __init__(self) -> None:
        self._generation = _generation

    @property
    def here(self) -> bool:
        """False in a process that was forked later."""
        return self._generation == _generation

    def check(self, what: str, advice: str) -> None:
        """Raise FreedError in a process that was forked later.

        >>> Home().check("the file", "Open it again.")
        """
        if self._generation != _generation:
            raise FreedError(
                f"{what} was opened before this process was forked, and belongs to the parent. "
                f"{advice}"
            )


def finalize(
    owner: object, function: Callable[..., object], *args: object
) -> weakref.finalize[..., object]:
    """Call a function when an object is collected, but not in a forked child.

    Files, sockets and threads that a child inherits belong to the parent: it must not delete or
    close them. In a child, what the function would release is kept for ever.

    >>> class Example: ...
    >>> example = Example()
    >>> _ = finalize(example, print, "closed")
    >>> del example
    closed
    """
    return weakref.finalize(owner, _at_home, Home(), function, *args)


def _at_home(home: Home, function: Callable[..., object], *args: object) -> None:
    if home.here:
        function(*args)
    else:
        keep((function, args))


def keep(made: object) -> None:
    """Keep an object for ever, also at interpreter exit.

    For native objects of the parent: to free one would wait for threads that a child does not have.

    >>> keep(object())
    """
    import ctypes  # slow to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))


# the hooks ---------------------------------------------------------------------------------------
def _before() -> None:
    """Take all native locks, or as many as are free in time, while no other thread imports."""
    end = time.monotonic() + NATIVE_SECONDS + IMPORT_SECONDS
    while True:
        _wait_for_imports()
        _take_native_locks()
        # An import may have begun meanwhile, and may itself wait for a native lock.
        if not _importing() or time.monotonic() > end:
            return
        _release()


def _take_native_locks() -> None:
    """Take all native locks, or as many as are free in time.

    A thread that holds one may wait for another, so they are taken together or not at all.
    """
    end = time.monotonic() + NATIVE_SECONDS
    late: set[NativeLock] = set()  # broken in the child
    first = _adding
    while True:
        if first.acquire(timeout=max(end - time.monotonic(), 0.0)):
            _held.append(first)
        else:
            late.add(first)
        for guard in [_adding, *_native]:
            if guard in late or guard in _held:
                continue
            if not guard.acquire(blocking=False):
                _release()
                first = guard
                break
            _held.append(guard)
        else:
            if all(guard in late or guard in _held for guard in list(_native)):
                for guard in _held:
                    if guard.settle is not None:
                        guard.settle()
                return
            _release()


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module of ours, or one that we use.

    In a child such a module is never complete, and its lock never free.
    """
    end = time.monotonic() + IMPORT_SECONDS
    while _importing() and time.monotonic() < end:
        time.sleep(0.001)


def _importing() -> bool:
    """Return whether another thread imports a module of ``_IMPORTED``.

    The stacks tell it from the moment when the module is looked for; ``sys.modules`` only later.
    """
    own = threading.get_ident()
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top if thread != own else None
        while frame is not None:
            code = frame.f_code
            if code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen"):
                name = frame.f_locals.get("name")
                if not isinstance(name, str) or name.partition(".")[0] in _IMPORTED:
                    return True
            frame = frame.f_back
    return False


def _release() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    global _generation
    _generation += 1
    for guard in [_adding, *_native]:
        if guard not in _held:
            guard.reset()
    _release()
    for made in list(_locks):
        made._at_fork_reinit()
    for find in list(_resets.values()):
        reset = find()
        if reset is not None:
            reset()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
