"""Durations of dispatches, from device timestamps.

During timing, every dispatch is a separate compute pass with a timestamp at its beginning and at
its end. They are read when timing stops, so timing adds no waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import wgpu

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
        import wgpu

        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        buffer = self._device.create_buffer(size=8 * QUERY_SET_SIZE * len(self._sets), usage=usage)
        for number, stamps in enumerate(self._sets):
            count = min(2 * self.dispatches - number * QUERY_SET_SIZE, QUERY_SET_SIZE)
            encoder.resolve_query_set(stamps, 0, count, buffer, 8 * QUERY_SET_SIZE * number)
        return buffer

    def seconds(self, data: memoryview) -> list[float]:
        """Return the durations of the dispatches; at least 0, even if the clock went back."""
        stamps = np.frombuffer(data, np.uint64).reshape(-1, 2).astype(np.int64)
        return [max(0.0, int(ticks) * self.tick) for ticks in stamps[:, 1] - stamps[:, 0]]
