"""Coverage of random paths: compared with trapezoids cut at every vertex, crossing and row, in f64.

Where the winding in a pixel takes no more than two neighboring values, one of them 0, the signed
area is the answer; elsewhere outlines overlap inside the pixel.
"""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu import Path
from dala.gpu.command import (
    encode_clip_shape,
    encode_fill_shape,
    encode_push,
    encode_stroke_shape,
)
from dala.gpu.raster import Canvas
from tests.support.polygons import coverage, flat, signed_areas

W, H = 32, 28


def ellipse(rng):
    return Path.ellipse(*rng.uniform(4, 26, 2), *rng.uniform(0.3, 14, 2))


def polygon(rng, count):
    return Path.polygon([tuple(p) for p in rng.uniform(-4, 34, (count, 2))])


def cubic(rng):
    a, b, c, d = rng.uniform(-4, 34, (4, 2))
    return Path().move_to(*a).cubic_to(*b, *c, *d).close()


def star(rng):
    x, y = rng.uniform(8, 24, 2)
    return Path.star(x, y, rng.uniform(2, 16), rng.uniform(0.5, 8), int(rng.integers(3, 12)))


def sliver(rng):
    """A line thinner than a pixel."""
    a, b = rng.uniform(0, 28, (2, 2))
    across = np.array([a[1] - b[1], b[0] - a[0]]) / np.hypot(*(b - a)) * rng.uniform(0.02, 0.5)
    return Path.polygon([tuple(p) for p in (a + across, b + across, b - across, a - across)])


SIMPLE = {"triangle": lambda rng: polygon(rng, 3), "ellipse": ellipse, "cubic": cubic, "star": star,
          "sliver": sliver}  # fmt: skip
CROSSING = {"hexagon": lambda rng: polygon(rng, 6), "twelve": lambda rng: polygon(rng, 12),
            "two ellipses": lambda rng: ellipse(rng) + ellipse(rng),
            "two stars": lambda rng: star(rng) + star(rng)}  # fmt: skip


def drawn(path, rule="nonzero"):
    canvas = Canvas(W, H)
    canvas.run(encode_fill_shape(rule, 0, "white", path))
    return canvas.pixels[..., 3].astype(float)


def errors(path, rule="nonzero"):
    """Return the errors in steps where one outline crosses a pixel, and where several overlap."""
    contours = [points for points in flat(path, 64) if len(points) > 2]
    exact, signed = coverage(contours, W, H, rule), np.abs(signed_areas(contours, W, H))
    alone = np.minimum(signed, 1) if rule == "nonzero" else 1 - np.abs(1 - signed % 2)
    edge = (signed > 1e-9) & (np.abs(signed - np.round(signed)) > 1e-9)
    edge |= (exact > 1e-9) & (exact < 1 - 1e-9)
    apart = np.abs(drawn(path, rule) - 255 * exact)
    assert (apart[~edge] < 0.5).all()
    overlap = edge & (np.abs(alone - exact) > 1e-9)
    return apart[edge & ~overlap], apart[overlap]


@pytest.mark.parametrize("rule", ["nonzero", "evenodd"])
@pytest.mark.parametrize("kind", [*SIMPLE, *CROSSING])
def test_one_outline_in_a_pixel_is_within_two_steps(kind, rule):
    rng = np.random.default_rng(33)
    for _ in range(12):
        apart, _ = errors((SIMPLE | CROSSING)[kind](rng), rule)
        assert apart.size == 0 or apart.max() <= 2


def test_overlaps_in_a_pixel_are_within_four_steps_on_average():
    rng = np.random.default_rng(34)
    found = np.concatenate([errors(make(rng))[1] for _ in range(12) for make in CROSSING.values()])
    assert found.size > 300
    assert found.mean() <= 4
    assert found.max() <= 100  # as the documentation says


