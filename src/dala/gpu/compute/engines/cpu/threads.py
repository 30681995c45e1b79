"""The thread pool of the CPU engine.

A job is a block of memory and a native function. The calling thread makes one native call, which
invites helpers, runs tiles beside them, and waits for their last ones. Helpers wait for invitations
in native code too, so the GIL is free throughout, no Python runs per tile, and an idle helper
starts within a microsecond. A helper that has waited for a while sleeps, and is woken through a
queue. Any number of threads may start jobs at the same time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from queue import SimpleQueue
from typing import Final

from dala import budget, forks
from dala.errors import ParameterError
from dala.gpu.compute.engines.cpu.guard import Guard, guarding, stop_all
from dala.gpu.compute.engines.cpu.llvm.metering import STOP_WORD
from dala.gpu.compute.engines.cpu.llvm.tiles import MAILBOX_HEAD, SLOTS
from dala.trace.recorder import LEAST_WAIT, tracer

#: Checks for the end of a job before the caller sleeps (about 100 us).
SPINS: Final = 2000
#: Checks for another job before an idle helper sleeps (about 300 us). Drawing one frame after
#: another takes less than that, and waking a helper takes about 50 us.
IDLE_SPINS: Final = 3000
#: Seconds that a caller sleeps while helpers finish.
SLEEP_SECONDS: Final = 50e-6

#: The byte of a block at which the address of its stop cell begins.
_STOP: Final = STOP_WORD * 8

_Share: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_Wait: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_Serve: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def usable_cores() -> int:
    """Return the number of cores that this process may use, by affinity and container limits."""
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
        pass  # no container limit
    return cores


def thread_count() -> int:
    """Return the number of threads: DALA_THREADS, or one for each usable core."""
    wanted = os.environ.get("DALA_THREADS", "").strip()
    if not wanted:
        return usable_cores()
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ParameterError.invalid(
            "cpu", "DALA_THREADS", "an int of at least 1", wanted, "Unset it to use every core."
        )
    return int(wanted)


class Tiles:
    """The native functions that run tiles; see ``llvm/tiles.py``."""

    def __init__(self, addresses: Mapping[str, int], owner: object) -> None:
        self.share = _Share(addresses["share"])
        self.share_address = addresses["share"]
        self.wait = _Wait(addresses["wait"])
        self.serve = _Serve(addresses["serve"])
        self.owner = owner  # keeps the code alive


class _Mailbox:
    """Invitations for helpers in native memory, and a queue that wakes sleeping helpers."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * (MAILBOX_HEAD + SLOTS))()
        self.address = ctypes.addressof(self.words)
        self.sleepers: SimpleQueue[bool] = forks.simple_queue()

    def wake(self, wanted: int) -> None:
        """Make sure that a number of helpers are idle, or will be soon."""
        for _ in range(wanted - self.words[1] - self.sleepers.qsize()):
            self.sleepers.put(True)


