"""Declare the parameters of operations and check their values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from dala import memory
from dala.errors import ParameterError, UnknownParameter, did_you_mean
from dala.gpu.color import color_advice, unit_color
from dala.gpu.compute.lang.declaration import expected_numbers
from dala.notices import notify
from dala.typing import Params, ParamValue

#: Bytes of a number in a tuple.
NUMBER_BYTES: Final = 40
_NUMBER_TYPES: Final = (int, float)
_PLAIN_TYPES: Final = frozenset(_NUMBER_TYPES)


@dataclass(frozen=True)
class DeclaredParam:
    """A parameter, as operations and filters declare it.

    Attributes:
        name: the name that callers use.
        type: the value's type; "ints" and "floats" take several numbers, and three or four of them
            a color; a "size" is a width and a height in pixels.
        default: the value if omitted. None lets the operation choose.
        low: the smallest accepted number, or None.
        high: the largest accepted number, or None.
        choices: the accepted strings of a "choice".
        size: the length of "ints" and "floats"; 0 accepts any length.
        spread: True if a single number is accepted and repeated ``size`` times.
        required: True if callers must pass it.
    """

    name: str
    type: str
    default: ParamValue = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    size: int = 0
    spread: bool = False
    required: bool = False

    @property
    def whole(self) -> bool:
        """True if its numbers are ints."""
        return self.type in ("int", "ints", "size")


@dataclass(frozen=True)
class Parameter(DeclaredParam):
    """One parameter of an operation.

    >>> Parameter("radius", "int", 3, low=0, high=200).expected
    'an int from 0 to 200'
    """

    type: Literal["int", "float", "bool", "choice", "ints", "floats", "size"]

    @property
    def expected(self) -> str:
        """A phrase for the accepted values, used in error messages."""
        if self.type == "bool":
            return "True or False"
        if self.type == "choice":
            return f"one of {', '.join(map(repr, self.choices))}"
        if self.type in ("ints", "floats") and not self.size:
            return expected_numbers(self.whole, self.low, self.high, listed=True)
        text = expected_numbers(self.whole, self.low, self.high, self.size, spread=self.spread)
        return text.replace("2 ints", "(width, height), ints") if self.type == "size" else text


def size_parameter(*, high: int = 1 << 20, spread: bool = False) -> Parameter:
    """Return the declaration of ``size``: (width, height) in pixels.

    Arrays have their rows first: an operation takes ``rows_first(values["size"])``.

    >>> size_parameter().expected
    '(width, height), ints from 1 to 1048576'
    """
    return Parameter("size", "size", size=2, low=1, high=high, spread=spread, required=spread)


class PixelSize(NamedTuple):
    """A size that says its order: it is made where that is known, as in a file.

    Where filters accept it, a side may be None, which keeps the aspect.
    """

    width: int
    height: int

    @classmethod
    def of(cls, sides: Iterable[Any]) -> PixelSize:
        """Return the size of a width and a height."""
        width, height = sides
        return cls(width, height)

    def __repr__(self) -> str:
        return repr(tuple(self))


def rows_first(size: tuple[int, int]) -> tuple[int, int]:
    """Return a size (width, height) as (height, width), the first part of an array's shape.

    >>> rows_first((640, 360))
    (360, 640)
    """
    width, height = size
    return height, width


#: A checked parameter value. Its type is declared at run time, so type checkers cannot know it.
CheckedValue: TypeAlias = Any

#: All parameters of an operation as (name, checked value), in order of declaration.
CheckedValues: TypeAlias = tuple[tuple[str, CheckedValue], ...]


class CheckedParams(dict[str, CheckedValue]):
    """Parameters of one operation, checked once for many calls.

    Pass them like any other mapping; calls skip the checks. Treat them as read-only.
    """

    __slots__ = ("kernel", "pairs")

    def __init__(self, kernel: str, options: Sequence[Parameter], params: Params) -> None:
        self.kernel = kernel
        #: The result of :func:`check_values`.
        self.pairs = check_values(kernel, options, params)
        super().__init__((name, value) for name, value in self.pairs if value is not None)


def check_mapping(kernel: str, params: Params) -> None:
    """Raise if the parameters of a call are not a mapping, also if they are empty or None."""
    if not isinstance(params, (dict, Mapping)):  # dicts first: an ABC's isinstance is slow
        got = None if params is None else type(params)
        raise ParameterError.invalid(kernel, "params", "a dict", got, "Write {'name': value}.")


def check_params(kernel: str, params: Params, known: Iterable[str]) -> None:
    """Raise if the parameters are not a mapping, or the kernel does not know one of the names."""
    check_mapping(kernel, params)
    names = list(known)
    for name in params:
        if name not in names:
            advice = did_you_mean(str(name), names) or (
                f"It takes: {', '.join(names)}." if names else "It takes no parameters."
            )
            raise UnknownParameter(
                f"{kernel}: no parameter {name!r}. {advice}", call=kernel, argument=str(name)
            )


def exact_key(value: object) -> Hashable:
    """Return a key that is equal only for the same value of the same type.

    1, 1.0 and True are equal, and so are 0.0 and -0.0, but a parameter may take one and refuse
    another, or give another result.

    >>> exact_key(1) == exact_key(True), exact_key((0.0,)) == exact_key((-0.0,))
    (False, False)
    """
    if isinstance(value, tuple):
        return tuple(map(exact_key, value))
    kind = type(value)
    if (kind is float or issubclass(kind, np.floating)) and not value:
        return kind, str(value)
    return kind, value


def python_number(value: object) -> object:
    """Convert a NumPy scalar to a Python number; return other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def number_of(value: object, whole: bool) -> int | float | None:
    """Convert a number to an int, if ``whole``, or a float; return None if it is not one.

    >>> number_of(2.0, True), number_of(2.5, True), number_of(np.uint8(3), False)
    (2, None, 3.0)
    """
    value = python_number(value)
    if not isinstance(value, (int, float)):
        return None
    if whole and isinstance(value, float) and not value.is_integer():
        return None
    kind = int if whole else float
    try:
        return value if isinstance(value, kind) else kind(value)
    except OverflowError:
        return None


