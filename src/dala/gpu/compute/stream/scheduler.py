"""Schedule submitted jobs on worker threads, in the order that their memory use requires.

A job waits for earlier jobs that use the same memory if one of the two writes it; other jobs may
overlap. An engine with its own queue keeps the order itself: there a job releases its dependents
when it is enqueued, and ends when the device has finished it.

Worker threads refer to the queue and never to the stream, so that unused streams can be garbage
collected. A ``SimpleQueue`` wakes them, because it is safe to use in finalizers.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import Final

from dala import forks, resources
from dala.budget import applied, cancelled
from dala.errors import DeviceError, FreedError
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.stream.command import CommandState
from dala.gpu.compute.stream.job import FREED, Job, check_alive, is_freed, name_command, where
from dala.trace.recorder import OFF, tracer

#: Seconds to wait for jobs at interpreter exit that a device cannot end.
EXIT_TIMEOUT: Final = 10.0

#: Seconds that running jobs get at interpreter exit to finish.
GRACE: Final = 0.05

#: Commands enqueued on a device ahead of time. Others stay here, where priorities can reorder them.
DEPTH: Final = 16


@dataclass(eq=False, slots=True)
class _Use:
    """The pending jobs that use a piece of memory."""

    span: tuple[int, int] | None
    writer: Job | None = None
    readers: set[Job] = field(default_factory=set)


class Queue:
    """The pending jobs of a stream, in order, and its worker threads."""

    def __init__(self, workers: int, limit: int) -> None:
        self.workers = workers
        self.limit = limit
        self.closing = False
        self._reset()
        _queues.add(self)

    def _reset(self) -> None:
        self._lock = forks.lock()
        self._room = forks.condition(self._lock)
        self._pending: dict[int, Job] = {}
        self._ready: list[tuple[bool, int, Job]] = []
        self._uses: dict[Storage, _Use] = {}
        self._barrier: Job | None = None
        self._wake: SimpleQueue[None] = forks.simple_queue()
        self._threads: list[threading.Thread] = []
        self._dropping = False
        #: Jobs enqueued on each engine that a worker is waiting for.
        self._enqueued_on: dict[Engine, list[Job]] = {}

    # submitting -------------------------------------------------------------------------------
    def put(self, job: Job, *, block: bool = True) -> bool:
        """Add a job. While the queue is full, wait, or return False if ``block`` is False."""
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
            job.progress.on_cancel = lambda: self.cancel(job)
            resources.track("command", where(job), 0)
            if job.engine is None:
                job.waiting = len(self._pending)
                for other in self._pending.values():
                    other.barriers.append(job)
                self._barrier = job
            else:
                before = self._before(job)
                job.waiting = len(before)
                for other in before:
                    other.dependents.append(job)
            self._pending[job.progress.id] = job
            if not job.waiting:
                self._make_ready(job)
        return True

    def pending(self) -> list[CommandState]:
        """Return the states of the pending commands, oldest first."""
        with self._lock:
            return [job.progress for job in self._pending.values()]

    def cancel(self, job: Job) -> bool:
        """Cancel a job; return False if it has ended, or if a device has it.

        One that has not started ends at once, and keeps its place among the others.
        """
        progress, token = job.progress, job.scope.token
        assert token is not None
        token.cancel("cancelled")
        with self._lock:
            if progress.future.done():
                return False
            if job.started:
                return not job.released
            job.run = None
            progress.reported = True
            progress.end(name_command(cancelled(job.name, "cancelled"), job))
        return True

    def _before(self, job: Job) -> set[Job]:
        """Return the jobs that a new job must wait for, and record the memory it uses."""
        found: set[Job] = set()
        if self._barrier is not None:
            found.add(self._barrier)
        for storage, writes in job.memory.items():
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
        found.discard(job)  # its own buffers may share memory
        return found

    def _overlapping(self, span: tuple[int, int]) -> list[_Use]:
        """Return the recorded uses of foreign memory that overlap an address range."""
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
        worker = forks.thread(
            _work, args=(self, self._wake), name=f"dala-stream-{len(self._threads) + 1}"
        )
        worker.start()
        self._threads.append(worker)
        _register_exit()

    def run_next(self) -> bool:
        """Run the next job, if any; return False once the queue has closed."""
        with self._room:
            while self._ready and self._full(self._ready[0][2].engine):
                self._room.wait()  # afterwards another job may be first
            if not self._ready:
                return not self.closing or bool(self._pending)
            job = heappop(self._ready)[2]
            job.started = True
        try:
            self._run(job)
        except BaseException as error:
            self._end(job, name_command(_without_frame(error), job))
            return True
        if job.engine is None or type(job.engine).synchronize is Engine.synchronize:
            self._end(job, None)
        else:
            self._enqueued(job, job.engine)
        return True

    def _full(self, engine: Engine | None) -> bool:
        return engine is not None and len(self._enqueued_on.get(engine, ())) >= DEPTH

    def _run(self, job: Job) -> None:
        if self._dropping:
            raise FreedError("dropped because the interpreter exits.")
        if job.run is None:
            return
        check_alive(job)
        try:
            with applied(job.scope):
                job.scope.check(job.name)
                with tracer.span("job", job.name) if tracer.on else OFF:
                    job.run()
        except (AttributeError, TypeError):
            check_alive(job)  # raises if a buffer was freed meanwhile
            raise

    def _enqueued(self, job: Job, engine: Engine) -> None:
        """Release the dependents of a job. One worker waits for all jobs enqueued meanwhile."""
        with self._lock:
            self._release(job)
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
                error = _without_frame(raised)
            self._end_all(batch, error)
            del batch, error

    def _end_all(self, batch: list[Job], error: BaseException | None) -> None:
        """End jobs that the device ran together. An error does not say which one failed."""
        freed: list[Job] = []
        if isinstance(error, DeviceError) and isinstance(error.__cause__, FreedError):
            freed = [job for job in batch if is_freed(job)]
        for job in batch:
            if freed:
                self._end(job, name_command(FreedError(FREED), job) if job in freed else None)
            else:
                self._end(job, None if error is None else name_command(error, job, len(batch)))

    def _release(self, job: Job) -> None:
        """Release the jobs that wait for a job's memory."""
        if job.released:
            return
        job.released = True
        for storage in job.memory:
            use = self._uses[storage]
            use.readers.discard(job)
            if use.writer is job:
                use.writer = None
            if use.writer is None and not use.readers:
                del self._uses[storage]
        self._count_down(job.dependents)

    def _count_down(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.waiting -= 1
            if not job.waiting:
                self._make_ready(job)

    def _end(self, job: Job, error: BaseException | None) -> None:
        resources.untrack("command", where(job), 0)
        progress = job.progress
        progress.reported |= self._dropping  # at exit there is no caller to raise it in
        with self._room:
            self._release(job)
            self._count_down(job.barriers)
            if self._barrier is job:
                self._barrier = None
            del self._pending[progress.id]
            job.run = job.keep = None  # so that waiting threads can free the buffers at once
            job.memory.clear()
            if not progress.future.done():  # cancelled before it started
                progress.end(error)
            self._room.notify_all()
            if self.closing and not self._pending:
                self._wake_all()
        if progress.dropped:
            progress.log_error()

    # the end ----------------------------------------------------------------------------------
    def close_soon(self) -> None:
        """Accept no more jobs; workers end after the last one. Takes no lock and does not wait."""
        self.closing = True
        self._wake_all()

    def close(self, timeout: float | None = None) -> None:
        """Accept no more jobs, and wait for the pending ones."""
        self.close_soon()
        with self._room:
            self._room.notify_all()  # threads waiting for room raise an error
        until = None if timeout is None else time.monotonic() + timeout
        for worker in self._threads:
            if worker is not threading.current_thread():
                worker.join(None if until is None else max(until - time.monotonic(), 0.0))

    def drop(self) -> None:
        """At interpreter exit, end all jobs; jobs about to finish may do so."""
        self._dropping = True
        self.close(GRACE)
        for job in list(self._pending.values()):
            if job.scope.token is not None:
                job.scope.token.cancel("ended because the interpreter exits")
        self.close(EXIT_TIMEOUT)

    def _wake_all(self) -> None:
        for _ in self._threads:
            self._wake.put(None)

    def reset_after_fork(self) -> None:
        """In a forked child, forget all jobs and workers: they belong to the parent."""
        for job in self._pending.values():
            resources.untrack("command", where(job), 0)
        self._reset()


def _work(queue: Queue, wake: SimpleQueue[None]) -> None:
    while True:
        wake.get()
        if not queue.run_next():
            return


def _without_frame(error: BaseException) -> BaseException:
    """Remove the frame that caught an error, which would keep the job alive."""
    trace = error.__traceback__
    return error.with_traceback(trace.tb_next if trace else None)


# fork and exit -----------------------------------------------------------------------------------

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


@cache
def _register_exit() -> None:
    # Registered with the first worker, after the engines: atexit runs in reverse order, so workers
    # end before engines.
    atexit.register(_drop_all)


def _drop_all() -> None:
    for queue in list(_queues):
        queue.drop()


def _after_fork() -> None:
    for queue in list(_queues):
        queue.reset_after_fork()


forks.in_child(_after_fork)
