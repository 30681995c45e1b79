"""The dtype of an operation's result.

Two buffers:

- Equal dtypes stay. u8 with another dtype gives the other one.
- An integer with f32 gives f32; s64 with f32, and anything with f64, gives f64.
- s32 with u32 gives s64, as in NumPy. On devices without s64 that is an error.

A number takes the dtype of the buffer: an int must fit it, and a float makes an integer buffer
f32 (s64: f64). NumPy scalars, arrays of shape () and lists count as numbers. ``/`` gives a float:
f32, or f64 for s64 and f64. Comparisons give u8, 0 or 1.

Integers wrap around, except u8, which is computed wider and saturates.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dala.errors import OutOfRange, UnsupportedDtype
from dala.gpu.compute.buffer import NARROWER
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.lang.scalars import RANGES

FLOATS: Final = frozenset({"f32", "f64"})


def common(a: str, b: str) -> str:
    """Return the dtype of two buffers' result.

    >>> common("u8", "s32"), common("s32", "f32"), common("s64", "f32"), common("s32", "u32")
    ('s32', 'f32', 'f64', 's64')
    """
    if a == b:
        return a
    pair = {a, b}
    if "f64" in pair:
        return "f64"
    if "f32" in pair:
        return "f64" if "s64" in pair else "f32"
    if "u8" in pair:
        return (pair - {"u8"}).pop()
    return "s64"


def real(dtype: str) -> str:
    """Return the float dtype in which a dtype is divided.

    >>> real("u8"), real("s64")
    ('f32', 'f64')
    """
    return "f64" if dtype in ("f64", "s64") else "f32"


def as_number(value: object) -> int | float | None:
    """Return a number, a NumPy scalar or an array of shape () as an int or float; else None."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float) else None


def with_number(dtype: str, number: int | float, call: str) -> str:
    """Return the dtype of a buffer's result with a number; raise if an int does not fit."""
    if dtype in FLOATS:
        return dtype
    if isinstance(number, float):
        return real(dtype)
    low, high = RANGES[dtype]
    if not low <= number <= high:
        raise OutOfRange(
            f"{call}: {number} does not fit in {dtype!r} ({low} to {high}). Convert the buffer "
            "first: b.astype('s32'), 's64' or 'f32'.",
            call=call,
        )
    return dtype


def as_type(number: int | float, dtype: str) -> int | float:
    """Return a number as a parameter of a dtype; floats beyond f32 become infinite."""
    if dtype not in FLOATS:
        return int(number)
    try:
        value = float(number)
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    if dtype == "f32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return value


def check_device(engine: Engine, dtype: str, call: str, reason: str) -> None:
    """Raise UnsupportedDtype if a device does not have the dtype of a result."""
    if dtype not in engine.dtypes:
        narrow, does = NARROWER[dtype]
        raise UnsupportedDtype(
            f"{call}: {reason} {dtype!r}, which {engine.info().get('name', engine.id)} "
            f"({engine.id}) does not support. Convert first: x.astype({narrow!r}) {does}; or move "
            "the buffers: b.to('cpu').",
            call=call,
            argument="dtype",
        )


def compared(op: str, dtype: str, number: int | float) -> tuple[str, int | float]:
    """Return an exact comparison of an integer buffer with any number.

    Integers are compared with an integer in their range, so that no digit is lost.

    >>> compared("lt", "s32", 2.5), compared("eq", "u8", 300)
    (('lt', 3), ('lt', 0))
    """
    low, high = RANGES[dtype]
    true, false = ("ge", low), ("lt", low)
    if number != number or (op in ("eq", "ne") and number % 1):  # NaN, or no integer
        return true if op == "ne" else false
    if isinstance(number, float) and not math.isinf(number):
        number = math.ceil(number) if op in ("lt", "ge") else math.floor(number)
    if low <= number <= high:
        return op, number
    above = number > high
    holds = {"lt": above, "le": above, "gt": not above, "ge": not above, "eq": False, "ne": True}
    return true if holds[op] else false
