"""``dala.diagnostics()``: what is alive now, and what the engines say of themselves."""

from __future__ import annotations

import sys
from typing import Any


def diagnostics() -> dict[str, Any]:
    """Live objects and bytes, by kind and by engine; only engines in use are asked.

    Returns:
        ``engines``: for each engine in use, its counters (``live_buffers``, ``live_bytes``, ...).
        ``objects``: for each kind (``"buffer"``, ...) ``count``, ``bytes`` and ``by_engine``.

    >>> import dala
    >>> sorted(dala.diagnostics())
    ['engines', 'objects']
    """
    # Looked up, not imported: asking must neither load an engine nor make one.
    auto = sys.modules.get("dala.gpu.compute.engines.auto")
    live = sys.modules.get("dala.gpu.compute.live")
    empty = {"buffer": {"count": 0, "bytes": 0, "by_engine": {}}}
    return {
        "engines": {e.id: dict(e.stats()) for e in auto.engines_in_use()} if auto else {},
        "objects": live.snapshot() if live else empty,
    }
