"""The names of ``dala.media.microphone``, each with the module that defines it."""

from dala.media.audio.arriving import LiveSound as LiveSound
from dala.media.microphone.functions import list as list
from dala.media.microphone.functions import open as open
from dala.media.video.decoding.devices import Microphone as Microphone
