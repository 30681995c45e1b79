"""The examples of the gallery: how each is run small, and its picture for the page.

``python -m tests.support.gallery small`` writes the stored pictures of the tests again, and
``python -m tests.support.gallery large [NAME ...]`` those of docs/gallery.md. Look at them.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
STORED = ROOT / "tests" / "e2e" / "gallery"
PAGE = ROOT / "docs" / "images" / "gallery"
#: Width of the pictures on the page, and the most bytes of each.
WIDTH, LARGEST = 640, 60_000


class Shown(NamedTuple):
    """How an example is shown: the size and time of its small picture, and of the large one."""

    small: tuple[int, int] = (160, 90)
    moment: float = 0.2
    large: tuple[int, int] = (960, 540)
    large_moment: float = 0.0
    stepwise: bool = False


#: Scenes that take a size. Simulations are shown after a few steps in the tests.
SCENES = {
    "flow_field": Shown(moment=0.3, large_moment=7.9, stepwise=True),
    "reaction": Shown(moment=1.0, large_moment=9.0, stepwise=True),
    "fluid": Shown(moment=1.0, large_moment=6.0, stepwise=True),
    "mandelbrot": Shown((96, 54), 1.0, (640, 360), 3.6),
    "grade": Shown(moment=2.0, large_moment=2.0),
    "titles": Shown(moment=8.4, large_moment=8.4),
    "chart": Shown(moment=2.2, large_moment=5.0),
    "badge": Shown(moment=2.0, large_moment=3.0),
    "visualizer": Shown(moment=4.05, large_moment=4.05),
    "virtual_background": Shown((160, 90), 1.0, (960, 540), 1.0),
    "comparison": Shown((200, 120), 0.0, (1200, 720), 0.0),
}


def load(name: str):
    """Return the module of an example."""
    folder = str(ROOT / "examples")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def _scene(name: str, size: tuple[int, int], moment: float) -> np.ndarray:
    still = load("running").still
    with load(name).build("cpu", size=size) as scene:
        made = np.array(still(scene, moment, SCENES[name].stepwise))[..., :3]
        assert scene.errors == {}
    return made


def _life(generations: int) -> np.ndarray:
    from dala.media import Frame

    with tempfile.TemporaryDirectory() as folder:
        path = load("life").main(generations=generations, folder=pathlib.Path(folder))
        return np.array(Frame.open(path))[..., :3]


def _face_crop(moment: float) -> np.ndarray:
    from dala.media import video

    with tempfile.TemporaryDirectory() as folder:
        path = load("face_crop").main(folder=pathlib.Path(folder), seconds=moment + 0.1)
        with video.open(path, device="cpu") as reader:
            reader.seek(moment)
            return np.array(next(reader))[..., :3]


def _contact_sheet(size: tuple[int, int]) -> np.ndarray:
    example = load("contact_sheet")
    with tempfile.TemporaryDirectory() as folder:
        film = example.film(pathlib.Path(folder))
        with example.build(film, size=size, device="cpu") as scene:
            return np.array(scene.render())[..., :3]


def _wall() -> np.ndarray:
    example = load("wall")
    with example.build("cpu") as scene:
        return np.array(scene.render(example.MOMENT))[..., :3]


#: The others: the small picture and the large one.
OTHERS: dict[str, tuple[Callable[[], np.ndarray], Callable[[], np.ndarray]]] = {
    "life": (lambda: _life(30), lambda: _life(60)),
    "face_crop": (lambda: _face_crop(0.2)[::2, ::2], lambda: _face_crop(2.4)),
    "contact_sheet": (lambda: _contact_sheet((200, 143)), lambda: _contact_sheet((1200, 860))),
}
#: Every example of the page; the picture of the wall is stored elsewhere and tested there.
NAMES = (*SCENES, *OTHERS, "wall")


def small(name: str) -> np.ndarray:
    """Return the picture of an example with tiny settings, as tests compare it."""
    if name in OTHERS:
        return OTHERS[name][0]()
    shown = SCENES[name]
    return _scene(name, shown.small, shown.moment)


def large(name: str) -> np.ndarray:
    """Return the picture of an example for the page."""
    if name == "wall":
        return _wall()
    if name in OTHERS:
        return OTHERS[name][1]()
    shown = SCENES[name]
    return _scene(name, shown.large, shown.large_moment)


def write_small(name: str) -> None:
    """Store the small picture of an example."""
    from PIL import Image

    STORED.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(small(name))).save(STORED / f"{name}.png", optimize=True)


def write_large(name: str) -> None:
    """Write the picture of an example for the page, in at most so many bytes."""
    from PIL import Image

    PAGE.mkdir(parents=True, exist_ok=True)
    made = Image.fromarray(np.ascontiguousarray(large(name)))
    how = Image.Resampling.NEAREST if name == "life" else Image.Resampling.LANCZOS
    height = round(made.height * WIDTH / made.width)
    if height > WIDTH:
        made = made.resize((round(made.width * 480 / made.height), 480), how)
    else:
        made = made.resize((WIDTH, height), how)
    for quality in range(88, 20, -6):
        made.save(PAGE / f"{name}.webp", quality=quality, method=6)
        if (PAGE / f"{name}.webp").stat().st_size < LARGEST:
            return


def main() -> None:
    """Write the pictures that the command line names."""
    import dala

    which, *names = sys.argv[1:]
    with dala.device("cpu"):
        for name in names or NAMES:
            if which == "large":
                write_large(name)
            elif name != "wall":
                write_small(name)


if __name__ == "__main__":
    main()
