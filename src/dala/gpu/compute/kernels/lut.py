"""Look-up tables for colors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from dala.gpu.compute.cube import SIZES
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.lookup import (
    byte_curves,
    byte_entries,
    byte_lookup,
    byte_places,
)
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: The largest bound of a domain; differences of such numbers still fit f32.
FAR = 1e9


@picture_filter("Color", inputs={"lut": "lut"}, example="lut='film.cube'")
class LutApply(Operation):
    """Map colors through a look-up table.

    The table has shape (n, n, n, 3), indexed ``lut[r, g, b]``, with n within 2..129, or (n, 3) with
    n within 2..65536 for one curve per channel; f32, where 1.0 is white. The position of a color c
    is ``(c - domain_min) / (domain_max - domain_min) * (n - 1)``, clamped to 0..n - 1 (NaN counts
    as 0). The result is ``mix(c, table, amount)``.

    With ``shaper`` the first entries of the table are curves, one per channel, that colors pass
    through before a 3D table: its shape is then (shaper + n * n * n, 3), as a Cube packs it.

    From bytes to bytes the look-up is in integers: positions and weights have 16 bits, entries are
    multiples of 1/128 of a step (of more if the domain is larger), clamped to half a range beyond
    the domain and 0..1.

    The picture has three or four channels of u8 or f32. The output may have another dtype and
    number of channels; its alpha is 1 if the picture has none.

    Args:
        lut: a Cube, the path of a .cube file or of another kind of table, or an array.
        method: interpolation between entries: "tetrahedral" (four entries, exact along the grays)
            or "trilinear" (eight).
        amount: 0 changes nothing.
        domain_min: the color of the first entry, one number or r, g, b; a Cube has its own.
        domain_max: the color of the last entry.
        shaper: how many entries the curves before the table have; a Cube has its own.
        shaper_min: the color of the first entry of the curves.
        shaper_max: the color of the last entry of the curves.
    """

    title = "lut_apply"
    takes = ("image", "lut")
    dtypes = ("f32", "u8")
    options = (
        Parameter("method", "choice", "tetrahedral", choices=("tetrahedral", "trilinear")),
        Parameter("amount", "float", 1.0, 0.0, 1.0),
        Parameter("domain_min", "floats", (0.0, 0.0, 0.0), -FAR, FAR, size=3, spread=True),
        Parameter("domain_max", "floats", (1.0, 1.0, 1.0), -FAR, FAR, size=3, spread=True),
        Parameter("shaper", "int", 0, 0, SIZES[1][1]),
        Parameter("shaper_min", "floats", (0.0, 0.0, 0.0), -FAR, FAR, size=3, spread=True),
        Parameter("shaper_max", "floats", (1.0, 1.0, 1.0), -FAR, FAR, size=3, spread=True),
    )

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        image, lut = inputs
        self.want_color(inputs, "Convert a gray picture to three channels first.")
        self.want_f32(inputs, 1)
        if values["shaper"]:
            self._check_packed(lut.shape, values["shaper"])
        else:
            self._check_table(lut.shape)
        for name in ("domain", "shaper"):
            lows, highs = values[f"{name}_min"], values[f"{name}_max"]
            for low, high in zip(lows, highs, strict=True):
                if not low < high or np.float32(low) == np.float32(high):
                    raise self.wrong_value(f"{name}_min", f"below {name}_max, {highs}", lows)
        return image

    def _check_table(self, shape: tuple[int, ...]) -> None:
        axes, size = len(shape) - 1, shape[0] if shape else 0
        if axes not in SIZES or shape != (size,) * axes + (3,):
            raise self.wrong_shape("lut", "of shape (n, n, n, 3), or (n, 3) for curves", shape)
        least, most = SIZES[axes]
        if not least <= size <= most:
            raise self.wrong_shape("lut", f"of {least} to {most} entries along each axis", size)

    def _check_packed(self, shape: tuple[int, ...], shaper: int) -> None:
        size = cube_side(shape[0] - shaper) if len(shape) == 2 and shape[1:] == (3,) else 0
        if shaper < SIZES[1][0] or not SIZES[3][0] <= size <= SIZES[3][1]:
            raise self.wrong_shape(
                "lut", f"of shape ({shaper} + n * n * n, 3), as shaper={shaper}", shape
            )

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        wanted = self.result(inputs, values)
        many = output.shape[2] if len(output.shape) == 3 else 0
        if output.shape[:2] != wanted.shape[:2] or many not in (3, 4):
            self.want(output, wanted)
        if output.dtype not in self.dtypes:
            self.want(Tensor(wanted.shape, output.dtype), wanted)
        return values

    def define(self, task: Task, image: NDArray, lut: NDArray) -> NDArray:
        """Look up bytes in integers; see ``engines/lookup.py``."""
        numbers, count = byte_lookup(task), task["shaper"]
        assert numbers is not None  # else the kernel is the definition
        if lut.ndim == 2 and not count:
            curves = byte_curves(task, lut, numbers)
            color = np.stack([curves[c][image[..., c]] for c in range(3)], axis=-1)
            return _with_alpha(task, color, image)
        entries = byte_entries(lut[count:] if count else lut, numbers)
        if count:
            side = cube_side(len(entries))
            entries = entries.reshape(side, side, side, 3)
        size = entries.shape[0]
        places = byte_places(task, size, lut[:count] if count else None).astype(np.int64)
        place = np.stack([places[c][image[..., c]] for c in range(3)], axis=-1)
        cell = np.minimum(place >> 16, size - 2)
        part = place - (cell << 16)
        find = _trilinear if task["method"] == "trilinear" else _tetrahedral
        found = find(entries, cell, part) + numbers.keep * image[..., :3].astype(np.int64)
        color = np.clip((found >> numbers.shift) - numbers.below, 0, 255)
        return _with_alpha(task, color, image)

    def lower(self, task: Task) -> Lowered:
        lut = task.inputs[1]
        if byte_lookup(task) is not None:
            return None  # engines have code for it
        count = task["shaper"]
        size = cube_side(lut.shape[0] - count) if count else lut.shape[0]
        low, scale = _scaled(task["domain_min"], task["domain_max"], size)
        values = {"low": low, "scale": scale, "amount": task["amount"]}
        if not count:
            method = task["method"] if len(lut.shape) == 4 else "curves"
            return _lookup_kernel(method, False), values
        shaper_low, shaper_scale = _scaled(task["shaper_min"], task["shaper_max"], count)
        values |= {"count": count, "size": size}
        values |= {"shaper_low": shaper_low, "shaper_scale": shaper_scale}
        return _lookup_kernel(task["method"], True), values


def _with_alpha(task: Task, color: NDArray, image: NDArray) -> NDArray:
    """Return colors with the alpha of an image, else 255, in the output's channels."""
    alpha = image[..., 3:] if image.shape[-1] == 4 else np.full_like(color[..., :1], 255)
    return np.concatenate([color, alpha], axis=-1)[..., : task.output.shape[2]]


