"""Sound, on PyAV (FFmpeg): ``pip install "dala-gpu[media]"``.

- ``Audio``: samples with a rate, a layout and an exact start time; it is edited by its methods
- ``audio.open(path)``: the sound of any file, block by block
- ``tone``, ``silence``, ``noise``: generated sound; ``mix`` and ``concat``: several sounds as one
- ``Mixer``: any number of sounds on one clock, rendered block by block

>>> from dala.media import audio
>>> beep = audio.tone(440, 0.5, rate=8000).fade_out(0.1)
>>> beep
<Audio 0.5 s, 8000 Hz, mono>
>>> audio.concat(beep, beep).duration
Fraction(1, 1)
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
