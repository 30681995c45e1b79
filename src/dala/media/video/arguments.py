"""Checks of arguments that readers and writers have."""

from __future__ import annotations

from numbers import Real

from dala.errors import ParameterError


def check_choice(call: str, name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    """Raise ParameterError unless the value is an allowed one."""
    if value not in allowed:
        listed = ", ".join(repr(a) for a in allowed if a is not None)
        raise ParameterError.invalid(call, name, f"one of {listed}", value)


def check_count(call: str, name: str, value: int, least: int) -> int:
    """Return the value if it is an int of at least ``least``, else raise ParameterError."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ParameterError.invalid(call, name, f"an int of {least} or more", value)
    return value


def check_seconds(call: str, name: str, value: float) -> float:
    """Return the value as a float if it is a number above 0, else raise ParameterError."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1e6:
        raise ParameterError.invalid(call, name, "a number of seconds above 0", value)
    return float(value)
