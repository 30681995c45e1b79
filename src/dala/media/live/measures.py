"""Figures of a live stream."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final

#: Seconds over which the bit rate is measured, and the number of frames for the latency.
_WINDOW: Final = 5.0
_FRAMES: Final = 600


class LiveMeter:
    """Counts the frames and bytes of a live stream.

    >>> meter = LiveMeter(0.0)
    >>> meter.sent(1000, captured=0.0, now=0.05)
    >>> meter.stats(1.0)["latency_ms"]
    50.0
    """

    def __init__(self, now: float) -> None:
        self._began = now
        self.frames_in = self.shown = self.dropped = self.repeated = self.reconnects = 0
        self._sizes: deque[tuple[float, int]] = deque()
        self._bytes = self._all_bytes = 0
        self._latencies: deque[float] = deque(maxlen=_FRAMES)

    def sent(self, size: int, captured: float | None, now: float) -> None:
        """Count a packet of pictures; ``captured`` is when its frame was."""
        self.shown += 1
        if captured is not None:
            self._latencies.append(now - captured)
        self.count_bytes(size, now)

    def count_bytes(self, size: int, now: float) -> None:
        """Count the bytes of a packet."""
        self._all_bytes += size
        self._bytes += size
        self._sizes.append((now, size))
        while self._sizes and self._sizes[0][0] < now - _WINDOW:
            self._bytes -= self._sizes.popleft()[1]

    def stats(self, now: float) -> dict[str, float]:
        """Return the figures."""
        seconds = max(now - self._began, 1e-9)
        recent = min(seconds, _WINDOW)
        latencies = list(self._latencies)
        return {
            "frames_in": self.frames_in,
            "shown": self.shown,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "reconnects": self.reconnects,
            "bit_rate": round(8 * self._bytes / recent),
            "bytes": self._all_bytes,
            "latency_ms": round(1000 * median(latencies), 2) if latencies else 0.0,
            "worst_latency_ms": round(1000 * max(latencies), 2) if latencies else 0.0,
            "seconds": round(seconds, 3),
        }
