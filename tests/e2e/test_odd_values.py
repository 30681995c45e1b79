"""Values that nobody should pass, as pictures and parameters of every filter."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import create_surface
from dala.gpu.compute.kernels.filter import FILTERS
from dala.media import Scene, effects, gpu, video
from tests.faults.operations import NEEDED, OF_TWO, WITH_MODEL
from tests.support.odd import PIXELS, VALUES, problem

NAMES = [name for name in gpu.filters() if name not in WITH_MODEL]


@pytest.mark.parametrize("name", NAMES)
def test_filters(name, tmp_path):
    call = getattr(gpu, name, None) or getattr(effects, name)
    needed = NEEDED.get(name, lambda _: {})(tmp_path)
    second = (PIXELS,) if name in OF_TWO else ()
    params = [p.name for p in FILTERS[name].parameters if p.type != "picture" or not second]
    wrong = []
    for title, value in VALUES.items():
        tried = {"picture": lambda v=value: call(v(), *second, **needed, device="cpu")}
        if second:
            tried["second"] = lambda v=value: call(PIXELS, v(), **needed, device="cpu")
        for param in params:
            tried[param] = lambda v=value, p=param: call(
                PIXELS, *second, **{**needed, p: v()}, device="cpu"
            )
        wrong += [
            f"{each} = {title}: {problem(act)}" for each, act in tried.items() if problem(act)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("title", VALUES)
def test_pixels_of_objects(title, tmp_path):
    path, value = tmp_path / "a.mp4", VALUES[title]
    with create_surface(8, 8) as surface, Scene(16, 16) as scene:
        for call in (
            scene.add_image,
            surface.set_pixels,
            surface.submit,
            lambda x: surface.load_image(1, x, 16, 16),
            lambda x: surface.load_sprite(1, x, 4, 4),
            lambda x: surface.with_pixels(lambda pixels: x),
            lambda x: video.write(path, x, fps=25),
            lambda x: video.write(path, [x], fps=25),
        ):
            assert not problem(lambda call=call: call(value()))


def test_pointers_are_no_pixels():
    with create_surface(8, 8) as surface, pytest.raises(dala.CommandError):
        surface.load_sprite(1, np.array([[object()] * 2]), 2, 2)
