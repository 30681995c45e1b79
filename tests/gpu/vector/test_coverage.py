"""Coverage: compared with polygon clipping in f64."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dala.errors import CommandError
from dala.gpu import Path, create_surface
from dala.gpu.command import encode_clear, encode_fill_shape, encode_stroke_shape
from dala.gpu.raster import Canvas
from tests.support.polygons import flat, round_stroke, shares

W, H = 24, 18
#: Half a diagonal of a square with sides of 4.
R = 8**0.5


def coverage(path: Path, rule: str = "nonzero", size: tuple[int, int] = (W, H)) -> np.ndarray:
    canvas = Canvas(*size)
    canvas.run(encode_fill_shape(rule, 0, "white", path))
    assert canvas.take_faults() == []
    return canvas.pixels[..., 3].astype(float)


def exact(path: Path) -> np.ndarray:
    return np.minimum(np.abs(shares(flat(path), W, H)), 1) * 255


places = st.tuples(st.floats(-6, W + 6), st.floats(-6, H + 6))
far = st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))


@settings(max_examples=60, deadline=None)
@given(st.lists(places, min_size=3, max_size=3))
def test_triangles_are_exact(points):
    path = Path.polygon(points)
    assert np.abs(coverage(path) - exact(path)).max() < 1.5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(places, far), min_size=3, max_size=3))
def test_huge_triangles_are_exact(points):
    path = Path.polygon(points)
    # f64 rounds coordinates of 1e9 to 1e-7; the model's areas lose as much as products do
    near = all(max(map(abs, p)) < 1e5 for p in points)
    found = coverage(path)
    if near:
        assert np.abs(found - exact(path)).max() < 1.5


@pytest.mark.parametrize("radius", [0.2, 0.5, 1, 3, 7.25])
def test_circles_are_exact(radius):
    path = Path.circle(11.3, 9.6, radius)
    assert np.abs(coverage(path) - exact(path)).max() <= 2


def test_curves_are_exact():
    rng = np.random.default_rng(5)
    for _ in range(20):
        points = rng.uniform(-4, 26, (4, 2))
        path = Path().move_to(*points[0]).cubic_to(*points[1], *points[2], *points[3]).close()
        signed = shares(flat(path), W, H)
        found = coverage(path)
        edge = (np.abs(signed) > 0.01) & (np.abs(signed) < 0.99)
        # a loop of the curve can cancel in the signed area of a pixel; few do
        apart = np.abs(found - np.minimum(np.abs(signed), 1) * 255)[edge]
        assert apart.size == 0 or np.quantile(apart, 0.95) <= 2.5


def test_rules():
    path = Path.rect(1, 1, 12, 12) + Path.rect(4, 4, 6, 6)
    assert coverage(path)[6, 6] == 255
    assert coverage(path, "evenodd")[6, 6] == 0
    assert coverage(path, "evenodd")[2, 2] == 255
    hole = Path.rect(1, 1, 12, 12) + Path.rect(4, 4, 6, 6).reversed()
    assert coverage(hole)[6, 6] == 0


def test_shapes_that_share_an_edge_leave_no_crack():
    """The shares of both add up to whole pixels, within what each is rounded by."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        (ax, ay), (bx, by) = rng.uniform(0, 18, (2, 2))
        left = coverage(
            Path.polygon([(-50, -50), (ax, -50), (ax, ay), (bx, by), (bx, 70), (-50, 70)])
        )
        right = coverage(
            Path.polygon([(80, -50), (ax, -50), (ax, ay), (bx, by), (bx, 70), (80, 70)])
        )
        assert np.abs(left + right - 255).max() <= 1


def test_opaque_and_translucent_colors_over_any_pixels():
    path = Path.rect(0.5, 0, 2, 1)
    canvas = Canvas(3, 1)
    canvas.run(encode_clear("white") + encode_fill_shape("nonzero", 0, (0, 0, 0, 128), path))
    assert canvas.pixels[0, :, 0].tolist() == [191, 127, 191]
    canvas.run(encode_clear((0, 0, 0, 0)) + encode_fill_shape("nonzero", 0, (9, 8, 7, 128), path))
    assert canvas.pixels[0].tolist() == [[9, 8, 7, 64], [9, 8, 7, 128], [9, 8, 7, 64]]


def test_the_integer_clip_holds():
    from dala.gpu.command import encode_set_clip

    canvas = Canvas(W, H)
    path = Path.circle(12, 9, 8)
    canvas.run(encode_set_clip(5, 6, 9, 7) + encode_fill_shape("nonzero", 0, "white", path))
    inside = canvas.pixels[6:13, 5:14, 3].copy()
    assert (inside == coverage(path)[6:13, 5:14]).all()
    canvas.pixels[6:13, 5:14] = 0
    assert not canvas.pixels.any()


