"""The thread that owns a device: every native call is made on it, in the order of asking.

Other threads leave work in its inbox and go on, or wait for the answer. Finalizers only ever leave
work there, which neither waits nor takes a lock.

Work that nobody waits for may fail too. Such an error is kept and raised by the next call that does
wait for the device.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from dala.errors import DalaError, DeviceError, DeviceLostError, FreedError

T = TypeVar("T")

#: How much work may wait in the inbox before those who bring more are made to wait.
MAX_QUEUED: Final = 256

#: How long leaving the interpreter may wait for a device.
CLOSE_SECONDS: Final = 10.0


class _Job(NamedTuple):
    work: Callable[..., Any]
    args: tuple[Any, ...]
    #: Who is told how it went.
    future: Future[Any] | None = None
    #: True if the work itself fulfils the future, later on.
    later: bool = False
    #: True if it takes up room in the inbox.
    counted: bool = False


class Owner:
    """One thread, its inbox, and what went wrong on it.

    ``name`` is the device's, for messages. ``on_idle`` is called on the thread whenever the
    inbox is empty: it moves things on and says after how many seconds to look again (None: when
    there is more work). ``on_lost`` is called there when the device is lost, ``on_stop`` at the
    very end.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.on_idle: Callable[[], float | None] = lambda: None
        self.on_lost: Callable[[DeviceLostError], None] = lambda error: None
        self.on_stop: Callable[[], None] = lambda: None
        self.lost: DeviceLostError | None = None
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(MAX_QUEUED)
        self._failures: list[DeviceError] = []
        self._ended = ""
        self._gone = False
        self._thread = threading.Thread(target=self._run, name=f"dala {name}", daemon=True)
        self._thread.start()
        _owners.add(self)
        atexit.register(self.close)

    # for any thread ---------------------------------------------------------------------------

    def post(self, work: Callable[..., Any], *args: Any) -> None:
        """Leaves work to be done; waits only while too much of it is waiting."""
        self._put(work, args, None)

    def promise(self, future: Future[Any], work: Callable[..., Any], *args: Any) -> None:
        """As :meth:`post`, for work that fulfils a future some time; if it fails, so does that."""
        future.set_running_or_notify_cancel()  # from now on it cannot be cancelled
        self._put(work, args, future)

    def post_from_finalizer(self, work: Callable[..., Any], *args: Any) -> None:
        """Leaves work to be done and never waits or raises."""
        if not self._ended:
            self._inbox.put(_Job(work, args))

    def call(self, work: Callable[..., T], *args: Any) -> T:
        """Has work done and gives its result, or raises what it raised."""
        self.check()
        future: Future[T] = Future()
        self._inbox.put(_Job(work, args, future))
        if self._gone:
            self._refuse_the_rest()
        return self.wait(future)

    def wait(self, future: Future[T]) -> T:
        """The result of something that the thread will fulfil."""
        if threading.get_ident() == self._thread.ident:
            while not future.done():  # asked on the thread itself, from a callback
                self._turn(future)
        return future.result()

    def check(self) -> None:
        """Raises if the device can take no more work."""
        if self.lost is not None:
            raise DeviceLostError(str(self.lost))
        if self._ended:
            raise FreedError(self._ended)

    def close(self) -> None:
        """Ends the thread; work that has not begun is dropped."""
        self.close_soon()
        for _ in range(MAX_QUEUED):  # let go of those who wait for room
            self._room.release()
        if threading.get_ident() != self._thread.ident:
            self._thread.join(CLOSE_SECONDS)
        atexit.unregister(self.close)

    def close_soon(self) -> None:
        """As :meth:`close`, without waiting: for finalizers."""
        if not self._ended:
            self._ended = f"{self.name} was closed; ask for the device again to get a new one."
            self._inbox.put(None)

    def _put(
        self, work: Callable[..., Any], args: tuple[Any, ...], future: Future[Any] | None
    ) -> None:
        self.check()
        here = threading.get_ident() == self._thread.ident
        if not here:
            self._room.acquire()
        self._inbox.put(_Job(work, args, future, future is not None, not here))
        if self._gone:
            self._refuse_the_rest()

    # for the thread itself --------------------------------------------------------------------

    def fail(self, error: BaseException) -> None:
        """Keeps the error of work that nobody waits for."""
        self._failures.append(self.translate(error))

    def take_failure(self) -> DeviceError | None:
        """The first error kept, if any; all are forgotten."""
        if self.lost is not None:
            return DeviceLostError(str(self.lost))
        if not self._failures:
            return None
        first, others = self._failures[0], len(self._failures) - 1
        self._failures.clear()
        if others:
            first.add_note(f"{others} more failed after it.")
        return first

    def translate(self, error: BaseException) -> DeviceError:
        """What a native call raised, as one of our errors; notices that the device is lost."""
        if isinstance(error, DeviceError):
            return error
        text = str(error) or type(error).__name__
        if "device is lost" in text.lower() or "device lost" in text.lower():
            return self.mark_lost(text)
        ours = DeviceError(f"{self.name} refused the work: {text}")
        ours.__cause__ = error
        return ours

    def mark_lost(self, why: str) -> DeviceLostError:
        """Marks the device as lost; all that wait for it are told."""
        if self.lost is None:
            self.lost = DeviceLostError(
                f"{self.name} was lost ({why.strip().splitlines()[-1].strip()}); its buffers are "
                "gone. Make them anew: the next call gets a new device."
            )
            self.on_lost(self.lost)
        return self.lost

    # ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        _watch_log(self)
        try:
            while not self._ended or not self._inbox.empty():
                self._turn()
        finally:
            try:
                self.on_stop()
            except Exception:
                logging.getLogger("dala").exception("%s could not be closed", self.name)
            _owner_of_thread.pop(threading.get_ident(), None)
            self._gone = True
            self._refuse_the_rest()
            atexit.unregister(self.close)

    def _refuse_the_rest(self) -> None:
        """Tells those whose work came too late; whoever sees the end first does this."""
        with suppress(queue.Empty):
            while True:
                job = self._inbox.get_nowait()
                if job is not None and job.future is not None:
                    job.future.set_exception(FreedError(self._ended))

    def _turn(self, awaited: Future[Any] | None = None) -> None:
        """Does one piece of work; without any, looks round and waits."""
        try:
            job = self._inbox.get_nowait()
        except queue.Empty:
            try:
                pause = self.on_idle()
            except Exception as error:
                self.fail(error)
                pause = 0.001
            if awaited is not None and awaited.done():
                return
            if pause is not None and sys.platform == "win32":
                time.sleep(pause)  # waiting for a lock is only exact to 16 ms there
                pause = 0
            try:
                job = self._inbox.get(timeout=pause) if pause != 0 else None
            except queue.Empty:
                return
        if job is not None:
            self._do(job)

    def _do(self, job: _Job) -> None:
        if job.counted:
            self._room.release()
        try:
            self.check()
            result = job.work(*job.args)
        except Exception as error:
            mine = error if isinstance(error, DalaError) else self.translate(error)
            if job.future is not None:
                job.future.set_exception(mine)
            elif self.lost is None and not self._ended:
                self.fail(mine)
        else:
            if job.future is not None and not job.later:
                job.future.set_result(result)


