"""The last seconds, seen live: the time of each frame, with the stages on its critical path.

A :class:`FrameStrip` reads what the recorder has, whenever it is asked to: it costs nothing in
between. A trace has to run; ``dala.trace()`` without a path is enough.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from os import getpid
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dala import forks
from dala.trace.colors import color
from dala.trace.path import IDLE, Lanes
from dala.trace.recorder import Record, Tracer, tracer
from dala.trace.report import stages_of

if TYPE_CHECKING:
    from dala.trace.session import TraceRun

#: Nanoseconds of records before the oldest new frame that its critical path may need.
_BEFORE: Final = 1_000_000_000
#: Seconds after which a page that asks for no strip has closed it.
_REST: Final = 5.0
_BARS: Final = "▁▂▃▄▅▆▇█"


class StripFrame(NamedTuple):
    """A frame: its output, when it was done, the milliseconds since the last one, by stage."""

    sink: str
    done: int
    ms: float
    stages: dict[str, float]


class FrameStrip:
    """The frames of the last seconds.

    Args:
        seconds: how many.
        budget: milliseconds that a frame may take; None for what most take.
    """

    def __init__(
        self, seconds: float = 10.0, budget: float | None = None, source: Tracer = tracer
    ) -> None:
        self.seconds = seconds
        self.budget = budget
        self.frames: deque[StripFrame] = deque()
        #: All frames so far by output, and all milliseconds by stage.
        self.count: dict[str, int] = {}
        self.total: dict[str, float] = {}
        #: The last value of each counter.
        self.counters: dict[str, float] = {}
        self._source = source
        self._last: dict[str, int] = {}
        self._seen = 0

    def update(self) -> list[StripFrame]:
        """Take in what was recorded since the last call; return the new frames."""
        records = self._source.records
        recent = list(takewhile(lambda r: r[3] > self._seen - _BEFORE, reversed(records[:])))
        fresh = [r for r in reversed(recent) if r[3] > self._seen]
        if not fresh:
            return []
        self._seen = max(r[3] for r in fresh)
        made = self._made(recent, [r for r in fresh if r[0] == "done"])
        for record in fresh:
            if record[0] == "counter" and record[6] is not None:
                self.counters[record[1]] = record[6]["value"]
        self.frames += made
        oldest = self._seen - int(self.seconds * 1e9)
        while self.frames and self.frames[0].done < oldest:
            self.frames.popleft()
        return made

    def _made(self, recent: list[Record], done: list[Record]) -> list[StripFrame]:
        process, made = getpid(), []
        lanes = Lanes((process, record) for record in recent)
        for record in done:
            sink, end = record[1], record[3]
            before = self._last.get(sink)
            self._last[sink] = end
            self.count[sink] = self.count.get(sink, 0) + 1
            if before is None:
                continue
            path = lanes.path((process, record[4]), end, before)
            path.pop(IDLE, None)
            stages = {k: ns / 1e6 for k, ns in stages_of(path).items()}
            for stage, ms in stages.items():
                self.total[stage] = self.total.get(stage, 0.0) + ms
            made.append(StripFrame(sink, end, (end - before) / 1e6, stages))
        return made

    # what is shown ------------------------------------------------------------------------------
    @property
    def line(self) -> float:
        """Milliseconds of the budget line."""
        if self.budget is not None or not self.frames:
            return self.budget or 0.0
        gaps = sorted(frame.ms for frame in self.frames)
        return gaps[len(gaps) // 2]

    def json(self) -> dict[str, Any]:
        """Return the strip for a page: milliseconds before now, of the frame, and by stage."""
        return {
            "budget": round(self.line, 3),
            "seconds": self.seconds,
            "colors": {stage: color(stage) for f in self.frames for stage in f.stages},
            "frames": [
                [
                    round((self._seen - f.done) / 1e6), round(f.ms, 2),
                    {stage: round(ms, 2) for stage, ms in f.stages.items() if ms >= 0.05},
                ]
                for f in self.frames
            ],
        }  # fmt: skip

    def text(self, width: int = 40) -> str:
        """Return the strip as a line of text: rate, times, a bar for each frame, and stages.

        >>> FrameStrip(source=Tracer()).text()
        'no frames yet'
        """
        frames = list(self.frames)
        if not frames:
            return "no frames yet"
        gaps = sorted(f.ms for f in frames)
        most = max(2 * self.line, 1e-9)
        bars = "".join(
            _BARS[min(int(f.ms / most * len(_BARS)), len(_BARS) - 1)] for f in frames[-width:]
        )
        sums: dict[str, float] = {}
        for frame in frames:
            for stage, ms in frame.stages.items():
                sums[stage] = sums.get(stage, 0.0) + ms / len(frames)
        top = sorted(sums.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{stage.replace('wait:', 'wait ')} {ms:.1f}" for stage, ms in top)
        rate = 1000 * len(gaps) / sum(gaps)
        return (
            f"{rate:.1f} fps, {gaps[len(gaps) // 2]:.0f} ms (worst {gaps[-1]:.0f}) {bars} {shown}"
        )


class StripOnDemand:
    """A strip for a page, which is asked for while it is open: only then a trace runs."""

    def __init__(self) -> None:
        self._strip: FrameStrip | None = None
        self._run: TraceRun | None = None
        self._asked = 0.0
        self._guard = forks.lock()

    def json(self, budget: float | None = None) -> dict[str, Any]:
        """Return the strip; the first call starts a trace, unless one runs."""
        with self._guard:
            self._asked = monotonic()
            if self._strip is None:
                self._strip = FrameStrip()
            if not tracer.on:
                from dala.trace.session import TraceRun

                self._run = TraceRun(None, self._strip.seconds + 2, False).start(lent=self._end)
            self._strip.budget = budget
            self._strip.update()
            return self._strip.json()

    def rest(self) -> None:
        """End the trace if no page has asked for a while."""
        if self._strip is not None and monotonic() - self._asked > _REST:
            self.close()

    def close(self) -> None:
        """End the trace."""
        with self._guard:
            self._end()
            self._strip = None

    def _end(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.stop()