# strokes --------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
@given(
    st.lists(places, min_size=2, max_size=3, unique=True),
    st.floats(1, 5),
)
def test_strokes_by_distance(points, width):
    if len(points) == 3:  # a line that goes back over itself covers its border twice
        p, q, r = np.array(points)
        across, back = q - p, r - q
        lengths = np.linalg.norm(across) * np.linalg.norm(back)
        assume(across @ back > -0.7 * lengths and lengths > 1e-3)
    canvas = Canvas(W, H)
    path = Path.polyline(points)
    canvas.run(encode_stroke_shape(width, "round", "round", 10, 0, 0, "white", (), path))
    wanted = round_stroke(points, width / 2, W, H) * 255
    apart = np.abs(canvas.pixels[..., 3] - wanted)
    assert apart.mean() < 1.5  # the model samples 256 places; overlaps inside a pixel add up
    assert (apart > 40).mean() < 0.02


def test_straight_strokes_are_rectangles():
    def line(cap):
        canvas = Canvas(W, H)
        path = Path.polyline([(5, 4.5), (15, 4.5)])
        canvas.run(encode_stroke_shape(3, cap, "miter", 10, 0, 0, "white", (), path))
        return canvas.pixels[..., 3]

    butt = np.zeros((H, W))
    butt[3:6, 5:15] = 255
    assert (line("butt") == butt).all()
    butt[4, 5:15] = 255
    square = np.zeros((H, W))
    square[3:6, 3:17] = 255
    square[3:6, [3, 16]] = 128
    assert (line("square") == square).all()


def test_joins():
    def corner(join, miter=10.0):
        canvas = Canvas(W, H)
        path = Path.polyline([(2, 15), (12, 15), (12, 2)])
        canvas.run(encode_stroke_shape(4, "butt", join, miter, 0, 0, "white", (), path))
        return canvas.pixels[13:17, 10:14, 3].sum() / 255

    assert corner("miter") == 16
    assert corner("bevel") == pytest.approx(14, abs=0.01)
    assert corner("miter", 1.2) == pytest.approx(
        14, abs=0.01
    )  # beyond the limit, which is the root of 2 here
    assert corner("round") == pytest.approx(12 + np.pi, abs=0.05)


def test_dashes_and_offset():
    def row(dash, offset=0.0, path=None):
        canvas = Canvas(20, 1)
        path = path or Path.polyline([(0, 0.5), (20, 0.5)])
        canvas.run(encode_stroke_shape(1, "butt", "miter", 10, offset, 0, "white", dash, path))
        assert canvas.take_faults() == []
        return "".join(" #"[int(v > 0)] for v in canvas.pixels[0, :, 3])

    assert row([4, 2]) == "####  ####  ####  ##"
    assert row([4, 2], 5) == " ####  ####  ####  #"
    assert row([4, 2], -1) == " ####  ####  ####  #"
    assert row([3]) == "###   ###   ###   ##"
    assert row([0, 0]) == "#" * 20
    assert row([4, 2], 6e9 + 1) == row([4, 2], 1)


def test_dashes_without_length_are_dots():
    """Also at the beginning of a line, and turned with it: as resvg draws them."""

    def dots(path, cap):
        canvas = Canvas(W, H)
        canvas.run(encode_stroke_shape(4, cap, "miter", 10, 0, 0, "white", (0, 8), path))
        return canvas.pixels[..., 3].astype(int)

    wanted = np.zeros((H, W))
    for x in (4, 12, 20):
        wanted[3:7, x - 2 : x + 2] = 255
    assert (dots(Path.polyline([(4, 5), (22, 5)]), "square") == wanted).all()
    corners = np.zeros((H, W))
    for x, y in ((4, 4), (12, 4), (12, 12), (4, 12)):
        corners[y - 2 : y + 2, x - 2 : x + 2] = 255
    assert (dots(Path.rect(4, 4, 8, 8), "square") == corners).all()
    turned = dots(Path.polyline([(6, 6), (9, 9)]), "square")
    tilted = Path.polygon([(6 + dx, 6 + dy) for dx, dy in ((R, 0), (0, R), (-R, 0), (0, -R))])
    assert np.abs(turned - coverage(tilted)).max() <= 1
    assert dots(Path.polyline([(6, 6), (9, 9)]), "round").sum() / 255 == pytest.approx(
        4 * np.pi, rel=0.01
    )


