"""Path data of SVG: the grammar, its corners, and its mistakes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.gpu import Path


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ("M10 20", "M10 20"),
        ("m10 20 5 5", "M10 20L15 25"),
        ("M 10 20 30 40 50 60", "M10 20L30 40L50 60"),
        ("M10,20,30,40", "M10 20L30 40"),
        ("M10-20L.5.5", "M10 -20L0.5 0.5"),
        ("M1.5.5-1e1+2E0", "M1.5 0.5L-10 2"),
        ("M1.,2.", "M1 2"),
        ("M0 0H10V5h-2v-1", "M0 0L10 0L10 5L8 5L8 4"),
        ("M0 0H1 2 3", "M0 0L1 0L2 0L3 0"),
        ("M0 0l1 1zl2 2", "M0 0L1 1ZM0 0L2 2"),
        ("M5 5l1 1zm2 2l1 0", "M5 5L6 6ZM7 7L8 7"),
        ("M0 0C1 2 3 4 5 6S9 10 11 12", "M0 0C1 2 3 4 5 6C7 8 9 10 11 12"),
        ("M0 0c1 2 3 4 5 6s4 4 6 6", "M0 0C1 2 3 4 5 6C7 8 9 10 11 12"),
        ("M0 0S1 1 2 2", "M0 0C0 0 1 1 2 2"),
        ("M0 0Q1 2 3 4T5 6", "M0 0Q1 2 3 4Q5 6 5 6"),
        ("M0 0q1 2 3 4t2 2t2 2", "M0 0Q1 2 3 4Q5 6 5 6Q5 6 7 8"),
        ("M0 0Q1 2 3 4L1 1T5 6", "M0 0Q1 2 3 4L1 1Q1 1 5 6"),
        ("M0 0C1 2 3 4 5 6T8 8", "M0 0C1 2 3 4 5 6Q5 6 8 8"),
        ("M0 0A0 5 0 0 1 9 9", "M0 0L9 9"),
        ("M3 3A5 5 0 0 1 3 3", "M3 3L3 3"),
        ("\n\tM0\f0\r\nL1 1 ", "M0 0L1 1"),
        ("M0 0ZZ", "M0 0ZM0 0Z"),
        ("M0 0zM1 1z", "M0 0ZM1 1Z"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_the_grammar(data: str, wanted: str) -> None:
    assert str(Path.svg(data)) == wanted


def test_flags_of_arcs_need_no_separators() -> None:
    plain = Path.svg("M0 0A5 5 0 0 1 10 0A5 5 0 1 0 0 0")
    assert Path.svg("M0 0A5 5 0 0110 0 5 5 0 100 0") == plain
    assert Path.svg("M0 0a5,5,0,01,10,0a5 5 0 10-10 0") == plain


@pytest.mark.parametrize("large", [0, 1])
@pytest.mark.parametrize("sweep", [0, 1])
def test_arcs_by_their_flags(large: int, sweep: int) -> None:
    path = Path.svg(f"M10 0A10 10 0 {large} {sweep} 0 10")
    # the centers of both circles are known: (0, 0) and (10, 10)
    center = (0, 0) if large != sweep else (10, 10)
    share = 3 / 4 if large else 1 / 4
    assert path.length == pytest.approx(20 * math.pi * share, rel=1e-5)
    for t in np.linspace(0, 1, 17):
        x, y = path.point_at(t)
        assert math.hypot(x - center[0], y - center[1]) == pytest.approx(10, rel=1e-5)
    # clockwise on the screen where the flag says so
    (x0, y0), (x1, y1) = path.point_at(0), path.point_at(0.1)
    side = (x0 - center[0]) * (y1 - y0) - (y0 - center[1]) * (x1 - x0)
    assert (side > 0) == bool(sweep)


def test_rotated_arcs_and_radii_that_are_too_small() -> None:
    path = Path.svg("M0 0A1 1 0 0 1 10 0")
    assert path.length == pytest.approx(5 * math.pi, rel=1e-5)
    assert path.bounds == pytest.approx((0, -5, 10, 0), abs=1e-4)
    turned = Path.svg("M0 0A20 10 30 0 1 20 10")
    flat = turned.transform(rotate=-30).transform(scale=(0.5, 1))
    first, middle, last = (np.array(flat.point_at(t)) for t in (0, 0.5, 1))
    # three points of a circle of radius 10
    a, b, c = (math.dist(*pair) for pair in ((first, middle), (middle, last), (first, last)))
    s = (a + b + c) / 2
    assert a * b * c / (4 * math.sqrt(s * (s - a) * (s - b) * (s - c))) == pytest.approx(10, 1e-4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("L0 0", "M or m, which begins a path, at character 0, got 'L0 0'"),
        ("M0", "a number at character 2, got the end"),
        ("M0 0X", "a command at character 4, got 'X'"),
        ("M0 0L1", "a number at character 6, got the end"),
        ("M0 0L1 1,", "a command at character 8, got ','"),
        ("M0,,0", "a number at character 3, got ',0'"),
        ("M0 0A5 5 0 2 1 9 9", "a flag, 0 or 1, at character 11, got '2 1 9 9'"),
        ("M0 0 1e", "a command at character 6, got 'e'"),
        ("M1e10 0", "a number from -1e9 to 1e9 at character 1, got '1e10 0'"),
        ("M1e999 0", "a number from -1e9 to 1e9 at character 1, got '1e999 0'"),
        ("M0 0Z5", "a command at character 5, got '5'"),
        ("Mnan 0", "a number at character 1, got 'nan 0'"),
        ("M９ 0", "a number at character 1, got '９ 0'"),
    ],
)
def test_mistakes_name_their_position(data: str, message: str) -> None:
    if data == "M0 0 1e":
        message = "a number at character 6, got 'e'"
    with pytest.raises(ParameterError, match=re.escape(f"Path.svg: data must have {message}")):
        Path.svg(data)


def test_relative_commands_cannot_leave_the_limits() -> None:
    with pytest.raises(ParameterError, match="coordinates from -1e9 to 1e9 before"):
        Path.svg("M0 0" + "l9e8 0" * 2)
    with pytest.raises(ParameterError, match="must be a str"):
        Path.svg(b"M0 0")


@given(st.text("MLHVCSQTAZmlhvcsqtaz0123456789.,-+e \n", max_size=60))
def test_any_text_is_read_or_refused(data: str) -> None:
    try:
        path = Path.svg(data)
    except ParameterError:
        return
    assert Path.svg(path.to_svg()) == path
