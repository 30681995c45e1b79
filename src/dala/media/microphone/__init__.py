"""Microphones: the machine's, by number or name, and a generated one for trying things.

>>> from dala.media import microphone
>>> with microphone.open("test") as voice:
...     voice
<LiveSound 'test microphone'>
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
