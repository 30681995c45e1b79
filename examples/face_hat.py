"""Glasses and a hat that follow a face.

python examples/face_hat.py              # out/face_hat.mp4
python examples/face_hat.py talk.mp4     # the same on a video of yours
"""

import math
import sys
from pathlib import Path

import numpy as np

import dala
from dala.media import Scene
from dala.ml import face

SIZE, FPS = (640, 480), 25


def camera(seconds: float) -> np.ndarray:
    """Return the picture of a handheld camera that turns and zooms, at a time."""
    photo = np.asarray(dala.samples.photo("astronaut", device="cpu"))[..., :3]
    turned = dala.media.gpu.rotate(photo, angle=14 * math.sin(seconds * 1.3), device="cpu")
    wide = round(360 + 60 * math.sin(seconds * 0.9))
    high = wide * SIZE[1] // SIZE[0]
    x = round(225 - wide / 2 + 40 * math.sin(seconds * 1.1))
    y = max(0, round(120 - high / 2 + 15 * math.sin(seconds * 1.7)))
    return np.ascontiguousarray(np.asarray(turned)[y : y + high, max(0, x) : max(0, x) + wide])


def add_glasses(scene: Scene) -> None:
    """Add glasses: two round frames and a bridge, 200 pixels wide, that follow the eyes."""
    glasses = scene.add_group(canvas=(200, 80))
    for left in (0, 110):
        glasses.add_overlay(
            color="#20304080", shape="circle", position=(left, 0), size=(90, 80), radius=40,
            border=(7, "#101418"),
        )  # fmt: skip
    glasses.add_overlay(color="#101418", position=(88, 30), size=(24, 8))
    scene.follow(glasses, face.bone("right_eye", "left_eye"), scale=2.1, hold=0.2)


def add_hat(scene: Scene) -> None:
    """Add a hat: a crown, a ribbon and a brim, that turns with the head."""
    hat = scene.add_group(canvas=(200, 130))
    hat.add_overlay(color="#7a1f2b", position=(45, 0), size=(110, 115), radius=14)
    hat.add_overlay(color="#f2c14e", position=(45, 78), size=(110, 24))
    hat.add_overlay(color="#7a1f2b", shape="pill", position=(0, 100), size=(200, 26))
    eyes = face.bone("right_eye", "left_eye")
    scene.follow(hat, eyes, scale=4.2, offset=(0, -0.95), anchor="bottom", hold=0.2)


def main(source: str | None = None, folder: Path = Path("out"), seconds: float = 4.0) -> Path:
    """Write the video and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "face_hat.mp4"
    with Scene(*SIZE, fps=FPS) as scene:
        if source is None:
            scene.duration = seconds
        scene.add_video(source or camera, size=SIZE, fit="cover")
        add_glasses(scene)
        add_hat(scene)
        scene.render_to(path, progress=False)
    return path


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
