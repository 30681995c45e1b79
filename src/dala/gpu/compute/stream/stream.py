"""Streams: work that is submitted and done while the program goes on.

>>> from dala.gpu.compute import buffer, buffer_zeros, submit, wait
>>> a, out = buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")
>>> command = submit({"op": "run_kernel", "kernel": "scalar_mul", "inputs": [a], "output": out,
...                   "params": {"scalar": 3.0}})
>>> wait(command)
>>> out.read_list()
[3.0, 6.0]
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from time import monotonic
from typing import Final, Literal, TypeAlias

from dala import resources
from dala.errors import ParameterError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.spec import Spec, check_copy, read_spec
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.stream.command import Command, seconds
from dala.gpu.compute.stream.job import Job
from dala.gpu.compute.stream.scheduler import Queue
from dala.resources import Closing

Priority: TypeAlias = Literal["realtime", "background"]

#: Commands that may be pending in a stream.
LIMIT: Final = 1024
#: Workers of a stream, where the machine has as many cores.
WORKERS: Final = 4


class Stream(Closing):
    """Commands under way: those that share a buffer keep their order, others overlap.

    ``submit`` uses a stream that all share; one of your own has its own workers and its own limit.
    Two streams know nothing of each other: use a buffer in one of them at a time.

    Args:
        workers: threads that run commands; up to 4, as the machine has cores, where left out.
        limit: commands that may be pending; ``submit`` then waits until one has ended.

    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a, b = buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")
    >>> with Stream(workers=1) as stream:
    ...     command = stream.submit({"op": "copy_buffer", "src": a, "dst": b})
    >>> command.done(), b.read_list()
    (True, [1.0, 2.0])
    """

    _queue: Queue | None = None

    def __init__(self, *, workers: int | None = None, limit: int = LIMIT) -> None:
        if workers is None:
            from dala.gpu.compute.engines.cpu.threads import (
                usable_cores,  # with all that the CPU needs
            )

            workers = min(WORKERS, usable_cores())
        self._queue = Queue(_whole("workers", workers), _whole("limit", limit))
        resources.track("stream", "host", 0)
        self._counted = [True]  # emptied once: a finalizer may come in the middle of close()

    def submit(self, spec: Spec, priority: Priority = "realtime") -> Command:
        """Checks a command, takes it and returns at once; see :func:`submit`."""
        return self.begin(check(spec, priority))

    def begin(self, job: Job) -> Command:
        """Takes work that was checked."""
        self._own().put(job)
        return Command(job.progress)

    async def run_async(self, spec: Spec, priority: Priority = "realtime") -> None:
        """Submits a command and awaits its end; where the queue is full, it awaits room too."""
        await self.finish(check(spec, priority))

    async def finish(self, job: Job) -> None:
        """Takes work that was checked and awaits its end."""
        import asyncio

        queue = self._own()
        while not queue.put(job, block=False):
            for oldest in queue.pending()[:1]:
                await asyncio.wrap_future(oldest.future)
        await Command(job.progress)

    @property
    def pending(self) -> int:
        """How many commands have not ended."""
        return len(self._own().pending())

    @property
    def closed(self) -> bool:
        """True once the stream takes no more commands."""
        return self._own().closing

    def synchronize(self, timeout: float | None = None) -> None:
        """Waits until all commands submitted so far have ended, well or not.

        Raises:
            CommandTimeout: some have not after ``timeout`` seconds; they go on.
        """
        until = None if timeout is None else monotonic() + seconds("Stream.synchronize", timeout)
        for progress in self._own().pending():
            left = None if until is None else until - monotonic()
            progress.outcome("Stream.synchronize", left)

    def close(self) -> None:
        """Waits for the pending commands and ends the workers; ``submit`` then raises."""
        queue = self._own()
        queue.close()
        self._uncount()

    def _own(self) -> Queue:
        assert self._queue is not None
        return self._queue

    def _uncount(self) -> None:
        with suppress(IndexError):
            self._counted.pop()
            resources.untrack("stream", "host", 0)

    def __del__(self) -> None:
        # Commands that are pending are still done; at exit modules may be gone.
        with suppress(Exception):
            if self._queue is not None:
                self._queue.close_soon()
                self._uncount()

    def __repr__(self) -> str:
        queue = self._own()
        state = "closed" if queue.closing else f"{len(queue.pending())} pending"
        return f"<Stream {state}, workers={queue.workers}, limit={queue.limit}>"


def submit(spec: Spec, priority: Priority = "realtime") -> Command:
    """Takes a command and returns at once; it is done while the program goes on.

    Everything is checked here, as by ``run_kernel``; what is refused is not begun. Commands that
    touch a common buffer, where one of the two writes it, keep their order; others overlap. When
    1024 are pending, the call waits until one has ended.

    Args:
        spec: ``{"op": "run_kernel", "kernel": ..., "inputs": [...], "output": ..., "params":
            {...}}``, ``{"op": "copy_buffer", "src": ..., "dst": ...}`` between buffers alike, or
            ``{"op": "barrier"}``, which waits for all before it and holds all after it.
        priority: "realtime" commands are begun before "background" ones that are ready too.

    Returns:
        A Command: an int, its id, to ``wait`` for, to ``poll`` or to await.
    """
    return default().submit(spec, priority)


# the stream that all share -----------------------------------------------------------------------

_default: Stream | None = None
_making = threading.Lock()


def default() -> Stream:
    """The stream of :func:`submit`, made on first use."""
    global _default
    if _default is None:
        with _making:
            if _default is None:
                _default = Stream()
    return _default


def _after_fork() -> None:
    global _making
    _making = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


# checks ------------------------------------------------------------------------------------------
def is_background(priority: str) -> bool:
    """Whether a priority is the lower one; others than the two are refused."""
    if priority not in ("realtime", "background"):
        raise ParameterError(
            f"submit: priority must be 'realtime' or 'background', {priority!r} came."
        )
    return priority == "background"


def check(spec: Spec, priority: str = "realtime") -> Job:
    """A checked command, not begun; or the error that names what is wrong."""
    background = is_background(priority)
    given = read_spec(spec, "submit")
    if given["op"] == "barrier":
        return Job("barrier", background)
    if given["op"] == "copy_buffer":
        return _copy(given["src"], given["dst"], background)
    kernel = find_kernel(given["kernel"], "submit")
    inputs, output = given["inputs"], given["output"]
    plan, storages, target, values = kernel.plan(inputs, output, given["params"])
    return Job(
        f"run_kernel({kernel.name!r})",
        background,
        output.engine,
        lambda: plan.run(storages, target, values),
        storages,
        [target],
        (list(inputs), output),
    )


def _copy(source: Buffer, target: Buffer, background: bool) -> Job:
    check_copy(source, target, "submit")
    engine, begin, end = source.engine, source.storage("submit"), target.storage("submit")
    return Job(
        "copy_buffer",
        background,
        engine,
        lambda: engine.copy(begin, end),
        [begin],
        [end],
        (source, target),
    )


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(f"Stream: {name} must be a whole number above 0, {value!r} came.")
    return value
