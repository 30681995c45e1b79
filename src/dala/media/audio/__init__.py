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

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.audio.audio import Audio as Audio
    from dala.media.audio.combine import concat as concat
    from dala.media.audio.combine import mix as mix
    from dala.media.audio.files.reader import AudioReader as AudioReader
    from dala.media.audio.files.reader import open as open
    from dala.media.audio.generate import noise as noise
    from dala.media.audio.generate import silence as silence
    from dala.media.audio.generate import tone as tone
    from dala.media.audio.loudness import Loudness as Loudness
    from dala.media.audio.mixing.mixer import Mixer as Mixer

_HOMES = {
    "Audio": "dala.media.audio.audio",
    "AudioReader": "dala.media.audio.files.reader",
    "Loudness": "dala.media.audio.loudness",
    "Mixer": "dala.media.audio.mixing.mixer",
    "concat": "dala.media.audio.combine",
    "mix": "dala.media.audio.combine",
    "noise": "dala.media.audio.generate",
    "open": "dala.media.audio.files.reader",
    "silence": "dala.media.audio.generate",
    "tone": "dala.media.audio.generate",
}

__all__ = [
    "Audio",
    "AudioReader",
    "Loudness",
    "Mixer",
    "concat",
    "mix",
    "noise",
    "open",
    "silence",
    "tone",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
