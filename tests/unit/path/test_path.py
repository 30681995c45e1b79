"""Paths: what they hold, what they refuse, and their geometry."""

from __future__ import annotations

import math
import pickle
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.gpu import Path

NUMBERS = st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 3))
#: Coordinates on a coarse grid, so that points repeat, lines are vertical and curves degenerate.
COARSE = st.integers(-4, 4).map(float)


@st.composite
def paths(draw: st.DrawFn, numbers: st.SearchStrategy[float] = NUMBERS) -> Path:
    path = Path()
    for _ in range(draw(st.integers(1, 3))):
        path = path.move_to(draw(numbers), draw(numbers))
        for kind in draw(st.lists(st.sampled_from("LQC"), min_size=1, max_size=4)):
            count = {"L": 2, "Q": 4, "C": 6}[kind]
            values = draw(st.lists(numbers, min_size=count, max_size=count))
            add = {"L": path.line_to, "Q": path.quad_to, "C": path.cubic_to}[kind]
            path = add(*values)
        if draw(st.booleans()):
            path = path.close()
    return path


ANY = paths() | paths(COARSE)


def sampled(path: Path, steps: int = 256) -> list[np.ndarray]:
    """Return each contour as a polygon of points on it."""
    contours: list[list[np.ndarray]] = []
    rows = iter(path.points)
    for verb in path.verbs:
        if verb == 0:
            contours.append([next(rows)])
        elif verb == 4:
            contours[-1].append(contours[-1][0])
        else:
            controls = [contours[-1][-1], *(next(rows) for _ in range(verb))]
            for t in np.arange(1, steps + 1) / steps:
                weights = [
                    math.comb(verb, k) * t**k * (1 - t) ** (verb - k) for k in range(verb + 1)
                ]
                contours[-1].append(sum(w * p for w, p in zip(weights, controls, strict=True)))
    return [np.array(contour) for contour in contours]


def turns_around(contour: np.ndarray, x: float, y: float) -> float:
    """Return the winding of a polygon by the angles it is seen under."""
    angles = np.unwrap(np.arctan2(contour[:, 1] - y, contour[:, 0] - x))
    closing = math.remainder(
        math.atan2(contour[0, 1] - y, contour[0, 0] - x) - float(angles[-1]), math.tau
    )
    return float(angles[-1] + closing - angles[0]) / math.tau


def distance_to(contours: list[np.ndarray], x: float, y: float) -> float:
    best = math.inf
    for contour in contours:
        closed = np.concatenate([contour, contour[:1]])
        first, along = closed[:-1], np.diff(closed, axis=0)
        square = np.maximum((along**2).sum(axis=1), 1e-30)
        t = np.clip((((x, y) - first) * along).sum(axis=1) / square, 0, 1)
        best = min(best, float(np.hypot(*((x, y) - first - along * t[:, None]).T).min()))
    return best


# what they hold ---------------------------------------------------------------------------------
def test_the_verbs_and_points_of_every_call() -> None:
    path = Path().move_to(0, 1).line_to(2, 3).quad_to(4, 5, 6, 7).cubic_to(1, 2, 3, 4, 5, 6).close()
    assert path.verbs == bytes([0, 1, 2, 3, 4])
    assert path.points.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [1, 2], [3, 4], [5, 6]]
    assert path.points.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        path.points[0, 0] = 9


def test_a_path_stays_as_it_is_when_one_is_made_from_it() -> None:
    stem = Path().move_to(0, 0).line_to(1, 0)
    left, right = stem.line_to(2, 2), stem.line_to(5, 5)
    assert str(stem) == "M0 0L1 0"
    assert (str(left), str(right)) == ("M0 0L1 0L2 2", "M0 0L1 0L5 5")


def test_long_paths_are_built_in_linear_time() -> None:
    def spent(count: int) -> float:
        path, begun = Path().move_to(0, 0), time.process_time()
        for n in range(count):
            path = path.line_to(n, 1)
        assert len(path.points) == count + 1
        return time.process_time() - begun

    spent(1000)
    # sixteen times the lines: 16 times the time if linear, 256 times if quadratic
    assert min(spent(32_000) for _ in range(3)) < 100 * min(spent(2000) for _ in range(3)) + 0.05


def test_a_closed_contour_is_continued_at_its_start() -> None:
    path = Path.rect(1, 2, 3, 4).line_to(9, 9)
    assert str(path) == "M1 2L4 2L4 6L1 6ZM1 2L9 9"
    assert Path.rect(0, 0, 1, 1).close() == Path.rect(0, 0, 1, 1)