@pytest.mark.parametrize(("width", "at_ends"), [(0.3, 2), (1, 2.5), (3, 6), (8, 20)])
def test_lines_along_curves_are_within_two_steps(width, at_ends):
    """Against the polygon between both sides, in f64. An end has the direction of its last piece
    of the curve, which wide lines show; what is beyond two steps is beside the ends."""
    rng = np.random.default_rng(38)
    for _ in range(12):
        a, c = rng.uniform(4, 12, 2), rng.uniform(18, 24, 2)
        b = (a + c) / 2 + np.array([c[1] - a[1], a[0] - c[0]]) * rng.uniform(0.2, 0.5)
        t = np.linspace(0, 1, 400)[:, None]
        middle = (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t * t * c
        along = (1 - t) * (b - a) + t * (c - b)
        across = along[:, ::-1] * (1, -1) / np.hypot(*along.T)[:, None] * width / 2
        sides = np.concatenate([middle + across, (middle - across)[::-1]])
        exact = np.abs(signed_areas([[tuple(p) for p in sides.tolist()]], W, H))
        canvas = Canvas(W, H)
        path = Path().move_to(*a).quad_to(*b, *c)
        canvas.run(encode_stroke_shape(width, "butt", "miter", 4, 0, 0, "white", (), path))
        apart = np.abs(canvas.pixels[..., 3] - 255 * np.minimum(exact, 1))
        assert apart.max() <= at_ends
        y, x = np.nonzero(apart > 2.1)
        ends = np.min([np.hypot(x + 0.5 - p[0], y + 0.5 - p[1]) for p in (a, c)], axis=0)
        assert (ends <= width / 2 + 2).all()


def test_both_ways_of_a_shape_agree():
    """A crossing far away makes a shape be drawn in parts of pixels: the rest stays the same."""
    rng = np.random.default_rng(35)
    far = Path.polygon([(60, 60), (90, 90), (90, 60), (60, 90)])
    for make in SIMPLE.values():
        path = make(rng)
        apart = np.abs(drawn(path) - drawn(path + far))
        assert apart.max() <= 1 if make is not cubic else np.quantile(apart, 0.99) <= 1


def test_shapes_of_many_columns():
    """Wide shapes that cross themselves are drawn in parts of 2048 pixels."""
    canvas = Canvas(5000, 3)
    path = Path.rect(0.5, 0.5, 4999, 2) + Path.polygon([(10, 5), (30, 9), (30, 5), (10, 9)])
    canvas.run(encode_fill_shape("nonzero", 0, "white", path))
    wanted = np.full((3, 5000), 255)
    wanted[0] = wanted[2] = 128
    wanted[:, [0, -1]] = [[64], [128], [64]]
    assert np.abs(canvas.pixels[..., 3] - wanted.astype(int)).max() <= 1


def test_shapes_that_share_edges_leave_no_crack():
    """Drawn opaque in turn over opaque, what is below shows only by conflation, named in the docs;
    as coverages they add up to whole pixels."""
    rng = np.random.default_rng(36)
    for _ in range(20):
        points = [tuple(p) for p in rng.uniform(0, 28, (3, 2))]
        mx, my = rng.dirichlet((1, 1, 1)) @ np.array(points)
        parts = [[points[0], points[1], (mx, my)], [points[1], points[2], (mx, my)],
                 [points[2], points[0], (mx, my)]]  # fmt: skip
        total = sum(drawn(Path.polygon(part)) for part in parts)
        assert np.abs(total - drawn(Path.polygon(points))).max() <= 2


def test_coverage_of_clips_is_that_of_fills():
    rng = np.random.default_rng(37)
    for make in SIMPLE.values():
        path = make(rng)
        canvas = Canvas(W, H)
        canvas.run(
            encode_push() + encode_clip_shape("nonzero", path)
            + encode_fill_shape("nonzero", 0, "white", Path.rect(-9, -9, 99, 99))
        )  # fmt: skip
        assert np.quantile(np.abs(canvas.pixels[..., 3] - drawn(path)), 0.99) <= 1