def cube_side(entries: int) -> int:
    """Return n if there are n * n * n entries; 0 if there is no such n.

    >>> cube_side(27), cube_side(28)
    (3, 0)
    """
    side = round(max(entries, 0) ** (1 / 3))
    return side if side**3 == entries else 0


def _scaled(
    low: tuple[float, ...], high: tuple[float, ...], size: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the low ends of a domain, and the entries per unit."""
    return low, tuple((size - 1) / (h - v) for v, h in zip(low, high, strict=True))


def _trilinear(table: NDArray, cell: NDArray, part: NDArray) -> NDArray:
    """Interpolate between eight entries; weights, whose sum is 65536, are rounded.

    The weight of a far corner is rounded, and its neighbor has what remains.
    """
    r, g, b = part[..., 0], part[..., 1], part[..., 2]
    both = r * g + 32768 >> 16
    found = np.zeros(cell.shape, part.dtype)
    for corner, weight in enumerate((65536 - r - g + both, g - both, r - both, both)):
        upper = weight * b + 32768 >> 16
        i, j, k = cell[..., 0] + (corner >> 1), cell[..., 1] + (corner & 1), cell[..., 2]
        found += table[i, j, k] * (weight - upper)[..., None]
        found += table[i, j, k + 1] * upper[..., None]
    return np.asarray(found)


def _tetrahedral(table: NDArray, cell: NDArray, part: NDArray) -> NDArray:
    """Interpolate from the near corner to the far one, along the axis of the largest part first."""
    order = np.argsort(-part, axis=-1, kind="stable")
    sizes = np.take_along_axis(part, order, axis=-1)
    at = cell.copy()
    found = table[at[..., 0], at[..., 1], at[..., 2]] * (65536 - sizes[..., :1])
    for step in range(3):
        axis = order[..., step : step + 1]
        np.put_along_axis(at, axis, np.take_along_axis(at, axis, -1) + 1, -1)
        left = sizes[..., step : step + 1] - (sizes[..., step + 1 : step + 2] if step < 2 else 0)
        found = found + table[at[..., 0], at[..., 1], at[..., 2]] * left
    return np.asarray(found)


def _positions(
    source: str, low: str, scale: str, last: str, cells: Sequence[str], parts: Sequence[str]
) -> str:
    """Return the code of the positions of three values in a table.

    Args:
        source: what stands before the names of the channels, such as "px.".
        low: the parameter with the values of the first entry.
        scale: the parameter with entries per value.
        last: the index of the last entry.
        cells: names for the entries below, one a channel.
        parts: names for the distances to them.
    """
    at = [f"at_{part}" for part in parts]
    lines = [f"top = float({last})"]
    lines += [
        f"{t} = ({source}{c} - {low}.{c}) * {scale}.{c}" for t, c in zip(at, "rgb", strict=True)
    ]
    lines += [f"{t} = {t} if {t} > 0.0 else 0.0" for t in at]
    lines += [f"{t} = {t} if {t} < top else top" for t in at]
    lines += [f"{i} = min(int({t}), {last} - 1)" for i, t in zip(cells, at, strict=True)]
    lines += [f"{p} = {t} - float({i})" for p, t, i in zip(parts, at, cells, strict=True)]
    return "".join(f"    {line}\n" for line in lines)


_PLACE = """
def lut_apply(px: Pixel, lut: Array, *, low: vec3, scale: vec3, amount: float):
    last = lut.shape[0] - 1
""" + _positions("px.", "low", "scale", "last", "ijk", "rgb")

_METHODS = {
    "tetrahedral": """
    i1 = i + (1 if r >= g and r >= b else 0)
    j1 = j + (1 if g > r and g >= b else 0)
    k1 = k + (1 if b > r and b > g else 0)
    i2 = i + 1 - (1 if r < g and r < b else 0)
    j2 = j + 1 - (1 if g <= r and g < b else 0)
    k2 = k + 1 - (1 if b <= g and b <= r else 0)
    most = max(r, g, b)
    least = min(r, g, b)
    middle = max(min(r, g), min(max(r, g), b))
    w0, w1, w2 = 1.0 - most, most - middle, middle - least
    x = lut[i, j, k, 0] * w0 + lut[i1, j1, k1, 0] * w1
    y = lut[i, j, k, 1] * w0 + lut[i1, j1, k1, 1] * w1
    z = lut[i, j, k, 2] * w0 + lut[i1, j1, k1, 2] * w1
    x += lut[i2, j2, k2, 0] * w2 + lut[i + 1, j + 1, k + 1, 0] * least
    y += lut[i2, j2, k2, 1] * w2 + lut[i + 1, j + 1, k + 1, 1] * least
    z += lut[i2, j2, k2, 2] * w2 + lut[i + 1, j + 1, k + 1, 2] * least
""",
    "trilinear": """
    x, y, z = 0.0, 0.0, 0.0
    for n in range(8):
        u, v, w = n >> 2, n >> 1 & 1, n & 1
        weight = (r if u > 0 else 1.0 - r) * (g if v > 0 else 1.0 - g) * (b if w > 0 else 1.0 - b)
        x += lut[i + u, j + v, k + w, 0] * weight
        y += lut[i + u, j + v, k + w, 1] * weight
        z += lut[i + u, j + v, k + w, 2] * weight
""",
    "curves": """
    x = lut[i, 0] * (1.0 - r) + lut[i + 1, 0] * r
    y = lut[j, 1] * (1.0 - g) + lut[j + 1, 1] * g
    z = lut[k, 2] * (1.0 - b) + lut[k + 1, 2] * b
""",
}

_MIX = """
    if amount < 1.0:
        x = px.r + (x - px.r) * amount
        y = px.g + (y - px.g) * amount
        z = px.b + (z - px.b) * amount
    return rgba(x, y, z, px.a)
"""


#: The same with the position behind curves, in a packed table.
_SHAPED_PLACE = (
    """
def lut_apply(px: Pixel, lut: Array, *, low: vec3, scale: vec3, amount: float, count: int,
              size: int, shaper_low: vec3, shaper_scale: vec3):
    end = count - 1
"""
    + _positions("px.", "shaper_low", "shaper_scale", "end", ("er", "eg", "eb"), ("fr", "fg", "fb"))
    + """
    cr = lut[er, 0] * (1.0 - fr) + lut[er + 1, 0] * fr
    cg = lut[eg, 1] * (1.0 - fg) + lut[eg + 1, 1] * fg
    cb = lut[eb, 2] * (1.0 - fb) + lut[eb + 1, 2] * fb
    last = size - 1
"""
    + _positions("c", "low", "scale", "last", "ijk", "rgb")
)


@cache
def _lookup_kernel(method: str, shaped: bool) -> Kernel:
    """Return the look-up as a kernel of the language, which can be fused."""
    place, cube = _PLACE, _METHODS[method]
    if shaped:
        entry = r"lut\[([^,\]]+), ([^,\]]+), ([^,\]]+), (\d)\]"
        packed = r"lut[count + ((\1) * size + (\2)) * size + (\3), \4]"
        place, cube = _SHAPED_PLACE, re.sub(entry, packed, cube)
    return text_kernel("lut_apply", (place + cube + _MIX).strip().replace("\n\n", "\n"))
