"""Easing functions: map linear progress in [0, 1] to eased progress.

``quad``, ``cubic``, ``quart``, ``quint``, ``sine``, ``expo``, ``circ``, ``back``, ``bounce`` and
``elastic`` exist as "-in" (slow start), "-out" (slow end) and "-in-out". The plain name means
"-in-out", but "-out" for ``bounce`` and ``elastic``. ``linear``, ``ease``, ``ease-in``,
``ease-out`` and ``ease-in-out`` are those of CSS.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Final, TypeAlias

from dala.errors import ParameterError, did_you_mean

#: An easing function.
Curve: TypeAlias = Callable[[float], float]
#: An easing as calls accept it: a name, a function, or a tuple such as ("steps", 4).
EasingLike: TypeAlias = "str | Curve | Sequence[str | float]"

#: "back" overshoots by a tenth.
_OVERSHOOT: Final = 1.70158
_PERIOD: Final = 0.3
#: End, center and height of the arcs of "bounce".
_ARCS: Final = ((1.0, 0.0, 0.0), (2.0, 1.5, 0.75), (2.5, 2.25, 0.9375), (2.75, 2.625, 0.984375))
_JUMPS: Final = {
    "jump-start": (1, 0), "jump-end": (0, 0), "jump-both": (1, 1), "jump-none": (0, -1),
    "start": (1, 0), "end": (0, 0),
}  # fmt: skip


def _bounce_out(t: float) -> float:
    """Four parabolas, one per bounce."""
    center, height = next((arc[1:] for arc in _ARCS if t < arc[0] / 2.75), _ARCS[-1][1:])
    return 7.5625 * (t - center / 2.75) ** 2 + height


def _expo_in(t: float) -> float:
    return (math.exp2(10.0 * (t - 1.0)) - 2.0**-10) / (1.0 - 2.0**-10)


def _elastic_in(t: float) -> float:
    wave: float = math.sin((1.0 - t) * math.tau / _PERIOD + math.pi / 2)
    return wave * _expo_in(t)


#: The "-in" form of each family; the others are derived from it.
_IN: Final[dict[str, Curve]] = {
    "quad": lambda t: t * t,
    "cubic": lambda t: t**3,
    "quart": lambda t: t**4,
    "quint": lambda t: t**5,
    "sine": lambda t: 1.0 - math.cos(t * math.pi / 2),
    "expo": _expo_in,
    "circ": lambda t: 1.0 - math.sqrt(1.0 - t * t),
    "back": lambda t: t * t * ((_OVERSHOOT + 1.0) * t - _OVERSHOOT),
    "bounce": lambda t: 1.0 - _bounce_out(1.0 - t),
    "elastic": _elastic_in,
}
_PLAIN: Final = {"bounce": "out", "elastic": "out"}
_CSS: Final = {
    "ease": (0.25, 0.1, 0.25, 1.0),
    "ease-in": (0.42, 0.0, 1.0, 1.0),
    "ease-out": (0.0, 0.0, 0.58, 1.0),
    "ease-in-out": (0.42, 0.0, 0.58, 1.0),
}

#: Every name that :func:`easing` knows.
EASINGS: Final = (
    "linear",
    *_CSS,
    *(f"{family}{way}" for family in _IN for way in ("", "-in", "-out", "-in-out")),
)


def easing(name: EasingLike) -> Curve:
    """Return an easing function, which maps 0 to 0 and 1 to 1.

    Args:
        name: one of ``EASINGS`` (also written ``easeInQuad`` or ``quad_in``),
            "cubic-bezier(x1, y1, x2, y2)", "steps(n)" or "steps(n, jump-start)" as in CSS, the
            same as a tuple (``("cubic-bezier", x1, y1, x2, y2)``), or a function of one number
            from 0 to 1.

    Raises:
        ParameterError: there is no such easing; the error suggests the nearest names.

    >>> easing("quad-in")(0.5), easing("linear")(0.25), easing("steps(4)")(0.6)
    (0.25, 0.25, 0.5)
    """
    if isinstance(name, str):
        return _named(name)
    if isinstance(name, list | tuple) and name and isinstance(name[0], str):
        return _with_arguments(name[0], list(name[1:]), name)
    if callable(name):
        return _checked_function(name)
    expected = (
        "a name such as 'ease-out' or 'quad-in', 'cubic-bezier(x1, y1, x2, y2)', 'steps(n)' or a "
        "function"
    )
    raise ParameterError.invalid("easing", "name", expected, name)


def _named(text: str) -> Curve:
    opened = re.fullmatch(r"\s*([a-zA-Z_-]+)\s*\(([^()]*)\)\s*", text)
    if opened:
        return _with_arguments(opened[1], [part.strip() for part in opened[2].split(",")], text)
    name = _canonical(text)
    if name == "linear":
        return _linear
    if name in _CSS:
        return _clamped(_bezier(*_CSS[name]))
    family, _, end = name.partition("-")
    if name in EASINGS:
        return _clamped(_variant(_IN[family], end or _PLAIN.get(family, "in-out")))
    hint = did_you_mean(name, EASINGS)
    raise ParameterError(
        f"easing: there is no easing {text!r}. {hint + ' ' if hint else ''}"
        f"Known: linear, ease, ease-in, ease-out, ease-in-out; {', '.join(_IN)}, each also with "
        "-in, -out and -in-out; cubic-bezier(x1, y1, x2, y2); steps(n)."
    )


def _canonical(name: str) -> str:
    """Return the spelling of EASINGS: easeInOutQuad and quad_in_out become "quad-in-out"."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.strip()).lower()
    parts = [part for part in re.split(r"[-_\s.]+", text) if part]
    families = [part for part in parts if part in _IN]
    if len(families) != 1:
        return "-".join(parts)
    ends = [part for part in parts if part not in (families[0], "ease")]
    return "-".join([families[0], *ends])


