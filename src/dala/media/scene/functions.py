"""Methods of scenes as functions: ``add_video(scene, stream)`` is ``scene.add_video(stream)``.

>>> import numpy as np
>>> from dala.media import scene
>>> with scene.new(64, 36, device="cpu") as card:
...     badge = scene.add_image(card, np.zeros((8, 8, 3), np.uint8), position="center")
...     scene.render(card).shape
(36, 64, 4)
"""

from __future__ import annotations

from dala.media.scene.scene import Scene

__all__ = ["add_image", "add_video", "new", "render", "set_pip_transform"]

new = Scene
add_image = Scene.add_image
add_video = Scene.add_video
render = Scene.render
set_pip_transform = Scene.set_pip_transform
