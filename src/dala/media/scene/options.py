"""The options of scenes: of rendering to a file, of following, of ducking, of levels."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from dala.arguments import ArgumentKind, Fitting, Flag, Text
from dala.arguments.times import seconds
from dala.errors import ParameterError
from dala.media.frame import TIME_BASE
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import Field, JsonBoolean, OneOf, PositiveNumber
from dala.media.sources.seconds import Moment, to_fraction
from dala.media.video.options import EncoderOptions
from dala.options import Options, option

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.typing import PathLike

#: Rates such as 29.97 that stand for 30000/1001, by their thousandths and hundredths.
_NTSC: Final = {
    round(Fraction(n * 1000, 1001) * 1000): Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120)
}
_NTSC_HUNDREDTHS: Final = {round(rate * 100): rate for rate in _NTSC.values()}


class Clock:
    """The times of frames: one after another, or as the caller asks."""

    def __init__(self, fps: float | str | Fraction) -> None:
        self.rate = frame_rate(fps)
        #: Seconds between frames.
        self.period = 1 / self.rate
        self._ticks, self._scale = self.period.as_integer_ratio()
        #: Number of the next frame if the caller gives no time.
        self.next = 0
        #: Time of the last frame in seconds; None before the first.
        self.time: float | None = None

    def moment(self, time: float | Fraction | None = None) -> Moment:
        """Return the time of the next frame, or a given time; :meth:`move` then moves the clock."""
        if time is None:
            ticks, scale = self.next * self._ticks, self._scale
            return Moment(ticks / scale, self.next, self.period)
        exact = _seconds(time)
        number = round(exact * self.rate)
        if abs(number / self.rate - exact) < Fraction(1, 10**7):
            return Moment(float(exact), number, self.period)
        return Moment(float(exact), round(exact / TIME_BASE), TIME_BASE, exact)

    def move(self, moment: Moment) -> None:
        """Move past a rendered frame: the next one is the first of the frame rate after it."""
        self.time = moment.seconds
        if moment.time_base is self.period:
            self.next = moment.pts + 1
        else:
            self.next = math.floor(moment.pts * moment.time_base * self.rate) + 1


def frame_rate(fps: float | str | Fraction) -> Fraction:
    """Return an exact frame rate; 29.97 and similar numbers mean 30000/1001.

    >>> frame_rate(29.97), frame_rate("25"), frame_rate(12.5)
    (Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))
    """
    return SceneRate().check("Scene", "fps", fps)


class SceneRate(ArgumentKind[Fraction]):
    """The frame rate of a scene, exact."""

    expected = "a number above 0 and up to 1000, such as 30, 29.97 or '30000/1001'"
    metavar = "N"

    def accept(self, value: Any) -> Fraction:
        """Return the rate."""
        if isinstance(value, bool):
            raise TypeError
        rate = Fraction(value)
        if not 0 < rate <= 1000:
            raise ValueError
        if not isinstance(value, float):
            return rate
        ntsc = _NTSC.get(round(value * 1000)) or _NTSC_HUNDREDTHS.get(round(value * 100))
        near = ntsc is not None and abs(float(ntsc) - value) < 0.006
        return ntsc if near and ntsc is not None else rate.limit_denominator(10**6)


def _seconds(time: float | Fraction) -> Fraction:
    exact: Fraction | None = None
    if not isinstance(time, bool | str):
        with suppress(TypeError, ValueError, OverflowError):
            exact = Fraction(time if isinstance(time, int | Fraction) else float(time))
    if exact is None or abs(exact) > 10**9:
        raise ParameterError.invalid("Scene.render", "time", "a finite number of seconds", time)
    return exact


class FrameRateMeter:
    """Measured frames per second, over the last 30 frames."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=31)
        #: Call it with the time of each frame.
        self.tick = self._times.append

    @property
    def fps(self) -> float:
        """Frames per second; 0 before the second frame."""
        times = self._times
        took = times[-1] - times[0] if len(times) > 1 else 0.0
        return (len(times) - 1) / took if took > 0 else 0.0


