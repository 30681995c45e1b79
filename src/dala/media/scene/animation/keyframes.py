"""The value of an animated property as a function of time: keyframes, runs and easings."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.arguments import SOME, Integer, Items, Quantity
from dala.errors import ColorError, ParameterError
from dala.gpu.paint import Gradient
from dala.gpu.path import Path
from dala.gpu.path.svg import is_path_data
from dala.media.scene.nodes.paints import mix_gradients, paints_of
from dala.media.sources.easing import EasingLike
from dala.media.sources.easing import easing as find_easing
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.property_types import Value

#: A value that can be animated. Colors may be given as strings.
AnimatedValue: TypeAlias = (
    "bool | float | str | Sequence[AnimatedValue] | NDArray | Path | Gradient"
)
#: Maps two values and a progress (0 is the first, 1 the second; beyond is allowed) to a value.
Interpolator: TypeAlias = Callable[..., AnimatedValue]

CALL: Final = "add_animation"


def interpolation(
    property: str, values: Sequence[Value], *, colors: bool | None = None, held: bool = False
) -> tuple[list[AnimatedValue], Interpolator]:
    """Return the values in one form, and the function that interpolates two of them.

    Strings are colors. Colors become (r, g, b, a) and are interpolated with premultiplied alpha,
    so a fade from "transparent" to red is red all the time. Tuples are interpolated item by item.
    Booleans, and words where ``held``, keep the first value until the second is reached.

    Args:
        property: the property that errors name.
        values: the values.
        colors: whether they are colors; by default, if the property's name ends with "color".
        held: whether they are words, such as a text.

    Raises:
        ParameterError: a value cannot be interpolated, or the values are of different kinds.

    >>> values, mix = interpolation("color", ["transparent", "red"])
    >>> mix(*values, 0.5)
    (255, 0, 0, 128)
    """
    if held:
        return list(values), _hold
    if any(isinstance(v, Path) or is_path_data(v) for v in values):
        return _paths(property, values)
    if (gradients := paints_of(property, list(values))) is not None:
        return [*gradients], mix_gradients
    colored = property.endswith("color") if colors is None else colors
    if colored or any(isinstance(v, str) for v in values):
        found = [_color(property, v, colored) for v in values]
        if None not in found:
            return [color for color in found if color is not None], mix_colors
    if all(isinstance(v, bool) for v in values):
        return list(values), _hold
    if all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        return [_number(property, v) for v in values], mix_numbers
    if all(isinstance(v, list | tuple) or hasattr(v, "tolist") for v in values):
        rows = [tuple(v.tolist() if hasattr(v, "tolist") else v) for v in values]
        if len({len(row) for row in rows}) == 1 and rows[0]:
            return _rows(property, rows)
    got = ", ".join(repr(v) for v in values[:4])
    raise ParameterError(
        f"{CALL}: values of {property!r} must be numbers, tuples of the same length, or colors "
        f"(CSS names, '#rrggbb'), all of one kind, got {got}.",
        argument=property,
    )


def mix_numbers(a: float, b: float, t: float) -> float:
    """Interpolate two numbers; the result at 1 is exactly the second."""
    return b if t == 1.0 else a + (b - a) * t


def mix_colors(a: tuple[int, ...], b: tuple[int, ...], t: float) -> tuple[int, ...]:
    """Interpolate two colors (r, g, b, a) with premultiplied alpha, as CSS does."""
    alpha = min(max(a[3] + (b[3] - a[3]) * t, 0.0), 255.0)
    if a[3] == b[3]:
        rgb = [x + (y - x) * t for x, y in zip(a[:3], b[:3], strict=True)]
    elif alpha == 0.0:
        rgb = [*(a if t < 0.5 else b)[:3]]
    else:
        whole = [x * a[3] + (y * b[3] - x * a[3]) * t for x, y in zip(a[:3], b[:3], strict=True)]
        rgb = [x / alpha for x in whole]
    return tuple(min(max(math.floor(x + 0.5), 0), 255) for x in (*rgb, alpha))


def _hold(a: Value, b: Value, t: float) -> Value:
    return b if t >= 1.0 else a


def _rows(property: str, rows: list[tuple[Value, ...]]) -> tuple[list[AnimatedValue], Interpolator]:
    columns = [interpolation(property, column) for column in zip(*rows, strict=True)]
    mixes = [mix for _, mix in columns]
    values: list[AnimatedValue] = [*zip(*(values for values, _ in columns), strict=True)]

    def mix(a: tuple[Value, ...], b: tuple[Value, ...], t: float) -> tuple[Value, ...]:
        return tuple(m(x, y, t) for m, x, y in zip(mixes, a, b, strict=True))

    return values, mix


def _paths(property: str, values: Sequence[Value]) -> tuple[list[AnimatedValue], Interpolator]:
    """Return paths, which must have the same commands, and the function that mixes their points."""
    paths = [Path.svg(v) if isinstance(v, str) else v for v in values]
    kinds = {path.verbs if isinstance(path, Path) else None for path in paths}
    if len(kinds) > 1 or None in kinds:
        raise ParameterError(
            f"{CALL}: values of {property!r} must be paths of the same commands (their verbs). "
            "Make them by the same calls, such as two stars.",
            argument=property,
        )
    return paths, Path.morph


def _number(property: str, value: Value) -> float:
    if isinstance(value, Integral):
        return operator.index(value)
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError.invalid(CALL, f"a value of {property!r}", "a finite number", number)
    return number


def _color(property: str, value: Value, colored: bool) -> tuple[int, ...] | None:
    """Return a color; None if it is not one and the property does not need one."""
    from dala.gpu.color import rgba_of

    try:
        return tuple(rgba_of(value, CALL, f"a value of {property!r}"))
    except ColorError as error:
        if not colored:
            return None
        raise ParameterError(str(error), argument=property) from None


#: (seconds, value) or (seconds, value, easing).
Keyframe: TypeAlias = (
    "tuple[float, AnimatedValue] | tuple[float, AnimatedValue, EasingLike | None]"
    " | Sequence[AnimatedValue | EasingLike | None]"
)
#: Seconds, value, and the easing up to the next keyframe.
CheckedKeyframe: TypeAlias = "tuple[float, Value, EasingLike | None]"

#: Times are rounded to nanoseconds, so that sums of decimal fractions are exact.
DIGITS: Final = 9
_TIME: Final = Quantity(words="a number of seconds")
_SECONDS: Final = Quantity(0, words="a number of seconds of at least 0")
_REPEAT: Final = Integer(
    -1, words="the number of further runs, an int of at least 0, or -1 for no end"
)


class KeyframeCurve:
    """The value of a property at each time since the animation began.

    ``times`` and ``values`` are the keyframes. The first value applies before the first keyframe,
    the last value after the last.
    """

    def __init__(
        self,
        property: str,
        keyframes: Sequence[CheckedKeyframe],
        duration: float,
        easing: EasingLike,
        repeat: int,
        yoyo: bool,
        colors: bool | None = None,
        held: bool = False,
    ) -> None:
        whole = find_easing(easing)
        self.property = property
        self.times = [time for time, _, _ in keyframes]
        self.values, self._mix = interpolation(
            property, [value for _, value, _ in keyframes], colors=colors, held=held
        )
        self._curves = [whole if own is None else find_easing(own) for _, _, own in keyframes]
        #: Duration of one run, in seconds.
        self.duration = duration
        #: Number of further runs; -1 for no end.
        self.repeat = _REPEAT.check(CALL, "repeat", repeat)
        #: Whether every second run goes backwards.
        self.yoyo = bool(yoyo)
        if duration == 0.0 and repeat:
            raise ParameterError(f"{CALL}: an animation of 0 seconds cannot be repeated.")

    @property
    def length(self) -> float:
        """Duration of all runs in seconds; infinite if they never end."""
        return math.inf if self.repeat < 0 else round(self.duration * (self.repeat + 1), DIGITS)

    def value(self, since: float, *, inside: bool = False) -> AnimatedValue:
        """Return the value some seconds after the beginning.

        With ``inside``, easings that overshoot are clamped to the keyframes.
        """
        since = round(since, DIGITS)
        if since < 0.0:
            return self.values[0]
        at = self._position(since)
        part = bisect_right(self.times, at) - 1
        if part < 0:
            return self.values[0]
        if part >= len(self.times) - 1:
            return self.values[-1]
        begin, end = self.times[part : part + 2]
        if at == begin:
            return self.values[part]
        eased = self._curves[part]((at - begin) / (end - begin))
        if not math.isfinite(eased):
            raise ParameterError(f"animation of {self.property!r}: its easing returned {eased!r}.")
        if inside:
            eased = min(max(eased, 0.0), 1.0)
        return self._mix(self.values[part], self.values[part + 1], eased)

    def _position(self, since: float) -> float:
        """Return the time within a run, in seconds."""
        if since >= self.length:
            return 0.0 if self.yoyo and self.repeat % 2 else self.duration
        run = math.floor(since / self.duration)
        at = max(round(since - run * self.duration, DIGITS), 0.0)
        if at >= self.duration:
            run, at = run + 1, 0.0
        return round(self.duration - at, DIGITS) if self.yoyo and run % 2 else at

    def check_against(self, now: Value) -> None:
        """Raise an error if the values do not have the form of the current value."""
        new = self.values[0]
        wrong = isinstance(now, Real) and isinstance(new, tuple)
        if isinstance(now, list | tuple) and self._mix is not mix_colors:
            wrong = not isinstance(new, tuple) or len(now) != len(new)
        if wrong:
            raise ParameterError(
                f"{CALL}: values of {self.property!r} must be like the current one, {now!r}, "
                f"got {new!r}.",
                argument=self.property,
            )


def two_keyframes(
    property: str, from_: Value, to: Value, duration: float | None
) -> list[CheckedKeyframe]:
    """Return the keyframes of an animation from one value to another."""
    if duration is None:
        raise ParameterError(f"{CALL}: duration is missing. Give the number of seconds.")
    if from_ is None or (isinstance(from_, tuple) and None in from_):
        raise ParameterError(
            f"{CALL}: {property!r} has no value yet. Give the first one: from_=..."
        )
    if to is None:
        raise ParameterError(f"{CALL}: to is missing. Give the last value of {property!r}.")
    return [(0.0, from_, None), (check_seconds("duration", duration), to, None)]


def check_keyframes(keyframes: Sequence[Keyframe]) -> list[CheckedKeyframe]:
    """Return checked keyframes as (seconds, value, easing or None)."""
    some = Items("a list of (seconds, value) or (seconds, value, easing)", SOME)
    some.check(CALL, "keyframes", keyframes)
    frames = [_keyframe(frame, i) for i, frame in enumerate(keyframes)]
    for i in range(1, len(frames)):
        if frames[i][0] < frames[i - 1][0]:
            raise ParameterError(
                f"{CALL}: keyframes must be in order; number {i} is at {frames[i][0]:g} s, after "
                f"one at {frames[i - 1][0]:g} s."
            )
    return frames


def _keyframe(frame: Sequence[Value], index: int) -> CheckedKeyframe:
    if not isinstance(frame, list | tuple) or len(frame) not in (2, 3) or frame[1] is None:
        expected = "(seconds, value) or (seconds, value, easing)"
        raise ParameterError.invalid(CALL, f"keyframe {index}", expected, frame)
    time = check_seconds(f"the time of keyframe {index}", frame[0])
    return time, frame[1], frame[2] if len(frame) == 3 else None


def check_duration(value: float | None, last: float) -> float:
    """Return the duration of a run, which cannot end before the last keyframe."""
    whole = last if value is None else check_seconds("duration", value)
    if whole < last:
        expected = f"at least {last:g}, the time of the last keyframe"
        raise ParameterError.invalid(CALL, "duration", expected, value)
    return whole


def check_time(name: str, value: float) -> float:
    """Return a finite number of seconds."""
    return _TIME.check(CALL, name, value)


def check_seconds(name: str, value: float) -> float:
    """Return a finite number of seconds that is not negative."""
    return round(_SECONDS.check(CALL, name, check_time(name, value)), DIGITS)
