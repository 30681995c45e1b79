"""Streams: run submitted commands in the background.

>>> from dala.gpu.compute import buffer, buffer_zeros, submit, wait
>>> a, out = buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")
>>> command = submit({"op": "run_kernel", "kernel": "scalar_mul", "inputs": [a], "output": out,
...                   "params": {"scalar": 3.0}})
>>> wait(command)
>>> out.read_list()
[3.0, 6.0]
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final, Literal, TypeAlias

from dala import forks, resources
from dala.arguments import Integer
from dala.budget import Limits
from dala.errors import ParameterError
from dala.gpu.compute.call.spec import Spec, read_spec
from dala.gpu.compute.stream.command import Command, seconds
from dala.gpu.compute.stream.job import Job, memory_of
from dala.gpu.compute.stream.scheduler import Queue
from dala.resources import Closing

Priority: TypeAlias = Literal["realtime", "background"]

#: The default limit of pending commands.
LIMIT: Final = 1024
#: The most worker threads by default.
WORKERS: Final = 4


class Stream(Closing):
    """A queue of commands. Commands that share a buffer run in order; others may overlap.

    :func:`submit` uses one shared stream. Each stream has its own workers and limit. Streams do not
    wait for each other, so use a buffer in only one of them at a time.

    Args:
        workers: the number of worker threads; the number of cores by default, at most 4.
        limit: the maximum number of pending commands; ``submit`` waits while the queue is full.

    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a, b = buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")
    >>> with Stream(workers=1) as stream:
    ...     command = stream.submit({"op": "copy_buffer", "src": a, "dst": b})
    >>> command.done(), b.read_list()
    (True, [1.0, 2.0])
    """

    def __init__(self, *, workers: int | None = None, limit: int = LIMIT) -> None:
        if workers is None:
            from dala.gpu.compute.engines.cpu.threads import usable_cores  # slow to import

            workers = min(WORKERS, usable_cores())
        count = Integer(1)
        self._queue = Queue(
            count.check("Stream", "workers", workers), count.check("Stream", "limit", limit)
        )
        resources.track("stream", "host", 0)
        self._counted = [True]  # pop() is atomic: a finalizer may interrupt close()

    def submit(
        self, spec: Spec, priority: Priority = "realtime", *, timeout: float | None = None
    ) -> Command:
        """Check and enqueue a command; see :func:`submit`."""
        return self.begin(check(spec, priority, timeout))

    def begin(self, job: Job) -> Command:
        """Enqueue a checked job."""
        self._queue.put(job)
        return Command(job.progress)

    async def run_async(self, spec: Spec, priority: Priority = "realtime") -> None:
        """Submit a command and await its end. If the queue is full, await free space first."""
        await self.finish(check(spec, priority))

    async def finish(self, job: Job) -> None:
        """Enqueue a checked job and await its end."""
        import asyncio

        queue = self._queue
        while not queue.put(job, block=False):
            for oldest in queue.pending()[:1]:
                await asyncio.wrap_future(oldest.future)
        await Command(job.progress)

    @property
    def pending(self) -> int:
        """The number of pending commands."""
        return len(self._queue.pending())

    @property
    def closed(self) -> bool:
        """True if the stream was closed."""
        return self._queue.closing

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all commands submitted so far have ended, with or without errors.

        Raises:
            CommandTimeout: some have not ended after ``timeout`` seconds; they continue.
        """
        until = None if timeout is None else monotonic() + seconds("Stream.synchronize", timeout)
        for progress in self._queue.pending():
            left = None if until is None else until - monotonic()
            progress.outcome("Stream.synchronize", left)

    def close(self) -> None:
        """Wait for the pending commands and stop the workers. ``submit`` raises afterwards."""
        self._queue.close()
        self._uncount()

    def _uncount(self) -> None:
        with suppress(IndexError):
            self._counted.pop()
            resources.untrack("stream", "host", 0)

    def __del__(self) -> None:
        # Pending commands still run. The interpreter may be exiting, or __init__ has failed.
        with suppress(Exception):
            self._queue.close_soon()
            self._uncount()

    def __repr__(self) -> str:
        queue = self._queue
        state = "closed" if queue.closing else f"{len(queue.pending())} pending"
        return f"<Stream {state}, workers={queue.workers}, limit={queue.limit}>"


def submit(spec: Spec, priority: Priority = "realtime", *, timeout: float | None = None) -> Command:
    """Submit a command and return at once; it runs in the background.

    Arguments are checked first, as in ``run_kernel``. Commands that share a buffer run in order if
    one of them writes it; others may overlap. While 1024 commands are pending, the call waits.

    Args:
        spec: ``{"op": "run_kernel", "kernel": ..., "inputs": [...], "output": ..., "params":
            {...}}``, ``{"op": "copy_buffer", "src": ..., "dst": ...}`` between two buffers of one
            shape and dtype, or ``{"op": "barrier"}``, which runs after all earlier commands and
            before all later ones.
        priority: "realtime" commands start before "background" ones.
        timeout: the most seconds from now until the command has ended. It is ended then, with
            CommandTimeout; None for no limit. The limits of ``dala.limits`` hold as well.

    Returns:
        A Command, to pass to ``wait`` or ``poll``, or to await.

    >>> from dala.gpu.compute import buffer, submit
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> command = submit({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": a})
    >>> command.result(timeout=60)
    >>> a.read_list()
    [0.0, 2.0]
    """
    return default().submit(spec, priority, timeout=timeout)


# the shared stream -------------------------------------------------------------------------------

_default: Stream | None = None
_default_lock = forks.lock()


def default() -> Stream:
    """Return the stream that :func:`submit` uses, created on first use."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = Stream()
    return _default


# checks ------------------------------------------------------------------------------------------
def is_background(priority: str) -> bool:
    """Return True for "background", False for "realtime"; raise for other priorities."""
    if not isinstance(priority, str) or priority not in ("realtime", "background"):
        raise ParameterError.invalid("submit", "priority", "'realtime' or 'background'", priority)
    return priority == "background"


def check(spec: Spec, priority: str = "realtime", timeout: float | None = None) -> Job:
    """Check a spec and return its job."""
    background = is_background(priority)
    limits = None
    if timeout is not None:
        limits = Limits(time=max(seconds("submit", timeout), 1e-9))
    name, kernel, inputs, output, params = read_spec(spec, "submit")
    if kernel is not None:
        name = f"{name}({kernel.name!r})"
        plan, storages, target, values = kernel.plan(inputs, output, params)  # type: ignore[arg-type]
        run = partial(plan.run, storages, target, values)
    elif output is not None:
        storages, target = [b.storage("submit") for b in inputs], output.storage_to_write("submit")
        run = partial(output.engine.copy, storages[0], target)
    if output is None:
        return Job(name, background, limits=limits)
    keep = (list(inputs), output)
    memory = memory_of(storages, [target])
    return Job(name, background, output.engine, run, memory, keep, limits)