# errors that wgpu only logs ----------------------------------------------------------------------

_owner_of_thread: dict[int, Owner] = {}


class _ErrorFilter(logging.Filter):
    """Hears what wgpu logs on our threads instead of raising it: a lost device, stray errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        owner = _owner_of_thread.get(record.thread or 0)
        if owner is None or record.funcName not in ("log_error", "device_lost_callback"):
            return True
        text = record.getMessage()
        if "device was lost" in text:
            owner.mark_lost(text)
        elif record.funcName == "log_error":
            owner.fail(DeviceError(f"{owner.name}: {text}"))
        return False


_error_filter = _ErrorFilter()


def _watch_log(owner: Owner) -> None:
    _owner_of_thread[threading.get_ident()] = owner
    import wgpu  # noqa: F401 - makes the logger, of a class of its own

    logger = logging.getLogger("wgpu")
    if _error_filter not in logger.filters:
        logger.addFilter(_error_filter)


# fork --------------------------------------------------------------------------------------------

_owners: weakref.WeakSet[Owner] = weakref.WeakSet()

#: In a forked child, what must not be given back there: drivers do not survive a fork.
_left_behind: list[Owner] = []


def _after_fork() -> None:
    for owner in _owners:
        _left_behind.append(owner)
        owner._ended = (
            f"{owner.name} stayed behind in the parent process: GPUs cannot be used across fork(). "
            "Start processes with multiprocessing.get_context('spawn')."
        )
        atexit.unregister(owner.close)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