@given(ANY)
def test_pickled_added_and_written_paths_are_equal(path: Path) -> None:
    assert pickle.loads(pickle.dumps(path)) == path
    assert Path.svg(path.to_svg()) == path
    assert Path(path.verbs, path.points) == path
    assert hash(Path.svg(str(path))) == hash(path)
    both = path + path
    assert both.verbs == path.verbs * 2
    assert np.array_equal(both.points[len(path.points) :], path.points)


def test_equal_paths_hash_alike_with_zeros_of_both_signs() -> None:
    assert Path().move_to(-0.0, 0) == Path().move_to(0, -0.0)
    assert hash(Path().move_to(-0.0, 0)) == hash(Path().move_to(0, -0.0))
    assert Path.rect(0, 0, 1, 1) != Path.rect(0, 0, 1, 2)
    assert Path() != "M0 0"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Path().line_to(1, 2), "Path.line_to: the path must begin with move_to(x, y)."),
        (lambda: Path().close(), "Path.close: the path must begin with move_to(x, y)."),
        (
            lambda: Path().move_to(math.nan, 0),
            "Path.move_to: x must be a finite number from -1e9 to 1e9, got nan.",
        ),
        (
            lambda: Path.circle(0, math.inf, 1),
            "Path.circle: cy must be a finite number from -1e9 to 1e9, got inf.",
        ),
        (
            lambda: Path().move_to("1", 2),
            "Path.move_to: x must be a finite number from -1e9 to 1e9, got '1'.",
        ),
        (lambda: Path.circle(0, 0, -1), "Path.circle: r must be a number from 0 to 1e9, got -1."),
        (
            lambda: Path.polygon([(0, 0), (1, math.nan)]),
            "Path.polygon: points[1] must be two finite numbers from -1e9 to 1e9, got (1.0, nan).",
        ),
        (
            lambda: Path.polygon([1, 2, 3]),
            "Path.polygon: points must be points as pairs of numbers (x, y), got [1, 2, 3].",
        ),
        (
            lambda: Path.rect(0, 0, 1, 1).contains(0, 0, rule="odd"),
            'Path.contains: rule must be "nonzero" or "evenodd", got \'odd\'.',
        ),
        (
            lambda: Path.rect(0, 0, 1, 1).trim(0, 1.5),
            "Path.trim: end must be a number from 0 to 1, got 1.5.",
        ),
        (
            lambda: Path(b"\1", [(0, 0)]),
            "Path: verbs must be bytes from 0 to 4, a 0 first and after each 4, got b'\\x01'.",
        ),
        (lambda: Path(b"\0\1", [(0, 0)]), "Path: points must be 2 points, got 1."),
        (
            lambda: Path.rect(0, 0, 1, 1).morph(Path.circle(0, 0, 1), 0.5),
            "Path.morph: other must be a Path of the same commands, got Path.",
        ),
        (
            lambda: Path.rect(1, 1, 1, 1).transform(scale=1e9),
            "Path.transform: points[1] must be two finite numbers from -1e9 to 1e9, "
            "got (2000000000.0, 1000000000.0).",
        ),
        (
            lambda: Path.star(0, 0, 1, points=1),
            "Path.star: points must be an int from 2 to 100000, got 1.",
        ),
    ],
)
def test_what_is_refused(make, message) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == message


def test_an_empty_path() -> None:
    assert Path().bounds == (0, 0, 0, 0)
    assert Path().length == 0
    assert not Path().contains(0, 0)
    assert Path().reversed() == Path().transform(scale=2) == Path.polygon([]) == Path.svg("")
    assert Path().trim(0.2, 0.5) == Path()
    assert Path().move_to(3, 4).point_at(0.5) == (3, 4)
    with pytest.raises(ParameterError, match="must have a point"):
        Path().point_at(0)


# shapes -----------------------------------------------------------------------------------------
def test_circles_are_round() -> None:
    for contour in sampled(Path.circle(3, 4, 100)):
        radii = np.hypot(contour[:, 0] - 3, contour[:, 1] - 4)
        assert np.abs(radii - 100).max() < 1e-3
    assert Path.circle(3, 4, 100).length == pytest.approx(200 * math.pi, rel=1e-5)
    assert Path.circle(3, 4, 100).bounds == (-97, -96, 103, 104)


def test_an_ellipse_can_be_rotated() -> None:
    flat = Path.ellipse(0, 0, 20, 10).transform(rotate=30)
    assert np.allclose(Path.ellipse(0, 0, 20, 10, rotate=30).points, flat.points)
    assert Path.ellipse(0, 0, 20, 10, 90).bounds == pytest.approx((-10, -20, 10, 20))