def _with_arguments(name: str, args: Sequence[object], given: EasingLike) -> Curve:
    name = name.strip().lower().replace("_", "-")
    if name in ("cubic-bezier", "bezier"):
        numbers = [_number(arg) for arg in args]
        if len(numbers) == 4 and None not in numbers:
            x1, y1, x2, y2 = (float(n) for n in numbers if n is not None)
            if 0.0 <= x1 <= 1.0 and 0.0 <= x2 <= 1.0:
                return _clamped(_bezier(x1, y1, x2, y2))
        expected = "four numbers x1, y1, x2, y2, where x1 and x2 are from 0 to 1"
        raise ParameterError.invalid("easing", "the arguments of cubic-bezier", expected, given)
    if name == "steps":
        count = _number(args[0]) if args else None
        jump = str(args[1]).lower() if len(args) == 2 else "jump-end"
        least = 2 if jump == "jump-none" else 1
        if (
            len(args) in (1, 2)
            and count is not None
            and count == int(count)
            and count >= least
            and jump in _JUMPS
        ):
            return _steps(int(count), jump)
        expected = "an int of at least 1 (2 with jump-none) and optionally one of " + ", ".join(
            _JUMPS
        )
        raise ParameterError.invalid("easing", "the arguments of steps", expected, given)
    raise ParameterError(
        f"easing: there is no easing {given!r}. {did_you_mean(name, ('cubic-bezier', 'steps'))} "
        "Only cubic-bezier and steps take numbers."
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _linear(t: float) -> float:
    return min(max(t, 0.0), 1.0)


def _clamped(curve: Curve) -> Curve:
    """Return the curve, with exactly 0 up to 0 and exactly 1 from 1 on."""

    def eased(t: float) -> float:
        if t <= 0.0:
            return 0.0
        return 1.0 if t >= 1.0 else curve(t)

    return eased


def _variant(curve_in: Curve, end: str) -> Curve:
    """Return the "in", "out" or "in-out" form of an "in" curve."""
    if end == "in":
        return curve_in
    if end == "out":
        return lambda t: 1.0 - curve_in(1.0 - t)
    return lambda t: curve_in(2.0 * t) / 2.0 if t < 0.5 else 1.0 - curve_in(2.0 - 2.0 * t) / 2.0


def _steps(count: int, jump: str) -> Curve:
    first, more = _JUMPS[jump]
    of = count + more

    def stepped(t: float) -> float:
        if t >= 1.0:
            return 1.0
        # Products such as 0.29 * 100 are slightly below the integer they stand for.
        step = math.floor(max(t, 0.0) * count + 1e-9)
        return min(max(step + first, 0), of) / of

    return stepped


def _bezier(x1: float, y1: float, x2: float, y2: float) -> Curve:
    """Return the cubic Bezier easing of CSS: y as a function of x."""
    if x1 == y1 and x2 == y2:
        return _linear
    ax, bx, cx = 1.0 + 3.0 * (x1 - x2), 3.0 * (x2 - 2.0 * x1), 3.0 * x1
    ay, by, cy = 1.0 + 3.0 * (y1 - y2), 3.0 * (y2 - 2.0 * y1), 3.0 * y1

    def curve(t: float) -> float:
        low, high, s = 0.0, 1.0, t
        for _ in range(64):
            off = ((ax * s + bx) * s + cx) * s - t
            if abs(off) < 1e-15:
                break
            if off > 0.0:
                high = s
            else:
                low = s
            slope = (3.0 * ax * s + 2.0 * bx) * s + cx
            guess = s - off / slope if slope > 1e-9 else -1.0
            # Newton's method while it stays in the bracket, else bisection: x is monotonic in s.
            new = guess if low < guess < high else (low + high) / 2.0
            if new == s:
                break
            s = new
        return ((ay * s + by) * s + cy) * s

    return curve


def _checked_function(function: Callable[..., float]) -> Curve:
    for t in (0.0, 0.5, 1.0):
        try:
            value = function(t)
        except Exception as error:
            raise ParameterError(
                f"easing: {function!r} failed for {t} ({type(error).__name__}: {error}). An easing "
                "is a function of one number from 0 to 1."
            ) from error
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ParameterError(
                f"easing: {function!r} must return a finite number, got {value!r} for {t}."
            )
    return function
