"""A thread that works through a bounded queue of bytes, in order; the render thread is one.

Bytes are put by any thread at the cost of an append; many of them are handed over at once, joined.
Between them lie requests, calls to be made in turn, which somebody may wait for. Nothing that a
finalizer calls waits for a lock: the collector runs finalizers on any thread, in the middle of
anything, also of what holds that lock.

Waking a thread and being woken by it takes longer than many a drawing. So whoever waits does plain
bytes itself if the thread has not begun with them. That may be the main thread, where an interrupt
can come after any step: what is in hand stays the head of the queue until it is done, how far it is
done is written down by machine code, and whoever comes next goes on from there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn, TypeVar, cast

from dala.errors import CommandError, DeviceError, FreedError
from dala.gpu.render.lifecycle import PATIENCE, exiting, register, workers
from dala.gpu.render.requests import Hand, Request

T = TypeVar("T")

#: Items that may wait; whoever puts more waits until half of them are gone.
QUEUE: Final = 8192
#: Bytes of pictures that may wait.
QUEUE_BYTES: Final = 128 << 20
#: Bytes that wait from which on the thread is woken at once, and left to do them.
BULK: Final = 1 << 15
#: Seconds of computing that one handing over of bytes should take at most: closing waits for it.
LONG: Final = 0.1
#: Seconds that the thread naps, and how often, when it was woken for what others did meanwhile.
NAP: Final = 0.002
NAPS: Final = 10
#: Seconds after which whoever waits looks around; short, so that Ctrl-C works everywhere.
LOOK: Final = 0.2


class Worker:
    """The queue and its thread, which calls ``obey`` with bytes and ``finish`` at its end."""

    def __init__(self, name: str) -> None:
        #: A list: a slice is taken and cut off at once, which is quicker than one by one.
        self._items: list[bytes | Hand | Request] = []
        self._take = 256
        #: True where a put has more to do than to append: the thread sleeps, or has ended.
        self._alert = False
        self._asleep = False
        self._closing = False
        self._forked = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._room = threading.Condition()
        self._waiting = 0
        #: Bytes counted when they were put, and those of them that are done.
        self._weighed = self._lifted = 0
        #: Held while anything is being done, so that a fork finds no lock taken by the thread.
        #: It knows its owner: whoever has it must not wait for it.
        self._busy: Any = threading.RLock()
        #: Held by those who wait for that lock, which the thread would take again too soon.
        self._gate: Any = threading.RLock()
        self._stepping = False
        self._standing = False
        #: Naps since the thread last did something; 0 while it does.
        self._naps = 0
        #: The thread that the worker stands still for.
        self._holder: int | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        register()
        workers.add(self)
        try:
            self._thread.start()
        except RuntimeError as error:
            workers.discard(self)
            raise DeviceError(
                f"create_surface: no thread can be started ({error}). Destroy other surfaces."
            ) from None

    @abstractmethod
    def obey(self, hand: Hand) -> None:
        """Does what bytes say, or the rest of it; never raises. On the thread alone."""

    @abstractmethod
    def advance(self, hand: Hand) -> bool:
        """Does what is plain in bytes, on any thread; True when all of it is done.

        It may be broken off anywhere by an interrupt, and then goes on where it was.
        """

    @abstractmethod
    def forget(self) -> None:
        """Lets go of what was in hand: it is done, and out of the queue."""

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
        if self._alert or len(items) > QUEUE:
            self.nudge()

    def later(self, work: Callable[[], Any], nbytes: int = 0) -> None:
        """Has something done in turn, without waiting; ``nbytes`` that wait with it are bounded.

        What goes wrong in it is told as with bytes.
        """
        if self._own:
            self._attempt(work)
            return
        upto = self._weigh(nbytes)

        def told() -> None:
            self._attempt(work)
            self._settle(upto)

        self._items.append(Request(told))
        self.nudge()

    def put_large(self, data: bytes) -> None:
        """As ``put``; how many bytes wait is bounded, too."""
        if self._own:
            self._attempt(lambda: self.obey(Hand(data)))
            return
        self._items.append(Hand(data, self._weigh(len(data))))
        if self._alert or len(data) >= BULK:
            self.nudge()

    def reach(self, work: Callable[[], T]) -> T:
        """As :meth:`ask`, done by the caller or by the thread, whoever comes to it first.

        For short work only, of which nothing is left half done by an interrupt.
        """
        here, result = self.here(work)
        return cast("T", result) if here else self.ask(work)

    def here(self, work: Callable[[], T]) -> tuple[bool, T | None]:
        """As :meth:`reach`, but by the caller or not at all: whether, and the result."""
        if self._stepping or self._standing or self._closing or self._heavy >= BULK:
            return False, None
        if self.on_thread or self.held:
            return False, None
        with self._gate, self._busy:
            here = not self._standing and self._drained()
            result = work() if here else None
        if here and self._items and not self._closing:  # put meanwhile
            self._stir()
        return here, result

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
            self._standing = True
            self._busy.release()
            here.set()
            while not go_on.wait(LOOK / 4) and not self._closing:
                pass
            self._busy.acquire()
            self._standing = False

        self._items.append(Request(stand))
        self._rouse()
        return here, go_on

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
        """True on the worker's own thread, and on one that does its work: neither may wait."""
        return self._own or self._busy._is_owned()

    @property
    def _own(self) -> bool:
        return threading.get_ident() == self._thread.ident

    @property
    def held(self) -> bool:
        """True on the thread that the worker stands still for."""
        return threading.get_ident() == self._holder

    def refuse(self, call: str = "") -> NoReturn:
        """Tells whoever uses it after its end."""
        if exiting() and threading.current_thread().daemon and not self.on_thread:
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
        self._alert = True
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
        self._stir()

    def _stir(self) -> None:
        if self._asleep:
            self._asleep = False
            self._alert = False
            self._wake.put(None)

    def nudge(self) -> None:
        """What is left of a put that found the alert set, or too much in the queue."""
        self._rouse()
        if len(self._items) > QUEUE and self._may_wait:
            self._wait(lambda: len(self._items) <= QUEUE // 2)

    @property
    def _heavy(self) -> int:
        """Bytes that were counted and wait."""
        return self._weighed - self._lifted

    def _weigh(self, nbytes: int) -> int:
        """Waits for room for bytes, and counts them: how many there are now in all, or 0."""
        if nbytes == 0 or not self._may_wait:
            return 0
        # Those of whoever was interrupted before they were in the queue count for nothing.
        return self._wait(
            lambda: self._heavy == 0 or self._heavy + nbytes <= QUEUE_BYTES or self.idle, nbytes
        )

    def _settle(self, upto: int) -> None:
        """Counts as done what was counted up to there; twice is fine."""
        if upto > self._lifted:
            self._lifted = upto
        if self._waiting:
            with self._room:
                self._room.notify_all()

    def _wait(self, fine: Callable[[], bool], nbytes: int = 0) -> int:
        """Waits for room, and takes some for bytes."""
        with self._room:
            self._waiting += 1
            try:
                while not fine() and not self._closing:
                    self._room.wait(LOOK)
                self._weighed += nbytes
                upto = self._weighed
            finally:
                self._waiting -= 1
        if self._closing:
            self.refuse()
        return upto

    def _drained(self) -> bool:
        """Does what waits, with ``_busy`` taken; False where something is for the thread.

        An interrupt may come between any two steps: each of them leaves the queue whole.
        """
        items = self._items
        left = len(items)
        while left > 0:
            if self._closing:
                return False
            head = items[0]
            if isinstance(head, Request):
                return False
            if isinstance(head, bytes):
                head, count = self._plain(items[: min(left, self._take)])
                items[:count] = (head,)
                left -= count - 1
            began = time.thread_time()
            if not self.advance(head):
                return False
            self._settle(head.upto)
            del items[0]
            self.forget()
            left -= 1
            self._pace(time.thread_time() - began)
        return not self._closing

    def _plain(self, chunk: list[Any]) -> tuple[Hand, int]:
        """The bytes that a part of the queue begins with, and how many items that are."""
        if len(chunk) == 1:
            return Hand(chunk[0]), 1
        for n, item in enumerate(chunk):
            if not isinstance(item, bytes):
                del chunk[n:]
                break
        return Hand(b"".join(chunk)), len(chunk)

    # the thread -------------------------------------------------------------------------------
    def _work(self) -> None:
        try:
            while not self._closing:
                if self._items and self._gate.acquire(blocking=False):
                    self._gate.release()
                    with self._busy:
                        self._stepping = True
                        self._step()
                        self._stepping = False
                else:  # or somebody who waits is at work, and comes first
                    self._sleep()
        finally:
            self._closing = True
            with self._busy:
                self._end()

    def _sleep(self) -> None:
        """Until something is put. After being woken in vain it looks again itself for a while:
        whoever puts a little and waits at once does it all, and need not wake anybody first.
        """
        nap = 0 < self._naps <= NAPS or bool(self._items)
        self._naps += 1
        self._asleep = True
        self._alert = not nap or self._closing
        # Whoever puts something after the look at the queue finds the alert set.
        if nap:
            with contextlib.suppress(Empty):
                self._wake.get(timeout=NAP)
        elif not self._items and not self._closing:
            self._wake.get()
            self._naps = 1
        self._asleep = False
        self._alert = self._closing

    def _step(self) -> None:
        """Some of the queue. Slow work is taken in smaller pieces: closing has to wait for it."""
        items = self._items
        chunk = items[: self._take]
        if not chunk:  # done by somebody who waited
            return
        self._naps = 0
        del items[: len(chunk)]
        if self._waiting:
            with self._room:
                self._room.notify_all()
        began = time.thread_time()  # not what others take: they may hold the GIL
        # Most often there is one request, which somebody waits for, behind all the bytes.
        last = [item for item in chunk[-1:] if isinstance(item, Request)]
        try:
            data = b"".join(cast("list[bytes]", chunk[:-1] if last else chunk))
        except (TypeError, MemoryError):  # there are more of them, or may be
            self._mixed(chunk)
        else:
            some = len(chunk) > len(last)
            chunk.clear()
            if some:
                self._attempt(lambda: self.obey(Hand(data)))
            self._mixed(last)
        self._pace(time.thread_time() - began)

    def _pace(self, took: float) -> None:
        if took > LONG:
            self._take = max(self._take // 4, 16)
        elif took < LONG / 4 and self._take < QUEUE:
            self._take *= 2

    def _mixed(self, chunk: Sequence[bytes | Hand | Request]) -> None:
        plain: list[bytes] = []
        for n, item in enumerate(chunk):
            if isinstance(item, bytes):
                plain.append(item)
                continue
            if plain:
                self._attempt(lambda: self.obey(Hand(b"".join(plain))))
                plain.clear()
            if self._closing:
                self._items[:0] = chunk[n:]
                return
            if isinstance(item, Request):
                item.run()
            else:
                self._attempt(partial(self.obey, item))
                self._settle(item.upto)
        if plain:
            self._attempt(lambda: self.obey(Hand(b"".join(plain))))

    def _attempt(self, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # the thread goes on
            self.fail(error)

    def _end(self) -> None:
        self._alert = True
        while self._items:
            item = self._items.pop()
            if isinstance(item, Request):
                item.refuse()
        self.finish()
        with self._room:
            self._room.notify_all()
        workers.discard(self)