@dataclass(frozen=True)
class SceneTime(ArgumentKind[Fraction]):
    """A time of a scene, exact.

    >>> POSITIVE.check("Scene.render_to", "seconds", 0.1)
    Fraction(1, 10)
    """

    expected: str
    low: float = 0

    metavar = "S"

    def accept(self, value: Any) -> Fraction:
        """Return the seconds of a number or a text."""
        value = seconds(value) if isinstance(value, str) else value
        if isinstance(value, bool) or not self.low < float(value) < 1e9:
            raise ValueError
        return to_fraction("time", value)


#: The time of the first frame, and a duration.
START: Final = SceneTime("a number of seconds", -1e9)
POSITIVE: Final = SceneTime("a number above 0", 0)


_PROGRESS: Final = Fitting(
    "True, False or a function of (done, total)",
    lambda value: callable(value) or isinstance(value, bool),
)


@dataclass(frozen=True, kw_only=True)
class RenderOptions(EncoderOptions):
    """The options of ``Scene.render_to``.

    Args:
        fps: frames per second; by default those of the scene.
        start: the scene's time of the first frame.
        progress: True for a progress bar on the terminal, or a function of the number of finished
            frames and their total.
        on_frame: called before each frame with its time; it may change the scene.
        audio_from: a video node (or its id), or a file, whose sound is copied in sync with its
            pictures, instead of the sound of the scene.
        audio: write the sound of the scene: that of its audio nodes and videos, mixed. If one is
            heard alone and as it is, its sound is copied; ``explain()`` says which. False for no
            sound.
        audio_codec: "aac", "opus", "flac", "mp3", "pcm", ...; by default AAC in .mp4 and .mov, Opus
            in .webm, FLAC in .mkv.
        alpha: keep the alpha of a scene with a transparent background; the codec must hold it.
        chunk: encode parts of so many seconds each on their own, as ``batch.scenes`` does. The
            files are then the same.
    """

    fps: float | str | Fraction | None = option(
        SceneRate(), None, "frames per second (the file's)", command=True
    )
    start: float | Fraction = option(START, 0.0, "the first time (0)", command=True)
    progress: bool | Callable[[int, int], object] = option(_PROGRESS, True)
    on_frame: Callable[[float], object] | None = option(Fitting("a function of the time", callable))
    audio_from: Node | PathLike | None = option(Fitting())
    audio: bool = option(Flag(), True, "drop the sound", command=True)
    audio_codec: str | None = option(Text())
    alpha: bool = option(Flag(), False, "keep the alpha of the scene", command=True)
    chunk: float | Fraction | None = option(POSITIVE)


class _ScaleType(t.PropertyType):
    """A factor above 0; True stands for 1, False for the node's own scale."""

    def __init__(self) -> None:
        super().__init__(OneOf(JsonBoolean(), PositiveNumber(LARGEST_SCALE)), "float | bool")

    def check_value(self, call: str, argument: str, value: t.Value) -> float | None:
        """Return the factor; None for the node's own."""
        if isinstance(value, bool):
            return 1.0 if value else None
        factor: float = t.NumberType(1e-6, LARGEST_SCALE).check(call, argument, value)
        return factor


#: The largest scale of a node that follows.
LARGEST_SCALE: Final = 1e4
_AREA: Final = t.TupleType(
    "left, top, width, height", *[t.NumberType()] * 2, *[t.NumberType(0.0)] * 2
)
_OFFSET: Final = t.TupleType("dx, dy", t.NumberType(), t.NumberType())
_HERTZ: Final = t.NumberType(0, 24000, unit="Hz")
_BAND: Final = t.TupleType(
    "lowest, highest", _HERTZ, _HERTZ, expected="(lowest, highest) in Hz, such as (20, 200)"
)


