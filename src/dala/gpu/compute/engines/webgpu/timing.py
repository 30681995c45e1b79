"""Durations of dispatches, from device timestamps.

During timing, every dispatch is a separate compute pass with a timestamp at its beginning and at
its end. They are read when timing stops, so timing adds no waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.engines.webgpu.pool import USAGE
from dala.trace.recorder import tracer

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: The number of timestamps in a query set; devices allow 4096.
QUERY_SET_SIZE: Final = 2048


class DispatchTimes:
    """Durations of dispatches and passes, filled in when ``WebGPUEngine.profile()`` ends."""

    def __init__(self, mark: Callable[[], None]) -> None:
        #: The duration of each dispatch, in order.
        self.seconds: list[float] = []
        #: The duration of each pass: the dispatches between two marks.
        self.passes: list[float] = []
        #: Ends a pass, which consists of the dispatches since the previous mark.
        self.mark = mark

    def fill(self, seconds: list[float], marks: Sequence[int]) -> None:
        """Set the durations; ``marks`` are the dispatch counts at the end of each pass."""
        self.seconds = seconds
        self.passes = [sum(seconds[first:last]) for first, last in pairwise([0, *marks])]


class Timer:
    """The timestamps of a series of dispatches. For the owner's thread only."""

    def __init__(self, device: wgpu.GPUDevice, tick: float) -> None:
        self.dispatches = 0
        #: The number of dispatches at each mark.
        self.marks: list[int] = []
        #: Seconds per tick.
        self.tick = tick
        self._device = device
        self._sets: list[wgpu.GPUQuerySet] = []

    def begin(self, encoder: wgpu.GPUCommandEncoder) -> wgpu.GPUComputePassEncoder:
        """Begin a compute pass for one dispatch."""
        number, first = divmod(2 * self.dispatches, QUERY_SET_SIZE)
        if number == len(self._sets):
            self._sets.append(self._device.create_query_set(type="timestamp", count=QUERY_SET_SIZE))
        self.dispatches += 1
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._sets[number],
                "beginning_of_pass_write_index": first,
                "end_of_pass_write_index": first + 1,
            }
        )

    def mark(self) -> None:
        """Record the number of dispatches so far."""
        self.marks.append(self.dispatches)

    @property
    def nbytes(self) -> int:
        """The size of all timestamps in bytes."""
        return 16 * self.dispatches

    def resolve(self, encoder: wgpu.GPUCommandEncoder) -> wgpu.GPUBuffer:
        """Write all timestamps to a new buffer and return it."""
        usage = USAGE["QUERY_RESOLVE"] | USAGE["COPY_SRC"]
        buffer = self._device.create_buffer(size=8 * QUERY_SET_SIZE * len(self._sets), usage=usage)
        for number, stamps in enumerate(self._sets):
            count = min(2 * self.dispatches - number * QUERY_SET_SIZE, QUERY_SET_SIZE)
            encoder.resolve_query_set(stamps, 0, count, buffer, 8 * QUERY_SET_SIZE * number)
        return buffer

    def seconds(self, data: memoryview) -> list[float]:
        """Return the durations of the dispatches; at least 0, even if the clock went back."""
        stamps = np.frombuffer(data, np.uint64).reshape(-1, 2).astype(np.int64)
        return [max(0.0, int(ticks) * self.tick) for ticks in stamps[:, 1] - stamps[:, 0]]


#: Dispatches of a trace whose times are read together, at most.
TRACED_TOGETHER: Final = 512
#: Comparisons of the clocks, of which the closest counts, and seconds until the next ones.
_COMPARISONS: Final = 6
_VALID_SECONDS: Final = 20


class DeviceTrace:
    """The dispatches of a device in a trace, on the host's clock. For the owner's thread only."""

    def __init__(self, device: NativeDevice, name: str) -> None:
        #: Whether the device has timestamps.
        self.able = "timestamp-query" in device.native.features
        self._device = device
        self._name = name
        self._timer: Timer | None = None
        self._work: list[tuple[str, int | None]] = []
        self._label: tuple[str, int | None] = ("dispatch", None)
        #: The host's nanoseconds at the device's 0, and when that was found out.
        self._zero = 0
        self._compared = -(1 << 62)
        self._track = 0

    @property
    def full(self) -> bool:
        """True if times should be read now."""
        return len(self._work) >= TRACED_TOGETHER

    def name_work(self, label: str, frame: int | None) -> None:
        """Name the dispatches from now on, and the frame that they are for."""
        self._label = label, frame

    def begin(self, encoder: wgpu.GPUCommandEncoder) -> wgpu.GPUComputePassEncoder:
        """Begin a compute pass for one dispatch."""
        if self._timer is None:
            self._timer = self._new_timer()
        self._work.append(self._label)
        return self._timer.begin(encoder)

    def forget(self) -> None:
        """Drop unread times, whose commands are gone."""
        self._timer, self._work = None, []

    def collect(self) -> None:
        """Read the times of the dispatches so far, and record them once they are there."""
        timer, work = self._timer, self._work
        self.forget()
        if timer is None:
            return
        if tracer.clock() - self._compared > _VALID_SECONDS * 1_000_000_000:
            self._compare()
        self._read(timer).add_done_callback(partial(self._record, timer, work))

    def _new_timer(self) -> Timer:
        return Timer(self._device.native, self._device.calls.timestamp_period())

    def _read(self, timer: Timer) -> Future[Any]:
        future: Future[Any] = Future()
        device = self._device
        device.staging.read(timer.resolve(device.encoder()), 0, timer.nbytes, future)
        return future

    def _compare(self) -> None:
        """Compare the clocks: empty passes are timed by the device, between two looks at ours."""
        device, closest = self._device, 1 << 62
        device.flush()
        device.wait_for(device.calls.submitted)
        for _ in range(_COMPARISONS):
            timer = self._new_timer()
            before = tracer.clock()
            timer.begin(device.encoder()).end()
            device.flush()
            device.wait_for(device.calls.submitted)
            after = tracer.clock()
            future = self._read(timer)
            while not future.done():
                device.poll()
                device.settle()
            begin, end = (round(t * timer.tick * 1e9) for t in _stamps(future.result())[0])
            error = (after - before - (end - begin)) // 2
            if error < closest:
                closest, self._zero = error, (before - begin + after - end) // 2
        self._compared = tracer.clock()
        microseconds = max(closest, 0) / 1000
        self._track = tracer.device(f"{self._name}, clock within {microseconds:.0f} us")
        tracer.notes[f"clock of {self._name}"] = f"within {microseconds:.1f} us"

    def _record(
        self, timer: Timer, work: list[tuple[str, int | None]], future: Future[Any]
    ) -> None:
        if future.exception() is not None:
            return
        last = 0
        for (label, frame), stamps in zip(work, _stamps(future.result()), strict=False):
            begin, end = (self._zero + round(t * timer.tick * 1e9) for t in stamps)
            begin = max(begin, last)  # dispatches may overlap
            last = max(begin + 1, end)
            tracer.put(("pass", label, begin, last, self._track, frame, {"device": self._name}))


def _stamps(data: memoryview) -> list[tuple[int, int]]:
    """Return the ticks at the beginning and end of each dispatch."""
    found = np.frombuffer(data, np.uint64).reshape(-1, 2)
    return [(int(begin), int(end)) for begin, end in found]
