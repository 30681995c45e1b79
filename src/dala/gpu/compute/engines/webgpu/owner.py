"""The thread that owns a device and makes all native calls, in the order they were enqueued.

Other threads enqueue work, and continue or wait for the result. Finalizers only enqueue, which
neither blocks nor takes a lock.

Errors in work that no thread waits for are raised by the next call that waits for the device.
"""

from __future__ import annotations

import atexit
import logging
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar, TypeVarTuple

from dala import forks
from dala.errors import DalaError, DeviceError, DeviceLostError, FreedError
from dala.gpu.compute.engines.webgpu.backlog import Backlog, Cost
from dala.trace.recorder import OFF, tracer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: The maximum number of queued jobs; threads that enqueue more have to wait, until only so many are
#: left. If each finished job let another in, the threads would wake each other for every job, which
#: takes several times as long as the job.
MAX_QUEUED: Final = 256
RESUME_QUEUED: Final = 128

#: Seconds to wait for a device at interpreter exit.
CLOSE_SECONDS: Final = 10.0


#: Work, its arguments, the future for its result or error, whether the work sets that itself, and
#: the device time that it takes.
_Job: TypeAlias = (
    "tuple[Callable[..., object], tuple[object, ...], Future[Any] | None, bool, Cost | None]"
)


