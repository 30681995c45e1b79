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

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.scene.file.load import load_scene as load_scene
    from dala.media.scene.file.load import scene_to_dict as scene_to_dict
    from dala.media.scene.functions import add_image as add_image
    from dala.media.scene.functions import add_video as add_video
    from dala.media.scene.functions import new as new
    from dala.media.scene.functions import render as render
    from dala.media.scene.functions import set_pip_transform as set_pip_transform
    from dala.media.scene.scene import Scene as Scene

_HOMES = {
    "Scene": "dala.media.scene.scene",
    "add_image": "dala.media.scene.functions",
    "add_video": "dala.media.scene.functions",
    "load_scene": "dala.media.scene.file.load",
    "new": "dala.media.scene.functions",
    "render": "dala.media.scene.functions",
    "scene_to_dict": "dala.media.scene.file.load",
    "set_pip_transform": "dala.media.scene.functions",
}

__all__ = [
    "Scene",
    "add_image",
    "add_video",
    "load_scene",
    "new",
    "render",
    "scene_to_dict",
    "set_pip_transform",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