def missing(kernel: str, name: str) -> ParameterError:
    """Return the error for a missing required parameter."""
    return ParameterError(
        f"{kernel}: missing required parameter {name!r}.", call=kernel, argument=name
    )


def check_values(kernel: str, options: Sequence[Parameter], params: Params) -> CheckedValues:
    """Return every parameter with its checked value, in order of declaration."""
    if type(params) is CheckedParams and params.kernel == kernel:
        return params.pairs
    check_mapping(kernel, params)
    if params and not params.keys() <= {o.name for o in options}:
        check_params(kernel, params, [o.name for o in options])
    return tuple(
        [
            (o.name, o.default)
            if (value := params.get(o.name)) is None and not o.required
            else (o.name, _value(kernel, o, value))
            for o in options
        ]
    )


def _value(kernel: str, option: Parameter, value: ParamValue) -> CheckedValue:
    if value is None:
        raise missing(kernel, option.name)
    found: CheckedValue = None
    kind, advice = option.type, ""
    if kind in ("int", "float"):
        found = _number(option, value)
    elif kind == "choice":
        if isinstance(value, str) and value in option.choices:
            return value
        advice = did_you_mean(str(value), option.choices)
    elif kind == "bool":
        if isinstance(value, (bool, np.bool_, int, float)) and value in (0, 1):
            return bool(value)
    else:
        found = _numbers(option, value)
        advice = color_advice(value) if option.size in (3, 4) else ""
        if kind == "size" and found is not None and not isinstance(value, PixelSize):
            report_order(kernel, *found)
    if found is None:
        got = python_number(value)
        raise ParameterError.invalid(kernel, option.name, option.expected, got, advice)
    return found


#: Whether it was said that sizes are (width, height).
_reported: list[str] = []


def report_order(call: str, width: int, height: int) -> None:
    """Say once which order a size is taken in: earlier snapshots took (height, width).

    >>> from dala.notices import collected
    >>> before, _reported[:] = _reported[:], []
    >>> with collected() as notices:
    ...     report_order("resize", 64, 64)
    ...     report_order("resize", 64, 48)
    ...     report_order("resize", 80, 48)
    >>> notices
    ['resize: size=(64, 48) is 64 wide and 48 high. Earlier snapshots took (height, width).']
    >>> _reported[:] = before
    """
    if width != height and not _reported:
        _reported.append(call)
        notify(
            f"{call}: size=({width}, {height}) is {width} wide and {height} high. Earlier "
            "snapshots took (height, width).",
            stacklevel=2,
        )


def _numbers(option: Parameter, value: ParamValue) -> tuple[int | float, ...] | None:
    """Check a list of numbers; return None if one of them is invalid."""
    if option.spread and isinstance(value, (int, float, np.generic)):
        number = _number(option, value)
        return None if number is None else (number,) * option.size
    items: Sequence[object]
    if isinstance(value, tuple) and (
        _PLAIN_TYPES.issuperset(map(type, value))  # symbols of a recorded plan are other types
        or all(isinstance(n, _NUMBER_TYPES) and not isinstance(n, bool) for n in value)
    ):
        items = value
    elif isinstance(value, str):
        items = unit_color(value, option.size) or ()
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            return None
        if option.size and array.size != option.size:
            return None
        memory.check_copy(array.size * NUMBER_BYTES, f"parameter {option.name!r}")
        items = array.reshape(-1).tolist()
    if option.size and len(items) != option.size:
        return None
    numbers = [_number(option, item) for item in items]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def _number(option: Parameter, value: object) -> int | float | None:
    """Convert a number to the parameter's type; return None if it is invalid."""
    low, high, whole = option.low, option.high, option.whole
    found = value if type(value) is (int if whole else float) else number_of(value, whole)
    if found is None or isinstance(value, bool | np.bool_) or found != found:
        return None
    if (low is not None and found < low) or (high is not None and found > high):
        return None
    if type(found) is float and not found:
        return 0.0  # not -0.0, which is equal: plans are found by their values
    return found
