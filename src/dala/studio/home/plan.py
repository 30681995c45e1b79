"""The fused plan of a chain as a picture: passes as boxes, with their stages inside."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dala.studio.catalogue.parameters import Json

_STAGE: Final = re.compile(r"  stage \d+: (\S+)")
_PASS: Final = re.compile(r"  pass \d+: (.*), ([\d,]+) bytes(?:, ([\d.]+) ms)?$")
_COLORS: Final = ("#3b6fd4", "#2f8f6b", "#a8562a", "#7a4fc0", "#b03a5b", "#5c7a1f")
_FONT: Final = 'font-family="ui-sans-serif, system-ui, sans-serif"'


@dataclass(frozen=True)
class PlanPass:
    """A pass over memory: what it computes, the bytes it moves, and its time if it is known.

    >>> PlanPass("blur + sharpen", 1000, 0.5).stages
    ['blur', 'sharpen']
    """

    label: str
    moved: int
    ms: float | None

    @property
    def stages(self) -> list[str]:
        """The names of its stages."""
        return [
            part.strip() for part in re.split(r"\s*(?:\+|->|>|→)\s*", self.label) if part.strip()
        ]


def passes_of(text: str) -> list[PlanPass]:
    """Return the passes that an explanation of a pipeline lists.

    >>> passes_of("pipeline on cpu: 1 stage in 1 pass\\n  pass 0: blur, 2,400 bytes, 0.125 ms")
    [PlanPass(label='blur', moved=2400, ms=0.125)]
    """
    found = []
    for line in text.splitlines():
        match = _PASS.match(line)
        if match:
            ms = float(match[3]) if match[3] else None
            found.append(PlanPass(match[1], int(match[2].replace(",", "")), ms))
    return found


def steps(groups: Sequence[tuple[str, Sequence[PlanPass]]]) -> list[Json]:
    """Return the passes in order, with their stages; a group without passes is a model.

    >>> steps([("filters", [PlanPass("blur > sepia", 2400, None)])])
    [{'kind': 'pass', 'stages': ['blur', 'sepia'], 'bytes': 2400, 'ms': None}]
    >>> steps([("Faces", [])])
    [{'kind': 'model', 'stages': ['Faces'], 'bytes': None, 'ms': None}]
    """
    made: list[Json] = []
    for title, passes in groups:
        if not passes:
            made.append({"kind": "model", "stages": [title], "bytes": None, "ms": None})
        made += [
            {"kind": "pass", "stages": list[Json](p.stages), "bytes": p.moved, "ms": p.ms}
            for p in passes
        ]
    return made


def svg(groups: Sequence[tuple[str, Sequence[PlanPass]]]) -> str:
    """Return a drawing of groups of passes, one row each; a group without passes is a model.

    >>> svg([("filters", [PlanPass("blur", 2400, None)])]).startswith("<svg ")
    True
    """
    parts: list[str] = []
    y, widest = 12, 260
    for title, passes in groups:
        rows = passes or [PlanPass(title, 0, None)]
        for item in rows:
            width, drawn = _box(item, y, bool(passes))
            parts += drawn
            widest = max(widest, width)
            y += 74
    if not groups:
        parts.append(
            f'<text x="12" y="34" {_FONT} font-size="14" fill="#808080">The chain is empty.</text>'
        )
        y = 60
    arrows = [
        f'<path d="M 28 {at} v 8" stroke="#808080" stroke-width="2" fill="none"/>'
        for at in range(12 + 66, y - 8, 74)
    ]
    size = f'width="{widest + 24}" height="{y}" viewBox="0 0 {widest + 24} {y}"'
    body = "".join([*parts, *arrows])
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{body}</svg>'


def _box(item: PlanPass, y: int, is_pass: bool) -> tuple[int, list[str]]:
    stages = item.stages or [item.label]
    x, chips = 24, []
    for number, name in enumerate(stages):
        wide = 18 + 8 * len(name)
        color = _COLORS[number % len(_COLORS)] if is_pass else "#6b6b6b"
        chips.append(
            f'<rect x="{x}" y="{y + 10}" width="{wide}" height="26" rx="6" fill="{color}"/>'
            f'<text x="{x + wide / 2}" y="{y + 28}" {_FONT} font-size="13" fill="#ffffff" '
            f'text-anchor="middle">{html.escape(name)}</text>'
        )
        x += wide + 8
    notes = [f"{len(stages)} fused" if len(stages) > 1 else ("one stage" if is_pass else "model")]
    if item.moved:
        notes.append(f"{item.moved / 1e6:.1f} MB")
    if item.ms is not None:
        notes.append(f"{item.ms:.2f} ms")
    note = html.escape(", ".join(notes))
    width = max(x + 4, 40 + 7 * len(note))
    frame = (
        f'<rect x="12" y="{y}" width="{width}" height="66" rx="10" fill="#80808022" '
        'stroke="#808080" stroke-width="1"/>'
    )
    label = f'<text x="24" y="{y + 54}" {_FONT} font-size="12" fill="#808080">{note}</text>'
    return width, [frame, *chips, label]
