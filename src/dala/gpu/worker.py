"""A thread that works through a bounded queue of bytes, in order; the render thread is one.

Bytes are put by any thread at the cost of an append; many of them are handed over at once, joined.
Between them lie requests, calls to be made in turn, which somebody may wait for. Nothing that a
finalizer calls waits for a lock: the collector runs finalizers on any thread, in the middle of
anything, also of what holds that lock.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import struct
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Any, Final, NoReturn, TypeVar

from dala.errors import CommandError, DeviceError, FreedError
from dala.gpu import command

T = TypeVar("T")

#: Items that may wait; whoever puts more waits until half of them are gone.
QUEUE: Final = 8192
#: Bytes of pictures that may wait.
QUEUE_BYTES: Final = 128 << 20
#: Seconds of computing that one handing over of bytes should take at most: closing waits for it.
LONG: Final = 0.1
#: Seconds after which whoever waits looks around; short, so that Ctrl-C works everywhere.
LOOK: Final = 0.2
#: Seconds that closing waits for what is being done.
PATIENCE: Final = 10.0


class Request:
    """Something to be done by the thread in turn."""

    __slots__ = ("done", "error", "refused", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work: Callable[[], Any] | None = work
        self.done = threading.Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None
        self.refused = False

    def run(self) -> None:
        """Does it, unless it was given up, and lets go of whoever waits."""
        work, self.work = self.work, None
        try:
            if work is not None:
                self.result = work()
        except BaseException as error:  # told to the one who waits
            self.error = error
        self.done.release()

    def refuse(self) -> None:
        """Lets go of whoever waits, without having done it."""
        self.work, self.refused = None, True
        self.done.release()


class Worker:
    """The queue and its thread, which calls ``obey`` with bytes and ``finish`` at its end."""

    def __init__(self, name: str) -> None:
        #: A list: a slice is taken and cut off at once, which is quicker than one by one.
        self._items: list[bytes | Request] = []
        self._take = 256
        #: 1 where a put has more to do than to append: the thread sleeps, or has ended. A byte of
        #: memory, since the calls in machine code look at it too.
        self._alert = ctypes.c_uint8(0)
        self._asleep = False
        self._closing = False
        self._forked = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._room = threading.Condition()
        self._waiting = 0
        self._heavy = 0
        #: Held while anything is being done, so that a fork finds no lock taken by the thread.
        self._busy = threading.Lock()
        #: The thread that the worker stands still for.
        self._holder: int | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        _register()
        _workers.add(self)
        try:
            self._thread.start()
        except RuntimeError as error:
            _workers.discard(self)
            raise DeviceError(
                f"create_surface: no thread can be started ({error}). Destroy other surfaces."
            ) from None

    @abstractmethod
    def obey(self, data: bytes) -> None:
        """Does what bytes say; never raises."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """Remembers what went wrong in something that nobody waited for."""

    @abstractmethod
    def finish(self) -> None:
        """Lets go of everything; the last call on the thread."""

    def forked(self) -> None:
        """Makes locks anew in a process that was forked, where others may have held them."""

    # for everybody ----------------------------------------------------------------------------
    def put(self, data: bytes) -> None:
        """Leaves bytes for the thread; waits only if far too many are waiting already."""
        items = self._items
        items.append(data)
        if self._alert.value or len(items) > QUEUE:
            self.nudge()

    def later(self, work: Callable[[], Any], nbytes: int = 0) -> None:
        """Has something done in turn, without waiting; ``nbytes`` that wait with it are bounded.

        What goes wrong in it is told as with bytes.
        """
        if self.on_thread:
            self._attempt(work)
            return
        counted = nbytes > 0 and self._may_wait
        if counted:
            self._wait(lambda: self._heavy == 0 or self._heavy + nbytes <= QUEUE_BYTES, nbytes)

        def told() -> None:
            self._attempt(work)
            if counted:
                with self._room:
                    self._heavy -= nbytes
                    self._room.notify_all()

        self._items.append(Request(told))
        self.nudge()

    def ask(self, work: Callable[[], T]) -> T:
        """Has something done by the thread, after all that was put before, and waits for it."""
        if self.on_thread:
            return work()
        if self.held:
            raise CommandError(
                "inside with_pixels the surface stands still for its function: work on the array "
                "that was given, and ask for pixels afterwards."
            )
        request = Request(work)
        self._items.append(request)
        self._rouse()
        try:
            while not request.done.acquire(timeout=LOOK):
                if not self._thread.is_alive() and not request.done.acquire(blocking=False):
                    self.refuse()
        except BaseException:
            request.work = None  # interrupted: it is not done later, behind the caller's back
            raise
        if request.refused:
            self.refuse()
        if request.error is not None:
            raise request.error
        result: T = request.result
        return result

    def pause(self) -> tuple[threading.Event, threading.Event]:
        """Has the thread stand still in turn; set the second event to let it go on."""
        here, go_on = threading.Event(), threading.Event()

        def stand() -> None:
            self._busy.release()
            here.set()
            while not go_on.wait(LOOK / 4) and not self._closing:
                pass
            self._busy.acquire()

        self._items.append(Request(stand))
        self._rouse()
        return here, go_on

    @property
    def door(self) -> bytes:
        """Where the queue is, for calls in machine code; of no use to those who outlive it."""
        return struct.pack("<QQ", id(self._items), ctypes.addressof(self._alert))

    @property
    def pending(self) -> int:
        """How many commands wait."""
        return len(self._items)

    @property
    def idle(self) -> bool:
        """True while there is nothing to do and nothing being done."""
        return self._asleep and not self._items

    @property
    def closed(self) -> bool:
        """True once it takes no more."""
        return self._closing

    @property
    def on_thread(self) -> bool:
        """True on the worker's own thread."""
        return threading.get_ident() == self._thread.ident

    @property
    def held(self) -> bool:
        """True on the thread that the worker stands still for."""
        return threading.get_ident() == self._holder

    def refuse(self, call: str = "") -> NoReturn:
        """Tells whoever uses it after its end."""
        if _exiting and threading.current_thread().daemon and not self.on_thread:
            while True:  # it ends with the interpreter; an error would only make noise
                time.sleep(LOOK)
        call = f"{call}: " if call else ""
        if self._forked:
            raise FreedError(
                f"{call}the surface was made before this process was forked, and belongs to the "
                "other one. Make a new one with create_surface(...)."
            )
        raise FreedError(
            f"{call}the surface was destroyed. Make a new one with create_surface(...)."
        )

    # end --------------------------------------------------------------------------------------
    def close_soon(self) -> None:
        """Ends the thread without waiting for it; what waits is dropped. Safe in finalizers."""
        self._closing = True
        self._alert.value = 1
        self._wake.put(None)

    def close(self) -> None:
        """Ends the thread and waits for it; what waits is dropped."""
        self.close_soon()
        if self.on_thread or self._forked:
            return
        end = time.monotonic() + PATIENCE
        while self._thread.is_alive() and time.monotonic() < end:
            self._thread.join(LOOK)

    # waiting ----------------------------------------------------------------------------------
    @property
    def _may_wait(self) -> bool:
        """False where waiting for the thread would be waiting for oneself."""
        return not self.on_thread and not self.held

    def _rouse(self) -> None:
        if self._closing:
            if not self._thread.is_alive():
                self._items.clear()
            self.refuse()
        if self._asleep:
            self._asleep = False
            self._alert.value = 0
            self._wake.put(None)

    def nudge(self) -> None:
        """What is left of a put that found the alert set, or too much in the queue."""
        self._rouse()
        if len(self._items) > QUEUE and self._may_wait:
            self._wait(lambda: len(self._items) <= QUEUE // 2)

    def _wait(self, fine: Callable[[], bool], nbytes: int = 0) -> None:
        """Waits for room, and takes some for bytes."""
        with self._room:
            self._waiting += 1
            try:
                while not fine() and not self._closing:
                    self._room.wait(LOOK)
                self._heavy += nbytes
            finally:
                self._waiting -= 1
        if self._closing:
            self.refuse()

    # the thread -------------------------------------------------------------------------------
    def _work(self) -> None:
        try:
            while not self._closing:
                if self._items:
                    with self._busy:
                        self._step()
                else:
                    self._sleep()
        finally:
            self._closing = True
            with self._busy:
                self._end()

    def _sleep(self) -> None:
        # Whoever puts something after the look at the queue finds the alert set.
        self._asleep = True
        self._alert.value = 1
        if not self._items and not self._closing:
            self._wake.get()
        self._asleep = False
        self._alert.value = self._closing

    def _step(self) -> None:
        """Some of the queue. Slow work is taken in smaller pieces: closing has to wait for it."""
        items = self._items
        chunk = items[: self._take]
        del items[: len(chunk)]
        if self._waiting:
            with self._room:
                self._room.notify_all()
        began = time.thread_time()  # not what others take: they may hold the GIL
        # Most often there is one request, which somebody waits for, behind all the bytes.
        last: list[bytes | Request] = [item for item in chunk[-1:] if isinstance(item, Request)]
        try:
            data = _joined(chunk[:-1] if last else chunk)
        except (TypeError, MemoryError):  # there are more of them, or may be
            self._mixed(chunk)
        else:
            some = len(chunk) > len(last)
            chunk.clear()
            if some:
                self._attempt(lambda: self.obey(data))
            self._mixed(last)
        took = time.thread_time() - began
        if took > LONG:
            self._take = max(self._take // 4, 16)
        elif took < LONG / 4 and self._take < QUEUE:
            self._take *= 2

    def _mixed(self, chunk: list[bytes | Request]) -> None:
        plain: list[bytes] = []
        for n, item in enumerate(chunk):
            if isinstance(item, bytes):
                plain.append(item)
                continue
            if plain:
                self._attempt(lambda: self.obey(b"".join(plain)))
                plain.clear()
            if self._closing:
                self._items[:0] = chunk[n:]
                return
            item.run()
        if plain:
            self._attempt(lambda: self.obey(b"".join(plain)))

    def _attempt(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # the thread goes on
            self.fail(error)

    def _end(self) -> None:
        self._alert.value = 1
        while self._items:
            item = self._items.pop()
            if isinstance(item, Request):
                item.refuse()
        self.finish()
        with self._room:
            self._room.notify_all()
        _workers.discard(self)


def _joined(chunk: list[Any]) -> bytes:
    """Commands as one piece, a batch of them where that is quicker to make: it draws the same."""
    made = None if command.join is None else command.join(chunk)
    return b"".join(chunk) if made is None else made


_workers: Final[set[Worker]] = set()
_exiting = False


def _close_all() -> None:
    global _exiting
    _exiting = True
    for worker in list(_workers):
        worker.close_soon()
    for worker in list(_workers):
        worker.close()


_held: list[threading.Lock] = []


def _before_fork() -> None:
    """Waits until no worker is doing anything: the child gets no lock that nobody will release."""
    for worker in list(_workers):
        if not worker.on_thread and worker._busy.acquire(timeout=PATIENCE):
            _held.append(worker._busy)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork() -> None:
    """The child has none of the threads: its copies of workers are closed."""
    _held.clear()
    for worker in list(_workers):
        worker._forked = worker._closing = True
        worker._alert.value = 1
        worker._room = threading.Condition()
        worker._wake = SimpleQueue()
        worker.forked()
    _workers.clear()


@cache
def _register() -> None:
    """For the first worker: the compiler, which takes its lock for forks, has registered by then.

    What registers last is asked first, before a fork; it must not wait with that lock taken.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork,
        )
    atexit.register(_close_all)
