"""Checks of what the calls of shaders are given."""

from __future__ import annotations

from collections.abc import Mapping

from dala.budget import Limits
from dala.errors import ParameterError


def check_texts(call: str, **given: object) -> None:
    """Raise unless all values are str."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise ParameterError.invalid(call, name, "a str", value)


def check_limits(call: str, limits: object) -> None:
    """Raise unless limits are those of ``dala.limits``, or None."""
    if limits is not None and not isinstance(limits, Limits):
        raise ParameterError.invalid(call, "limits", "dala.limits(...) or None", limits)


def check_names(call: str, argument: str, given: object) -> None:
    """Raise unless a value is a mapping with names as its keys, or None."""
    if given is not None and not (
        isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    ):
        raise ParameterError.invalid(call, argument, "a dict with names", given)
