"""A pointer that the tip of an index finger moves.

python examples/hand_pointer.py wave.mp4     # out/hand_pointer.mp4
python examples/hand_pointer.py 0            # the camera, in a window
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dala
from dala.media import Scene
from dala.ml import hand

SIZE = (640, 480)


def build(source: str | int | Callable[[float], np.ndarray]) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*SIZE, fps=25)
    scene.add_video(source, size=SIZE, fit="contain")
    # The model "hands" finds 21 points of each hand: the wrist, and four of each finger. The beam
    # begins at the tip and points where the finger does; its length is that of the finger's bones.
    beam = scene.add_overlay(color="#ef476fa0", shape="pill", size=(300, 8))
    finger = hand.bone("index_mcp", "index_tip")
    scene.follow(beam, finger, anchor=(-0.18, 0.5), scale=3, lost="fade")
    dot = scene.add_overlay(color="#ef476f", shape="circle", size=(26, 26), border=(4, "white"))
    scene.follow(dot, hand.point("index_tip"), lost="fade", hold=0.2)
    return scene


def main(source: str, folder: Path = Path("out")) -> Path | None:
    """Write the video and return its path; a camera is shown in a window."""
    if source.isdecimal():
        with build(int(source)) as scene:
            scene.play("window")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "hand_pointer.mp4"
    with build(source) as scene:
        scene.render_to(path, progress=False)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: hand_pointer.py VIDEO or the number of a camera")
    print(main(sys.argv[1]) or f"models: {dala.ml.hand.point('index_tip').model}")
