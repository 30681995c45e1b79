"""Microphones: the machine's, by number or name, and a generated one for trying things.

>>> from dala.media import microphone
>>> with microphone.open("test") as voice:
...     voice
<LiveSound 'test microphone'>
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.audio.arriving import LiveSound as LiveSound
    from dala.media.microphone.functions import list as list
    from dala.media.microphone.functions import open as open
    from dala.media.video.decoding.devices import Microphone as Microphone

_HOMES = {
    "LiveSound": "dala.media.audio.arriving",
    "Microphone": "dala.media.video.decoding.devices",
    "list": "dala.media.microphone.functions",
    "open": "dala.media.microphone.functions",
}

__all__ = ["LiveSound", "Microphone", "list", "open"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
