"""Parameters of operations: declared with their ranges, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dala.errors import ParameterError, UnknownParameter, did_you_mean

_PLAIN: Final = frozenset({int, float})


@dataclass(frozen=True)
class Option:
    """One parameter of an operation.

    ``type`` "ints" and "floats" are a fixed number of them (``size``; a single number stands for
    all where ``spread``). ``low`` and ``high`` are the least and the largest value that is taken.
    ``default`` None means that the operation chooses, unless ``required``.
    """

    name: str
    type: Literal["int", "float", "bool", "choice", "ints", "floats"]
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    size: int = 0
    spread: bool = False
    required: bool = False


class Settled(dict[str, Any]):
    """Parameters of a kernel that were checked, for calls that come again with the same ones.

    They stand for any other mapping of them, but are not to be changed.
    """

    __slots__ = ("kernel", "pairs")

    def __init__(self, kernel: str, options: Sequence[Option], params: Mapping[str, Any]) -> None:
        self.kernel = kernel
        #: What :func:`check_options` gives.
        self.pairs = check_options(kernel, options, params)
        super().__init__((name, value) for name, value in self.pairs if value is not None)


def check_options(
    kernel: str, options: Sequence[Option], params: Mapping[str, Any]
) -> tuple[tuple[str, Any], ...]:
    """Every option with its value, in order: numbers, bools, texts, tuples, or None."""
    if type(params) is Settled and params.kernel == kernel:
        return params.pairs
    if params and not isinstance(params, Mapping):
        raise ParameterError(
            f"run_kernel: params of kernel {kernel!r} must be a dict, "
            f"{type(params).__name__} came. Write {{'name': value}}."
        )
    if params and not params.keys() <= {o.name for o in options}:
        known = [o.name for o in options]
        for name in (n for n in params if n not in known):
            hint = did_you_mean(str(name), known) or (
                f"It takes: {', '.join(known)}." if known else "It takes none."
            )
            raise UnknownParameter(
                f"run_kernel: kernel {kernel!r} has no parameter {name!r}. {hint}"
            )
    return tuple([(o.name, _value(kernel, o, params.get(o.name))) for o in options])


def _value(kernel: str, option: Option, value: Any) -> Any:
    if value is None:
        if option.required:
            raise ParameterError(
                f"run_kernel: kernel {kernel!r} needs the parameter {option.name!r}: "
                f"params={{{option.name!r}: ...}}."
            )
        return option.default
    kind = option.type
    # What is as it should be goes by quickly: calls on small pictures last no longer than this.
    if kind == "choice" and type(value) is str and value in option.choices:
        return value
    if kind == "bool" and type(value) is bool:
        return value
    if kind == "choice":
        if not isinstance(value, str) or value not in option.choices:
            hint = did_you_mean(str(value), option.choices)
            listed = ", ".join(map(repr, option.choices))
            where = _where(kernel, option)
            raise ParameterError(f"{where} is one of {listed}; {value!r} came. {hint}".rstrip())
        return value
    if kind == "bool":
        if isinstance(value, (bool, np.bool_)) or value in (0, 1):
            return bool(value)
        raise ParameterError(f"{_where(kernel, option)} is True or False, {value!r} came.")
    if kind in ("int", "float"):
        return _number(kernel, option, value)
    return _numbers(kernel, option, value)


def _where(kernel: str, option: Option) -> str:
    return f"run_kernel: parameter {option.name!r} of kernel {kernel!r}"


def _numbers(kernel: str, option: Option, value: Any) -> tuple[int | float, ...]:
    if option.spread and isinstance(value, (int, float, np.generic)):
        return (_number(kernel, option, value),) * option.size
    items: tuple[Any, ...] | None
    if type(value) is tuple and _PLAIN.issuperset(map(type, value)):
        items = value
    else:
        try:
            flat = np.asarray(value).reshape(-1).tolist() if not isinstance(value, str) else None
            items = None if flat is None else tuple(flat)
        except (TypeError, ValueError):
            items = None
    if items is None or (option.size and len(items) != option.size):
        wanted = f"{option.size} numbers" if option.size else "a list of numbers"
        raise ParameterError(f"{_where(kernel, option)} is {wanted}, {value!r} came.")
    return tuple([_number(kernel, option, item) for item in items])


def _number(kernel: str, option: Option, value: Any) -> int | float:
    low, high, whole = option.low, option.high, option.type in ("int", "ints")
    if (
        type(value) is (int if whole else float)
        and value == value
        and (low is None or value >= low)
        and (high is None or value <= high)
    ):
        return value
    where = _where(kernel, option)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ParameterError(f"{where} must be a number, {type(value).__name__} came ({value!r}).")
    if isinstance(value, float) and math.isnan(value):
        raise ParameterError(f"{where} is NaN. Give a number.")
    if whole:
        if isinstance(value, float) and not value.is_integer():
            raise ParameterError(f"{where} must be a whole number, {value!r} came.")
        value = int(value)
    else:
        value = float(value)
    number: int | float = value
    if (low is not None and value < low) or (high is not None and value > high):
        if low is None:
            wanted = f"at most {high:g}"
        elif high is None:
            wanted = f"at least {low:g}"
        else:
            wanted = f"within {low:g}..{high:g}"
        raise ParameterError(f"{where} must be {wanted}, {value!r} came.")
    return number