def test_round_rects_scale_radii_that_do_not_fit() -> None:
    path = Path.round_rect(0, 0, 20, 10, 100)
    assert path.bounds == (0, 0, 20, 10)
    assert path.length == pytest.approx(10 * math.pi + 20, rel=1e-5)
    sharp = Path.round_rect(0, 0, 20, 10, (0, 5, 0, 0))
    assert sharp.contains(0.01, 0.01)
    assert not sharp.contains(19.9, 0.1)
    assert Path.round_rect(1, 2, 3, 4, 0) == Path.rect(1, 2, 3, 4)


def test_arcs_go_the_way_of_the_angles() -> None:
    quarter = Path().arc(0, 0, 10, 0, 90)
    assert quarter.point_at(0) == pytest.approx((10, 0))
    assert quarter.point_at(0.5) == pytest.approx((50**0.5, 50**0.5))
    assert Path().arc(0, 0, 10, 90, 0) == quarter.reversed()
    assert Path().arc(0, 0, 10, 0, 900).length == pytest.approx(20 * math.pi, rel=1e-5)
    pie = Path().move_to(0, 0).arc(0, 0, 10, 0, 90).close()
    assert pie.verbs == bytes([0, 1, 3, 3, 4])
    assert pie.contains(5, 5)
    assert not pie.contains(-5, 5)


@pytest.mark.parametrize("end", [(10, 10), (10, -10), (20, 3), (0.5, 4), (-3, -9)])
def test_arc_to_touches_both_lines(end) -> None:
    path = Path().move_to(0, 0).arc_to(10, 0, *end, 2)
    arc = sampled(path)[0][256:] if path.verbs[1] == 1 else sampled(path)[0]
    last = path.points[-1]
    along = np.array(end) - (10, 0)
    along = along / np.hypot(*along)
    # the arc ends on the second line, at the distance of a circle of radius 2 that touches both
    assert np.cross(np.array([*along, 0]), [*(last - (10, 0)), 0])[2] == pytest.approx(0, abs=1e-9)
    corner = math.acos(np.clip(np.dot(along, (-1, 0)), -1, 1))
    assert np.hypot(*(last - (10, 0))) == pytest.approx(2 / math.tan(corner / 2))
    between = along + np.array((-1.0, 0.0))
    middle = np.array((10, 0)) + 2 / math.sin(corner / 2) * between / np.hypot(*between)
    assert np.hypot(*(arc - middle).T) == pytest.approx(np.full(len(arc), 2.0), rel=1e-4)


def test_a_star_points_up() -> None:
    star = Path.star(0, 0, 10, 5, points=6)
    assert star.points[0] == pytest.approx((0, -10))
    assert np.hypot(*star.points.T) == pytest.approx([10, 5] * 6)
    # the edges of a star of five points are straight lines by default
    points = Path.star(0, 0, 10).points
    ahead = points[3] - points[0]
    assert np.cross([*ahead, 0], [*(points[1] - points[0]), 0])[2] == pytest.approx(0, abs=1e-9)


# geometry ---------------------------------------------------------------------------------------
@given(ANY)
def test_bounds_are_those_of_the_points_on_the_path(path: Path) -> None:
    points = np.concatenate(sampled(path))
    x0, y0, x1, y1 = path.bounds
    size = max(x1 - x0, y1 - y0, 1e-9)
    low, high = points.min(axis=0), points.max(axis=0)
    assert x0 - 1e-9 * size <= low[0] <= x0 + 1e-3 * size
    assert y0 - 1e-9 * size <= low[1] <= y0 + 1e-3 * size
    assert x1 - 1e-3 * size <= high[0] <= x1 + 1e-9 * size
    assert y1 - 1e-3 * size <= high[1] <= y1 + 1e-9 * size


@given(ANY)
def test_the_length_is_that_of_many_small_lines(path: Path) -> None:
    wanted = sum(float(np.hypot(*np.diff(one, axis=0).T).sum()) for one in sampled(path))
    assert path.length == pytest.approx(wanted, rel=2e-3, abs=1e-9)
    assert path.length >= wanted * (1 - 1e-9)


@given(ANY, st.lists(st.floats(0, 1), min_size=1, max_size=4))
@settings(max_examples=60)
def test_parts_join_to_the_whole(path: Path, cuts: list[float]) -> None:
    edges = [0.0, *sorted(cuts), 1.0]
    pieces = [path.trim(a, b) for a, b in pairwise(edges)]
    assert sum(piece.length for piece in pieces) == pytest.approx(path.length, rel=1e-6, abs=1e-9)
    scale = max(map(abs, path.bounds), default=1) or 1
    for (a, b), piece in zip(pairwise(edges), pieces, strict=True):
        if piece.length > 1e-6 * scale:
            assert piece.length == pytest.approx((b - a) * path.length, rel=1e-4, abs=1e-6 * scale)
            middle = path.point_at((a + b) / 2)
            assert piece.point_at(0.5) == pytest.approx(middle, abs=2e-5 * scale)


