"""The calls of whole pixels: exact for whole numbers, antialiased where a call asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from dala import gpu
from dala.errors import DalaError
from dala.gpu import Path

CALLS = {
    "fill_rect": (3, 4, 10, 5),
    "draw_line": (2, 2, 30, 17),
    "draw_circle": (12, 12, 9),
    "fill_circle": (20, 10, 7),
    "draw_triangle": (1, 1, 30, 4, 9, 22),
    "fill_triangle": (2, 20, 28, 22, 15, 3),
    "draw_round_rect": (2, 2, 20, 14, 5),
    "fill_round_rect": (6, 6, 20, 14, 5),
}


def drawn(draw):
    with gpu.create_surface(40, 30) as s:
        draw(s)
        return s.to_array()


@pytest.mark.parametrize("name", CALLS)
def test_whole_floats_take_the_exact_way(name):
    whole, floats = CALLS[name], [float(n) for n in CALLS[name]]
    wanted = drawn(lambda s: getattr(s, name)(*whole, "red"))
    assert (drawn(lambda s: getattr(s, name)(*floats, "red")) == wanted).all()
    assert {*wanted[..., 3].ravel().tolist()} == {0, 255}


@pytest.mark.parametrize("name", CALLS)
def test_fractions_are_antialiased(name):
    places = (CALLS[name][0] + 0.25, *CALLS[name][1:])
    found = drawn(lambda s: getattr(gpu, name)(s, *places, "red"))
    assert len({*found[..., 3].ravel().tolist()}) > 2


def test_shapes_of_fractions():
    circle = drawn(lambda s: s.fill_circle(20.5, 15.5, 9, "blue"))
    assert (circle == drawn(lambda s: s.circle(20.5, 15.5, 9, "blue"))).all()
    rect = drawn(lambda s: s.fill_rect(2.5, 3, 4, 5, (1, 2, 3, 77)))
    assert (rect == drawn(lambda s: s.rect(2.5, 3, 4, 5, (1, 2, 3, 77)))).all()


def test_width():
    wide = drawn(lambda s: s.draw_line(3, 3, 30, 20, "red", width=8))
    assert (wide == drawn(lambda s: s.line(3, 3, 30, 20, "red", 8))).all()
    ring = drawn(lambda s: s.draw_circle(20, 15, 9, "red", width=3))
    assert (ring == drawn(lambda s: s.circle(20, 15, 9, "red", width=3))).all()


def test_they_follow_transforms_and_clips():
    with gpu.create_surface(40, 30) as s:
        with s.transformed(translate=(10, 5)), s.clip(Path.rect(0, 0, 3.5, 30)):
            s.fill_rect(0, 0, 8, 4, "white")
        s.fill_rect(0, 20, 2, 2, "white")
        alpha = s.to_array()[..., 3]
    wanted = np.zeros((30, 40))
    wanted[5:9, 10:13], wanted[5:9, 13], wanted[20:22, :2] = 255, 128, 255
    assert (alpha == wanted).all()


def test_what_is_no_number_is_refused_as_before():
    with gpu.create_surface(4, 4) as s:
        for bad in ("x", float("nan"), float("inf"), None):
            with pytest.raises(DalaError, match="fill_circle: cx must be"):
                s.fill_circle(bad, 1.5, 2, "red")
        with pytest.raises(DalaError, match="draw_line: width must be"):
            s.draw_line(0, 0, 1, 1, "red", width="x")
        with pytest.raises(DalaError, match="fill_circle"):
            s.fill_circle(1.5, 1.5, -2, "red")
