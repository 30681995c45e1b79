"""Source coordinates of the pixels of a warped picture.

A coordinate is stored as an integer and an f32 fraction, so it is as precise at pixel 8000 as at
pixel 0. For an affine map it is the sum of a column term and a row term. These are two small
tables, computed on the host in f64, so that every engine has exactly the same coordinates.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.symbols import FUNCTIONS, SymbolicTable, is_symbolic

Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int32]
Fraction: TypeAlias = npt.NDArray[np.float32]
#: Integer x, fraction of x, integer y, fraction of y.
Coordinates: TypeAlias = tuple[Whole, Fraction, Whole, Fraction]

#: Coordinates are clamped to this, so that the sum of two fits in 32 bits.
FAR: Final = float(1 << 29)

METHODS: Final = ("nearest", "bilinear", "bicubic")
BORDERS: Final = ("constant", "clamp", "reflect", "wrap")


def stored_fill(fill: tuple[float, ...], dtype: str) -> tuple[float, ...]:
    """Return a color of 0 to 1 in the numbers of a dtype; bytes are rounded.

    >>> stored_fill((0.5, 1.5), "u8"), stored_fill((0.5, 1.5), "f32")
    ((128.0, 255.0), (0.5, 1.5))
    """
    if dtype != "u8":
        return fill
    return tuple(float(min(max(np.floor(c * 255.0 + 0.5), 0.0), 255.0)) for c in fill)


def split(values: Floats) -> tuple[Whole, Fraction]:
    """Split into integers and fractions in [0, 1). NaN becomes a position far outside."""
    values = np.clip(np.where(np.isnan(values), -FAR, values), -FAR, FAR)
    whole = np.floor(values)
    fraction = (values - whole).astype(np.float32)
    over = fraction >= 1.0
    return (whole + over).astype(np.int32), np.where(over, np.float32(0), fraction)


def affine_tables(
    matrix: tuple[float, ...], height: int, width: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return integer and fraction of x and y as 32-bit words, for each column and each row."""
    a, b, c, d, e, f = matrix
    x, y = np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64)
    return _rows(a * x, d * x), _rows(b * y + c, e * y + f)


def affine_words(
    matrix: tuple[float, ...], height: int, width: int
) -> npt.NDArray[np.uint32] | SymbolicTable:
    """Return the two tables of :func:`affine_tables`, one after the other."""
    words = np.concatenate(affine_tables(matrix, height, width))
    if not is_symbolic(*matrix, height, width):
        return words
    return SymbolicTable.of(
        "affine", words.tobytes(), 16 * (height + width), *matrix, height, width
    )


def _rows(x: Floats, y: Floats) -> npt.NDArray[np.uint32]:
    parts = [part.view(np.uint32) for value in (x, y) for part in split(value)]
    return np.ascontiguousarray(np.stack(parts, axis=1))


def affine(matrix: tuple[float, ...], height: int, width: int) -> Coordinates:
    """Return the source coordinates of every output pixel for a 2x3 matrix."""
    columns, rows = affine_tables(matrix, height, width)
    x, y = (_add(columns, rows, axis) for axis in (0, 2))
    return *x, *y


def _add(
    columns: npt.NDArray[np.uint32], rows: npt.NDArray[np.uint32], axis: int
) -> tuple[Whole, Fraction]:
    whole = columns[None, :, axis].view(np.int32) + rows[:, None, axis].view(np.int32)
    parts = columns[None, :, axis + 1].view(np.float32), rows[:, None, axis + 1].view(np.float32)
    fraction = parts[0] + parts[1]
    over = fraction >= 1.0
    return whole + over, fraction - over.astype(np.float32)


def perspective(matrix: tuple[float, ...], height: int, width: int) -> Coordinates:
    """Return the source coordinates of every output pixel for a 3x3 matrix; 0 where w is 0."""
    m = np.array(matrix, np.float64).reshape(3, 3)
    y, x = np.mgrid[:height, :width].astype(np.float64)
    u, v, w = (row[0] * x + row[1] * y + row[2] for row in m)
    with np.errstate(all="ignore"):
        back = np.where(w == 0.0, 0.0, 1.0 / w)
    return (*split(u * back), *split(v * back))


FUNCTIONS["affine"] = lambda *args: np.concatenate(affine_tables(args[:6], args[6], args[7]))
