"""The threads that share out a job.

A job is one block of memory and one native function. Every thread that takes part makes a single
call, in which it fetches tiles by an atomic counter until none is left, so the GIL is free and no
Python runs for a tile. The calling thread takes part too; if it is done first it waits for the
others' last tiles. Any number of threads may start jobs at the same time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import struct
import threading
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Final

from dala.errors import ParameterError

_Run: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_Watch: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

#: How often the caller looks for the end of a job before it goes to sleep (some 50 us).
LOOKS: Final = 1500
#: How often an idle thread looks for another job before it goes to sleep (some 100 us).
IDLE_LOOKS: Final = 3000


def usable_cores() -> int:
    """Cores this process may run on: affinity and container limits count."""
    counted = getattr(os, "process_cpu_count", None)
    if counted is not None:
        cores = counted() or 1
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        pass  # no such limit here
    return cores


def thread_count() -> int:
    """Threads to use: DALA_THREADS, or one for each usable core."""
    wanted = os.environ.get("DALA_THREADS", "").strip()
    if not wanted:
        return usable_cores()
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ParameterError(
            f"DALA_THREADS must be a whole number of 1 or more, and it is {wanted!r}; "
            "leave it unset to use every core."
        )
    return int(wanted)


class Tiles:
    """The native functions that threads run; see :mod:`dala.gpu.compute.engines.llvm_tiles`."""

    def __init__(self, addresses: Mapping[str, int], owner: object) -> None:
        self.run = _Run(addresses["run"])
        self.run_stream = _Run(addresses["run_stream"])
        self.watch = _Watch(addresses["watch"])
        self.owner = owner  # of the functions' memory


class _Job:
    __slots__ = ("address", "call", "finished", "memory", "tiles")

    def __init__(self, tiles: Tiles, call: Callable[..., int], block: bytes) -> None:
        self.tiles = tiles
        self.call = call
        self.memory = ctypes.create_string_buffer(block, len(block))
        self.address = ctypes.addressof(self.memory)
        self.finished = threading.Lock()
        self.finished.acquire()

    @property
    def over(self) -> bool:
        """Whether every position has been done."""
        _, total, _, done = struct.unpack_from("=4q", self.memory)
        return bool(done == total)


class Pool:
    """Worker threads, started when the first job needs them."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        # A forked child has none of its parent's threads, and whatever they held is lost.
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._bell = ctypes.c_int64(0)
        self._workers: list[threading.Thread] = []
        self._starting = threading.Lock()

    def run(self, tiles: Tiles, block: bytes, helpers: int, *, stream: bool = False) -> None:
        """Runs a job with up to ``helpers`` other threads; returns when all of it is done.

        ``block`` is copied. Whatever its pointers lead to must stay alive until this returns, which
        it does not do early: even an interrupt is raised only when no thread works on the job.
        """
        call = tiles.run_stream if stream else tiles.run
        job = _Job(tiles, call, block)
        helpers = min(helpers, self.threads - 1)
        if helpers > len(self._workers):
            self._start(helpers)
        done = 0
        try:
            put = self._queue.put
            for _ in range(helpers):
                put(job)
            self._bell.value += 1
            done = call(job.address, LOOKS)
        finally:
            if not done:
                _wait_for(job)

    def _start(self, wanted: int) -> None:
        with self._starting:
            while len(self._workers) < wanted:
                worker = threading.Thread(
                    target=_work,
                    args=(self._queue, self._bell),
                    name=f"dala-cpu-{len(self._workers) + 1}",
                    daemon=True,
                )
                worker.start()
                self._workers.append(worker)

    def close(self) -> None:
        """Ends the workers; the next job starts new ones."""
        with self._starting:
            workers, self._workers = self._workers, []
            queue, self._queue = self._queue, SimpleQueue()
        for _ in workers:
            queue.put(None)
        for worker in workers:
            worker.join(timeout=2.0)


def _work(queue: SimpleQueue[_Job | None], bell: ctypes.c_int64) -> None:
    bell_address = ctypes.addressof(bell)
    job = queue.get()
    while job is not None:
        if job.call(job.address, 0):
            job.finished.release()
        tiles = job.tiles
        del job  # or an idle worker would keep its memory
        while True:
            heard = bell.value
            try:
                job = queue.get_nowait()
                break
            except Empty:
                # The next job often comes soon, and waking up takes longer than many jobs do.
                if not tiles.watch(bell_address, heard, IDLE_LOOKS):
                    job = queue.get()
                    break


def _wait_for(job: _Job) -> None:
    """Waits out the other threads' tiles; an interrupt is kept until then."""
    interrupt: BaseException | None = None
    while not job.over:
        try:
            # Takes the tiles that are left, should an interrupt have kept the caller from them. A
            # worker's signal cannot be missed; the timeout is for one lost to an interrupt here.
            if not job.call(job.address, 0):
                job.finished.acquire(timeout=0.1)
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


_pool: Pool | None = None
_making = threading.Lock()


def pool() -> Pool:
    """The process's pool, made on first use."""
    global _pool
    if _pool is None:
        with _making:
            if _pool is None:
                _pool = Pool()
    return _pool
