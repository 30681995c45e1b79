"""Which frames were late, and why: the report of a trace.

A frame is late by how much more time it took than the usual one: against its due time where it has
one, else against the frame before it. Its critical path (``path.py``) is compared with that of the
frames in time; what it has more of is the cause.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from dala.arguments import Quantity
from dala.errors import counted
from dala.trace.advice import advice_for, phrase_for
from dala.trace.export import Event, Threads, read
from dala.trace.path import IDLE, PROCESSOR, Key, Lanes

#: The share of a frame's lost time from which a cause is named.
NAMED: Final = 0.2
#: The share of frames in time from which the others are compared with them.
_COMPARED: Final = 0.2
#: The share of all lost time below which a cause is left out.
_LEAST: Final = 0.02


@dataclass
class FrameTimes:
    """A finished frame: where, when, how late in milliseconds, and its critical path in those."""

    sink: str
    frame: int | None
    done: int
    gap: float
    late: float
    path: dict[Key, float]
    #: Milliseconds of each stage above those of the frames in time.
    lost: dict[Key, float] = field(default_factory=dict)

    @property
    def causes(self) -> list[tuple[Key, float]]:
        """The causes that are named, with their shares, the largest first."""
        total = sum(self.lost.values())
        shares = [(key, ms / total) for key, ms in self.lost.items()] if total else []
        shares.sort(key=lambda found: -found[1])
        return shares[:1] + [found for found in shares[1:] if found[1] >= NAMED]


@dataclass
class Cause:
    """A reason for late frames."""

    stage: str
    name: str
    #: Late frames of which it is the largest reason, and its share of all lost time.
    frames: int
    share: float
    #: Milliseconds on the critical path of these frames, of those between two frames.
    ms: float
    of: float

    @property
    def phrase(self) -> str:
        """The cause as text."""
        return phrase_for(self.stage, self.name)

    @property
    def advice(self) -> str:
        """Which option to change."""
        return advice_for(self.stage, self.name)


class TraceReport:
    """The late frames of a trace and their causes; ``print(report)`` shows it."""

    def __init__(
        self,
        events: list[Event],
        threads: Threads,
        *,
        tolerance: float = 8.0,
        budget: float | None = None,
    ) -> None:
        call, milliseconds = "report", Quantity(0, unit="milliseconds")
        #: Milliseconds that a frame may be late, and those that it may take; None for the usual.
        self.tolerance = milliseconds.check(call, "tolerance", tolerance)
        self.budget = None if budget is None else milliseconds.check(call, "budget", budget)
        self._lanes = Lanes(events)
        self.threads = threads
        self.frames: list[FrameTimes] = []
        #: Milliseconds between two frames of an output.
        self._gaps: list[float] = []
        self.dropped: dict[str, int] = {}
        sinks: dict[str, list[Event]] = {}
        for event in sorted(events, key=lambda e: e[1][3]):
            stage, name, *_, facts = event[1]
            if stage == "done":
                sinks.setdefault(name, []).append(event)
            elif stage == "counter" and name.startswith("dropped: "):
                self.dropped[name.removeprefix("dropped: ")] = int((facts or {})["value"])
        for done in sinks.values():
            self._sink(done)
        self.late = [frame for frame in self.frames if frame.late > self.tolerance]
        self.causes = self._causes()

    @classmethod
    def open(cls, path: Path, **options: Any) -> Self:
        """Return the report of a file."""
        events, threads, _ = read(path)
        return cls(events, threads, **options)

    # frames -----------------------------------------------------------------------------------
    def _sink(self, done: list[Event]) -> None:
        """Add the frames of one output."""
        dues = [due for _, record in done if (due := (record[6] or {}).get("due")) is not None]
        timed = len(dues) == len(done)
        gaps = [(b[1][3] - a[1][3]) / 1e6 for a, b in pairwise(done)]
        if not timed:
            usual = self.budget if self.budget is not None else median(gaps) if gaps else 0.0
            late = [gap - usual for gap in gaps]
        else:
            behind = [(event[1][3] - due) / 1e6 for event, due in zip(done, dues, strict=True)]
            usual = sorted(behind)[len(behind) // 10] if self.budget is None else self.budget
            late = [ms - usual for ms in behind]
        self._gaps += gaps
        if timed:  # the first one was due, too
            gaps.insert(0, max(behind[0], 0.0))
        found: list[FrameTimes] = []
        for gap, behind_by, event in zip(gaps, late, done[len(done) - len(gaps) :], strict=True):
            process, record = event
            path = self._lanes.path((process, record[4]), record[3], record[3] - round(gap * 1e6))
            times = {key: ns / 1e6 for key, ns in path.items()}
            made = FrameTimes(record[1], record[5], record[3], gap, behind_by, times)
            found.append(made)
        usual_path, crowding = self._usual(found), _crowding(found)
        before: dict[Key, float] = {}
        for frame in found:
            own = {
                key: more
                for key, ms in frame.path.items()
                if key != IDLE and (more := ms - usual_path.get(key, 0.0)) > 0.05
            }
            if frame.late <= self.tolerance:
                before = {}
                continue
            _give_delays(own, crowding)
            if timed:  # a frame is late, too, as those before it were
                for key, ms in before.items():
                    own[key] = own.get(key, 0.0) + ms
            frame.lost = before = own
        self.frames += found

    def _usual(self, frames: list[FrameTimes]) -> dict[Key, float]:
        """Return the critical path of a frame in time: the median of each stage."""
        intime = [frame for frame in frames if frame.late <= self.tolerance]
        if len(intime) < max(3, _COMPARED * len(frames)):
            intime = []
        if not intime:
            # Even then a source that delivers at its own pace is not blamed for that.
            intime, keys = frames, {key for f in frames for key in f.path if key[0] == "demux"}
        else:
            keys = {key for frame in intime for key in frame.path}
        return {key: median(frame.path.get(key, 0.0) for frame in intime) for key in keys}

    def _causes(self) -> list[Cause]:
        lost: dict[Key, float] = {}
        first: dict[Key, list[FrameTimes]] = {}
        for frame in self.late:
            whole = max(sum(frame.lost.values()), 1e-9)
            for key, ms in frame.lost.items():
                lost[key] = lost.get(key, 0.0) + frame.late * ms / whole
            if frame.causes:
                first.setdefault(frame.causes[0][0], []).append(frame)
        total = sum(lost.values()) or 1.0
        made = []
        for key, ms in lost.items():
            own = first.get(key) or [f for f in self.late if key in f.lost]
            if ms / total < _LEAST and key not in first:
                continue
            mean = sum(f.path.get(key, 0.0) or f.lost[key] for f in own) / len(own)
            of = max(sum(f.gap for f in own) / len(own), mean)
            made.append(Cause(*key, len(first.get(key, ())), ms / total, mean, of))
        return sorted(made, key=lambda cause: (-cause.share, -cause.frames))

    # results ----------------------------------------------------------------------------------
    @property
    def worst(self) -> float:
        """Milliseconds by which the latest frame was late."""
        return max((frame.late for frame in self.frames), default=0.0)

    def percentile(self, share: float) -> float:
        """Return the milliseconds between two frames that a share of them does not exceed."""
        gaps = sorted(self._gaps)
        return gaps[min(int(share * len(gaps)), len(gaps) - 1)] if gaps else 0.0

    def __str__(self) -> str:
        count = len(self.frames)
        if not count:
            return "No frame was shown, written or sent."
        lines = [
            f"{len(self.late):,} of {count:,} frames late by more than {self.tolerance:g} ms"
            + (f" (worst {self.worst:.0f})." if self.late else ".")
            + f" Time between frames: median {self.percentile(0.5):.1f} ms, "
            f"p99 {self.percentile(0.99):.1f}, worst {self.percentile(1.0):.1f}."
        ]
        for name, dropped in self.dropped.items():
            if dropped:
                lines.append(f"{name}: {counted(dropped, 'frames')} dropped.")
        shown = [cause for cause in self.causes if cause.frames or cause.share >= NAMED]
        for cause in shown:
            what = f"{cause.name}: " if cause.name and cause.name not in cause.phrase else ""
            of = f" of {cause.of:.0f}" if cause.of > cause.ms * 1.02 else ""
            frames = f"{cause.frames:,} waited" if cause.frames else "others waited also"
            lines.append(
                f"- {frames} for {cause.phrase} ({what}{cause.ms:.0f} ms{of}; "
                f"{cause.share:.0%} of the lost time)."
            )
            if cause.advice:
                lines.append(f"  {cause.advice}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "frames": len(self.frames),
            "late": len(self.late),
            "tolerance_ms": self.tolerance,
            "worst_ms": round(self.worst, 3),
            "gap_ms": {
                name: round(self.percentile(share), 3)
                for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0))
            },
            "dropped": self.dropped,
            "causes": [
                {
                    "stage": c.stage, "name": c.name, "frames": c.frames,
                    "share": round(c.share, 4), "ms": round(c.ms, 3), "of_ms": round(c.of, 3),
                    "text": c.phrase, "advice": c.advice,
                }
                for c in self.causes
            ],
            "late_frames": [
                {
                    "sink": f.sink, "frame": f.frame, "late_ms": round(f.late, 3),
                    "causes": [
                        {"stage": key[0], "name": key[1], "share": round(share, 4)}
                        for key, share in f.causes
                    ],
                    "path_ms": {f"{a} {b}".rstrip(): round(ms, 3) for (a, b), ms in f.path.items()},
                }
                for f in sorted(self.late, key=lambda f: -f.late)
            ],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _crowding(frames: list[FrameTimes]) -> float:
    """Return how long the system ran other threads, for each millisecond of work."""
    waits = sum(frame.path.get(PROCESSOR, 0.0) for frame in frames)
    work = sum(
        ms
        for frame in frames
        for key, ms in frame.path.items()
        if key not in (PROCESSOR, IDLE) and key[0] != "demux"
    )
    return waits / work if work else 0.0


def _give_delays(lost: dict[Key, float], crowding: float) -> None:
    """Count with each stage what more of it costs on a machine that is as busy as this one.

    What is left is the processor's: the system ran other threads for longer than usual.
    """
    delay = lost.pop(PROCESSOR, 0.0)
    work = sum(lost.values())
    moved = min(delay, crowding * work)
    for key in lost:
        lost[key] *= 1 + moved / work
    if delay > moved:
        lost[PROCESSOR] = delay - moved


def stages_of(path: Mapping[Key, float]) -> dict[str, float]:
    """Return the milliseconds of a critical path by stage alone.

    >>> stages_of({("pass", "blur"): 2.0, ("pass", "sepia"): 1.0})
    {'pass': 3.0}
    """
    found: dict[str, float] = {}
    for (stage, _), ms in path.items():
        found[stage] = found.get(stage, 0.0) + ms
    return found
