"""Source coordinates of the pixels of a warped picture, and weights of its samples.

A coordinate is an integer and a fraction in units of 2**-24, so it is as precise at pixel 8000 as
at pixel 0, and every engine has exactly the same. For an affine map it is the sum of a column term
and a row term: two small tables, computed on the host in f64. For a homography it is a quotient of
integers. Coordinates of a map are f32; they are split by operations that are exact.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.symbols import FUNCTIONS, SymbolicTable, is_symbolic

Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int32]
#: Integer x, fraction of x, integer y, fraction of y.
Coordinates: TypeAlias = tuple[Whole, Whole, Whole, Whole]

#: Coordinates are clamped to this, so that the sum of two fits in 32 bits; those of a homography to
#: the smaller number.
FAR: Final = float(1 << 29)
AWAY: Final = 1 << 20
#: Bits of a fraction.
BITS: Final = 24
#: The coefficients of a homography are integers: its denominator has at most this many bits, its
#: numerators as many as the next. The lowest bits are dropped before they are divided.
_DENOMINATOR, _NUMERATOR, DROPPED = 46, 62, 16

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


# affine -------------------------------------------------------------------------------------------
def _split(values: Floats) -> tuple[Whole, Whole]:
    """Split f64 into integers and rounded fractions."""
    values = np.clip(values, -FAR, FAR)
    whole = np.floor(values)
    part = np.floor((values - whole) * (1 << BITS) + 0.5).astype(np.int32)
    return whole.astype(np.int32) + (part >> BITS), part & ((1 << BITS) - 1)


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
    return _table("affine", words, 16 * (height + width), *matrix, height, width)


def _table(
    name: str, words: npt.NDArray[np.uint32], size: int, *args: float
) -> npt.NDArray[np.uint32] | SymbolicTable:
    """Return the words, or the table of a function if an argument of it is a symbol."""
    return SymbolicTable.of(name, words.tobytes(), size, *args) if is_symbolic(*args) else words


def _rows(x: Floats, y: Floats) -> npt.NDArray[np.uint32]:
    parts = [part.view(np.uint32) for value in (x, y) for part in _split(value)]
    return np.ascontiguousarray(np.stack(parts, axis=1))


def affine(matrix: tuple[float, ...], height: int, width: int) -> Coordinates:
    """Return the source coordinates of every output pixel for a 2x3 matrix."""
    columns, rows = (table.view(np.int32) for table in affine_tables(matrix, height, width))
    x, y = (_add(columns, rows, axis) for axis in (0, 2))
    return *x, *y


def _add(columns: Whole, rows: Whole, axis: int) -> tuple[Whole, Whole]:
    whole = columns[None, :, axis] + rows[:, None, axis]
    part = columns[None, :, axis + 1] + rows[:, None, axis + 1]
    return whole + (part >> BITS), part & ((1 << BITS) - 1)


# maps ---------------------------------------------------------------------------------------------
def split_map(values: npt.NDArray[np.float32]) -> tuple[Whole, Whole]:
    """Split coordinates of a map; NaN becomes a position far outside.

    Numbers below 1 are first truncated to a fraction's unit, so that nothing else is rounded.
    """
    far = np.float32(FAR)
    values = np.clip(np.where(np.isnan(values), -far, values), -far, far)
    unit = np.float32(1 << BITS)
    values = np.where(np.abs(values) < 1, np.trunc(values * unit) / unit, values)
    whole = np.floor(values)
    return whole.astype(np.int32), ((values - whole) * unit).astype(np.int32)


# perspective --------------------------------------------------------------------------------------
def perspective_numbers(matrix: tuple[float, ...], height: int, width: int) -> list[int]:
    """Return the matrix in integers, so that rows of products with (x, y, 1) have few enough bits.

    >>> [n / 2**45 for n in perspective_numbers((1, 0, 5, 0, 1, 7, 0, 0, 0.5), 10, 10)]
    [1.0, 0.0, 5.0, 0.0, 1.0, 7.0, 0.0, 0.0, 0.5]
    """
    rows = [matrix[n : n + 3] for n in (0, 3, 6)]
    most = [abs(r[0]) * (width - 1) + abs(r[1]) * (height - 1) + abs(r[2]) for r in rows]
    room = (_NUMERATOR, _NUMERATOR, _DENOMINATOR)
    shifts = [bits - 1 - math.frexp(m)[1] for m, bits in zip(most, room, strict=True) if m > 0.0]
    return [math.floor(math.ldexp(n, min(shifts, default=0)) + 0.5) for n in matrix]


def perspective_words(
    matrix: tuple[float, ...], height: int, width: int
) -> npt.NDArray[np.uint32] | SymbolicTable:
    """Return the nine integers as low and high words."""
    words = np.array(perspective_numbers(matrix, height, width), np.int64).view(np.uint32)
    return _table("perspective", words, 72, *matrix, height, width)


def perspective(matrix: tuple[float, ...], height: int, width: int) -> Coordinates:
    """Return the source coordinates of every output pixel for a 3x3 matrix; 0 where w is 0."""
    m = np.array(perspective_numbers(matrix, height, width), np.int64).reshape(3, 3)
    y, x = np.mgrid[:height, :width].astype(np.int64)
    u, v, w = ((row[0] * x + row[1] * y + row[2]) >> DROPPED for row in m)
    u, v, w = np.where(w < 0, -u, u), np.where(w < 0, -v, v), np.abs(w)
    (a, b), (c, d) = _divided(u, w), _divided(v, w)
    return a, b, c, d


def _divided(u: npt.NDArray[np.int64], w: npt.NDArray[np.int64]) -> tuple[Whole, Whole]:
    """Return the quotient's integer and 16 bits of its fraction."""
    safe = np.maximum(w, 1)
    whole, rest = u // safe, u % safe
    part = (rest << 16) // safe << (BITS - 16)
    inside = (w > 0) & (np.abs(u) < w << 20)
    away = np.where(w > 0, np.where(u < 0, -AWAY, AWAY), 0)
    return (
        np.where(inside, whole, away).astype(np.int32),
        np.where(inside, part, 0).astype(np.int32),
    )


FUNCTIONS["affine"] = lambda *args: np.concatenate(affine_tables(args[:6], args[6], args[7]))
FUNCTIONS["perspective"] = lambda *args: perspective_words(args[:9], args[9], args[10])
