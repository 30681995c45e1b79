"""The way of a value through time: keyframes, runs, easings. Seconds in, a value out, no state."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from numbers import Real
from typing import Any, Final

from dala.errors import ParameterError
from dala.media.scene.animation.easing import Curve
from dala.media.scene.animation.easing import easing as find_easing
from dala.media.scene.animation.mixing import mix_colors, mixing

CALL: Final = "add_animation"
#: Times are told apart to the nanosecond: sums of decimal fractions are then what they should be.
DIGITS: Final = 9


class Course:
    """What a property is at each second since it set out.

    ``times`` and ``values`` are the keyframes; before the first its value holds, after the last
    the last one's.
    """

    def __init__(
        self,
        property: str,
        keyframes: Sequence[tuple[float, Any, Any]],
        duration: float,
        easing: str | Curve | Sequence[Any],
        repeat: int,
        yoyo: bool,
    ) -> None:
        whole = find_easing(easing)
        self.property = property
        self.times = [time for time, _, _ in keyframes]
        self.values, self._mix = mixing(CALL, property, [value for _, value, _ in keyframes])
        self._curves = [whole if way is None else find_easing(way) for _, _, way in keyframes]
        self.duration = duration
        self.repeat = check_repeat(repeat)
        self.yoyo = bool(yoyo)
        if duration == 0.0 and repeat:
            raise ParameterError(f"{CALL}: what takes 0 seconds cannot be repeated.")

    @property
    def length(self) -> float:
        """Seconds of all runs; infinite if they never end."""
        return math.inf if self.repeat < 0 else round(self.duration * (self.repeat + 1), DIGITS)

    def value(self, since: float, *, inside: bool = False) -> Any:
        """The value some seconds after the beginning; ``inside``: never beyond a keyframe."""
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
            raise ParameterError(f"animation of {self.property!r}: its easing gives {eased!r}.")
        if inside:
            eased = min(max(eased, 0.0), 1.0)
        return self._mix(self.values[part], self.values[part + 1], eased)

    def _position(self, since: float) -> float:
        """Seconds into a run."""
        if since >= self.length:
            return 0.0 if self.yoyo and self.repeat % 2 else self.duration
        run = math.floor(since / self.duration)
        at = max(round(since - run * self.duration, DIGITS), 0.0)
        if at >= self.duration:
            run, at = run + 1, 0.0
        return round(self.duration - at, DIGITS) if self.yoyo and run % 2 else at

    def check_against(self, now: Any) -> None:
        """Refuses a number for a pair or a pair for a number, as far as the present value tells."""
        new = self.values[0]
        wrong = isinstance(now, Real) and isinstance(new, tuple)
        if isinstance(now, list | tuple) and self._mix is not mix_colors:
            wrong = not isinstance(new, tuple) or len(now) != len(new)
        if wrong:
            raise ParameterError(
                f"{CALL}: {self.property!r} is {now!r} now; values like {new!r} do not fit it."
            )


def two_keyframes(
    property: str, from_: Any, to: Any, duration: Any
) -> list[tuple[float, Any, Any]]:
    """The keyframes of a way from one value to another."""
    if duration is None:
        raise ParameterError(f"{CALL}: duration is missing: how many seconds it takes.")
    if from_ is None or (isinstance(from_, tuple) and None in from_):
        raise ParameterError(f"{CALL}: {property!r} has no value now; say from which: from_=...")
    if to is None:
        raise ParameterError(f"{CALL}: to is missing: the value that {property!r} goes to.")
    return [(0.0, from_, None), (check_seconds("duration", duration), to, None)]


def check_keyframes(keyframes: Any) -> list[tuple[float, Any, Any]]:
    """Keyframes as they are given, checked: (seconds, value, easing or None)."""
    if not isinstance(keyframes, list | tuple) or not keyframes:
        raise ParameterError(
            f"{CALL}: keyframes is a list of (seconds, value) or (seconds, value, easing), "
            f"{keyframes!r} came."
        )
    frames = [_keyframe(frame, i) for i, frame in enumerate(keyframes)]
    for i in range(1, len(frames)):
        if frames[i][0] < frames[i - 1][0]:
            raise ParameterError(
                f"{CALL}: keyframes come in order; number {i} is at {frames[i][0]:g} s, after one "
                f"at {frames[i - 1][0]:g} s."
            )
    return frames


def _keyframe(frame: Any, index: int) -> tuple[float, Any, Any]:
    if not isinstance(frame, list | tuple) or len(frame) not in (2, 3) or frame[1] is None:
        raise ParameterError(
            f"{CALL}: keyframe {index} is (seconds, value) or (seconds, value, easing), "
            f"{frame!r} came."
        )
    time = check_seconds(f"the time of keyframe {index}", frame[0])
    return time, frame[1], frame[2] if len(frame) == 3 else None


def check_duration(value: Any, last: float) -> float:
    """Seconds of a run; not before the last keyframe."""
    whole = last if value is None else check_seconds("duration", value)
    if whole < last:
        raise ParameterError(
            f"{CALL}: the last keyframe is at {last:g} s, duration={value!r} came. Leave it out, "
            "or make it longer."
        )
    return whole


def check_time(name: str, value: Any) -> float:
    """A finite number of seconds."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ParameterError(f"{CALL}: {name} is a number of seconds, {value!r} came.")
    return float(value)


def check_seconds(name: str, value: Any) -> float:
    """A finite number of seconds from 0 on."""
    if check_time(name, value) < 0:
        raise ParameterError(f"{CALL}: {name} is a number of seconds from 0 on, {value!r} came.")
    return round(float(value), DIGITS)


def check_repeat(value: Any) -> int:
    """How often it runs again."""
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise ParameterError(
            f"{CALL}: repeat is how often it runs again, a whole number, or -1 for ever; "
            f"{value!r} came."
        )
    return value
