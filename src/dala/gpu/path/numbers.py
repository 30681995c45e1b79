"""Checks of the numbers of paths, and affine matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.errors import ParameterError
from dala.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Largest magnitude of a coordinate. It keeps every product of coordinates finite.
LIMIT: Final = 1e9

#: The matrix (a, b, c, d, e, f) maps x to a*x + c*y + e and y to b*x + d*y + f.
Matrix: TypeAlias = tuple[float, float, float, float, float, float]

IDENTITY: Final[Matrix] = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_COORDINATE: Final = "a finite number from -1e9 to 1e9"


def numbers(call: str, names: str, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return coordinates as floats; an error names the first that is none.

    >>> numbers("Path.line_to", "x y", (1, 2.5))
    (1.0, 2.5)
    """
    try:
        if all(-LIMIT <= value <= LIMIT for value in values):
            return tuple(map(float, values))
    except (TypeError, ValueError):
        pass
    for name, value in zip(names.split(), values, strict=True):
        try:
            fits = bool(-LIMIT <= value <= LIMIT)
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise ParameterError.invalid(call, name, _COORDINATE, value)
    raise ParameterError.invalid(call, names.split()[0], _COORDINATE, values[0])


def size(call: str, name: str, value: float) -> float:
    """Return a length that is not negative."""
    (number,) = numbers(call, name, (value,))
    if number < 0:
        raise ParameterError.invalid(call, name, "a number from 0 to 1e9", value)
    return number


def fraction(call: str, name: str, value: float) -> float:
    """Return a number from 0 to 1."""
    (number,) = numbers(call, name, (value,))
    if not 0 <= number <= 1:
        raise ParameterError.invalid(call, name, "a number from 0 to 1", value)
    return number


def point_array(call: str, argument: str, given: ArrayLike) -> NDArray:
    """Return points as a read-only float64 array of shape (n, 2)."""
    try:
        found = np.array(given, np.float64) + 0.0  # no negative zeros: equal paths hash alike
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.size == 0 and np.size(np.asarray(given, object)) == 0:
        found = np.empty((0, 2))
    if found.ndim != 2 or found.shape[1] != 2:
        raise ParameterError.invalid(call, argument, "points as pairs of numbers (x, y)", given)
    within = np.abs(found) <= LIMIT
    if not within.all():
        row = int(np.argmin(within.all(axis=1)))
        raise ParameterError.invalid(
            call,
            f"{argument}[{row}]",
            "two finite numbers from -1e9 to 1e9",
            tuple(found[row].tolist()),
        )
    found.setflags(write=False)
    return found


def turn(degrees: float) -> tuple[float, float]:
    """Return cosine and sine of an angle, exact at multiples of 90 degrees.

    >>> turn(90), turn(180)
    ((0.0, 1.0), (-1.0, 0.0))
    """
    quarter, rest = divmod(degrees, 90.0)
    cosine, sine = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(quarter) % 4):
        cosine, sine = -sine, cosine
    return cosine + 0.0, sine + 0.0


def matrix_of(
    call: str,
    translate: Sequence[float] = (0.0, 0.0),
    rotate: float = 0.0,
    scale: float | Sequence[float] = 1.0,
    matrix: ArrayLike | None = None,
) -> Matrix:
    """Return the matrix that applies ``matrix``, then scales, rotates and translates.

    Args:
        call: The name of the call in errors.
        translate: The distances along x and y.
        rotate: The angle in degrees, clockwise on the screen, about the origin.
        scale: One factor, or one for x and one for y.
        matrix: Six numbers (a, b, c, d, e, f) as in canvas and SVG, or an array of 2 x 3 or 3 x 3.

    >>> matrix_of("call", translate=(5, 6), scale=2)
    (2.0, 0.0, 0.0, 2.0, 5.0, 6.0)
    """
    x, y = _pair(call, "translate", translate)
    sx, sy = _pair(call, "scale", (scale, scale) if np.ndim(scale) == 0 else scale)  # type: ignore[arg-type]
    cosine, sine = turn(*numbers(call, "rotate", (rotate,)))
    placed = (cosine * sx, sine * sx, 0.0 - sine * sy, cosine * sy, x, y)
    return placed if matrix is None else multiplied(placed, _six(call, matrix))


def multiplied(outer: Matrix, inner: Matrix) -> Matrix:
    """Return the matrix that applies ``inner`` first, then ``outer``."""
    a, b, c, d, e, f = outer
    p, q, r, s, t, u = inner
    return (
        a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s,
        a * t + c * u + e, b * t + d * u + f,
    )  # fmt: skip


def _pair(call: str, name: str, given: Sequence[float]) -> tuple[float, float]:
    try:
        x, y = given
    except (TypeError, ValueError):
        raise ParameterError.invalid(call, name, "two numbers (x, y)", given) from None
    x, y = numbers(call, f"{name}[0] {name}[1]", (x, y))
    return x, y


def _six(call: str, given: ArrayLike) -> Matrix:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape == (3, 3) and found[2].tolist() == [0, 0, 1]:
        found = found[:2]
    if found.shape == (2, 3):
        found = found.T.ravel()
    if found.shape != (6,) or not (np.abs(found) <= LIMIT).all():
        raise ParameterError.invalid(
            call, "matrix", "six finite numbers (a, b, c, d, e, f) or an affine array", given
        )
    a, b, c, d, e, f = found.tolist()
    return a, b, c, d, e, f
