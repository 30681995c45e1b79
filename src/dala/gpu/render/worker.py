"""A thread that executes a bounded queue of command bytes in order.

Any thread may queue commands, which costs one list append. The worker takes many of them at a time
and executes them joined. Requests, which are function calls, keep their place among the commands;
callers may wait for them.

Code that a finalizer may call takes no lock: finalizers run on any thread at any time, also while
that thread holds the lock.
"""

from __future__ import annotations

import atexit
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from queue import SimpleQueue
from typing import Final, Generic, NoReturn, TypeVar

from dala import forks
from dala.budget import Token, check_deadline
from dala.errors import CommandError, DeviceError, FreedError
from dala.trace.recorder import OFF, Here, traced, tracer

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Items that may be queued. A caller that queues more waits until half of them are done.
MAX_QUEUED: Final = 8192
#: Bytes of large commands and pictures that may be queued.
MAX_QUEUED_BYTES: Final = 128 << 20
#: Seconds of computing that one chunk of the queue should take at most: closing waits for it.
CHUNK_SECONDS: Final = 0.1
#: Seconds between the checks of a waiting thread; short, so that Ctrl-C works on every system.
POLL_SECONDS: Final = 0.2
#: Seconds that closing a worker waits for the command that is running.
CLOSE_TIMEOUT: Final = 10.0


class Request(Generic[T_co]):
    """A function to be called on the worker's thread, in order with the queued commands."""

    __slots__ = ("_result", "done", "error", "refused", "work")

    def __init__(self, work: Callable[[], T_co]) -> None:
        #: The function; None once it ran, or once its caller stopped waiting.
        self.work: Callable[[], T_co] | None = work
        #: Released when the request was run or refused.
        self.done = forks.latch()
        self._result: list[T_co] = []
        self.error: BaseException | None = None
        self.refused = False

    @property
    def result(self) -> T_co:
        """The return value of the function."""
        return self._result[0]

    def run(self) -> None:
        """Call the function, unless it was canceled, and wake the caller."""
        work, self.work = self.work, None
        try:
            if work is not None:
                self._result.append(work())
        except BaseException as error:  # raised on the thread that waits
            self.error = error
        self.done.release()

    def refuse(self) -> None:
        """Wake the caller without calling the function."""
        self.work, self.refused = None, True
        self.done.release()


Item = bytes | Request[object]


