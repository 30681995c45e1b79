"""The names of ``dala.media.audio``, each with the module that defines it."""

from dala.media.audio.audio import Audio as Audio
from dala.media.audio.combine import concat as concat
from dala.media.audio.combine import mix as mix
from dala.media.audio.combine import noise as noise
from dala.media.audio.combine import silence as silence
from dala.media.audio.combine import tone as tone
from dala.media.audio.files.reader import AudioReader as AudioReader
from dala.media.audio.files.reader import open as open
from dala.media.audio.loudness import Loudness as Loudness
from dala.media.audio.mixing.mixer import Mixer as Mixer
