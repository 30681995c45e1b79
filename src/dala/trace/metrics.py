"""Metrics of a long run in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dala.trace.strip import FrameStrip

#: Upper bounds of the histogram of times between frames, in seconds.
BUCKETS: Final = (0.005, 0.01, 0.0167, 0.025, 0.0333, 0.04, 0.05, 0.0667, 0.1, 0.2, 0.5, 1.0)


class Metrics:
    """Counts of a run, from the recorder; ``text()`` returns them as Prometheus reads them."""

    def __init__(self, strip: FrameStrip | None = None) -> None:
        self.strip = strip or FrameStrip()
        self._buckets = dict.fromkeys(BUCKETS, 0)
        self._count, self._sum = 0, 0.0

    def update(self) -> None:
        """Take in what was recorded since the last call; call it more often than the ring turns."""
        for frame in self.strip.update():
            seconds = frame.ms / 1000
            self._count, self._sum = self._count + 1, self._sum + seconds
            for bound in BUCKETS:
                if seconds <= bound:
                    self._buckets[bound] += 1

    def text(self, more: Mapping[str, float] | None = None) -> str:
        """Return all metrics; ``more`` are gauges by name.

        >>> print(Metrics().text({"bit rate": 2.5}).splitlines()[-1])
        dala_bit_rate 2.5
        """
        strip = self.strip
        lines = _family("frames_total", "counter", "Frames shown, written or sent.")
        lines += [f"dala_frames_total{_label('sink', k)} {n}" for k, n in strip.count.items()]
        lines += _family("frame_seconds", "histogram", "Seconds between two frames.")
        lines += [
            f'dala_frame_seconds_bucket{{le="{bound:g}"}} {count}'
            for bound, count in self._buckets.items()
        ]
        lines += [
            f'dala_frame_seconds_bucket{{le="+Inf"}} {self._count}',
            f"dala_frame_seconds_sum {self._sum:.6f}",
            f"dala_frame_seconds_count {self._count}",
        ]
        lines += _family(
            "critical_path_seconds_total", "counter", "Seconds that frames waited for a stage."
        )
        lines += [
            f"dala_critical_path_seconds_total{_label('stage', stage)} {ms / 1000:.6f}"
            for stage, ms in strip.total.items()
        ]
        counters = dict(strip.counters)
        drops = {k: v for k, v in counters.items() if k.startswith("dropped: ")}
        lines += _family("frames_dropped_total", "counter", "Frames dropped.")
        lines += [
            f"dala_frames_dropped_total{_label('at', k.removeprefix('dropped: '))} {v:g}"
            for k, v in drops.items()
        ]
        lines += _family("value", "gauge", "Depths of queues, and other counters of the trace.")
        lines += [
            f"dala_value{_label('name', k)} {v:g}" for k, v in counters.items() if k not in drops
        ]
        for name, value in (more or {}).items():
            key = name.replace(" ", "_")
            lines += [*_family(key, "gauge", f"The run's {name}."), f"dala_{key} {value:g}"]
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP dala_{name} {about}", f"# TYPE dala_{name} {kind}"]


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{{{name}="{escaped}"}}'
