"""Sources of moving pictures: files, cameras, functions, lists.

>>> import numpy as np
>>> from dala.media.sources import open_source
>>> frames = [np.full((2, 2, 3), level, np.uint8) for level in (0, 255)]
>>> with open_source(frames, fps=1) as source:
...     int(source.at(1.5)[0, 0, 0])
255
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
