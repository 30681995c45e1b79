"""The order of submitted work: who waits for whom, who is next, and the threads that do it.

A job waits for those before it that touch the same memory where one of the two writes; everything
else may overlap. On an engine with a queue of its own, which keeps the order by itself, a job lets
the next ones go when it is enqueued, and has ended when the device has done it.

Worker threads know the queue and never the stream, so a stream that nobody holds any more is
collected; they are woken through a ``SimpleQueue``, which finalizers may use too.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import Final

from dala import resources
from dala.errors import DeviceError, FreedError
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.stream.command import CommandState
from dala.gpu.compute.stream.job import FREED, Job, check_alive, is_freed, named, where

#: How long leaving the interpreter may wait for work under way, in seconds.
PATIENCE: Final = 10.0

#: Commands enqueued on a device beyond those it is at; what comes later may pass all others.
DEPTH: Final = 16


class _Use:
    """Who is about to use some memory."""

    __slots__ = ("readers", "span", "writer")

    def __init__(self, span: tuple[int, int] | None) -> None:
        self.writer: Job | None = None
        self.readers: set[Job] = set()
        self.span = span


class Queue:
    """Jobs that have not ended, in their order, and the workers."""

    def __init__(self, workers: int, limit: int) -> None:
        self.workers = workers
        self.limit = limit
        self.closing = False
        self._reset()
        _queues.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._pending: dict[int, Job] = {}
        self._ready: list[tuple[bool, int, Job]] = []
        self._uses: dict[Storage, _Use] = {}
        self._barrier: Job | None = None
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._dropping = False
        #: By engine, if a worker waits for it: what it will have to wait for next.
        self._enqueued_on: dict[Engine, list[Job]] = {}

    # coming in --------------------------------------------------------------------------------
    def put(self, job: Job, *, block: bool = True) -> bool:
        """Takes a job; while the queue is full it waits, or gives False where told not to."""
        with self._room:
            while not self.closing and len(self._pending) >= self.limit:
                if not block:
                    return False
                self._room.wait()
            if self.closing:
                raise FreedError("submit: the stream was closed. Make a new one.")
            if len(self._threads) < min(self.workers, len(self._pending) + 1):
                self._start()
            job.progress = CommandState(job.name)
            resources.track("command", where(job), 0)
            if job.engine is None:
                job.waiting = len(self._pending)
                for other in self._pending.values():
                    other.held_up.append(job)
                self._barrier = job
            else:
                before = self._before(job)
                job.waiting = len(before)
                for other in before:
                    other.followers.append(job)
            self._pending[job.progress.id] = job
            if not job.waiting:
                self._make_ready(job)
        return True

    def pending(self) -> list[CommandState]:
        """What has not ended, oldest first."""
        with self._lock:
            return [job.progress for job in self._pending.values()]

    def _before(self, job: Job) -> set[Job]:
        """Those that a new job must wait for; its own uses are written down."""
        found: set[Job] = set()
        if self._barrier is not None:
            found.add(self._barrier)
        for storage, writes in job.touches.items():
            use = self._uses.get(storage)
            if use is None:
                use = self._uses[storage] = _Use(job.spans.get(storage))
            for other in [use] if use.span is None else self._overlapping(use.span):
                if other.writer is not None:
                    found.add(other.writer)
                if writes:
                    found |= other.readers
            if writes:
                use.writer, use.readers = job, set()
            else:
                use.readers.add(job)
        found.discard(job)  # where it reads and writes two buffers over the same memory
        return found

    def _overlapping(self, span: tuple[int, int]) -> list[_Use]:
        """Uses of shared memory, which several buffers may lie over."""
        return [
            use
            for use in self._uses.values()
            if use.span is not None and use.span[0] < span[1] and span[0] < use.span[1]
        ]

    def _make_ready(self, job: Job) -> None:
        heappush(self._ready, (job.background, job.progress.id, job))
        self._wake.put(None)

    # working ----------------------------------------------------------------------------------
    def _start(self) -> None:
        worker = threading.Thread(
            target=_work,
            args=(self, self._wake),
            name=f"dala-stream-{len(self._threads) + 1}",
            daemon=True,
        )
        worker.start()
        self._threads.append(worker)
        _end_with_the_interpreter()

    def turn(self) -> bool:
        """Does the next job, if any; False when there will be no more."""
        with self._room:
            while self._ready and self._full(self._ready[0][2].engine):
                self._room.wait()  # and then take the first, which may be another
            if not self._ready:
                return not self.closing or bool(self._pending)
            job = heappop(self._ready)[2]
        try:
            self._do(job)
        except BaseException as error:
            self._end(job, named(_inner(error), job))
            return True
        if job.engine is None or not _has_queue(job.engine):
            self._end(job, None)
        else:
            self._enqueued(job, job.engine)
        return True

    def _full(self, engine: Engine | None) -> bool:
        return engine is not None and len(self._enqueued_on.get(engine, ())) >= DEPTH

    def _do(self, job: Job) -> None:
        if self._dropping:
            raise FreedError("it was dropped, because the interpreter was about to end.")
        if job.run is None:
            return
        check_alive(job)
        try:
            job.run()
        except (AttributeError, TypeError):
            check_alive(job)  # freed at the very moment it began
            raise

    def _enqueued(self, job: Job, engine: Engine) -> None:
        """Lets the next ones go; one worker waits for the device, for all that came meanwhile."""
        with self._lock:
            self._let_go(job)
            waited_for = engine in self._enqueued_on
            self._enqueued_on.setdefault(engine, []).append(job)
        while not waited_for:
            with self._room:
                batch = self._enqueued_on[engine]
                if batch:
                    self._enqueued_on[engine] = []
                    self._room.notify_all()
                else:
                    del self._enqueued_on[engine]
                    return
            error: BaseException | None = None
            try:
                engine.synchronize()
            except BaseException as raised:
                error = _inner(raised)
            self._end_all(batch, error)
            del batch, error

    def _end_all(self, batch: list[Job], error: BaseException | None) -> None:
        """Ends what the device did together; it does not say which of them an error is about."""
        freed: list[Job] = []
        if isinstance(error, DeviceError) and "given back" in str(error):
            freed = [job for job in batch if is_freed(job)]
        for job in batch:
            if freed:
                self._end(job, named(FreedError(FREED), job) if job in freed else None)
            else:
                self._end(job, None if error is None else named(error, job, len(batch)))

    def _let_go(self, job: Job) -> None:
        """Lets those go that touch the same memory."""
        if job.let_go:
            return
        job.let_go = True
        for storage in job.touches:
            use = self._uses[storage]
            use.readers.discard(job)
            if use.writer is job:
                use.writer = None
            if use.writer is None and not use.readers:
                del self._uses[storage]
        self._count_down(job.followers)

    def _count_down(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.waiting -= 1
            if not job.waiting:
                self._make_ready(job)

    def _end(self, job: Job, error: BaseException | None) -> None:
        resources.untrack("command", where(job), 0)
        progress = job.progress
        progress.told = self._dropping  # then nobody is left to be told
        with self._room:
            self._let_go(job)
            self._count_down(job.held_up)
            if self._barrier is job:
                self._barrier = None
            del self._pending[progress.id]
            job.run = job.keep = None  # whoever waits finds the buffers let go of
            job.touches.clear()
            progress.end(error)
            self._room.notify_all()
            if self.closing and not self._pending:
                self._wake_all()
        if progress.dropped:
            progress.tell()

    # the end ----------------------------------------------------------------------------------
    def close_soon(self) -> None:
        """Takes no more jobs; workers end after the last. Neither waits nor locks."""
        self.closing = True
        self._wake_all()

    def close(self, timeout: float | None = None) -> None:
        """As :meth:`close_soon`, then waits for what is pending."""
        self.close_soon()
        with self._room:
            self._room.notify_all()  # those who wait for room will get none
        until = None if timeout is None else time.monotonic() + timeout
        for worker in self._threads:
            if worker is not threading.current_thread():
                worker.join(None if until is None else max(until - time.monotonic(), 0.0))

    def drop(self) -> None:
        """Ends what is under way, and the rest with an error: for leaving the interpreter."""
        self._dropping = True
        self.close(PATIENCE)

    def _wake_all(self) -> None:
        for _ in self._threads:
            self._wake.put(None)

    def left_behind(self) -> None:
        """In a forked child: the jobs and the workers are the parent's; this starts afresh."""
        for job in self._pending.values():
            resources.untrack("command", where(job), 0)
        self._reset()


def _work(queue: Queue, wake: SimpleQueue[None]) -> None:
    while True:
        wake.get()
        if not queue.turn():
            return


def _has_queue(engine: Engine) -> bool:
    return type(engine).synchronize is not Engine.synchronize


def _inner(error: BaseException) -> BaseException:
    """The error without the frame that caught it, which would hold the job and so itself."""
    trace = error.__traceback__
    return error.with_traceback(trace.tb_next if trace else None)


# fork and exit -----------------------------------------------------------------------------------

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()
_registered = False


def _end_with_the_interpreter() -> None:
    # Asked for with the first worker: by then the engines have asked, and those who ask last are
    # heard first, so workers end before engines do.
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_drop_all)


def _drop_all() -> None:
    for queue in list(_queues):
        queue.drop()


def _after_fork() -> None:
    for queue in list(_queues):
        queue.left_behind()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
