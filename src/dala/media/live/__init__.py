"""Live streams: sending frames, scenes and surfaces while they are made.

- ``live.open(url, size)``: a stream for frames of your own
- ``live.send(source, url)``: a camera or a video, through filters
- ``Scene.live(url)``, ``Surface.live(url)``

>>> from dala.media import live
>>> live.open.__name__
'open'
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.live.functions import open as open
    from dala.media.live.functions import send as send
    from dala.media.live.output import LiveOutput as LiveOutput
    from dala.media.live.sending import LiveRun as LiveRun

_HOMES = {
    "LiveOutput": "dala.media.live.output",
    "LiveRun": "dala.media.live.sending",
    "open": "dala.media.live.functions",
    "send": "dala.media.live.functions",
}

__all__ = ["LiveOutput", "LiveRun", "open", "send"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
