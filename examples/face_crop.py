"""A tall crop of a wide video that follows the speaker's face, as for a phone.

python examples/face_crop.py              # out/face_crop.mp4
python examples/face_crop.py talk.mp4     # the same on a video of yours
"""

import math
import sys
from pathlib import Path

import numpy as np

import dala
from dala.media import Scene

WIDE, TALL, FPS = (640, 360), (270, 480), 25


def walking(seconds: float) -> np.ndarray:
    """Return a wide picture through which a person walks, at a time."""
    photo = np.asarray(dala.samples.photo("astronaut", device="cpu"))[:360, 60:400, :3]
    made = np.full((WIDE[1], WIDE[0], 3), (196, 190, 186), np.uint8)
    x = 150 + round(140 * math.sin(seconds * 1.2 - 1.2))
    made[:, x : x + 340] = photo
    return made


def main(source: str | None = None, folder: Path = Path("out"), seconds: float = 4.0) -> Path:
    """Write the video and return its path: the crop, and the whole picture small below it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "face_crop.mp4"
    with Scene(*TALL, fps=FPS, background="#15181c") as scene:
        if source is None:
            scene.duration = seconds
        video = scene.add_video(source or walking, size=(270, 328))
        # A low cutoff: the camera moves calmly, whatever the face does.
        face = dala.ml.watch(video, "blazeface", smooth=0.6)
        scene.follow(video, face.box(), crop=True, scale=2.6, offset=(0, 0.25))
        whole = scene.add_video(source or walking, size=(270, 152), position=(0, 328))
        frame = scene.add_overlay(color="transparent", border=(2, "#ffd166"), radius=4)
        scene.follow(frame, dala.ml.face.box, video=whole, fit=True, scale=1.6)
        scene.render_to(path, progress=False)
    return path


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
