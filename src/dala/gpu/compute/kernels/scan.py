"""Cumulative sums and histograms, also of the tiles of a picture."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.sampling.levels import dropped_bits
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.kernels.reduce import SUMS, layout, one_axis, saturated, want_dtype
from dala.gpu.compute.lang.scalars import RANGES
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: The most bins of a histogram.
MAX_BINS = 1 << 20


class CumSum(Operation):
    """Compute the cumulative sum along an axis: ``out[i] = a[0] + ... + a[i]``.

    ``axis`` is the last by default. Output dtypes are as in reduce_sum; integers wrap in the
    output's dtype, u8 saturates at 255.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    >>> get("cumsum")(a).tolist(), get("cumsum")(a, axis=0).tolist()
    ([[1.0, 3.0, 6.0], [4.0, 9.0, 15.0]], [[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]])
    """

    title = "cumsum"
    options = (Parameter("axis", "int", -1),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        one_axis(self.name, inputs[0].shape, values["axis"])
        return Tensor(inputs[0].shape, SUMS[inputs[0].dtype][0])

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        a = inputs[0]
        axis = one_axis(self.name, a.shape, values["axis"])
        want_dtype(self.name, a.dtype, output.dtype, SUMS[a.dtype])
        self.want(output, Tensor(a.shape, output.dtype))
        return {"axis": axis, "layout": layout(a.shape, axis, axis + 1)}

    def define(self, task: Task, a: NDArray) -> NDArray:
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        return saturated(np.cumsum(a, axis=task["axis"], dtype=wide), task.output.dtype)


class Histogram(Operation):
    """Count the numbers in bins of equal width.

    Bin i of ``bins`` (256) starts at low + i * (high - low) / bins and ends before the next bin;
    the last bin includes ``high``. Numbers outside ``low``..``high`` and NaN are ignored. ``low``
    and ``high`` are 0 and 256 by default for integers, 0 and 1 for floats.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([0.1, 0.2, 0.3, 0.9, 1.0, 7], np.float32)
    >>> get("histogram")(a, bins=4).tolist()
    [2, 1, 0, 2]
    """

    title = "histogram"
    options = (
        Parameter("bins", "int", 256, 1, MAX_BINS),
        Parameter("low", "float"),
        Parameter("high", "float"),
    )

    def _range(self, dtype: str, values: OperationValues) -> tuple[float, float]:
        low = 0.0 if values["low"] is None else values["low"]
        usual = 1.0 if dtype in ("f32", "f64") else 256.0
        high = usual if values["high"] is None else values["high"]
        if not (low < high and math.isfinite(high - low)):
            raise self.wrong_value("low", f"finite and below high, {high:g}", low)
        return low, high

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self._range(inputs[0].dtype, values)
        return Tensor((values["bins"],), "u32")

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        low, high = self._range(inputs[0].dtype, values)
        if output.dtype not in ("u32", "s32"):
            raise self.wrong_dtype("output", "of dtype u32 or s32", output.dtype)
        self.want(output, Tensor((values["bins"],), output.dtype))
        edges = edges_of(inputs[0].dtype, low, high, values["bins"])
        return {"bins": values["bins"], "low": low, "high": high, "edges": edges.tobytes()}

    def define(self, task: Task, a: NDArray) -> NDArray:
        edges = np.frombuffer(task["edges"], a.dtype)
        x = a.reshape(-1)
        x = x[(x >= edges[0]) & (x <= edges[-1])] if len(edges) > 1 else x[:0]
        at = np.searchsorted(edges[:-1], x, side="right") - 1
        return np.asarray(np.bincount(at, minlength=task["bins"]))


def edges_of(dtype: str, low: float, high: float, bins: int) -> NDArray:
    """Return the starts of the bins and the largest number that counts, in the input's dtype.

    Each start is the smallest number of the dtype that is not below the exact edge. Comparisons
    with it are exact, so every engine chooses the same bins. Bins that start beyond the dtype's
    largest number are empty and left out.
    """
    true = low + np.arange(bins) * ((high - low) / bins)
    if dtype == "f64":
        return np.append(true, high)
    if dtype == "f32":
        with np.errstate(over="ignore"):
            near = np.append(true, high).astype(np.float32)
            above = np.nextafter(near[:-1], np.float32(math.inf))
            below = np.nextafter(near[-1], np.float32(-math.inf))
        top = below if float(near[-1]) > high else near[-1]
        return np.append(np.where(near[:-1] < true, above, near[:-1]), top)
    first, last = RANGES[dtype]
    top = min(math.floor(high), last)
    starts = [max(math.ceil(x), first) for x in true.tolist() if math.ceil(x) <= top]
    return np.array([*starts, top] if starts and top >= first else [0], NUMPY[dtype])


class TileHistogram(Operation):
    """Count the levels of a picture's colors, or of its luma, in each tile of a grid.

    The output has the shape (rows, columns, n, 256), where n is 1 for ``of="luma"`` and for gray
    pictures, else 3; alpha is not counted. The level of a color c of 0 to 1 is
    ``floor(clamp(c, 0, 1) * 255 + 0.5)``, and NaN counts as 0. The level of luma is computed from
    those of red, green and blue: ``(9798 r + 19235 g + 3735 b + 16384) >> 15``, which is BT.601.

    All tiles have the same size. If the picture's height or width is not a multiple of the grid's,
    a tile has one row and one column more than fit, and what is missing at the bottom and at the
    right is reflected without repeating the border, as in OpenCV's CLAHE.

    Args:
        tiles: rows and columns of the grid, one number for both.
        of: "channels" for red, green and blue, or "luma".

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> image = np.array([[0, 0, 9, 9], [0, 1, 9, 9]], np.uint8)
    >>> counts = get("tile_histogram")(image, tiles=(1, 2))
    >>> counts.shape, counts[0, 0, 0, :2].tolist(), counts[0, 1, 0, 9].tolist()
    ((1, 2, 1, 256), [3, 1], 4)
    """

    title = "tile_histogram"
    takes = ("image",)
    dtypes = ("f32", "u8")
    options = (
        Parameter("tiles", "ints", (1, 1), 1, 64, size=2, spread=True),
        Parameter("of", "choice", "channels", choices=("channels", "luma")),
    )

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        channels = self.want_image(inputs)[2]
        planes = 1 if channels == 1 or values["of"] == "luma" else 3
        return Tensor((*values["tiles"], planes, 256), "u32")

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        height, width, channels = self.want_image(inputs)
        luma = values["of"] == "luma" and channels > 1
        return {
            "tiles": values["tiles"],
            "size": tile_size((height, width), values["tiles"]),
            "luma": luma,
        }

    def define(self, task: Task, image: NDArray) -> NDArray:
        rows, columns, planes, _ = task.output.shape
        counts = np.zeros(task.output.shape, np.uint32)
        if not image.size:
            return counts
        levels = levels_of(image.reshape(*image.shape[:2], -1)[..., :3])
        if task["luma"]:
            levels = (levels @ np.array(LUMA_WEIGHTS) + (1 << 14) >> 15)[..., None]
        tall, wide = task["size"]
        levels = levels[reflected(rows * tall, levels.shape[0])]
        levels = levels[:, reflected(columns * wide, levels.shape[1])]
        for i, j, c in np.ndindex(rows, columns, planes):
            tile = levels[i * tall : (i + 1) * tall, j * wide : (j + 1) * wide, c]
            counts[i, j, c] = np.bincount(tile.reshape(-1), minlength=256)
        return counts


#: The weights of red, green and blue in a level of luma, of 32768 together.
LUMA_WEIGHTS = (9798, 19235, 3735)
LUMA = (0.299, 0.587, 0.114)


def levels_of(colors: NDArray) -> NDArray:
    """Return the levels of colors, 0 to 255, as integers."""
    if colors.dtype == np.uint8:
        return colors.astype(np.int64)
    clamped = np.clip(np.nan_to_num(colors, nan=0.0), 0.0, 1.0).astype(np.float32)
    return np.asarray(np.floor(clamped * np.float32(255) + np.float32(0.5)).astype(np.int64))


def tile_size(shape: tuple[int, int], tiles: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width of the tiles of a grid over a picture."""
    more = 1 if any(n % t for n, t in zip(shape, tiles, strict=True)) else 0
    return shape[0] // tiles[0] + more, shape[1] // tiles[1] + more


