"""A still picture of the slowest frames: what was on the critical path of each, as SVG."""

from __future__ import annotations

import html
from typing import Final

from dala.trace.colors import color
from dala.trace.path import IDLE, Key
from dala.trace.report import FrameTimes, TraceReport, stages_of

#: Frames that are shown, and the sizes of the picture in pixels.
MOST_FRAMES: Final = 20
_LEFT, _WIDTH, _ROW, _TOP = 190, 1180, 26, 96


def picture(report: TraceReport) -> str:
    """Return the slowest frames of a report as SVG, with a line at the usual time of a frame."""
    slowest = sorted(report.frames, key=lambda f: -f.gap)[:MOST_FRAMES]
    slowest.sort(key=lambda f: f.done)
    most = max((f.gap for f in slowest), default=1.0) or 1.0
    scale = (_WIDTH - _LEFT - 70) / most
    height = _TOP + _ROW * max(len(slowest), 1) + 40
    first = str(report).partition("\n")[0]
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        _text(16, 26, "The slowest frames, and what they waited for", 18),
        _text(16, 48, first),
    ]
    stages = list(dict.fromkeys(s for f in slowest for s in stages_of(f.path)))
    left = 16.0
    for stage in stages:
        made += [_bar(left, 62, 12, 12, stage, stage), _text(left + 17, 73, _label(stage))]
        left += 34 + 7.2 * len(_label(stage))
    for row, frame in enumerate(slowest):
        made += _frame(report, frame, _TOP + row * _ROW, scale)
    usual = _LEFT + (report.budget or report.percentile(0.5)) * scale
    bottom = _TOP + _ROW * len(slowest)
    made += [
        f'<path d="M{usual:.1f} {_TOP - 6}V{bottom}" stroke="black" stroke-dasharray="4 3"/>',
        _text(usual + 4, bottom + 16, "usual" if report.budget is None else "budget"),
        "</svg>",
    ]
    return "\n".join(made)


def _frame(report: TraceReport, frame: FrameTimes, top: float, scale: float) -> list[str]:
    name = f"frame {frame.frame}" if frame.frame is not None else "a frame"
    made = [_text(16, top + 16, f"{name}, {frame.gap:.0f} ms")]
    left = float(_LEFT)
    order = sorted(frame.path.items(), key=lambda item: (item[0] == IDLE, -item[1]))
    for key, ms in order:
        made.append(_bar(left, top + 2, ms * scale, _ROW - 6, key[0], _title(key, ms)))
        left += ms * scale
    if frame.late > report.tolerance:
        made.append(_text(left + 6, top + 16, f"+{frame.late:.0f}"))
    return made


def _title(key: Key, ms: float) -> str:
    return f"{_label(key[0])} {key[1]}: {ms:.1f} ms"


def _label(stage: str) -> str:
    return stage.replace("wait:", "wait for ").rstrip()


def _bar(x: float, y: float, width: float, height: float, stage: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.3):.1f}" height="{height}" '
        f'fill="{color(stage)}"><title>{html.escape(title)}</title></rect>'
    )


def _text(x: float, y: float, text: str, size: int = 13) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}">{html.escape(text)}</text>'
