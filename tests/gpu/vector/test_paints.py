"""Gradients by their formulas, patterns, masks, clips."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala import gpu
from dala.errors import DalaError
from dala.gpu import ConicGradient, LinearGradient, Path, Pattern, RadialGradient
from tests.support.polygons import flat, shares

STOPS = [(0, (255, 0, 0, 255)), (0.25, (0, 200, 100, 128)), (1, (10, 20, 250, 255))]
W, H = 40, 30


def mixed(t, stops=STOPS):
    """Return the straight color at a place: premultiplied interpolation in sRGB."""
    places = [p for p, _ in stops]
    colors = np.array([c for _, c in stops], float) / 255
    colors[:, :3] *= colors[:, 3:]
    found = np.stack([np.interp(t, places, colors[:, n]) for n in range(4)], axis=-1)
    found[..., :3] /= np.maximum(found[..., 3:], 1e-9)
    return found * 255


def drawn(paint, **transform):
    with gpu.create_surface(W, H) as s:
        with s.transformed(**transform):
            s.rect(-500, -500, 1000, 1000, paint)
        return s.to_array().astype(float)


x, y = np.meshgrid(np.arange(W) + 0.5, np.arange(H) + 0.5)
SPREADS = {
    "pad": lambda t: np.clip(t, 0, 1),
    "repeat": lambda t: t - np.floor(t),
    "reflect": lambda t: 1 - np.abs(1 - 2 * (t / 2 - np.floor(t / 2))),
}


def close(found, wanted, t):
    """Compare away from jumps, where the place of one of 1024 colors decides."""
    steady = np.abs(np.gradient(t)[0]) + np.abs(np.gradient(t)[1]) < 0.4
    return np.abs(found - wanted)[steady].max() <= 1.6


@pytest.mark.parametrize("spread", SPREADS)
def test_linear(spread):
    found = drawn(LinearGradient((5, 3), (22, 14), STOPS, spread=spread))
    t = SPREADS[spread](((x - 5) * 17 + (y - 3) * 11) / (17**2 + 11**2))
    assert close(found, mixed(t), t)


@pytest.mark.parametrize("spread", SPREADS)
def test_radial(spread):
    found = drawn(RadialGradient((15, 12), 13, STOPS, spread=spread))
    t = SPREADS[spread](np.hypot(x - 15, y - 12) / 13)
    assert close(found, mixed(t), t)


def test_conic():
    found = drawn(ConicGradient((15.3, 12.2), STOPS, angle=30))
    t = (np.arctan2(y - 12.2, x - 15.3) / (2 * math.pi) - 30 / 360) % 1
    assert close(found, mixed(t), t)


def test_gradients_follow_the_transform():
    found = drawn(LinearGradient((0, 0), (1, 0), STOPS), translate=(5, 2), rotate=30, scale=20)
    c, d = math.cos(math.radians(30)), math.sin(math.radians(30))
    t = np.clip(((x - 5) * c + (y - 2) * d) / 20, 0, 1)
    assert close(found, mixed(t), t)


@pytest.mark.parametrize(
    ("space", "middle"),
    [("srgb", (128, 0, 128)), ("linear", (188, 0, 188)), ("oklab", (140, 83, 162))],
)
def test_color_spaces(space, middle):
    with gpu.create_surface(2, 1) as s:
        s.rect(0, 0, 2, 1, LinearGradient((-8, 0), (10, 0), [(0, "red"), (1, "blue")], space=space))
        found = s.to_array()[0].astype(int).mean(axis=0)[:3]
    assert np.abs(found - middle).max() <= 1.5


def test_a_color_of_no_alpha_does_not_bleed():
    with gpu.create_surface(9, 1) as s:
        stops = [(0, (255, 0, 0, 255)), (1, (0, 0, 255, 0))]
        s.rect(0, 0, 9, 1, LinearGradient((0, 0), (9, 0), stops))
        assert (s.to_array()[0, :, 0] == 255).all()


def test_gradients_of_wrong_arguments():
    for make in (
        lambda: LinearGradient((0, 0), (0, 0), STOPS),
        lambda: LinearGradient((0, 0), (1, math.nan), STOPS),
        lambda: LinearGradient((0, 0), (1, 0), []),
        lambda: LinearGradient((0, 0), (1, 0), ["red", "blue"]),
        lambda: LinearGradient((0, 0), (1, 0), [(1, "red"), (0, "blue")]),
        lambda: LinearGradient((0, 0), (1, 0), [(0, "blurple")]),
        lambda: LinearGradient((0, 0), (1, 0), STOPS, spread="mirror"),
        lambda: RadialGradient((0, 0), 0, STOPS),
        lambda: Pattern(np.zeros((2, 2, 4), np.uint8), scale=0),
        lambda: Pattern(np.zeros((2, 2, 4), np.uint8), repeat="no"),
    ):
        with pytest.raises(DalaError):
            make()


# patterns and pictures ------------------------------------------------------------------------
PICTURE = np.random.default_rng(2).integers(0, 256, (6, 8, 4), dtype=np.uint8)


def test_a_picture_at_its_own_size_is_itself():
    with gpu.create_surface(8, 6) as s:
        s.image(PICTURE, 0, 0)
        visible = PICTURE[..., 3] > 0
        assert (s.to_array()[visible] == PICTURE[visible]).all()


@pytest.mark.parametrize("repeat", ["repeat", "reflect", "pad"])
def test_patterns_repeat(repeat):
    picture = PICTURE.copy()
    picture[..., 3] = 255
    with gpu.create_surface(24, 18) as s:
        s.rect(0, 0, 24, 18, Pattern(picture, translate=(8, 6), repeat=repeat, filter="nearest"))
        mode = {"repeat": "wrap", "reflect": "symmetric", "pad": "edge"}[repeat]
        wanted = np.pad(picture, ((6, 6), (8, 8), (0, 0)), mode=mode)
        assert (s.to_array() == wanted).all()


def test_pictures_between_pixels_are_bilinear():
    picture = np.zeros((1, 2, 4), np.uint8)
    picture[0] = (0, 0, 0, 255), (200, 100, 40, 255)
    with gpu.create_surface(4, 1) as s:
        s.image(picture, 0, 0, 4, 1)
        assert s.to_array()[0].tolist() == [
            [0, 0, 0, 255], [50, 25, 10, 255], [150, 75, 30, 255], [200, 100, 40, 255]
        ]  # fmt: skip


def test_transparent_pixels_do_not_bleed():
    picture = np.zeros((1, 2, 4), np.uint8)
    picture[0] = (9, 8, 7, 255), (255, 255, 255, 0)
    with gpu.create_surface(4, 1) as s:
        s.image(picture, 0, 0, 4, 1)
        assert s.to_array()[0].tolist() == [
            [9, 8, 7, 255], [9, 8, 7, 191], [9, 8, 7, 64], [0, 0, 0, 0]
        ]  # fmt: skip


def test_pictures_that_shrink_are_averaged():
    checks = np.zeros((64, 64, 3), np.uint8)
    checks[::2, ::2] = checks[1::2, 1::2] = 255
    with gpu.create_surface(8, 8) as s:
        s.image(checks, 0, 0, 8, 8)
        assert np.abs(s.to_array()[..., 0].astype(int) - 128).max() <= 1


def test_equal_pictures_are_loaded_once():
    from dala.gpu.vector.pictures import kept_of

    with gpu.create_surface(8, 6) as s:
        for _ in range(5):
            s.image(PICTURE.copy(), 1, 1)
            s.rect(0, 0, 4, 4, LinearGradient((0, 0), (1, 0), STOPS))
        assert len(kept_of(s)._ids) == 2
        s.synchronize()
        assert not s._renderer.canvas._images


def test_what_is_not_used_is_removed(monkeypatch):
    from dala.gpu.vector import pictures

    monkeypatch.setattr(pictures, "MAX_KEPT", 4)
    with gpu.create_surface(8, 6) as s:
        for n in range(20):
            s.rect(0, 0, 4, 4, LinearGradient((0, 0), (n + 1, 0), STOPS))
        s.synchronize()
        assert len(s._renderer.canvas.painter.stored) == 4


# masks and clips ------------------------------------------------------------------------------
def test_masks():
    mask = bytes(range(0, 250, 10))
    with gpu.create_surface(7, 6) as s:
        s.load_mask(3, 5, 5, mask)
        s.draw_masks(0, (9, 8, 7, 255), [(3, 1, 1), (3, -30, 0), (3, 5, 4)])
        wanted = np.zeros((6, 7), int)
        wanted[1:6, 1:6] = np.frombuffer(mask, np.uint8).reshape(5, 5)
        corner = np.frombuffer(mask, np.uint8).reshape(5, 5)[:2, :2].astype(int)
        alpha = s.to_array()[..., 3].astype(int)
        assert (alpha[:4] == wanted[:4]).all()
        below = wanted[4:, 5:]
        assert np.abs(alpha[4:, 5:] - (corner + below * (255 - corner) / 255)).max() <= 1
        s.draw_masks(0, "red", [(4, 0, 0)])
        with pytest.raises(DalaError, match="draw_masks: no path or paint has the id 4"):
            s.synchronize()


def test_ten_thousand_masks():
    with gpu.create_surface(100, 100) as s:
        s.load_mask(1, 1, 1, b"\xff")
        s.draw_masks(0, "white", [(1, n % 100, n // 100) for n in range(10_000)])
        assert (s.to_array() == 255).all()


def test_clips_multiply():
    outer, inner = Path.circle(20, 15, 12), Path.rect(15.5, 3, 30, 30)
    with gpu.create_surface(W, H) as s:
        with s.clip(outer), s.clip(inner):
            s.rect(-5, -5, 100, 100, "white")
        found = s.to_array()[..., 3].astype(float)
        s.rect(0, 0, 2, 2, "white")
        assert (s.to_array()[:2, :2, 3] == 255).all()
    cover = [np.minimum(np.abs(shares(flat(path), W, H)), 1) for path in (outer, inner)]
    assert np.abs(found - cover[0] * cover[1] * 255).max() <= 2.5


def test_clips_in_streams_end_with_their_push():
    with gpu.create_surface(8, 8) as s:
        s.push()
        with s.transformed(translate=(2, 0)), s.clip(Path.rect(0, 0, 2, 8)):
            s.rect(0, 0, 8, 8, "red")
        s.pop()
        s.pop()
        with pytest.raises(DalaError, match="pop: nothing was pushed"):
            s.synchronize()
        found = s.to_array()[0, :, 3]
        assert found.tolist() == [0, 0, 255, 255, 0, 0, 0, 0]


def test_a_dithered_gradient_keeps_means_between_colors():
    paint = LinearGradient((0, 0), (256, 0), [(0, (100, 20, 7)), (1, (104, 20, 9))], dither=True)
    with gpu.create_surface(256, 16) as s:
        s.rect(0, 0, 256, 16, paint)
        found = s.to_array().astype(float)
    wanted = 100 + 4 * (np.arange(256) + 0.5) / 256
    means = found[..., 0].reshape(16, 32, 8).mean(axis=(0, 2))
    assert np.abs(means - wanted.reshape(32, 8).mean(axis=1)).max() < 0.1
    assert np.abs(found[..., 0] - wanted).max() < 1.01
    assert (found[..., [1, 3]] == (20, 255)).all()
    assert len(np.unique(found[:, 100, 0])) == 2  # rows differ: no bands


def test_stored_paths_are_drawn_by_id():
    def drawn(star):
        with gpu.create_surface(40, 40) as s:
            s.load_path(7, Path.star(20, 20, 18))
            s.fill(star, LinearGradient((0, 0), (40, 0), STOPS), rule="evenodd")
            s.stroke(star, "white", 3, join="round", dash=[5, 2], offset=1)
            return s.to_array()

    assert (drawn(7) == drawn(Path.star(20, 20, 18))).all()
    with gpu.create_surface(4, 4) as s:
        s.fill(8, "red")
        with pytest.raises(DalaError, match="fill: no path or paint has the id 8"):
            s.synchronize()
        for bad in (True, 1.0, "7"):
            with pytest.raises(DalaError, match="fill: path must be a Path or an id"):
                s.fill(bad, "red")
        with pytest.raises(DalaError, match="clip: path must be a Path, got 7"), s.clip(7):
            pass
