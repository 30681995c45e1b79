"""Methods of scenes as functions: ``add_video(scene, stream)`` is ``scene.add_video(stream)``."""

from __future__ import annotations

from fractions import Fraction

from dala.media.scene.scene import Scene
from dala.typing import ColorLike

__all__ = [
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
    "new",
    "remove_node",
    "render",
    "set_pip_transform",
]


def new(
    width: int,
    height: int,
    *,
    background: ColorLike = "black",
    fps: float | str | Fraction = 30,
    device: str | None = None,
    blend_space: str = "srgb",
    memory: int | str | None = None,
) -> Scene:
    """Return a new scene; the arguments are those of ``Scene``.

    >>> import numpy as np
    >>> from dala.media import scene
    >>> with scene.new(64, 36, device="cpu") as card:
    ...     badge = scene.add_image(card, np.zeros((8, 8, 3), np.uint8), position="center")
    ...     scene.render(card).shape
    (36, 64, 4)
    """
    return Scene(
        width,
        height,
        background=background,
        fps=fps,
        device=device,
        blend_space=blend_space,
        memory=memory,
    )


add_animation = Scene.add_animation
add_audio = Scene.add_audio
add_effect = Scene.add_effect
add_group = Scene.add_group
add_image = Scene.add_image
add_node = Scene.add_node
add_overlay = Scene.add_overlay
add_scene = Scene.add_scene
add_subtitles = Scene.add_subtitles
add_text = Scene.add_text
add_timeline = Scene.add_timeline
add_video = Scene.add_video
add_video_async = Scene.add_video_async
close = Scene.close
remove_node = Scene.remove_node
render = Scene.render
set_pip_transform = Scene.set_pip_transform


def fps(scene: Scene) -> float | str | Fraction:
    """Return the frame rate of a scene, as it was given.

    >>> from dala.media import scene
    >>> with scene.new(64, 36, fps=25, device="cpu") as card:
    ...     scene.fps(card)
    25
    """
    return scene.fps


def frame_count(scene: Scene) -> int:
    """Return the number of frames that a scene has returned.

    >>> from dala.media import scene
    >>> with scene.new(64, 36, device="cpu") as card:
    ...     frame = scene.render(card)
    ...     scene.frame_count(card)
    1
    """
    return scene.frame_count
