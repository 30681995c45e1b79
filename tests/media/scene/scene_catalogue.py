"""The stored scenes: how one is marked, and how it is drawn."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dala.media import Scene

FOLDER = pathlib.Path(__file__).parent / "scenes"
WIDTH, HEIGHT = 320, 180

#: The version of FreeType that drew the stored letters; others may fit them to pixels differently.
FREETYPE = (2, 13, 2)

INK, PAPER, CORAL, TEAL, SUN = "#1b2233", "#f3efe6", "#f2685c", "#1f8a8c", "#f6c14b"

Build = Callable[[Scene], None]


class Picture(NamedTuple):
    """A scene, and the times at which it is drawn, one below the other."""

    build: Build
    options: dict[str, Any]
    times: tuple[float, ...]
    text: bool


SCENES: dict[str, Picture] = {}


def stored(*times: float, text: bool = False, **options: Any) -> Callable[[Build], Build]:
    """Marks what builds a scene; ``options`` are those of Scene."""

    def mark(build: Build) -> Build:
        given = {"width": WIDTH, "height": HEIGHT, "background": INK, **options}
        SCENES[build.__name__] = Picture(build, given, times or (0.0,), text)
        return build

    return mark


def frames(name: str, times: Sequence[float] = ()) -> Iterator[np.ndarray]:
    """The frames of a scene on the device in use, at its own times unless others are given."""
    wanted = SCENES[name]
    with Scene(**wanted.options) as scene:
        wanted.build(scene)
        for time in times or wanted.times:
            yield np.array(scene.render(time))
        assert scene.errors == {}


def show(name: str, times: Sequence[float] = ()) -> np.ndarray:
    """The picture of a scene on the device in use, (height, width, 4) u8."""
    return np.concatenate(list(frames(name, times)))
