"""A native device: commands, submits and memory. For the owner's thread only.

Dispatches are recorded into one command buffer while more work is enqueued, and submitted when the
queue is empty, so that a burst costs one submit. All uniform blocks of a batch share one buffer,
each at its own offset, and are written just before the submit. The device's queue keeps writes and
submits in order, so the next batch can use the same offsets.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from dala.errors import DeviceError, DeviceLostError, FreedError
from dala.gpu.compute.engines.base import Bytes
from dala.gpu.compute.engines.webgpu.adapters import Adapter
from dala.gpu.compute.engines.webgpu.backlog import POLL_SECONDS
from dala.gpu.compute.engines.webgpu.bindings import Bindings
from dala.gpu.compute.engines.webgpu.calls import open_device
from dala.gpu.compute.engines.webgpu.owner import Owner
from dala.gpu.compute.engines.webgpu.pipelines import (
    MAX_NATIVE,
    MAX_SOFTWARE_NATIVE,
    ComputePipeline,
    Pipelines,
)
from dala.gpu.compute.engines.webgpu.pool import (
    SOFTWARE_BYTES,
    USAGE,
    BufferPool,
    DeviceBuffer,
    Mapped,
    PoolSlot,
)
from dala.gpu.compute.engines.webgpu.staging import UPLOAD_BYTES, Staging, Uploads
from dala.gpu.compute.engines.webgpu.timing import DeviceTrace, Timer
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.trace.recorder import tracer

if TYPE_CHECKING:
    import wgpu

T = TypeVar("T")

#: A pipeline, its buffers with the output last, its uniform block, and its workgroups.
Dispatch: TypeAlias = "tuple[ComputePipeline, tuple[DeviceBuffer, ...], bytes, int]"

#: Bytes for the uniform blocks of one batch of dispatches.
UNIFORM_BYTES: Final = 65536

#: The number of dispatches in a submit while the device is idle, and while it is busy.
FIRST_BATCH: Final = 4
MAX_BATCH: Final = 64

#: From this size on a shader copies buffers, which is several times faster.
LARGE_COPY: Final = 1 << 20

#: The maximum number of submits in flight; beyond it the owner waits for half of them.
MAX_IN_FLIGHT: Final = 64

#: The largest single write in bytes, and the bytes in flight before the owner waits.
WRITE_BYTES: Final = 64 << 20
MAX_WRITE_BYTES: Final = 256 << 20

#: How long a wait polls before it starts to sleep.
SPIN_SECONDS: Final = 150e-6


class NativeDevice:
    """One ``wgpu.GPUDevice`` and all native objects that belong to it."""

    def __init__(
        self,
        adapter: Adapter,
        limits: dict[str, int],
        owner: Owner,
        pool_bytes: int,
        staging_bytes: int,
    ) -> None:
        self.calls = open_device(adapter, limits, owner)
        self.native = self.calls.device
        self.pool = BufferPool(pool_bytes)
        self.staging = Staging(self, staging_bytes)
        self.uploads = Uploads(self, SOFTWARE_BYTES if adapter.software else UPLOAD_BYTES)
        self._adapter = adapter
        self._owner = owner
        self._align = max(int(limits["min-uniform-buffer-offset-alignment"]), 32)
        self._uniform = self._buffer(UNIFORM_BYTES, "UNIFORM")
        self._blocks = bytearray(UNIFORM_BYTES)
        self._used = 0
        #: Where the uniform blocks of this batch are; equal ones share a place.
        self._offsets: dict[bytes, int] = {}
        self._encoder: wgpu.GPUCommandEncoder | None = None
        self._pass: wgpu.GPUComputePassEncoder | None = None
        self._dispatches = 0
        self._dirty = 0
        self._writes: deque[tuple[int, int]] = deque()
        self._copying: ComputePipeline | None = None
        self._bindings = Bindings(self.native, self._uniform)
        most = MAX_SOFTWARE_NATIVE if adapter.software else MAX_NATIVE
        later = owner.post_from_finalizer
        self.pipelines = Pipelines(self.calls, self._bindings, most, later)
        #: Futures with their results, by the submit that they wait for.
        self._syncs: deque[tuple[int, Future[Any], Any]] = deque()
        self._since = 0.0
        self._held = 0
        #: Bytes of buffers that were copied from and to the host.
        self.uploaded = self.downloaded = 0
        self._timer: Timer | None = None
        #: The times of its dispatches in a trace.
        self.tracing = DeviceTrace(self, adapter.id)
        owner.on_idle, owner.on_lost, owner.on_stop = self.on_idle, self.lost, self.stop

    # memory -----------------------------------------------------------------------------------

    def allocate(self, buffer: DeviceBuffer, zero: bool) -> None:
        """Assign memory to a buffer, from the pool or new. New memory is always zero."""
        if self.pool.take(buffer):
            if zero:
                self.encoder().clear_buffer(self.native_buffer(buffer))
            return
        try:
            native = self._buffer(buffer.size, "STORAGE")
        except Exception as error:
            if "memory" not in str(error).lower():
                raise
            self.discard(self.pool.trim(0))
            self.wait_for(self.calls.submitted)
            native = self._buffer(buffer.size, "STORAGE")
        self.pool.give(buffer, PoolSlot(native, buffer.size))

    def release(self, buffer: DeviceBuffer) -> None:
        """Return a buffer's memory to the pool."""
        self.discard(self.pool.put(buffer))

    def discard(self, slots: list[PoolSlot]) -> None:
        """Release memory. Recorded and submitted commands that use it still run."""
        if slots:
            self._bindings.forget(slots)
            for slot in slots:
                slot.native = None

    def write(self, buffer: DeviceBuffer, data: memoryview, at: int = 0) -> None:
        """Write bytes to a buffer, in order with the commands so far."""
        self.flush()
        native = self.native_buffer(buffer)
        whole = data.nbytes & ~3
        for start in range(0, whole, WRITE_BYTES):
            piece = data[start : min(start + WRITE_BYTES, whole)]
            self._write(native, at + start, piece)
        if whole < data.nbytes:  # only whole words can be written; the padding is never read
            self._write(native, at + whole, bytes(data[whole:]).ljust(4, b"\0"))

    def request_upload(self, nbytes: int, future: Future[Mapped]) -> None:
        """Set the future to mapped memory for a large upload, as soon as some is free."""
        self._start_waiting()
        self.uploads.request(nbytes, future)

    def write_upload(self, mapped: Mapped, buffer: DeviceBuffer, nbytes: int) -> None:
        """Copy filled memory to a buffer, in order with the commands so far."""
        try:
            native = self.native_buffer(buffer)
        except DeviceError:
            self.uploads.give_back(mapped)
            raise
        self.uploads.send(mapped, native, nbytes)

    def write_unordered(self, buffer: DeviceBuffer, data: bytes, start: int) -> None:
        """Write whole words without a submit first; no recorded command may read them."""
        self._write(self.native_buffer(buffer), start, data)

    def copy(
        self,
        source: DeviceBuffer,
        target: DeviceBuffer,
        nbytes: int,
        source_start: int = 0,
        target_start: int = 0,
    ) -> None:
        """Record a copy; starts must be multiples of 16 bytes. Large copies are dispatches."""
        size = -(-nbytes // 4) * 4
        if not size or source is target:
            return
        if size >= LARGE_COPY:
            if self._copying is None:
                text = read_wgsl("copy.wgsl", __package__)
                self._copying = self.pipelines.add(text, 1, 12, "all", False)
            quads = -(-size // 16)  # buffers are padded to whole vec4
            block = struct.pack("<3I", quads, source_start // 16, target_start // 16)
            self.dispatch(self._copying, (source, target), block, -(-quads // 128))
        else:
            natives = self.native_buffer(source), source_start, self.native_buffer(target)
            self.encoder().copy_buffer_to_buffer(*natives, target_start, size)

    def read(
        self, buffer: DeviceBuffer, start: int, nbytes: int, lend: bool, future: Future[Any]
    ) -> None:
        """Start a read (see :meth:`Staging.read`), or raise the first error of earlier work."""
        failure = self._owner.take_failure()
        if failure is not None:
            raise failure
        self._start_waiting()
        self.staging.read(self.native_buffer(buffer), start, nbytes, future, lend)

    # work -------------------------------------------------------------------------------------

    def dispatch(
        self,
        pipeline: ComputePipeline,
        buffers: tuple[DeviceBuffer, ...],
        block: bytes,
        groups: int,
    ) -> None:
        """Record a dispatch; the last buffer is the output, or the flag of a flagged pipeline."""
        native = self.pipelines.native(pipeline)
        at = self._offsets.get(block)
        if at is None or at + pipeline.window > UNIFORM_BYTES:
            if self._used + pipeline.window > UNIFORM_BYTES:
                self.flush()
            at = self._used
            self._blocks[at : at + len(block)] = block
            self._used += -(-len(block) // self._align) * self._align
            self._offsets[block] = at
        try:
            ids = [b.slot.id for b in buffers]  # type: ignore[union-attr]
            key: tuple[int, ...] = (pipeline.window + pipeline.flagged, *ids)
        except AttributeError:
            key = ()  # one has no memory; _slot raises
        group = self._bindings.find(key) or self._bindings.make(
            [self._slot(b) for b in buffers], pipeline.window, pipeline.flagged
        )
        if self._timer is not None:
            self._pass = self._timer.begin(self.encoder())
        elif tracer.on and self.tracing.able:
            self._pass = self.tracing.begin(self.encoder())
        elif self._pass is None:
            self._pass = self.encoder().begin_compute_pass()
        rows = 1 if groups <= 65535 else -(-groups // 65535)
        self.calls.record(self._pass, native, group, at, -(-groups // rows), rows)
        self._dispatches += 1
        if self._dispatches >= FIRST_BATCH and (
            self._dispatches >= MAX_BATCH or not (self.calls.in_flight or self._held)
        ):
            self.flush()

    def dispatch_all(self, dispatches: Sequence[Dispatch], scratch: Sequence[DeviceBuffer]) -> None:
        """Record dispatches; ``scratch`` has memory while they run."""
        given: list[DeviceBuffer] = []
        self.hold(1)
        try:
            for buffer in scratch:
                self.allocate(buffer, zero=False)
                given.append(buffer)
            for one in dispatches:
                self.dispatch(*one)
        finally:
            self.hold(-1)
            for buffer in given:
                self.release(buffer)

    def encoder(self) -> wgpu.GPUCommandEncoder:
        """Return the command encoder, outside any compute pass."""
        self._end_pass()
        if self._encoder is None:
            self._encoder = self.native.create_command_encoder()
        return self._encoder

    def flush(self) -> None:
        """Submit the recorded commands and writes."""
        if self._encoder is None and not self._dirty:
            return
        encoder, self._dispatches = self.encoder(), 0
        self._encoder = None
        used, self._used = self._used, 0
        self._offsets.clear()
        self._owner.make_room()
        if self._owner.backlog.due():
            self.poll()
        commands = encoder.finish()  # raises if a command was invalid or the device is lost
        if used:
            self.native.queue.write_buffer(self._uniform, 0, memoryview(self._blocks)[:used])
        began = time.monotonic()
        number = self.calls.submit(commands)
        self._owner.backlog.submit(number, began)
        if self._dirty:
            self._writes.append((number, self._dirty))
            self._dirty = 0
        if self.calls.in_flight > MAX_IN_FLIGHT:
            self.poll()
            if self.calls.in_flight > MAX_IN_FLIGHT:
                self.wait_for(number - MAX_IN_FLIGHT // 2)
        if self.tracing.full:
            self.tracing.collect()

    def hold(self, more: int) -> None:
        """Defer submits while the sum of ``more`` is positive; a wait submits anyway."""
        before, self._held = self._held, self._held + more
        if (before > 0) != (self._held > 0):
            self.calls.mark_plan(self._encoder, not before)

    def start_timing(self) -> Timer | None:
        """Start timing; return None if a timer is running or the device has no timestamps."""
        if self._timer is not None or "timestamp-query" not in self.native.features:
            return None
        self.encoder()  # ends the current pass
        self._timer = Timer(self.native, self.calls.timestamp_period())
        return self._timer

    def stop_timing(self, timer: Timer, future: Future[memoryview] | None = None) -> None:
        """Stop timing, and set the future to the timestamps once all dispatches are done."""
        self._timer = None
        if future is None:
            return
        if timer.dispatches == 0:
            future.set_result(memoryview(b""))
            return
        self._start_waiting()
        self.staging.read(timer.resolve(self.encoder()), 0, timer.nbytes, future)

    def sync(self, future: Future[T], result: T | None = None) -> None:
        """Set the future when all work so far is done, or to the first error in it."""
        try:
            self.flush()
        except Exception as error:
            self._owner.fail(error)
            if self._owner.lost is not None:  # no poll sets the future any more
                future.set_exception(self._owner.take_failure())
                return
        self._start_waiting()
        self._syncs.append((self.calls.submitted, future, result))

    # progress ---------------------------------------------------------------------------------

    def on_idle(self) -> float | None:
        """Submit, poll and set futures; return the seconds until the next call, or None."""
        backlog = self._owner.backlog
        if backlog.crowded or not self._held:
            self.flush()
            self.tracing.collect()
        if not self.calls.in_flight and not self._awaited:
            if backlog.crowded or not self._held:
                backlog.clear()  # what an interrupted call has added, too
            return None
        self.poll()
        settled = self.settle()
        if not self._awaited:
            pause = POLL_SECONDS if backlog.crowded else 0.05
            return pause if self.calls.in_flight or backlog.crowded else None
        waited = time.monotonic() - self._since
        if settled:
            self._since = time.monotonic()
        # Sleep an eighth of the time waited so far, which adds little latency.
        return 0 if waited < SPIN_SECONDS else min(waited / 8, 0.002)

    def poll(self) -> None:
        """Process finished work; raise if the device is lost."""
        self.calls.poll()
        self._owner.backlog.settle(self.calls.finished)
        while self._writes and self._writes[0][0] <= self.calls.finished:
            self._writes.popleft()
        if self._owner.lost is not None:
            self._owner.check()

    def settle(self) -> bool:
        """Set the futures of finished work; return True if there were any."""
        settled = self.staging.collect(self._owner.translate)
        settled = self.uploads.collect() or settled
        while self._syncs and self._syncs[0][0] <= self.calls.finished:
            _, future, result = self._syncs.popleft()
            settled = True
            failure = self._owner.take_failure()
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
        return settled

    def wait_for(self, number: int, seconds: float = 1e9) -> bool:
        """Wait up to ``seconds`` for a submit; return True if it is done."""
        started = time.monotonic()
        while self.calls.finished < number:
            self.poll()
            self.settle()
            waited = time.monotonic() - started
            if waited > seconds:
                return False
            if self.calls.finished < number and waited > SPIN_SECONDS:
                time.sleep(min(waited / 8, 0.002))
        return True

    # closing ----------------------------------------------------------------------------------

    def lost(self, error: DeviceLostError) -> None:
        """Set an error on everything that waits for the device."""
        self._forget_commands()
        self.calls.finished = self.calls.submitted
        self._owner.backlog.clear()
        self._fail(error)

    def _forget_commands(self) -> None:
        self._encoder = self._pass = self._timer = None
        self.tracing.forget()
        self.calls.forget()
        self._used = self._dirty = self._dispatches = 0
        self._offsets.clear()

    def _fail(self, error: Exception) -> None:
        """Set an error on everything that waits."""
        self.staging.fail(error)
        self.uploads.fail(error)
        while self._syncs:
            self._syncs.popleft()[1].set_exception(error)

    def stop(self) -> None:
        """Wait for work in flight, then release everything."""
        self._forget_commands()
        if self._owner.lost is None:
            self.wait_for(self.calls.submitted, 5.0)
        self._fail(FreedError(f"{self._owner.name} was closed before this was read."))
        self._bindings.clear()
        self.pipelines.clear()
        self._copying = None
        until = time.monotonic() + 5.0
        while (self.staging.busy or self.uploads.busy) and time.monotonic() < until:
            time.sleep(0.001)  # another thread still uses mapped memory
        self.staging.clear()
        self.uploads.clear()
        self.pool.clear()
        self._uniform = None
        if self._owner.lost is None:
            self.native.destroy()
        self.calls.close()
        self.native = None  # native objects must be released on this thread

    def stats(self) -> dict[str, int]:
        """Return the number and size of the device's resources."""
        return {
            **self.pool.stats(), "staging_buffers": self.staging.count,
            "staging_bytes": self.staging.bytes, "upload_buffers": self.uploads.count,
            "upload_bytes": self.uploads.bytes, "uploaded_bytes": self.uploaded,
            "downloaded_bytes": self.downloaded, "bind_groups": len(self._bindings),
            "pipelines": len(self.pipelines),
        }  # fmt: skip

    # ------------------------------------------------------------------------------------------

    def _slot(self, buffer: DeviceBuffer) -> PoolSlot:
        if buffer.slot is None:
            raise DeviceError(
                f"{self._owner.name}: a buffer of {buffer.nbytes} bytes has no memory. It was "
                "released, or allocating it failed."
            )
        return buffer.slot

    def native_buffer(self, buffer: DeviceBuffer) -> wgpu.GPUBuffer:
        """Return the ``wgpu.GPUBuffer`` behind a buffer."""
        return self._slot(buffer).native

    def _buffer(self, size: int, usage: str) -> wgpu.GPUBuffer:
        flags = USAGE[usage] | USAGE["COPY_DST"]
        if usage == "STORAGE":
            flags |= USAGE["COPY_SRC"]
        return self.native.create_buffer(size=size, usage=flags)

    def _write(self, native: wgpu.GPUBuffer, start: int, data: Bytes) -> None:
        self.native.queue.write_buffer(native, start, data)
        self.uploaded += len(data)
        self._dirty += len(data)
        under_way = sum(nbytes for _, nbytes in self._writes)
        if self._dirty >= WRITE_BYTES or under_way + self._dirty > MAX_WRITE_BYTES:
            self.flush()
            if under_way > MAX_WRITE_BYTES:
                self.wait_for(self._writes[len(self._writes) // 2][0])

    def _end_pass(self) -> None:
        ended, self._pass = self._pass, None
        if ended is not None:
            ended.end()
            self.calls.forget()

    @property
    def _awaited(self) -> bool:
        """True while a thread waits for the device."""
        return bool(self._syncs) or self.staging.waiting or self.uploads.waiting

    def _start_waiting(self) -> None:
        if not self._awaited:
            self._since = time.monotonic()
