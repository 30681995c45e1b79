"""The fused plan of a chain: passes over memory with their stages, and models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dala.studio.catalogue.parameters import Json

_PASS: Final = re.compile(r"^  pass \d+: (.*), ([\d,]+) bytes(?:, ([\d.]+) ms)?$", re.M)
_BETWEEN: Final = re.compile(r"\s*(?:\+|->|>|→)\s*")


def steps(found: Sequence[tuple[str, str]]) -> list[Json]:
    """Return the passes in order, by titles and explanations; one without passes is a model.

    >>> text = "pipeline on cpu: 2 stages in 1 pass\\n  pass 0: blur > sepia, 2,400 bytes, 0.125 ms"
    >>> steps([("filters", text)])
    [{'kind': 'pass', 'stages': ['blur', 'sepia'], 'bytes': 2400, 'ms': 0.125}]
    >>> steps([("Faces", "")])
    [{'kind': 'model', 'stages': ['Faces'], 'bytes': None, 'ms': None}]
    """
    made: list[Json] = []
    for title, text in found:
        passes = _PASS.findall(text)
        for label, moved, ms in passes:
            stages: list[Json] = [part for part in _BETWEEN.split(label.strip()) if part]
            time = float(ms) if ms else None
            moved = int(moved.replace(",", ""))
            made.append({"kind": "pass", "stages": stages, "bytes": moved, "ms": time})
        if not passes:
            made.append({"kind": "model", "stages": [title], "bytes": None, "ms": None})
    return made