@dataclass(frozen=True, kw_only=True)
class FollowOptions(Options):
    """The options of ``Scene.follow``.

    Args:
        offset: (dx, dy) from the target to the node's anchor, turned with the node.
        unit: of the offset: "size" for widths and heights of the target, or "pixels".
        scale: the node's width, in widths of the target (lengths of a bone, sizes of a face or
            person for a point). True is 1, False leaves the node's scale as it is; by default
            True for bones and False for points and boxes.
        rotate: whether the node turns with the target; by default bones only.
        angle: degrees added to the target's angle.
        anchor: the point of the node that is at the target: fractions of its size, or a name;
            None for the node's own.
        fit: set the node's width and height to those of the target, times ``scale``.
        crop: leave the node where it is, and let its ``crop`` follow: the part of its picture
            around the target, ``scale`` (2) times as high as that.
        lost: when the target is not found, "hide" the node, "keep" it where it was last, or
            "fade" it out; by default "hide", and "keep" for ``crop``.
        hold: seconds for which a lost target counts as found.
        fade: seconds of "fade".
    """

    offset: Sequence[float] = option(_OFFSET, (0.0, 0.0), "Offset from the target.")
    unit: str = option(t.ChoiceType(("size", "pixels")), "size", "Unit of the offset.")
    scale: float | bool | None = option(_ScaleType(), None, "Width in widths of the target.")
    rotate: bool | None = option(t.BooleanType(), None, "Whether it turns with the target.")
    angle: float = option(t.NumberType(), 0.0, "Degrees added to the angle.")
    anchor: str | Sequence[float] | None = option(
        t.AnchorType(optional=True), "center", "The point of the node that is at the target."
    )
    fit: bool = option(t.BooleanType(), False, "Whether width and height are those of the target.")
    crop: bool = option(t.BooleanType(), False, "Whether the node's crop follows, not its place.")
    lost: str | None = option(
        t.ChoiceType(("hide", "keep", "fade")), None, "What happens when the target is not found."
    )
    hold: float = option(t.NumberType(0.0), 0.0, "Seconds for which a lost target counts as found.")
    fade: float = option(t.NumberType(0.0), 0.3, "Seconds of fading out.")


@dataclass(frozen=True, kw_only=True)
class LayoutOptions(Options):
    """The options of ``side_by_side``, ``stack`` and ``grid``.

    Args:
        gap: pixels between boxes.
        area: (left, top, width, height); by default the whole scene.
        fit: the fit of all nodes; by default each keeps its own.
    """

    gap: float = option(t.NumberType(0.0), 0, "Pixels between boxes.", named=True)
    area: Sequence[float] | None = option(
        _AREA, None, "[left, top, width, height]; by default the whole scene."
    )
    fit: str | None = option(t.ChoiceType(t.FITS), None, "The fit of all nodes.")


@dataclass(frozen=True, kw_only=True)
class DuckOptions(Options):
    """The options of ``Scene.duck``.

    Args:
        amount: by how much it becomes quieter, in dB.
        threshold: the level of the voice above which it does, in dB.
        attack: time constant of becoming quieter, in seconds.
        release: time constant of becoming louder again, in seconds.
    """

    amount: float = option(t.NumberType(0, 60, unit="dB"), 12.0, "By how much, in dB.")
    threshold: float = option(
        t.NumberType(-60, 0, unit="dB"), -40.0, "Level of the voice above which it does, in dB."
    )
    attack: float = option(
        t.NumberType(0.00001, 2, unit="s"), 0.05, "Time constant of becoming quieter, in seconds."
    )
    release: float = option(
        t.NumberType(0.00001, 9, unit="s"), 0.3, "Time constant of becoming louder, in seconds."
    )


@dataclass(frozen=True, kw_only=True)
class LevelOptions(Options):
    """The options of ``Scene.level``.

    Args:
        band: (lowest, highest) frequency in Hz, such as (20, 200) for the beat; by default all.
        release: seconds after which it has fallen to 37% after a peak; 0 for the plain level.
        normalize: let 1 be the loudest moment of the band; else 1 is a sine at full scale.
    """

    band: Sequence[float] | None = option(
        _BAND, None, "Frequencies in Hz; by default all.", named=True
    )
    release: float = option(
        t.NumberType(0, 60, unit="s"), 0.1, "Seconds after which it has fallen to 37%."
    )
    normalize: bool = option(t.BooleanType(), True, "Whether 1 is the loudest moment.")


def fields_of(group: type[Options]) -> dict[str, Field]:
    """Return the keys of scene files that stand for options, whose kinds are property types."""
    found = group.specs().items()
    return {name: Field(cast("t.PropertyType", s.kind).json, s.help) for name, s in found}
