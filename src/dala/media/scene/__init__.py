"""Scenes: video, images, text and effects composed into frames.

>>> import numpy as np
>>> from dala.media.scene import Scene
>>> with Scene(8, 4, background="navy", device="cpu") as scene:
...     badge = scene.add_overlay(color="white", position=(2, 1), size=(2, 2), opacity=0.5)
...     frame = scene.render()
...     np.asarray(frame)[1, 2].tolist(), np.asarray(frame)[0, 0].tolist()
([128, 128, 192, 255], [0, 0, 128, 255])
"""

from __future__ import annotations

from dala.lazy import attach_stub

#: Functions that are methods of ``Scene`` only; each is kept for one version.
_METHODS = (
    *("add_animation", "add_audio", "add_effect", "add_group", "add_node", "add_overlay"),
    *("add_scene", "add_subtitles", "add_text", "add_timeline", "add_video_async"),
    *("close", "fps", "frame_count", "remove_node"),
)

__getattr__, __dir__, __all__ = attach_stub(
    __name__, renamed={name: f"Scene.{name}" for name in _METHODS}
)
