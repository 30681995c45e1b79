"""Filtered reads of images on each engine, against a sampler written by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError
from dala.gpu.compute import buffer_zeros, from_array, kernel

RNG = np.random.default_rng(5)
BYTES = RNG.integers(0, 256, (23, 31, 4), dtype=np.uint8)
FLOATS = RNG.random((23, 31, 3)).astype("<f4")
COLOR = (0.25, 0.5, 0.75, 1.0)
EDGES = {"clamp": '"clamp"', "repeat": '"repeat"', "mirror": '"mirror"', "color": str(COLOR)}


def cubic(t: np.ndarray) -> list[np.ndarray]:
    def weight(d: np.ndarray) -> np.ndarray:
        d, a = np.abs(d), -0.75
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        return np.where(d < 1, near, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a)

    return [weight(t + 1), weight(t), weight(1 - t), weight(2 - t)]


def inside(i: np.ndarray, count: int, edge: str) -> np.ndarray:
    if edge == "repeat":
        return i % count
    if edge == "mirror":
        i = i % (2 * count)
        return np.minimum(i, 2 * count - 1 - i)
    return np.clip(i, 0, count - 1)


def sampled(image: np.ndarray, x: np.ndarray, y: np.ndarray, how: str, edge: str) -> np.ndarray:
    """Sample an image of floats in double precision."""
    taps = []
    for at in (x, y):
        whole = np.floor(at + 0.5 if how == "nearest" else at)
        t = at - whole
        steps = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[how]
        weights = {"nearest": [t * 0 + 1], "linear": [1 - t, t]}.get(how) or cubic(t)
        taps.append([(whole.astype(int) + s, w) for s, w in zip(steps, weights, strict=True)])
    height, width, channels = image.shape
    total = np.zeros((*x.shape, channels))
    for row, down in taps[1]:
        for column, across in taps[0]:
            value = image[inside(row, height, edge), inside(column, width, edge)].astype(float)
            if edge == "color":
                beyond = (row < 0) | (row >= height) | (column < 0) | (column >= width)
                value[beyond] = COLOR[:channels]
            total += value * (down * across)[..., None]
    return total


TEXT = """
def warped(img: Image):
    y, x = position()
    return img.sample(x * 1.375 - y * 0.5 - 9.125, y * 1.25 + x * 0.75 - 14.3125, filter="{how}", edge={edge})
