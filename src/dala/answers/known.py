"""Filters whose bytes are known to differ from the reference engine's, by kind of engine.

The aim is an empty list. A test fails for an entry whose rows no longer differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BLENDED: Final = "tables of tiles are interpolated in floats"
_SCALED: Final = "scaled and rotated pictures of a scene are sampled in floats"

#: KNOWN[backend][filter]: why.
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "cpu": {"clahe": _BLENDED, "compositor": _SCALED},
    "webgpu": {"clahe": _BLENDED, "compositor": _SCALED},
}
