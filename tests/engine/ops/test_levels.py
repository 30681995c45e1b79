"""Histograms of tiles, and maps of levels through tables."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import DtypeMismatch, ParameterError, ShapeMismatch
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.kernel import get

RNG = np.random.default_rng(6)
SHAPES = [(9, 14), (9, 14, 3), (16, 24, 4), (1, 1, 4), (30, 5, 3)]


def picture(shape, dtype):
    image = RNG.integers(0, 256, shape, dtype=np.uint8)
    return image if dtype == "u8" else (image / 255).astype(np.float32)


def mirrored(size, more):
    period = max(2 * size - 2, 1)
    return [abs((i + size - 1) % period - size + 1) for i in range(size + more)]


def padded(levels, tiles):
    """Return levels as OpenCV's CLAHE pads them, and the size of a tile."""
    height, width = levels.shape[:2]
    rows, columns = tiles
    more = (rows - height % rows, columns - width % columns)
    if height % rows == 0 and width % columns == 0:
        more = (0, 0)
    down = [
        abs((i + height - 1) % max(2 * height - 2, 1) - height + 1) for i in range(height + more[0])
    ]
    across = [
        abs((i + width - 1) % max(2 * width - 2, 1) - width + 1) for i in range(width + more[1])
    ]
    wide = levels[down][:, across]
    return wide, (wide.shape[0] // rows, wide.shape[1] // columns)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_tile_histogram(engine_id, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        levels = np.rint(image.reshape(*shape[:2], -1)[..., :3] * (1 if dtype == "u8" else 255))
        luma = levels.astype(int)
        if luma.shape[2] == 3:
            luma = (luma @ [9798, 19235, 3735] + 16384 >> 15)[..., None]
        for tiles in ((1, 1), (8, 8), (3, 2)):
            for of, counted in (("channels", levels), ("luma", luma)):
                wide, (tall, broad) = padded(counted, tiles)
                got = get("tile_histogram")(from_array(image), tiles=tiles, of=of).numpy()
                assert got.shape == (*tiles, counted.shape[2], 256)
                for i, j, c in np.ndindex(*got.shape[:3]):
                    tile = wide[i * tall : (i + 1) * tall, j * broad : (j + 1) * broad, c]
                    want = np.bincount(tile.astype(int).ravel(), minlength=256)
                    assert np.array_equal(got[i, j, c], want)


def test_values_out_of_range_are_clamped(engine_id):
    image = np.array([[-1.0, 2.0, np.nan, 0.5]], np.float32)
    counts = get("tile_histogram")(from_array(image)).numpy()[0, 0, 0]
    assert (counts[0], counts[255], counts[128], counts.sum()) == (2, 1, 1, 4)


def bilinear(values, tables, size):
    """Return values of 0 to 255 through the tables, with plain loops."""
    made = np.empty(values.shape)
    rows, columns, planes, _ = tables.shape
    for y, x, c in np.ndindex(*values.shape):
        v, u = y / size[0] - 0.5, x / size[1] - 0.5
        i, j = int(np.floor(v)), int(np.floor(u))
        total = 0.0
        for a, weight_y in ((i, 1 - (v - i)), (i + 1, v - i)):
            for b, weight_x in ((j, 1 - (u - j)), (j + 1, u - j)):
                table = tables[
                    np.clip(a, 0, rows - 1), np.clip(b, 0, columns - 1), min(c, planes - 1)
                ]
                total += np.interp(values[y, x, c], np.arange(256), table) * weight_y * weight_x
        made[y, x, c] = total
    return made


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_map_levels(engine_id, dtype):
    unit = 1.0 if dtype == "u8" else 255.0
    for shape in SHAPES[:3]:
        image = picture(shape, dtype)
        colors = image.reshape(*shape[:2], -1)[..., :3] * unit
        for tiles, of in (
            ((1, 1), "luma"),
            ((1, 1), "channels"),
            ((3, 2), "luma"),
            ((3, 2), "channels"),
        ):
            planes = 3 if of == "channels" and colors.shape[2] == 3 else 1
            tables = RNG.uniform(0, 255, (*tiles, planes, 256)).astype(np.float32)
            if tiles == (1, 1):
                tables = np.rint(tables)
            got = get("map_levels")(from_array(image), from_array(tables), of=of).numpy()
            assert got.shape == shape
            _, size = padded(colors, tiles)
            if of == "luma" and colors.shape[2] == 3:
                luma = (colors @ [0.299, 0.587, 0.114])[..., None]
                if dtype == "u8":
                    luma = (colors.astype(int) @ [9798, 19235, 3735] + 16384 >> 15)[..., None]
                want = colors + bilinear(luma, tables, size) - luma
            else:
                want = bilinear(colors, tables, size)
            made = got.reshape(*shape[:2], -1)
            if dtype == "u8":
                want = np.clip(want, 0, 255)
            assert np.abs(made[..., :3] * unit - want).max() <= (0.52 if dtype == "u8" else 0.02)
            if made.shape[2] == 4:
                assert np.array_equal(made[..., 3], image[..., 3])


def test_fractions_in_one_table(engine_id):
    image = picture((5, 6, 3), "u8")
    table = np.linspace(0, 100, 256, dtype=np.float32).reshape(1, 1, 1, 256)
    got = get("map_levels")(from_array(image), from_array(table)).numpy()
    assert np.abs(got - image * (100 / 255)).max() <= 0.52


def test_errors():
    image = from_array(picture((4, 4, 3), "u8"), device="cpu")
    with pytest.raises(ParameterError, match="tile_histogram: tiles must be"):
        get("tile_histogram")(image, tiles=(0, 1))
    with pytest.raises(ShapeMismatch, match=r"output must be of shape \(1, 1, 3, 256\)"):
        get("tile_histogram")(image, out=buffer_zeros(256, "u32", device="cpu"))
    with pytest.raises(ShapeMismatch, match=r"of shape \(rows, columns, 1 or 3, 256\)"):
        get("map_levels")(image, buffer_zeros((256,), device="cpu"))
    with pytest.raises(DtypeMismatch, match="tables must be of dtype 'f32'"):
        get("map_levels")(image, buffer_zeros((1, 1, 1, 256), "u8", device="cpu"))