"""  # noqa: E501
Y, X = np.mgrid[:23, :31]
PLACES = X * 1.375 - Y * 0.5 - 9.125, Y * 1.25 + X * 0.75 - 14.3125


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("how", ["nearest", "linear", "cubic"])
def test_filters_and_edges(engine_id, how, edge):
    made = kernel(TEXT.format(how=how, edge=EDGES[edge]))
    got = np.asarray(made(FLOATS))
    expected = sampled(FLOATS, *PLACES, how, edge)
    np.testing.assert_allclose(got, expected, rtol=3e-6, atol=3e-6)
    of_bytes = np.asarray(made(BYTES))
    near = np.clip(sampled(BYTES / 255, *PLACES, how, edge), 0, 1) * 255
    assert np.abs(of_bytes - near).max() <= 0.5 + 1e-3
    with dala.device("reference"):
        assert np.array_equal(of_bytes, np.asarray(made(BYTES)))  # the same bytes everywhere


def test_whole_numbers_are_the_centers_of_pixels(engine_id):
    same = kernel("def same(img: Image):\n    y, x = position()\n    return img.sample(x, y)")
    assert np.array_equal(np.asarray(same(BYTES)), BYTES)
    uv = kernel(
        "def uv(img: Image):\n    y, x = position()\n"
        "    return img.sample_uv((x + 0.5) / img.width, (y + 0.5) / img.height)"
    )
    assert np.array_equal(np.asarray(uv(BYTES)), BYTES)


def test_equal_offsets_are_plain_reads(engine_id):
    """A position plus a constant is a read at constant offsets, which engines do in rows."""
    made = kernel(
        "def moved(img: Image, *, by=0.0):\n    y, x = position()\n"
        "    return img.sample(x + 2.5, y - 1 - by, filter='linear')"
    )
    got = np.asarray(made(FLOATS))
    expected = sampled(FLOATS, X + 2.5, Y - 1.0, "linear", "clamp")
    np.testing.assert_allclose(got, expected, rtol=3e-6, atol=3e-6)
    halves = kernel(
        "def halves(img: Image):\n    y, x = position()\n    return img.sample(x + 0.5, y)"
    )
    offsets = re.findall(r"image\.\w+\((\S+), (\S+), ", halves.source("ir"))
    assert set(offsets) == {("0:s32", "0:s32"), ("1:s32", "0:s32")}
    assert "floor" not in halves.source("ir")


def test_images_of_other_sizes(engine_id):
    made = kernel(
        "def stretched(px: Pixel, img: Image):\n    y, x = position()\n"
        "    return img.sample_uv((x + 0.5) / px.width, (y + 0.5) / px.height)"
    )
    for image in (FLOATS, np.repeat(FLOATS[..., :1], 4, axis=2)):
        target = np.zeros((40, 17, 3), "<f4")
        got = np.asarray(made(target, image))
        y, x = np.mgrid[:40, :17]
        places = (x + 0.5) / 17 * 31 - 0.5, (y + 0.5) / 40 * 23 - 0.5
        expected = sampled(image, *places, "linear", "clamp")[..., :3]
        np.testing.assert_allclose(got, expected, rtol=3e-5, atol=3e-5)
    gray = np.ascontiguousarray(BYTES[..., 0])
    got = np.asarray(made(np.zeros((7, 5), np.uint8), gray))
    assert got.shape == (7, 5)


def test_an_image_of_another_size_has_no_offsets(engine_id):
    made = kernel("def both(px: Pixel, img: Image):\n    return img[0, 0] + img.sample(0, 0) + px")
    with pytest.raises(KernelSyntaxError, match="'img' is not as large as the output"):
        made(np.zeros((4, 4, 3), "<f4"), FLOATS)


@pytest.mark.parametrize("edge", EDGES)
def test_no_coordinate_reads_beyond_the_image(engine_id, edge):
    made = kernel(
        "def far(px: Pixel, img: Image, *, scale=1.0):\n    y, x = position()\n"
        f"    return img.sample((x - 2) * scale, y / (y - 1.0) * scale, edge={EDGES[edge]})"
    )
    for scale in (1e3, 3e9, 1e30, 3e38):
        got = np.asarray(made(np.zeros((4, 5, 3), "<f4"), FLOATS, scale=scale))
        assert np.all((got >= -1e-3) & (got <= 1.001))


def test_helpers_sample_too(engine_id):
    made = kernel("""
def soft(img: Image, at):
    return (img.sample(at.x - 0.5, at.y) + img.sample(at.x + 0.5, at.y)) / 2

def twice(img: Image):
    y, x = position()
    return soft(img, (x, y))
""")
    got = np.asarray(made(FLOATS))
    parts = [sampled(FLOATS, X + d, Y * 1.0, "linear", "clamp") for d in (-0.5, 0.5)]
    np.testing.assert_allclose(got, sum(parts) / 2, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("img.sample(1)", "sample takes 2 numbers, got 1"),
        ("img.sample(1, 2, filter='lanczos')", "filter must be one of nearest, linear, cubic"),
        ("img.sample(1, 2, edge='wrap')", "edge must be one of clamp, repeat, mirror, or a color"),
        ("img.sample(1, 2, edge=(1, 2))", "the edge of 'img' must be a color of 4 numbers"),
        ("img.sample(1, 2, level=1)", "sample has no argument 'level'"),
        ("img.sample('x', 2)", "text is not part of the language"),
        ("px.sample(1, 2)", "only images have .sample()"),
        ("img.blur(1, 2)", "only functions can be called"),
    ],
)
def test_refusals(call, problem):
    with pytest.raises(KernelSyntaxError, match=re.escape(problem)):
        made = kernel(f"def wrong(img: Image, px: Pixel):\n    return {call}")
        with dala.device("reference"):
            made.run([from_array(BYTES), from_array(BYTES)], buffer_zeros(BYTES.shape, "u8"), {})
