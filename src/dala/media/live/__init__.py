"""Live streams: sending frames, scenes and surfaces while they are made.

- ``live.open(url, size)``: a stream for frames of your own
- ``live.send(source, url)``: a camera or a video, through filters
- ``Scene.live(url)``, ``Surface.live(url)``

>>> from dala.media import live
>>> live.open.__name__
'open'
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
