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
    from dala.media.scene.functions import add_animation as add_animation
    from dala.media.scene.functions import add_audio as add_audio
    from dala.media.scene.functions import add_effect as add_effect
    from dala.media.scene.functions import add_group as add_group
    from dala.media.scene.functions import add_image as add_image
    from dala.media.scene.functions import add_node as add_node
    from dala.media.scene.functions import add_overlay as add_overlay
    from dala.media.scene.functions import add_scene as add_scene
    from dala.media.scene.functions import add_subtitles as add_subtitles
    from dala.media.scene.functions import add_text as add_text
    from dala.media.scene.functions import add_timeline as add_timeline
    from dala.media.scene.functions import add_video as add_video
    from dala.media.scene.functions import close as close
    from dala.media.scene.functions import fps as fps
    from dala.media.scene.functions import frame_count as frame_count
    from dala.media.scene.functions import new as new
    from dala.media.scene.functions import remove_node as remove_node
    from dala.media.scene.functions import render as render
    from dala.media.scene.functions import set_pip_transform as set_pip_transform
    from dala.media.scene.scene import Scene as Scene
    from dala.media.scene.timeline import Timeline as Timeline

_HOMES = {
    "Scene": "dala.media.scene.scene",
    "Timeline": "dala.media.scene.timeline",
    "add_animation": "dala.media.scene.functions",
    "add_audio": "dala.media.scene.functions",
    "add_effect": "dala.media.scene.functions",
    "add_group": "dala.media.scene.functions",
    "add_image": "dala.media.scene.functions",
    "add_node": "dala.media.scene.functions",
    "add_overlay": "dala.media.scene.functions",
    "add_scene": "dala.media.scene.functions",
    "add_subtitles": "dala.media.scene.functions",
    "add_text": "dala.media.scene.functions",
    "add_timeline": "dala.media.scene.functions",
    "add_video": "dala.media.scene.functions",
    "add_video_async": "dala.media.scene.functions",
    "close": "dala.media.scene.functions",
    "fps": "dala.media.scene.functions",
    "frame_count": "dala.media.scene.functions",
    "load_scene": "dala.media.scene.file.load",
    "new": "dala.media.scene.functions",
    "remove_node": "dala.media.scene.functions",
    "render": "dala.media.scene.functions",
    "scene_to_dict": "dala.media.scene.file.load",
    "set_pip_transform": "dala.media.scene.functions",
}

__all__ = [
    "Scene",
    "Timeline",
    "add_animation",
    "add_audio",
    "add_effect",
    "add_group",
    "add_image",
    "add_node",
    "add_overlay",
    "add_scene",
    "add_subtitles",
    "add_text",
    "add_timeline",
    "add_video",
    "add_video_async",
    "close",
    "fps",
    "frame_count",
    "load_scene",
    "new",
    "remove_node",
    "render",
    "scene_to_dict",
    "set_pip_transform",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
