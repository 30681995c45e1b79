"""Easings: how a way from 0 to 1 is gone, by the names that people know.

``quad``, ``cubic``, ``quart``, ``quint``, ``sine``, ``expo``, ``circ``, ``back``, ``bounce`` and
``elastic`` come as "-in" (slow at first), "-out" (slow at the end) and "-in-out". The plain name is
"-in-out"; that of ``bounce`` and ``elastic`` is "-out", since things bounce where they arrive.
``linear``, and ``ease``, ``ease-in``, ``ease-out``, ``ease-in-out`` are those of CSS.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Final, TypeAlias

from dala.errors import ParameterError, did_you_mean

Curve: TypeAlias = Callable[[float], float]

#: How far "back" goes beyond: a tenth.
_BEYOND: Final = 1.70158
_PERIOD: Final = 0.3
#: Until when, around when, and at what height.
_ARCS: Final = ((1.0, 0.0, 0.0), (2.0, 1.5, 0.75), (2.5, 2.25, 0.9375), (2.75, 2.625, 0.984375))
_JUMPS: Final = {
    "jump-start": (1, 0), "jump-end": (0, 0), "jump-both": (1, 1), "jump-none": (0, -1),
    "start": (1, 0), "end": (0, 0),
}  # fmt: skip


def _bounce_out(t: float) -> float:
    """Four arcs of falling, each a parabola of the same gravity."""
    centre, height = next((arc[1:] for arc in _ARCS if t < arc[0] / 2.75), _ARCS[-1][1:])
    return 7.5625 * (t - centre / 2.75) ** 2 + height


def _expo_in(t: float) -> float:
    return (math.exp2(10.0 * (t - 1.0)) - 2.0**-10) / (1.0 - 2.0**-10)


def _elastic_in(t: float) -> float:
    swing: float = math.sin((1.0 - t) * math.tau / _PERIOD + math.pi / 2)
    return swing * _expo_in(t)


#: The slow-at-first form of each family; the others are turned out of it.
_IN: Final[dict[str, Curve]] = {
    "quad": lambda t: t * t,
    "cubic": lambda t: t**3,
    "quart": lambda t: t**4,
    "quint": lambda t: t**5,
    "sine": lambda t: 1.0 - math.cos(t * math.pi / 2),
    "expo": _expo_in,
    "circ": lambda t: 1.0 - math.sqrt(1.0 - t * t),
    "back": lambda t: t * t * ((_BEYOND + 1.0) * t - _BEYOND),
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


def easing(way: str | Curve | Sequence[Any]) -> Curve:
    """The curve of that name: a function from 0..1 to numbers, 0 at 0 and 1 at 1.

    Args:
        way: one of ``EASINGS`` (also written ``easeInQuad`` or ``quad_in``),
            "cubic-bezier(x1, y1, x2, y2)" or "steps(n)" or "steps(n, jump-start)" as in CSS, the
            same as a tuple (``("cubic-bezier", x1, y1, x2, y2)``), or a function of your own, which
            is given numbers from 0 to 1.

    Raises:
        ParameterError: there is no such easing; the nearest names are offered.

    >>> easing("quad-in")(0.5), easing("linear")(0.25), easing("steps(4)")(0.6)
    (0.25, 0.25, 0.5)
    """
    if isinstance(way, str):
        return _named(way)
    if isinstance(way, list | tuple) and way and isinstance(way[0], str):
        return _called(way[0], list(way[1:]), way)
    if callable(way):
        return _own(way)
    raise ParameterError(
        "easing: a name such as 'ease-out' or 'quad-in', 'cubic-bezier(x1, y1, x2, y2)', "
        f"'steps(n)' or a function is expected, {way!r} came."
    )


def _named(way: str) -> Curve:
    opened = re.fullmatch(r"\s*([a-zA-Z_-]+)\s*\(([^()]*)\)\s*", way)
    if opened:
        return _called(opened[1], [part.strip() for part in opened[2].split(",")], way)
    name = _canonical(way)
    if name == "linear":
        return _linear
    if name in _CSS:
        return _between(_bezier(*_CSS[name]))
    family, _, end = name.partition("-")
    if name in EASINGS:
        return _between(_turned(_IN[family], end or _PLAIN.get(family, "in-out")))
    raise ParameterError(
        f"easing: there is none of the name {way!r}. {did_you_mean(name, EASINGS)} "
        f"Known: linear, ease, ease-in, ease-out, ease-in-out; {', '.join(_IN)}, each also with "
        "-in, -out and -in-out; cubic-bezier(x1, y1, x2, y2); steps(n)."
    )


def _canonical(way: str) -> str:
    """The name in EASINGS, if it is one: easeInOutQuad and quad_in_out are "quad-in-out"."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", way.strip()).lower()
    parts = [part for part in re.split(r"[-_\s.]+", text) if part]
    families = [part for part in parts if part in _IN]
    if len(families) != 1:
        return "-".join(parts)
    ends = [part for part in parts if part not in (families[0], "ease")]
    return "-".join([families[0], *ends])


