"""A name tag over each person, whom a tracker follows.

python examples/name_tags.py                # out/name_tags.mp4
python examples/name_tags.py street.mp4     # the same on a video of yours
"""

import math
import sys
from pathlib import Path

import numpy as np

import dala
from dala.media import Scene
from dala.media.scene.nodes.node import Node

SIZE, FPS = (640, 360), 25
COLORS = ("#e4572e", "#2e86ab", "#76b041", "#f2a541")


def two_people(seconds: float) -> np.ndarray:
    """Return a picture in which two people move past each other's side, at a time."""
    photo = np.asarray(dala.samples.photo("astronaut", device="cpu"))[..., :3]
    person = np.asarray(dala.media.gpu.resize(photo, size=(330, 330), device="cpu"))
    made = np.full((SIZE[1], SIZE[0], 3), (196, 190, 186), np.uint8)
    for number, start in enumerate((10, 330)):
        x = start + round(18 * math.sin(seconds * (1.1 + number / 2)))
        y = 30 + round(8 * math.sin(seconds * 2 + number))
        part = person[:, 20:300]
        made[y : y + 330, x : x + 280] = part[: SIZE[1] - y, : SIZE[0] - x]
    return made


def main(source: str | None = None, folder: Path = Path("out"), seconds: float = 3.0) -> Path:
    """Write the video and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "name_tags.mp4"
    with Scene(*SIZE, fps=FPS) as scene:
        if source is None:
            scene.duration = seconds
        video = scene.add_video(source or two_people, size=SIZE, fit="contain")
        people = dala.ml.watch(video, "nanodet", label="person", score=0.5)

        def tag(id: int) -> Node:
            return scene.add_text(
                f"Person {id}", size=18, weight="bold", color="white", padding=(10, 5),
                background=COLORS[id % len(COLORS)], radius=8,
            )  # fmt: skip

        def outline(id: int) -> Node:
            color = COLORS[id % len(COLORS)]
            return scene.add_overlay(color="transparent", border=(3, color), radius=10)

        scene.follow_each(people.boxes(), outline, fit=True, lost="fade")
        scene.follow_each(people.boxes(at="top"), tag, offset=(0, 26), unit="pixels", lost="fade")
        scene.render_to(path, progress=False)
    return path


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
