"""Methods of scenes as functions: ``add_video(scene, stream)`` is ``scene.add_video(stream)``."""

from __future__ import annotations

from fractions import Fraction

from dala.media.scene.scene import Scene
from dala.typing import ColorLike

__all__ = ["add_image", "add_video", "new", "render", "set_pip_transform"]


def new(
    width: int,
    height: int,
    *,
    background: ColorLike = "black",
    fps: float | str | Fraction = 30,
    device: str | None = None,
    blend_space: str = "srgb",
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
        width, height, background=background, fps=fps, device=device, blend_space=blend_space
    )


add_video = Scene.add_video
add_image = Scene.add_image
set_pip_transform = Scene.set_pip_transform
render = Scene.render