def test_a_closed_line_has_no_ends():
    canvas = Canvas(W, H)
    path = Path.rect(4, 4, 10, 8)
    canvas.run(encode_stroke_shape(2, "butt", "miter", 10, 0, 0, "white", (), path))
    wanted = np.zeros((H, W))
    wanted[3:13, 3:15] = 255
    wanted[5:11, 5:13] = 0
    assert (canvas.pixels[..., 3] == wanted).all()


def test_lines_without_length():
    def dot(cap, path):
        canvas = Canvas(W, H)
        canvas.run(encode_stroke_shape(8, cap, "miter", 10, 0, 0, "white", (), path))
        return canvas.pixels[..., 3].sum() / 255

    point = Path.polyline([(9, 9), (9, 9)])
    assert dot("butt", point) == 0
    assert dot("square", point) == 64
    assert dot("round", point) == pytest.approx(16 * np.pi, rel=0.01)
    assert dot("round", Path().move_to(9, 9)) == 0


def test_hairlines_are_one_pixel_wide_under_any_transform():
    from dala.gpu.command import encode_transform

    canvas = Canvas(W, H)
    path = Path.polyline([(0, 0.05), (2, 0.05)])
    line = encode_stroke_shape(0, "butt", "miter", 10, 0, 0, "white", (), path)
    canvas.run(encode_transform(10, 0, 0, 10, 0, 0) + line)
    assert (canvas.pixels[0, :20, 3] == 255).all()
    assert not canvas.pixels[1:].any()


# the same bytes -------------------------------------------------------------------------------
PICTURE = """
import hashlib, random, sys
from dala.errors import CommandError
from dala.gpu import Path, create_surface
from dala.gpu.command import *
from dala.gpu.raster import Canvas

rng = random.Random(4)
canvas = Canvas(300, 260)
data = encode_clear("#fff8")
for n in range(120):
    x, y = rng.uniform(-20, 320), rng.uniform(-20, 280)
    color = tuple(rng.randrange(256) for _ in range(4))
    path = Path.star(x, y, rng.uniform(1, 60), rng.uniform(1, 60), 9)
    path = path + Path.circle(y, x, rng.uniform(0, 40))
    data += encode_fill_shape(rng.choice(("nonzero", "evenodd")), 0, color, path)
    width, dash = rng.uniform(0, 9), rng.choice(((), (7, 3)))
    data += encode_stroke_shape(width, "round", "round", 4, 0, 0, color, dash, path)
canvas.run(data)
print(hashlib.sha256(canvas.pixels.tobytes()).hexdigest())
"""


def test_equal_bytes_on_any_processor_with_any_threads_and_bands():
    def digest(**environment):
        return subprocess.run(
            [sys.executable, "-c", PICTURE], env=os.environ | environment, check=True,
            capture_output=True, text=True,
        ).stdout  # fmt: skip

    from dala.gpu.compute.engines.cpu.level import LEVELS, host_features

    wanted = digest(DALA_THREADS="1")
    assert digest(DALA_THREADS="5") == wanted
    features = host_features()
    for level, (_, needed) in LEVELS.items():
        if all(map(features.get, needed)) and features:
            assert digest(DALA_CPU=level, DALA_THREADS="2") == wanted, level


def test_lines_of_surfaces_have_the_pens_of_strokes():
    points = [(4.0, 6.0), (20.0, 6.0), (9.0, 15.0)]
    style = {"cap": "round", "dash": [5, 7]}

    def drawn(draw):
        with create_surface(W, H) as s:
            draw(s)
            return s.get_pixels()

    def stroked(path, **style):
        return drawn(lambda s: s.stroke(path, "white", 4, **style))

    bent = drawn(lambda s: s.polyline(points, "white", 4, join="bevel", **style))
    assert bent == stroked(Path.polyline(points), join="bevel", **style)
    assert bent != drawn(lambda s: s.polyline(points, "white", 4))
    straight = drawn(lambda s: s.line(*points[0], *points[2], "white", 4, **style))
    assert straight == stroked(Path.polyline(points[::2]), **style)
    round = drawn(lambda s: s.arc(12, 10, 6, 0, 90, "white", 4, **style))
    assert round == stroked(Path().arc(12, 10, 6, 0, 90), **style)
    with pytest.raises(CommandError, match="line: cap must be 'butt' or 'round' or 'square'"):
        drawn(lambda s: s.line(0, 0, 1, 1, "white", cap="roud"))
    with pytest.raises(CommandError, match="arc: dash must be at most"):
        drawn(lambda s: s.arc(0, 0, 1, 1, 90, "white", dash=[-1]))
    with pytest.raises(CommandError, match=r"polyline: dash must be at most .*, got 5"):
        drawn(lambda s: s.polyline(points, "white", dash=5))
