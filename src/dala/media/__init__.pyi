"""The names of ``dala.media``, each with the module that defines it."""

from dala.media import audio as audio
from dala.media import camera as camera
from dala.media import effects as effects
from dala.media import gpu as gpu
from dala.media import live as live
from dala.media import microphone as microphone
from dala.media import scene as scene
from dala.media import screen as screen
from dala.media import video as video
from dala.media.filters.luts import load_lut as load_lut
from dala.media.filters.pipeline import FramePipeline as FramePipeline
from dala.media.frame import Frame as Frame
from dala.media.scene.file.load import load_scene as load_scene
from dala.media.scene.scene import Scene as Scene
from dala.media.scene.timeline import Timeline as Timeline
from dala.media.subtitles import load_subtitles as load_subtitles
from dala.media.text import fonts as fonts
from dala.media.text.text import TextStyle as TextStyle
from dala.media.text.text import set_text as set_text
from dala.media.texture import Texture as Texture
from dala.media.texture import TexturePool as TexturePool
from dala.media.transitions.spec import Transition as Transition
