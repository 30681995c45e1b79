"""Checks of arguments that readers and writers have."""

from __future__ import annotations

from fractions import Fraction
from numbers import Real

from dala.errors import ParameterError


def check_choice(call: str, name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    """Raise ParameterError unless the value is an allowed one."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        listed = ", ".join(repr(a) for a in allowed if a is not None)
        raise ParameterError.invalid(call, name, f"one of {listed}", value)


def check_count(call: str, name: str, value: int, least: int, most: int | None = None) -> int:
    """Return the value if it is an int from ``least`` to ``most``, else raise ParameterError."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not fits or (most is not None and value > most):
        upper = "or more" if most is None else f"to {most}"
        raise ParameterError.invalid(call, name, f"an int of {least} {upper}", value)
    return value


def check_seconds(call: str, name: str, value: float) -> float:
    """Return the value as a float if it is a number above 0, else raise ParameterError."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1e6:
        raise ParameterError.invalid(call, name, "a number of seconds above 0", value)
    return float(value)


def check_rate(call: str, fps: float | str | Fraction) -> Fraction:
    """Return frames per second as a fraction; 29.97 and the like become 30000/1001.

    >>> check_rate("video.write", 29.97), check_rate("video.write", "25")
    (Fraction(30000, 1001), Fraction(25, 1))
    """
    try:
        if isinstance(fps, bool):
            raise TypeError
        rate = Fraction(fps)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        rate = Fraction(0)
    if not 0 < rate <= 100_000:
        raise ParameterError.invalid(
            call, "fps", "a number of frames per second, such as 30 or Fraction(30000, 1001)", fps
        )
    if isinstance(fps, float):
        ntsc = Fraction(round(rate * Fraction(1001, 1000)) * 1000, 1001)
        if rate != round(rate) and abs(rate - ntsc) < Fraction(5, 1000):
            return ntsc
        return rate.limit_denominator(1001)
    return rate


def aspect_of_pixels(call: str, value: Fraction | float | None) -> Fraction | None:
    """Return a pixel's width / height as a fraction."""
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        found = Fraction(value).limit_denominator(65535)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        found = Fraction(0)
    if not 0 < found <= 65535:
        raise ParameterError.invalid(
            call, "pixel_aspect", "a pixel's width / height, such as Fraction(64, 45)", value
        )
    return found
