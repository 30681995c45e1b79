"""Pictures, video, filters, effects and scenes.

- ``dala.media.gpu``: filters; ``start_pipeline``, ``process_frame``, ``stop_pipeline``
- ``dala.media.effects``: grading, virtual backgrounds, overlays
- ``dala.media.video``: video files
- ``dala.media.audio``: sound
- ``dala.media.camera``, ``dala.media.microphone``, ``dala.media.screen``, ``dala.media.live``: live
  pictures and sound in and out
- ``dala.media.scene``: ``Scene`` composes video, pictures, text and effects into frames
- ``Frame``: a picture with its time and color coding; ``FramePipeline``: filters on many frames
- ``TexturePool``: pictures that are loaded once and drawn many times

>>> import numpy as np
>>> import dala
>>> picture = np.full((4, 4, 3), 100, np.uint8)
>>> int(dala.media.gpu.brightness(picture, value=0.2, device="cpu")[0, 0, 0])
151
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from dala.media.texture import TexturePool as TexturePool
    from dala.media.transitions.spec import Transition as Transition

#: Modules that are imported when their name is first used.
_ROOMS = ("audio", "camera", "effects", "gpu", "live", "microphone", "scene", "screen", "video")

#: The module that holds each name.
_HOMES = {
    "Frame": "dala.media.frame",
    "FramePipeline": "dala.media.filters.pipeline",
    "Scene": "dala.media.scene.scene",
    "TextStyle": "dala.media.text.style",
    "TexturePool": "dala.media.texture",
    "Timeline": "dala.media.scene.timeline",
    "Transition": "dala.media.transitions.spec",
    "fonts": "dala.media.text",
    "load_lut": "dala.media.filters.luts",
    "load_scene": "dala.media.scene.file.load",
    "load_subtitles": "dala.media.subtitles",
    "set_text": "dala.media.text.text",
}

__all__ = [
    "Frame",
    "FramePipeline",
    "Scene",
    "TextStyle",
    "TexturePool",
    "Timeline",
    "Transition",
    "audio",
    "camera",
    "effects",
    "fonts",
    "gpu",
    "live",
    "load_lut",
    "load_scene",
    "load_subtitles",
    "microphone",
    "scene",
    "screen",
    "set_text",
    "video",
]

if not TYPE_CHECKING:  # so that type checkers refuse a misspelled name, as Python does
    __getattr__, __dir__ = attach(__name__, _HOMES, _ROOMS)