class Worker:
    """A command queue and the thread that executes it."""

    def __init__(self, name: str) -> None:
        #: A list, since taking and deleting a slice is faster than popping items one by one.
        self._items: list[Item] = []
        self._chunk_size = 256
        #: True where queueing has to do more than append: the thread sleeps, or has ended.
        self._alert = False
        self._asleep = False
        self._closing = False
        #: Cancels the computing of commands.
        self.token = Token()
        self._forked = False
        self._wakeups: SimpleQueue[Here | None] = forks.simple_queue()
        self._room = forks.condition()
        #: Threads that wait for room in the queue.
        self._waiting = 0
        #: Bytes reserved in the queue since the start, and those of them that are done.
        self._reserved = self._released = 0
        #: The thread that the worker is paused for.
        self._holder: int | None = None
        self._thread = forks.thread(self._work, name=name)

    def start(self) -> None:
        """Start the thread."""
        _register()
        workers.add(self)
        try:
            self._thread.start()
        except DeviceError as error:
            workers.discard(self)
            raise error.within("create_surface") from None

    @abstractmethod
    def execute(self, data: bytes | bytearray) -> None:
        """Execute command bytes; called on the worker's thread."""

    @abstractmethod
    def record_error(self, error: Exception) -> None:
        """Remember an error of a command that no caller waited for."""

    @abstractmethod
    def release(self) -> None:
        """Free all resources; the last call on the thread."""

    # queueing, from any thread ----------------------------------------------------------------
    def put(self, data: bytes) -> None:
        """Queue command bytes; waits only while the queue is full."""
        items = self._items
        items.append(data)
        if self._alert or len(items) > MAX_QUEUED:
            self._wake_and_wait()

    def put_large(self, data: bytes) -> None:
        """Queue command bytes that count against the limit on queued bytes."""
        self.post(lambda: self.execute(data), len(data))

    def post(self, work: Callable[[], object], nbytes: int = 0) -> None:
        """Queue a function call without waiting for it.

        Its errors are recorded. ``nbytes`` of memory that it keeps alive count against the limit.
        """
        if self.on_thread:
            self._attempt(work)
            return
        reserved = self._reserve(nbytes)

        def attempt() -> None:
            self._attempt(work)
            self._release_bytes(reserved)

        self._items.append(Request(attempt))
        self._wake_and_wait()

    def call(self, work: Callable[[], T]) -> T:
        """Call a function on the worker's thread, after everything queued before, and wait."""
        if self.on_thread:
            return work()
        if self.holds_canvas:
            raise CommandError(
                "with_pixels: the surface is paused while its function runs. Work on the array "
                "that the function was given, and read pixels after it."
            )
        request = Request(work)
        try:
            self._items.append(request)
            self._wake()
            with tracer.wait("", "the render thread") if tracer.on else OFF:
                while not request.done.acquire(timeout=POLL_SECONDS):
                    check_deadline("Surface")
                    if not self._thread.is_alive() and not request.done.acquire(blocking=False):
                        self.raise_closed()
        except BaseException:
            request.work = None  # interrupted: do not run it after its caller has moved on
            raise
        if request.refused:
            self.raise_closed()
        if request.error is not None:
            raise request.error
        return request.result

    def pause(self, hold: threading.Lock | None = None) -> tuple[threading.Lock, threading.Lock]:
        """Queue a pause of the thread.

        Returns a lock that can be acquired once the pause began, and one whose release ends it. A
        caller passes a lock that it holds and releases in a ``finally`` block: the pause ends also
        when the caller is interrupted. (The methods of ``threading.Event`` are Python code, which
        an interrupt may leave half done.)
        """
        paused = forks.latch()
        if hold is None:
            hold = forks.latch()

        def stand_still() -> None:
            paused.release()
            while not hold.acquire(timeout=POLL_SECONDS / 4) and not self._closing:
                pass

        self._items.append(Request(stand_still))
        self._wake()
        return paused, hold

    # state ------------------------------------------------------------------------------------
    @property
    def pending(self) -> int:
        """The number of queued items."""
        return len(self._items)

    @property
    def idle(self) -> bool:
        """True while nothing is queued and nothing is being executed."""
        return self._asleep and not self._items

    @property
    def closed(self) -> bool:
        """True once it accepts no more commands."""
        return self._closing

    @property
    def on_thread(self) -> bool:
        """True on the worker's own thread, where waiting for it would never end."""
        return threading.get_ident() == self._thread.ident

    @property
    def holds_canvas(self) -> bool:
        """True on the thread that the worker is paused for."""
        return threading.get_ident() == self._holder

    def raise_closed(self, call: str = "") -> NoReturn:
        """Raise FreedError for a use after the end."""
        if _exiting and threading.current_thread().daemon and not self.on_thread:
            while True:  # the thread dies with the interpreter; an error would only be printed
                time.sleep(POLL_SECONDS)
        state = "was destroyed"
        if self._forked:
            state = "was created before this process was forked, and belongs to the parent"
        raise FreedError(
            f"{call}: the surface {state}. Make a new one with create_surface(...).".lstrip(": ")
        )

    # closing ----------------------------------------------------------------------------------
    def close_soon(self) -> None:
        """End the thread without waiting for it; drops queued commands. Safe in finalizers."""
        self._closing = True
        self._alert = True
        self.token.cancel("ended because the surface was closed")
        self._wakeups.put(None)

    def close(self) -> None:
        """End the thread and wait for it; drops queued commands."""
        self.close_soon()
        if self.on_thread or self._forked:
            return
        end = time.monotonic() + CLOSE_TIMEOUT
        while self._thread.is_alive() and time.monotonic() < end:
            self._thread.join(POLL_SECONDS)

    # forking ----------------------------------------------------------------------------------
    def reset_after_fork(self) -> None:
        """Close the copy in a forked child."""
        self._forked = self._closing = self._alert = True
        self._wakeups = forks.simple_queue()

    # waiting for room -------------------------------------------------------------------------
    @property
    def _may_wait(self) -> bool:
        return not self.on_thread and not self.holds_canvas

    def _wake(self) -> None:
        """Wake the thread if it sleeps; raises once the worker is closed."""
        if self._closing:
            if not self._thread.is_alive():
                self._items.clear()
            self.raise_closed()
        if self._asleep:
            self._asleep = False
            self._alert = False
            self._wakeups.put(tracer.here() if tracer.on else None)

    def _wake_and_wait(self) -> None:
        """Wake the thread, and wait while the queue is full."""
        self._wake()
        if len(self._items) > MAX_QUEUED and self._may_wait:
            self._wait_for_room(lambda: len(self._items) <= MAX_QUEUED // 2)

    @property
    def _queued_bytes(self) -> int:
        return self._reserved - self._released

    def _reserve(self, nbytes: int) -> int:
        """Wait for room for bytes and count them. Returns the total reserved, or 0."""
        if nbytes == 0 or not self._may_wait:
            return 0

        def has_room() -> bool:
            # An idle worker has room: bytes of an interrupted caller were never queued.
            queued = self._queued_bytes
            return queued == 0 or queued + nbytes <= MAX_QUEUED_BYTES or self.idle

        return self._wait_for_room(has_room, nbytes)

    def _release_bytes(self, reserved: int) -> None:
        """Count everything reserved up to this total as done; calling it twice is harmless."""
        self._released = max(self._released, reserved)
        self._notify_waiting()

    def _notify_waiting(self) -> None:
        if self._waiting:
            with self._room:
                self._room.notify_all()

    def _wait_for_room(self, has_room: Callable[[], bool], nbytes: int = 0) -> int:
        with self._room:
            self._waiting += 1
            try:
                while not has_room() and not self._closing:
                    self._room.wait(POLL_SECONDS)
                    check_deadline("Surface")
                self._reserved += nbytes
                reserved = self._reserved
            finally:
                self._waiting -= 1
        if self._closing:
            self.raise_closed()
        return reserved

    # the thread -------------------------------------------------------------------------------
    def _work(self) -> None:
        try:
            while not self._closing:
                if self._items:
                    self._execute_chunk()
                else:
                    self._sleep()
        finally:
            self._closing = True
            self._end()

    def _sleep(self) -> None:
        self._asleep = self._alert = True
        # A caller that queues an item after this check finds the alert set, and wakes the thread.
        if not self._items and not self._closing:
            with tracer.wait("", "drawing commands") if tracer.on else OFF as waited:
                waited.woken(self._wakeups.get())
        self._asleep = False
        self._alert = self._closing

    @traced("draw")
    def _execute_chunk(self) -> None:
        """Execute the head of the queue; fewer items at a time where they are slow."""
        items = self._items
        chunk = items[: self._chunk_size]
        del items[: len(chunk)]
        self._notify_waiting()
        start = time.thread_time()  # excludes the time that other threads hold the GIL
        for kind, group in groupby(chunk, type):
            if kind is bytes:
                self._execute_joined(group)  # type: ignore[arg-type]  # of this kind only
                continue
            for item in group:  # of requests only
                (item.refuse if self._closing else item.run)()  # type: ignore[union-attr]
        took = time.thread_time() - start
        if took > CHUNK_SECONDS:
            self._chunk_size = max(self._chunk_size // 4, 16)
        elif took < CHUNK_SECONDS / 4 and self._chunk_size < MAX_QUEUED:
            self._chunk_size *= 2

    def _execute_joined(self, commands: Iterable[bytes]) -> None:
        # A bytearray, since the address of writable memory is cheaper to get.
        self._attempt(lambda: self.execute(bytearray().join(commands)))

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # the thread continues with the next command
            self.record_error(error)

    def _end(self) -> None:
        self._alert = True
        while self._items:
            item = self._items.pop()
            if isinstance(item, Request):
                item.refuse()
        try:
            self.release()
        except Exception as error:  # memory, for example; those that wait must wake in any case
            self.record_error(error)
        with self._room:
            self._room.notify_all()
        workers.discard(self)


# at exit, and across forks ----------------------------------------------------------------------
#: Every worker whose thread runs.
workers: Final[set[Worker]] = set()
#: True once the interpreter is shutting down.
_exiting = False


def _close_all() -> None:
    global _exiting
    _exiting = True
    for worker in list(workers):
        worker.close_soon()
    for worker in list(workers):
        worker.close()


def _in_child() -> None:
    """Mark every worker closed: the child has none of their threads."""
    for worker in list(workers):
        worker.reset_after_fork()
    workers.clear()


@cache
def _register() -> None:
    """Install the hooks; called for the first worker."""
    forks.in_child(_in_child)
    atexit.register(_close_all)