def reflected(count: int, size: int) -> NDArray:
    """Return the indices 0 to count - 1, reflected into 0 to size - 1."""
    period = max(2 * size - 2, 1)
    i = np.arange(count) % period
    return np.minimum(np.minimum(i, period - i), size - 1)


class MapLevels(Operation):
    """Map the levels of a picture through tables, one for each tile of a grid.

    The tables have the shape (rows, columns, n, 256), f32 of 0 to 255, for the tiles that
    ``tile_histogram`` counts. With ``of="luma"`` (n = 1) a pixel's luma y, as it is counted there,
    is mapped, and the change is added to red, green and blue; with "channels" (n = 1 or 3) each
    channel is mapped by itself. A pixel gets the bilinear interpolation of the results of the four
    tiles whose centers are nearest. In f32 pictures luma is not rounded to a level, and values
    between two levels are interpolated. Alpha is kept.

    Of bytes this is in integers: results in the tables are rounded to 7 bits of fraction, shares of
    tiles to 15. Tables are mixed down, then across, each rounded to 7 bits, then to a byte.

    Args:
        of: "channels" or "luma".

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> image = np.array([[0, 100, 255]], np.uint8)
    >>> tables = 255 - np.arange(256, dtype=np.float32).reshape(1, 1, 1, 256)      # inverts
    >>> get("map_levels")(image, tables).tolist()
    [[255, 155, 0]]
    """

    title = "map_levels"
    takes = ("image", "tables")
    dtypes = ("f32", "u8")
    options = (Parameter("of", "choice", "channels", choices=("channels", "luma")),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        image, tables = inputs
        channels = self.want_image(inputs)[2]
        planes = (1,) if channels == 1 or values["of"] == "luma" else (1, 3)
        shape = tables.shape
        if len(shape) != 4 or 0 in shape or shape[2] not in planes or shape[3] != 256:
            many = " or ".join(map(str, planes))
            expected = f"of shape (rows, columns, {many}, 256)"
            raise self.wrong_shape("tables", expected, shape)
        self.want_f32(inputs, 1)
        return image

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        height, width, channels = self.want_image(inputs)
        rows, columns = inputs[1].shape[:2]
        size = tile_size((height, width), (rows, columns))
        return {"size": size, "luma": values["of"] == "luma" and channels > 1}

    def lower(self, task: Task) -> Lowered:
        tall, wide = task["size"]
        gray = len(task.inputs[0].shape) == 2 or task.inputs[0].shape[2] == 1
        tiled = task.inputs[1].shape[:2] != (1, 1)
        dtype = task.inputs[0].dtype
        kernel = map_levels_kernel(dtype, gray, task["luma"], tiled)
        values: OperationValues = {"down": max(tall, 1) ** -1.0, "across": max(wide, 1) ** -1.0}
        if dtype == "u8":
            drop = dropped_bits((tall, wide))
            values = {"tall": max(tall, 1), "wide": max(wide, 1), "drop": drop}
        return kernel, values if tiled else {}


@cache
def map_levels_kernel(dtype: str, gray: bool, luma: bool, tiled: bool) -> Kernel:
    """Return ``map_levels`` as a kernel of the language."""
    if dtype == "u8":
        return _map_bytes_kernel(gray, luma, tiled)
    look = "mix(tables[{0}, c, k], tables[{0}, c, k + 1], at - float(k))"
    found = f"return {look.format('0, 0')}"
    if tiled:
        near, right, below, far = (
            look.format(place) for place in ("i, j", "i, j + 1", "i + 1, j", "i + 1, j + 1")
        )
        found = f"""i, j = int(floor(v)), int(floor(u))
        t, s = v - floor(v), u - floor(u)
        top = {near} * (1.0 - s) + {right} * s
        low = {below} * (1.0 - s) + {far} * s
        return top * (1.0 - t) + low * t"""
    if luma:
        result = """y = dot(px.rgb, (0.299, 0.587, 0.114)) * 255.0
    made = px.rgb + (mapped(y, 0, v, u, tables) - y) / 255.0"""
    elif gray:
        result = "one = mapped(px.r * 255.0, 0, v, u, tables) / 255.0\n    made = (one, one, one)"
    else:
        each = ", ".join(
            f"mapped(px.{name} * 255.0, {c}, v, u, tables) / 255.0" for c, name in enumerate("rgb")
        )
        result = f"made = ({each})"
    params = ", *, down: float, across: float" if tiled else ""
    place = "float(y0) * down - 0.5, float(x0) * across - 0.5" if tiled else "0.0, 0.0"
    text = f"""def map_levels(px: Pixel, tables: Array{params}):
    def mapped(level, c, v, u, tables: Array):
        at = clamp(level, 0.0, 255.0)
        k = int(at)
        {found}
    y0, x0 = position()
    v, u = {place}
    {result}
    return rgba(made.r, made.g, made.b, px.a)"""
    return text_kernel("map_levels", text)


def _map_bytes_kernel(gray: bool, luma: bool, tiled: bool) -> Kernel:
    """Return ``map_levels`` of bytes as a kernel of the language, in integers."""
    found = "value = level_at(0, 0, c, k, tables)"
    place, params = "i, j, t, s = 0, 0, 0, 0", ""
    if tiled:
        found = """left = mixed(level_at(i, j, c, k, tables), level_at(i + 1, j, c, k, tables), t)
        right = mixed(level_at(i, j + 1, c, k, tables), level_at(i + 1, j + 1, c, k, tables), t)
        value = mixed(left, right, s)"""
        place, params = (
            """v, u = 2 * y0 + tall, 2 * x0 + wide
    i, j = v // (2 * tall) - 1, u // (2 * wide) - 1
    t = share_of(v % (2 * tall), 2 * tall, drop)
    s = share_of(u % (2 * wide), 2 * wide, drop)""",
            ", *, tall: int, wide: int, drop: int",
        )
    byte = "int(px.{} * 255.0 + 0.5)"
    red, green, blue = (byte.format(name) for name in "rgb")
    call = "mapped({}, {}, i, j, t, s, tables)"
    if luma:
        result = f"""r, g, b = {red}, {green}, {blue}
    y = (r * 9798 + g * 19235 + b * 3735 + 16384) >> 15
    d = {call.format("y", 0)} - y
    r, g, b = r + d, g + d, b + d"""
    elif gray:
        result = f"r = {call.format(red, 0)}\n    g, b = r, r"
    else:
        each = ", ".join(call.format(c, n) for n, c in enumerate((red, green, blue)))
        result = f"r, g, b = {each}"
    text = f"""def map_levels(px: Pixel, tables: Array{params}):
    def level_at(i, j, c, k, tables: Array):
        return int(clamp(floor(tables[i, j, c, k] * 128.0 + 0.5), 0.0, 32640.0))
    def mixed(a, b, share):
        return a + (((b - a) * share + 16384) >> 15)
    def share_of(rest, size, drop):
        of = u32(size >> drop)
        return int((u32(rest >> drop) * u32(32768) + (of >> 1)) // of)
    def mapped(k, c, i, j, t, s, tables: Array):
        {found}
        return (value + 64) >> 7
    y0, x0 = position()
    {place}
    {result}
    return rgba(float(r) / 255.0, float(g) / 255.0, float(b) / 255.0, px.a)"""
    return text_kernel("map_levels", text)
