"""Effects against their formulas in plain NumPy, on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.gpu.compute import from_array
from dala.media import Frame, FramePipeline, effects, gpu
from dala.media.filters.recipes import curve
from tests.media.filters import effect_pictures

RNG = np.random.default_rng(31)
PHOTO = RNG.integers(0, 256, (14, 18, 4), dtype=np.uint8)
LUMA = np.array([0.299, 0.587, 0.114])


def near(got, want, steps=1):
    """Assert that values of 0..1 differ by at most ``steps`` 8-bit steps."""
    want = np.clip(want, 0, 1) * 255
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= steps + 0.51


def colors(photo):
    return photo[..., :3] / 255.0


# grading ------------------------------------------------------------------------------------------
def test_grade(engine_id):
    lift, gamma, gain = (0.1, 0.0, -0.05), (1.2, 1.0, 0.8), (0.9, 1.1, 1.0)
    got = effects.grade(PHOTO, lift=lift, gamma=gamma, gain=gain, saturation=0.3)
    c = colors(PHOTO)
    c = np.maximum((c + np.array(lift) * (1 - c)) * np.array(gain), 0) ** (1 / np.array(gamma))
    c = c + (c - (c @ LUMA)[..., None]) * 0.3
    near(got[..., :3], c)
    np.testing.assert_array_equal(got[..., 3], PHOTO[..., 3])


def test_default_parameters_change_nothing(engine_id):
    np.testing.assert_array_equal(effects.grade(PHOTO), PHOTO)
    np.testing.assert_array_equal(effects.temperature(PHOTO), PHOTO)
    np.testing.assert_array_equal(effects.curves(PHOTO), PHOTO)


def test_grade_of_gray(engine_id):
    got = effects.grade(PHOTO[..., 0], gain=0.5)
    near(got, PHOTO[..., 0] / 255.0 * 0.5)


def test_temperature(engine_id):
    got = effects.temperature(PHOTO, value=0.6, tint=-0.3)
    c = colors(PHOTO)
    warm = c * np.array([1.18, 1.09, 0.82])
    light = (warm @ LUMA)[..., None]
    assert light.min() > 0
    near(got[..., :3], warm * (c @ LUMA)[..., None] / light)
    gray = np.full((1, 1, 3), 128, np.uint8)
    r, _, b = effects.temperature(gray, value=1.0)[0, 0].astype(int)
    assert r > 128 > b


def test_curves(engine_id):
    master, blue = [(0, 0), (0.4, 0.55), (1, 1)], [(0, 0.2), (1, 0.7)]
    got = effects.curves(PHOTO, master=master, blue=blue)
    c = colors(PHOTO)
    c[..., 2] = 0.2 + c[..., 2] * 0.5
    near(got[..., :3], curve(master, c, "master"))
    gray = effects.curves(PHOTO[..., 0], master=master)
    near(gray, curve(master, PHOTO[..., 0] / 255.0, "master"))


POINTS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100)),
    min_size=2, max_size=8, unique_by=lambda p: p[0],
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(points=POINTS)
def test_curve_interpolates_monotonically(points):
    points = sorted((x / 100, y / 100) for x, y in points)
    x, y = np.array(points).T
    np.testing.assert_allclose(curve(points, x, "master"), y, atol=1e-12)
    for i in range(len(x) - 1):
        between = curve(points, np.linspace(x[i], x[i + 1], 33), "master")
        low, high = sorted((y[i], y[i + 1]))
        assert between.min() >= low - 1e-9
        assert between.max() <= high + 1e-9
        assert (np.diff(between) * np.sign(y[i + 1] - y[i]) >= -1e-9).all()
    assert curve(points, [0.0], "master")[0] == pytest.approx(y[0])
    assert curve(points, [1.0], "master")[0] == pytest.approx(y[-1])


# backgrounds --------------------------------------------------------------------------------------
MASK = np.zeros((14, 18), np.uint8)
MASK[3:11, 5:13] = 255


def test_background_blurred(engine_id):
    got = effects.virtual_background(PHOTO, MASK, radius=4, feather=0)
    inside = MASK == 255
    np.testing.assert_array_equal(got[inside], PHOTO[inside])
    blurred = gpu.blur(PHOTO, radius=4)
    np.testing.assert_array_equal(got[~inside], blurred[~inside])


def test_mask_is_scaled_along_edges(engine_id):
    """A guided filter on the mask's size, its coefficients scaled to the picture's."""
    photo = np.repeat(np.repeat(RNG.integers(0, 256, (12, 14, 3), dtype=np.uint8), 2, 0), 2, 1)
    mask = RNG.random((12, 14)).astype(np.float32)
    got = effects.virtual_background(
        photo, mask, background=(0, 0, 0), feather=0, edge=(0.0, 1.0), refine=2
    )
    small = gpu.resize(photo, size=(14, 12)) / 255.0 @ LUMA

    def mean(x):
        wide = np.pad(x, 2, mode="edge")
        return sum(wide[i : i + 12, j : j + 14] for i in range(5) for j in range(5)) / 25

    luma, front = mean(small), mean(mask)
    slope = (mean(small * mask) - luma * front) / (mean(small**2) - luma**2 + 1e-3)
    line = mean(slope), mean(front - slope * luma)
    a, b = (gpu.resize(part.astype(np.float32), size=(28, 24)) for part in line)
    kept = np.clip(a * (colors(photo) @ LUMA) + b, 0, 1)
    near(got, colors(photo) * (kept * kept * (3 - 2 * kept))[..., None])


def test_background_replaced(engine_id):
    beach = RNG.integers(0, 256, (14, 18, 3), dtype=np.uint8)
    inside = MASK == 255
    got = effects.virtual_background(PHOTO, MASK, background=beach, feather=0)
    np.testing.assert_array_equal(got[inside], PHOTO[inside])
    np.testing.assert_array_equal(got[~inside][:, :3], beach[~inside])
    assert (got[~inside][:, 3] == 255).all()
    got = effects.virtual_background(PHOTO, MASK == 255, background=(1.0, 0.0, 0.2), feather=0)
    np.testing.assert_array_equal(got[inside], PHOTO[inside])
    assert (got[~inside] == (255, 0, 51, 255)).all()


def test_masks_are_soft_and_of_any_size(engine_id):
    steep = np.linspace(0, 1, 18, dtype=np.float32)[None].repeat(14, 0)
    white = np.full((14, 18, 3), 255, np.uint8)
    got = effects.virtual_background(white, steep, background=(0, 0, 0), feather=0, edge=(0.2, 0.6))
    t = np.clip((steep - 0.2) / 0.4, 0, 1)
    near(got, (t * t * (3 - 2 * t))[..., None].repeat(3, 2))
    small = np.zeros((7, 9), np.float32)
    small[:, 5:] = 1
    got = effects.virtual_background(white, small, background=(0, 0, 0))
    assert (got[:, :7] == 0).all()
    assert (got[:, 15:] == 255).all()
    middle = got[7, 7:15, 0].astype(int)
    assert (np.diff(middle) >= 0).all()
    assert 0 < middle[3] < 255 or 0 < middle[2] < 255


def test_chroma_key_alpha_as_mask(engine_id):
    screen = np.full((8, 8, 3), (20, 220, 30), np.uint8)
    screen[2:6, 2:6] = (200, 60, 50)
    alpha = gpu.chroma_key(screen, key=(0.08, 0.86, 0.12))[..., 3]
    got = effects.virtual_background(screen, alpha, background=(0.0, 0.0, 1.0), feather=0)
    assert (got[0, 0] == (0, 0, 255)).all()
    np.testing.assert_array_equal(got[2:6, 2:6], screen[2:6, 2:6])


# overlays -----------------------------------------------------------------------------------------
def test_overlay_moved_by_whole_pixels(engine_id):
    badge = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    got = effects.overlay(PHOTO, badge, position=(6, 3))
    want = PHOTO.copy()
    want[3:7, 6:11, :3], want[3:7, 6:11, 3] = badge, 255
    assert np.abs(got[..., 3].astype(int) - want[..., 3]).max() <= 1
    solid = want[..., 3] > 8  # nearly transparent colors are not exact
    assert np.abs(got.astype(int) - want)[solid].max() <= 1
    same = effects.overlay(PHOTO, badge, matrix=(1, 0, 6, 0, 1, 3))
    np.testing.assert_array_equal(got, same)
    beyond = effects.overlay(PHOTO[..., :3], badge, position=(-50, 3))
    np.testing.assert_array_equal(beyond, PHOTO[..., :3])


def test_overlay_scaled_and_rotated(engine_id):
    base = np.zeros((20, 20, 3), np.uint8)
    badge = np.full((4, 4, 4), (255, 0, 0, 255), np.uint8)
    badge[:, 2:] = (0, 255, 0, 255)
    place = {"position": (10, 10), "anchor": (0.5, 0.5), "scale": 2, "method": "nearest"}
    got = effects.overlay(base, badge, **place)
    assert (got[6:14, 6:10] == (255, 0, 0)).all()
    assert (got[6:14, 10:14] == (0, 255, 0)).all()
    assert got[:6].max() == got[:, 14:].max() == 0
    down = effects.overlay(base, badge, angle=90, **place)  # the left side is now at the top
    assert (down[7:10, 7:13] == (255, 0, 0)).all()
    assert (down[10:13, 7:13] == (0, 255, 0)).all()
    wide = effects.overlay(base, badge, **{**place, "scale": (4, 1)})
    assert (wide[8:12, 3:9] == (255, 0, 0)).all()
    assert wide[:7].max() == 0


def test_overlay_edges_and_opacity(engine_id):
    base = np.full((12, 12, 3), 200, np.uint8)
    badge = np.zeros((6, 6, 4), np.uint8)  # white, and transparent black around it
    badge[2:4, 2:4] = (255, 255, 255, 255)
    got = effects.overlay(base, badge, position=(3.5, 3.25))
    assert got.min() >= 199  # between the two colors, never darker than both
    assert got.max() > 230
    loud = badge.copy()  # the color of transparent pixels does not matter
    loud[badge[..., 3] == 0, :3] = RNG.integers(0, 256, (32, 3))
    np.testing.assert_array_equal(effects.overlay(base, loud, position=(3.5, 3.25)), got)
    half = effects.overlay(base, badge, position=(3, 3), opacity=0.5)
    assert np.abs(half[5:7, 5:7].astype(int) - 228).max() <= 1


# lists and frames --------------------------------------------------------------------------------
def test_effects_in_filter_lists_and_on_frames(engine_id):
    badge = RNG.integers(0, 256, (4, 5, 4), dtype=np.uint8)
    with FramePipeline(18, 14) as p:
        for name, params in (
            ("grade", {"lift": 0.05, "gamma": (1.1, 1.0, 0.9), "saturation": 0.2}),
            ("temperature", {"value": 0.4}),
            ("curves", {"red": [(0, 0), (0.5, 0.7), (1, 1)]}),
        ):
            got = p.process(PHOTO, ["invert", (name, params)])
            want = getattr(effects, name)(gpu.invert(PHOTO), **params)
            assert np.abs(got.astype(int) - want).max() <= 2
        for shift in range(3):  # parameters and pictures change, the pipeline is reused
            mask, look = np.roll(MASK, shift, 1), np.roll(badge, shift, 0)
            place = {"position": (shift, 2), "angle": 10.0 * shift}
            got = p.process(
                PHOTO[..., :3],
                [
                    ("virtual_background", {"mask": mask, "radius": 3}),
                    ("overlay", {"picture": look, **place}),
                ],
            )
            want = effects.virtual_background(PHOTO[..., :3], mask, radius=3)
            want = effects.overlay(want, look, **place)
            assert np.abs(got.astype(int) - want).max() <= 3
        assert len(p._executor._chains) == 4
        frame = effects.grade(Frame.from_array(PHOTO, pts=2), gain=0.5)
        assert frame.pts == 2
        frame = p.process(frame, [("overlay", {"picture": from_array(badge)})])
        want = effects.overlay(effects.grade(PHOTO, gain=0.5), badge)
        solid = want[..., 3] > 8
        assert np.abs(frame.numpy().astype(int) - want)[solid].max() <= 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: effects.grade(PHOTO, lift=(1, 2)),
            "lift must be a number or 3 numbers from -1 to 1",
        ),
        (
            lambda: effects.grade(PHOTO, lift=3.0),
            "lift must be a number or 3 .*, got 3.0.",
        ),
        (
            lambda: effects.grade(PHOTO, gamma=0),
            "gamma must be a number or 3 numbers",
        ),
        (
            lambda: effects.temperature(PHOTO, value=2.0),
            "value must be a number from -1 to 1",
        ),
        (
            lambda: effects.curves(PHOTO, red=[(0.5, 0), (0.2, 1)]),
            "red must be two or more points",
        ),
        (lambda: effects.curves(PHOTO, master=3), "master must be two or more points"),
        (lambda: effects.virtual_background(PHOTO, MASK, edge=(1, 0)), "with low below high, got"),
        (
            lambda: effects.virtual_background(PHOTO, MASK, background=(1, 0)),
            "background must be a picture, or a color",
        ),
        (lambda: effects.overlay(PHOTO, PHOTO, scale=0), "shrinks the overlay to nothing"),
        (
            lambda: effects.overlay(PHOTO, PHOTO, scale=(1, 2, 3)),
            "scale must be a number or 2 numbers",
        ),
        (
            lambda: effects.overlay(PHOTO, PHOTO, scale="big"),
            "scale must be a number or 2 numbers, got 'big'",
        ),
        (lambda: effects.overlay(PHOTO, PHOTO, method="cubic"), "method must be one of"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ParameterError, match=text):
        call()


# docs ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", effect_pictures.PICTURES)
def test_pictures_in_the_docs(engine_id, name):
    image = pytest.importorskip("PIL.Image")
    with image.open(effect_pictures.FOLDER / f"{name}.png") as stored:
        apart = np.abs(effect_pictures.show(name).astype(int) - np.asarray(stored))
    assert apart.max() <= 3
    assert (apart > 1).mean() < 0.01


def test_every_picture_is_in_the_docs():
    page = (effect_pictures.FOLDER.parents[1] / "media" / "pictures.md").read_text(encoding="utf-8")
    for name in effect_pictures.PICTURES:
        assert f"(../images/media/{name}.png)" in page