def test_trimmed_contours_stay_closed_where_they_are_whole() -> None:
    two = Path.rect(0, 0, 10, 10) + Path.rect(20, 0, 10, 10)
    assert str(two.trim(0, 0.75)) == "M0 0L10 0L10 10L0 10ZM20 0L30 0L30 10"
    assert str(two.trim(0.5, 1)) == "M20 0L30 0L30 10L20 10Z"
    assert str(two.trim(0.375, 0.5)) == "M0 10L0 0"
    assert two.trim(0, 1) is two
    assert two.trim(0.3, 0.3) == two.trim(0.6, 0.2) == Path()


@given(ANY)
@settings(max_examples=60)
def test_reversed_paths_go_back(path: Path) -> None:
    assume(path.verbs.count(0) == 1)  # between two parts of a path its length has two places
    back = path.reversed()
    assert back.length == pytest.approx(path.length)
    scale = max(map(abs, path.bounds)) or 1
    for t in (0.0, 0.25, 0.7, 1.0):
        assert back.point_at(1 - t) == pytest.approx(path.point_at(t), abs=1e-5 * scale)
    again = back.reversed()
    assert again.bounds == pytest.approx(path.bounds)


def test_polygons_reversed_twice_are_the_same() -> None:
    for path in (
        Path.rect(0, 0, 3, 2),
        Path.circle(0, 0, 4),
        Path.star(0, 0, 5),
        Path.svg("M0 0L1 1"),
    ):
        assert path.reversed().reversed() == path


@pytest.mark.long
@given(ANY, st.tuples(NUMBERS, NUMBERS) | st.tuples(COARSE, COARSE))
@settings(max_examples=200)
def test_contains_agrees_with_the_winding_by_angles(path: Path, point: tuple[float, float]) -> None:
    contours = sampled(path)
    scale = max(map(abs, path.bounds)) or 1
    if distance_to(contours, *point) < 1e-3 * scale:
        return  # too near to the outline for a polygon to tell
    turns = round(sum(turns_around(contour, *point) for contour in contours))
    assert path.contains(*point) == (turns != 0)
    assert path.contains(*point, rule="evenodd") == (turns % 2 == 1)


def test_contains_at_corners_counts_each_once() -> None:
    square = Path.rect(0, 0, 10, 10)
    diamond = Path.polygon([(5, 0), (10, 5), (5, 10), (0, 5)])
    for path in (square, diamond, square.reversed(), Path.circle(5, 5, 5)):
        assert path.contains(5, 5)
        for outside in ((-1, 0), (-1, 5), (-1, 10), (11, 5), (5, -1), (5, 11), (-1, 2.5)):
            assert not path.contains(*outside)
    # squares that share edges: every point is in exactly one
    tiles = [Path.rect(x, y, 1, 1) for x in range(3) for y in range(3)]
    for x in np.arange(0, 3, 0.25):
        for y in np.arange(0, 3, 0.25):
            assert sum(tile.contains(x, y) for tile in tiles) == 1


@given(ANY, NUMBERS, st.tuples(NUMBERS, NUMBERS))
@settings(max_examples=50)
def test_transforms_are_applied_in_their_order(path: Path, angle: float, by) -> None:
    steps = path.transform(scale=(2, 3)).transform(rotate=angle).transform(translate=by)
    once = path.transform(translate=by, rotate=angle, scale=(2, 3))
    assert np.allclose(once.points, steps.points, atol=1e-6)
    turned = path.transform(rotate=90)
    assert np.array_equal(turned.points, np.stack([-path.points[:, 1], path.points[:, 0]], 1))


def test_matrices_in_every_form() -> None:
    path = Path.rect(0, 0, 1, 1)
    wanted = path.transform(matrix=(1, 2, 3, 4, 5, 6))
    assert wanted.points[2].tolist() == [1 + 3 + 5, 2 + 4 + 6]
    for form in ([[1, 3, 5], [2, 4, 6]], np.array([[1, 3, 5], [2, 4, 6], [0, 0, 1]])):
        assert path.transform(matrix=form) == wanted
    for form in ((1, 2, 3), [[1, 3, 5], [2, 4, 6], [0, 1, 1]], "matrix", (1, 2, 3, 4, 5, math.inf)):
        with pytest.raises(ParameterError, match="matrix must be six finite numbers"):
            path.transform(matrix=form)


def test_morph_mixes_points() -> None:
    one, other = Path.star(0, 0, 10), Path.star(10, 10, 30)
    assert one.morph(other, 0) == one
    assert one.morph(other, 1) == other
    assert np.allclose(one.morph(other, 0.25).points, one.points * 0.75 + other.points * 0.25)