def _called(name: str, args: list[Any], way: Any) -> Curve:
    name = name.strip().lower().replace("_", "-")
    if name in ("cubic-bezier", "bezier"):
        numbers = [_number(arg) for arg in args]
        if len(numbers) == 4 and None not in numbers:
            x1, y1, x2, y2 = (float(n) for n in numbers if n is not None)
            if 0.0 <= x1 <= 1.0 and 0.0 <= x2 <= 1.0:
                return _between(_bezier(x1, y1, x2, y2))
        raise ParameterError(
            "easing: cubic-bezier takes four numbers x1, y1, x2, y2, of which x1 and x2 are from "
            f"0 to 1; {way!r} came."
        )
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
        raise ParameterError(
            "easing: steps takes a whole number from 1 on (with jump-none from 2 on) and, if you "
            f"like, one of {', '.join(_JUMPS)}; {way!r} came."
        )
    raise ParameterError(
        f"easing: {way!r} is none. {did_you_mean(name, ('cubic-bezier', 'steps'))} "
        "Only cubic-bezier and steps take numbers."
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _linear(t: float) -> float:
    return min(max(t, 0.0), 1.0)


def _between(curve: Curve) -> Curve:
    """The curve inside, and exactly 0 and 1 at its ends and beyond them."""

    def eased(t: float) -> float:
        if t <= 0.0:
            return 0.0
        return 1.0 if t >= 1.0 else curve(t)

    return eased


def _turned(slow: Curve, end: str) -> Curve:
    if end == "in":
        return slow
    if end == "out":
        return lambda t: 1.0 - slow(1.0 - t)
    return lambda t: slow(2.0 * t) / 2.0 if t < 0.5 else 1.0 - slow(2.0 - 2.0 * t) / 2.0


def _steps(count: int, jump: str) -> Curve:
    first, more = _JUMPS[jump]
    of = count + more

    def stepped(t: float) -> float:
        if t >= 1.0:
            return 1.0
        # A product such as 0.29 * 100 may fall short of the whole number that it means.
        step = math.floor(max(t, 0.0) * count + 1e-9)
        return min(max(step + first, 0), of) / of

    return stepped


def _bezier(x1: float, y1: float, x2: float, y2: float) -> Curve:
    """CSS's curve: from (0, 0) to (1, 1), bent towards two points; y where x is t."""
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
            # Newton where it stays between what is known, else halves: x never falls, but may rest.
            new = guess if low < guess < high else (low + high) / 2.0
            if new == s:
                break
            s = new
        return ((ay * s + by) * s + cy) * s

    return curve


def _own(function: Callable[..., Any]) -> Curve:
    for t in (0.0, 0.5, 1.0):
        try:
            value = function(t)
        except Exception as error:
            raise ParameterError(
                f"easing: {function!r} does not take {t} ({type(error).__name__}: {error}). It is "
                "a function of one number from 0 to 1."
            ) from error
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ParameterError(f"easing: {function!r} gives {value!r} at {t}, not a number.")
    return function
