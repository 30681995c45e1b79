"""Sources of moving pictures: files, cameras, functions, lists.

>>> import numpy as np
>>> from dala.media.sources import open_source
>>> frames = [np.full((2, 2, 3), level, np.uint8) for level in (0, 255)]
>>> with open_source(frames, fps=1) as source:
...     int(source.at(1.5)[0, 0, 0])
255
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.sources.open import open_source as open_source
    from dala.media.sources.types import Source as Source

_HOMES = {"Source": "dala.media.sources.types", "open_source": "dala.media.sources.open"}

__all__ = ["Source", "open_source"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