class ThreadPool:
    """Worker threads, started by the first job that needs them."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads
        self._reset()
        forks.in_child(self._reset)
        atexit.register(self._exit)

    def _reset(self) -> None:
        # A forked child has none of its parent's threads, and their locks may be held forever.
        self._mailbox = _Mailbox()
        self._workers: list[threading.Thread] = []
        self._starting = forks.lock()

    def run(self, tiles: Tiles, block: bytes, helpers: int, guard: Guard | None = None) -> None:
        """Run a job with up to ``helpers`` other threads; return when it is done.

        ``block`` is copied. The memory it points to must stay alive until this returns. An
        interrupt is raised only when no thread works on the job; it ends the job early if the job
        has a guard.
        """
        if guard is None and budget.find_scope() is not None:
            # An operation, which is ended between its tiles.
            with guarding(budget.find_scope(), "an operation") as own:
                self.run(tiles, block[:_STOP] + own.word + block[_STOP + 8 :], helpers, own)
            return
        job = ctypes.create_string_buffer(block, len(block))
        address = ctypes.addressof(job)
        mailbox = self._mailbox
        helpers = min(helpers, self.threads - 1)
        if helpers > len(self._workers):
            self._start(helpers, tiles)
        if mailbox.words[1] < helpers:
            mailbox.wake(helpers)
        done = 0
        try:
            arguments = address, mailbox.address, helpers, SPINS
            done = _traced(tiles, *arguments) if tracer.on else tiles.share(*arguments)
        finally:
            if not done:
                _wait_for(tiles, address, guard)

    def _start(self, wanted: int, tiles: Tiles) -> None:
        with self._starting:
            while len(self._workers) < wanted:
                worker = forks.thread(
                    _work,
                    args=(self._mailbox, tiles),
                    name=f"dala-cpu-{len(self._workers) + 1}",
                )
                worker.start()
                self._workers.append(worker)

    def _exit(self) -> None:
        stop_all("ended because the interpreter exits")
        self.close()

    def close(self) -> None:
        """Stop the workers; the next job starts new ones."""
        with self._starting:
            workers, self._workers = self._workers, []
            mailbox, self._mailbox = self._mailbox, _Mailbox()
        mailbox.words[0] = 1
        for _ in workers:
            mailbox.sleepers.put(False)
        for worker in workers:
            worker.join(timeout=2.0)


#: Calls ``share``, and then the system's clock: the end of the native code, before Python goes on.
_STAMPED: Final = """
define i32 @stamped(ptr %share, ptr %job, ptr %mailbox, i64 %helpers, i64 %spins, ptr %clock,
                    ptr %stamp) {
  %done = call i32 %share(ptr %job, ptr %mailbox, i64 %helpers, i64 %spins)
  %failed = call i32 %clock(i32 1, ptr %stamp)
  ret i32 %done
}
"""
_StampedShare: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip


@cache
def _stamping() -> tuple[Callable[..., int], int, object] | None:
    """Return ``stamped``, the address of the clock, and the code; None where clocks differ."""
    if "CLOCK_MONOTONIC" not in time.get_clock_info("perf_counter").implementation:
        return None
    if sys.platform != "linux":  # where CLOCK_MONOTONIC is 1
        return None
    from dala.gpu.compute.engines.cpu.jit import jit

    code = jit().compile(_STAMPED, ("stamped",))
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value
    return None if clock is None else (_StampedShare(code.addresses["stamped"]), clock, code)


def _traced(tiles: Tiles, address: int, mailbox: int, helpers: int, spins: int) -> int:
    """Call ``share`` in a trace, and record how long Python then waited for its lock."""
    found = _stamping()
    if found is None:
        return int(tiles.share(address, mailbox, helpers, spins))
    stamped, clock, _ = found
    stamp = (ctypes.c_int64 * 2)()
    done = stamped(tiles.share_address, address, mailbox, helpers, spins, clock, stamp)
    now, ended = tracer.clock(), stamp[0] * 1_000_000_000 + stamp[1]
    if now - ended > LEAST_WAIT:
        frame, thread, _ = tracer.here()
        tracer.put(("gil", "", ended, now, thread, frame, None))
    return done


def _work(mailbox: _Mailbox, tiles: Tiles) -> None:
    while True:
        tiles.serve(mailbox.address, IDLE_SPINS)
        if not mailbox.sleepers.get():
            return


def _wait_for(tiles: Tiles, address: int, guard: Guard | None) -> None:
    """Wait for the tiles of other threads, and delay an interrupt until then."""
    interrupt: BaseException | None = None
    done = False
    while not done:
        try:
            time.sleep(SLEEP_SECONDS)
            done = bool(tiles.wait(address, 100))
        except BaseException as error:
            interrupt = error
            if guard is not None:
                guard.stop("interrupted")
    if interrupt is not None:
        raise interrupt


_pool: ThreadPool | None = None
_making = forks.lock()


def pool() -> ThreadPool:
    """Return the thread pool of the process, created on first use."""
    global _pool
    if _pool is None:
        with _making:
            if _pool is None:
                _pool = ThreadPool()
    return _pool