class Owner:
    """A thread, its queue of jobs, and the errors of jobs that no thread waited for.

    ``name`` is the device's name for messages. The thread calls ``on_idle`` when the queue is
    empty; it returns the seconds until the next call, or None to wait for more work. The thread
    calls ``on_lost`` when the device is lost, and ``on_stop`` before it ends.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.on_idle: Callable[[], float | None] = lambda: None
        self.on_lost: Callable[[DeviceLostError], None] = lambda error: None
        self.on_stop: Callable[[], None] = lambda: None
        self.lost: DeviceLostError | None = None
        #: The advice of errors about a lost device.
        self.after_loss = "Create them again: the next call opens a new device."
        #: The device time that is enqueued.
        self.backlog = Backlog()
        self._queue: queue.SimpleQueue[_Job | None] = forks.simple_queue()
        self._room = forks.condition()
        self._full = False
        self._failures: list[DeviceError] = []
        self._ended = ""
        self._gone = False
        self._thread = forks.thread(self._run, name=f"dala {name}")
        self._thread.start()
        _owners.add(self)
        atexit.register(self.close)

    # for any thread ---------------------------------------------------------------------------

    def post(self, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """Enqueue work; wait only while the queue is full."""
        self._put(work, args, None)

    def enqueue(self, cost: Cost, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """Enqueue work that takes device time; wait while too much of it is enqueued."""
        backlog = self.backlog
        if backlog.ahead > backlog.most and threading.get_ident() != self._thread.ident:
            self.check()
            backlog.wait(lambda: self.post_from_finalizer(backlog.due))
        backlog.add(cost)
        self._put(work, args, None, cost)

    def promise(self, work: Callable[[*Ts, Future[T]], object], *args: *Ts) -> Future[T]:
        """Enqueue work that sets a future later, its last argument; return the future.

        An error in the work is set on it.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # it can no longer be cancelled
        self._put(work, (*args, future), future)
        return future

    def post_from_finalizer(self, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """Enqueue work; never waits or raises."""
        if not self._ended:
            self._queue.put((work, args, None, False, None))

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run work on the thread and return its result, or raise its error."""
        self.check()
        future: Future[T] = Future()
        self._queue.put((work, args, future, False, None))
        if self._gone:
            self._reject_queued()
        return self.wait(future)

    def wait(self, future: Future[T]) -> T:
        """Wait for a future that the thread sets, and return its result."""
        if threading.get_ident() == self._thread.ident:
            while not future.done():  # called on the thread itself, from a callback
                self._run_one(future)
        with tracer.wait("the device", self.name) if tracer.on else OFF:
            return future.result()

    def check(self) -> None:
        """Raise if the device is lost or closed."""
        if self.lost is not None:
            raise self._loss()
        if self._ended:
            raise FreedError(self._ended)

    def close(self) -> None:
        """Stop the thread and drop work that has not started."""
        self.close_soon()
        self._admit()
        if threading.get_ident() != self._thread.ident:
            self._thread.join(CLOSE_SECONDS)
        atexit.unregister(self.close)

    def close_soon(self) -> None:
        """Stop the thread without waiting for it; for finalizers."""
        if not self._ended:
            self._ended = f"{self.name} was closed. Choose the device again to open a new one."
            self._queue.put(None)

    def _put(
        self,
        work: Callable[..., object],
        args: tuple[object, ...],
        future: Future[T] | None,
        cost: Cost | None = None,
    ) -> None:
        if self.lost is not None or self._ended:
            self.check()
        if self._queue.qsize() >= MAX_QUEUED:
            self._wait_for_room()
        self._queue.put((work, args, future, future is not None, cost))
        if self._gone:
            self._reject_queued()

    def _wait_for_room(self) -> None:
        if threading.get_ident() == self._thread.ident:
            return
        with self._room:
            self._full = True  # before the size is read, so that the thread sees it in time
            while self._full and self._queue.qsize() > RESUME_QUEUED and not self._ended:
                self._room.wait()
        self.check()

    def _admit(self) -> None:
        """Wake the threads that wait for room in the queue."""
        with self._room:
            self._full = False
            self._room.notify_all()

    # for the thread itself --------------------------------------------------------------------

    def make_room(self) -> None:
        """Let threads enqueue, if there is some room: a long native call is about to begin."""
        if self._full and self._queue.qsize() <= MAX_QUEUED - MAX_QUEUED // 4:
            self._admit()

    def fail(self, error: BaseException) -> None:
        """Keep the error of work that no thread waits for, to raise it later."""
        self._failures.append(self.translate(error))

    def take_failure(self) -> DeviceError | None:
        """Return the first kept error, or None, and drop the others."""
        if self.lost is not None:
            return self._loss()
        if not self._failures:
            return None
        first, others = self._failures[0], len(self._failures) - 1
        self._failures.clear()
        if others:
            first.add_note(f"{others} more failed after it.")
        return first

    def translate(self, error: BaseException) -> DeviceError:
        """Convert the error of a native call to a DeviceError, and detect a lost device."""
        if isinstance(error, DeviceError):
            return error
        text = str(error) or type(error).__name__
        if "device is lost" in text.lower() or "device lost" in text.lower():
            return self.mark_lost(text)
        ours = DeviceError(f"{self.name} refused the work: {text}")
        ours.__cause__ = error
        return ours

    def mark_lost(self, why: str) -> DeviceLostError:
        """Mark the device as lost, and raise an error in all threads that wait for it."""
        if self.lost is None:
            self.lost = DeviceLostError(
                f"{self.name} was lost ({why.strip().splitlines()[-1].strip()}). Its buffers are "
                f"gone. {self.after_loss}"
            )
            self.on_lost(self._loss())
        return self._loss()

    def _loss(self) -> DeviceLostError:
        """Return a new error: one that is raised keeps the frames it passed, and so the device."""
        return DeviceLostError(str(self.lost))

    # ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended or not self._queue.empty():
                self._run_one()
        except BaseException as error:  # no job may wait for ever
            self.mark_lost(f"its thread ended: {type(error).__name__}: {error}")
        finally:
            try:
                self.on_stop()
            except Exception:
                logging.getLogger("dala").exception("%s could not be closed", self.name)
            _owner_of_thread.pop(threading.get_ident(), None)
            self._gone = True
            self._reject_queued()
            self.backlog.close()
            atexit.unregister(self.close)

    def _reject_queued(self) -> None:
        """Set an error on jobs that were enqueued after the thread stopped."""
        with suppress(queue.Empty):
            while True:
                job = self._queue.get_nowait()
                if job is not None and job[2] is not None:
                    job[2].set_exception(self._loss() if self.lost else FreedError(self._ended))

    def watch_log(self, name: str) -> None:
        """Take the errors that a library only logs, by the name of its logger."""
        _owner_of_thread[threading.get_ident()] = self
        logger = logging.getLogger(name)
        if _error_filter not in logger.filters:
            logger.addFilter(_error_filter)

    def _run_one(self, awaited: Future[T] | None = None) -> None:
        """Run one job; if there is none, call ``on_idle`` and wait."""
        try:
            job = self._queue.get_nowait()
        except queue.Empty:
            try:
                pause = self.on_idle()
            except Exception as error:
                self.fail(error)
                pause = 0.001
            if awaited is not None and awaited.done():
                return
            if pause is not None and sys.platform == "win32":
                time.sleep(pause)  # lock timeouts on Windows have a resolution of 16 ms
                pause = 0
            try:
                job = self._queue.get(timeout=pause) if pause != 0 else None
            except queue.Empty:
                return
        if job is not None:
            self._do(job)

    def _do(self, job: _Job) -> None:
        work, args, future, later, cost = job
        if self._full and self._queue.qsize() <= RESUME_QUEUED:
            self._admit()
        try:
            if self.lost is not None or self._ended:
                self.check()
            if cost is not None:
                self.backlog.record(cost)
            result = work(*args)
        except Exception as error:
            mine = error if isinstance(error, DalaError) else self.translate(error)
            if future is not None:
                future.set_exception(mine)
            elif self.lost is None and not self._ended:
                self.fail(mine)
        else:
            if future is not None and not later:
                future.set_result(result)


# errors that wgpu only logs ----------------------------------------------------------------------

_owner_of_thread: dict[int, Owner] = {}


class _ErrorFilter(logging.Filter):
    """A log filter that catches errors which wgpu-py logs and does not raise."""

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


# fork --------------------------------------------------------------------------------------------

_owners: weakref.WeakSet[Owner] = weakref.WeakSet()

#: Owners from before a fork, kept so that they are never finalized: drivers do not survive a fork.
_inherited: list[Owner] = []


def _after_fork() -> None:
    for owner in _owners:
        _inherited.append(owner)
        owner._ended = (
            f"{owner.name} belongs to the parent process: GPUs cannot be used across fork(). Start "
            "processes with multiprocessing.get_context('spawn')."
        )
        atexit.unregister(owner.close)


forks.in_child(_after_fork)
