"""Filters whose bytes are known to differ from the reference engine's, by kind of engine.

The aim is an empty list. A test fails for an entry whose rows no longer differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: KNOWN[backend][filter]: why.
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {"cpu": {}, "webgpu": {}}
