"""How long dispatches take, by the device's own clock.

While a device is timed every dispatch is a pass of its own, with a time stamp at its beginning and
one at its end. Nobody waits: the stamps are read when the timing ends. A device that is not timed
does nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.webgpu.ffi import timestamp_period

#: Time stamps in one set of them; devices allow 4096.
SET: Final = 2048


class DispatchTimes:
    """What ``WebGPUEngine.profile()`` gives; filled in when its block ends."""

    def __init__(self, mark: Callable[[], None]) -> None:
        #: Of each dispatch, in order.
        self.seconds: list[float] = []
        #: Of the dispatches before each :meth:`mark`, back to the one before it.
        self.passes: list[float] = []
        self._mark = mark

    def mark(self) -> None:
        """Ends a pass: the dispatches since the last mark are one."""
        self._mark()

    def fill(self, seconds: list[float], marks: Sequence[int]) -> None:
        """Keeps the times; ``marks`` are numbers of dispatches."""
        self.seconds = seconds
        self.passes = [sum(seconds[first:last]) for first, last in pairwise([0, *marks])]


class Timer:
    """The time stamps of one timing; for the owner's thread."""

    def __init__(self, device: Any) -> None:
        self.dispatches = 0
        #: How many dispatches there were at each mark.
        self.marks: list[int] = []
        #: Seconds a tick.
        self.tick = timestamp_period(device)
        self._device = device
        self._sets: list[Any] = []

    def begin(self, encoder: Any) -> Any:
        """A compute pass for one dispatch."""
        number, first = divmod(2 * self.dispatches, SET)
        if number == len(self._sets):
            self._sets.append(self._device.create_query_set(type="timestamp", count=SET))
        self.dispatches += 1
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._sets[number],
                "beginning_of_pass_write_index": first,
                "end_of_pass_write_index": first + 1,
            }
        )

    def mark(self) -> None:
        """Remembers how many dispatches there were."""
        self.marks.append(self.dispatches)

    @property
    def nbytes(self) -> int:
        """Bytes of all stamps."""
        return 16 * self.dispatches

    def resolve(self, encoder: Any) -> Any:
        """Has all stamps written into a buffer of their own."""
        import wgpu

        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        buffer = self._device.create_buffer(size=8 * SET * len(self._sets), usage=usage)
        for number, stamps in enumerate(self._sets):
            count = min(2 * self.dispatches - number * SET, SET)
            encoder.resolve_query_set(stamps, 0, count, buffer, 8 * SET * number)
        return buffer

    def seconds(self, data: memoryview) -> list[float]:
        """The dispatches' times from the stamps; a clock that was set back gives 0."""
        stamps = np.frombuffer(data, np.uint64).reshape(-1, 2).astype(np.int64)
        return [max(0.0, int(ticks) * self.tick) for ticks in stamps[:, 1] - stamps[:, 0]]
