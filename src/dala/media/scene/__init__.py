"""Scenes: video, pictures, text and effects composed into frames.

>>> import numpy as np
>>> from dala.media.scene import Scene
>>> with Scene(8, 4, background="navy", device="cpu") as scene:
...     badge = scene.add_overlay(color="white", position=(2, 1), size=(2, 2), opacity=0.5)
...     frame = scene.render()
...     np.asarray(frame)[1, 2].tolist(), np.asarray(frame)[0, 0].tolist()
([128, 128, 192, 255], [0, 0, 128, 255])
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.scene.file.load import load_scene as load_scene
    from dala.media.scene.file.load import scene_to_dict as scene_to_dict
    from dala.media.scene.scene import Scene as Scene

_HOMES = {
    "Scene": "dala.media.scene.scene",
    "load_scene": "dala.media.scene.file.load",
    "scene_to_dict": "dala.media.scene.file.load",
}

__all__ = ["Scene", "load_scene", "scene_to_dict"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
