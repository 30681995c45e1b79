"""Every filter, exported and run in a browser, gives the desktop's WebGPU result."""

import numpy as np
import pytest

import dala.web
from dala.media.filters.declarations import declared, filter_names
from tests.support.tolerances import assert_close
from tests.support.web import WebPage, noise, on_desktop

#: Small, odd, and not a multiple of four wide.
HEIGHT, WIDTH = 43, 61


def example(name: str) -> dict[str, object]:
    """Return parameters for a filter: its example's, and pictures and tables where it needs any."""
    spec = declared()[name]
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    coordinates = np.stack([x * 0.9 + 1.5, y * 1.1 - 2.25], axis=-1)
    text = spec.example if "film.cube" not in spec.example else ""
    given: dict[str, object] = eval(f"dict({text})", {"coordinates": coordinates})
    for p in spec.parameters:
        if p.type == "lut":
            given[p.name] = np.random.default_rng(5).random((5, 5, 5, 3), np.float32)
        elif p.type == "picture":
            other = noise(HEIGHT, WIDTH, seed=9)
            given[p.name] = other[..., 0].copy() if p.name == "mask" else other
    if name == "crop":
        given = {"box": (5, 3, 40, 30)}
    if name == "resize":
        given = {"size": (30, 50)}
    if name == "thumbnail":
        given = {"size": 24}
    if name in ("blur", "box_blur"):
        given = {"radius": 2}
    if name == "gaussian_blur":
        given = {"sigma": 0.6}
    if name == "canny":
        given = {"low": 0.3, "high": 0.7}
    return given


@pytest.mark.long
@pytest.mark.parametrize("name", filter_names())
def test_filter_in_a_browser(web: WebPage, name: str) -> None:
    chain = [(name, example(name))]
    dala.web.export(chain, web.folder / name)
    picture = noise(HEIGHT, WIDTH)
    made = web.run(name, picture)
    assert_close(made, on_desktop(picture, chain).reshape(made.shape), "webgpu", "program")
