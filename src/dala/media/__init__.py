"""The media room: pictures and video frames, filters for them, effects, scenes.

- ``dala.media.gpu``: one call a filter; ``start_pipeline``, ``process_frame``, ``stop_pipeline``
- ``dala.media.effects``: grading, virtual backgrounds, overlays; ``dala.media.video``: files
- ``dala.media.scene``: ``Scene``, video, pictures, text and effects composed into frames
- ``Frame``: a picture with its time and colour; ``FramePipeline``: filter lists over many frames
- ``TexturePool``: pictures that are loaded once and drawn many times

>>> import numpy as np
>>> import dala
>>> picture = np.full((4, 4, 3), 100, np.uint8)
>>> int(dala.media.gpu.brightness(picture, value=0.2, device="cpu")[0, 0, 0])
151
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media import effects as effects
    from dala.media import gpu as gpu
    from dala.media import scene as scene
    from dala.media import video as video
    from dala.media.frame import Frame as Frame
    from dala.media.pipeline import FramePipeline as FramePipeline
    from dala.media.scene import Scene as Scene
    from dala.media.scene_file import load_scene as load_scene
    from dala.media.subtitles import load_subtitles as load_subtitles
    from dala.media.text import TextStyle as TextStyle
    from dala.media.text import set_text as set_text
    from dala.media.texture import TexturePool as TexturePool

#: Modules that are imported when their name is first used.
_ROOMS = ("effects", "gpu", "scene", "video")

#: The module that holds each name.
_HOMES = {
    "Frame": "frame",
    "FramePipeline": "pipeline",
    "Scene": "scene",
    "TextStyle": "text",
    "TexturePool": "texture",
    "load_scene": "scene_file",
    "load_subtitles": "subtitles",
    "set_text": "text",
}

__all__ = [
    "Frame",
    "FramePipeline",
    "Scene",
    "TextStyle",
    "TexturePool",
    "effects",
    "gpu",
    "load_scene",
    "load_subtitles",
    "scene",
    "set_text",
    "video",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        import sys
        from importlib import import_module

        if name in _ROOMS:
            return import_module(f"dala.media.{name}")
        if name not in _HOMES:
            raise AttributeError(
                f"module 'dala.media' has no attribute {name!r}",
                name=name,
                obj=sys.modules[__name__],
            )
        value = getattr(import_module(f"dala.media.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
