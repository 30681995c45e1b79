"""Any number of sounds on one clock, mixed block by block, exact to the sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from dala.errors import FreedError, ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    LAYOUTS,
    Samples,
    Seconds,
    check_choice,
    check_number,
    check_rate,
    check_time,
)
from dala.media.audio.effects import (
    Effect,
    check_effects,
    effect_stream,
    tempo_stream,
)
from dala.media.audio.mixing.blocks import (
    LONG_PART,
    PART,
    BlockSource,
    FileSound,
    MemorySound,
    Processed,
)
from dala.media.audio.samples import CURVES, apply_fades, pan_mono, pan_stereo
from dala.media.video.source import VideoFile
from dala.resources import Closing
from dala.typing import NDArray

#: A number, or a function of places (samples on the mixer's clock, an array) to numbers.
Control: TypeAlias = "float | Callable[[NDArray], NDArray]"

#: Controls are asked for every so many samples, and linear in between.
GRID: Final = 64
_SQRT2: Final = np.float32(math.sqrt(2))


class MixerTrack:
    """A sound of a mixer, as :meth:`Mixer.add` made it.

    ``volume`` and ``pan`` may be set at any time: a number, or a function that gets an array of
    places (samples on the mixer's clock) and returns their values.

    >>> mixer = Mixer(rate=8000, limit=None)
    >>> track = mixer.add(Audio([0.5] * 4, 8000), volume=0.5)
    >>> mixer.render(0, 2).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """

    def __init__(
        self,
        source: BlockSource,
        *,
        start: int,
        first: int = 0,
        length: int | None = None,
        loop: bool = False,
        fade_in: int = 0,
        fade_out: int = 0,
        curve: str = "linear",
        volume: Control = 1.0,
        pan: Control = 0.0,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.source = source
        #: The place on the mixer's clock at which it begins.
        self.start = start
        #: The place of the source at which it begins, and the samples of it; None for no end.
        self.first, self.length = first, length
        self.loop = loop
        self.fade_in, self.fade_out, self.curve = fade_in, fade_out, curve
        #: Factor of the samples.
        self.volume = volume
        #: From -1, left, to 1, right.
        self.pan = pan
        #: Places of another track's gain, such as that of ducking; None for none.
        self.gain: Callable[[int, int], NDArray] | None = None
        self.close = close
        self._kept: tuple[int, int, Samples] | None = None

    @property
    def end(self) -> int | None:
        """The place on the mixer's clock after its last sample; None if it has no end."""
        return None if self.loop or self.length is None else self.start + self.length

    def plain(self, start: int, count: int) -> Samples:
        """Return the sound on the mixer's clock, with its fades, before volume and pan."""
        kept = self._kept
        if kept is not None and kept[:2] == (start, count):
            return kept[2]
        made = self._cut(start - self.start, count)
        made = apply_fades(
            made, start - self.start, None if self.loop else self.length, self.fade_in,
            self.fade_out, self.curve,
        )  # fmt: skip
        self._kept = (start, count, made)
        return made

    def _cut(self, at: int, count: int) -> Samples:
        """Return the part of the source that is heard from a place of the track on."""
        length = self.length
        if at + count <= 0 or (length is not None and not self.loop and at >= length):
            return np.zeros((count, LAYOUTS[self.source.layout]), np.float32)
        inside = at >= 0 and (length is None or at + count <= length)
        if inside:
            return self.source.render(self.first + at, count)
        made = np.zeros((count, LAYOUTS[self.source.layout]), np.float32)
        done = max(-at, 0)
        while done < count:
            place, most = at + done, count - done
            if length is not None:
                if self.loop:
                    place %= length
                most = min(most, length - place)
                if most <= 0:
                    break
            made[done : done + most] = self.source.render(self.first + place, most)
            done += most
        return made

    def stereo(self, start: int, count: int) -> Samples:
        """Return the sound as it is mixed, in stereo."""
        block = self.plain(start, count)
        block = _scaled(block, _values(self.volume, start, count))
        if self.gain is not None:
            block = block * self.gain(start, count)[:, None]
        pan = _values(self.pan, start, count)
        middle = isinstance(pan, float) and pan == 0
        if block.shape[1] == 1:
            if middle:
                return np.repeat(block, 2, axis=1)
            return pan_mono(block, np.asarray(pan)) * _SQRT2
        return block if middle else pan_stereo(block, np.asarray(pan))


class Mixer(Closing):
    """Sounds on one clock, in stereo, mixed block by block with little memory.

    ``render(start, count)`` returns samples from a place on; blocks of any size give the same
    samples. A limiter at the end changes nothing while samples stay below its limit.

    Args:
        rate: samples per second.
        limit: the limiter's limit in dB; None for no limiter, so that samples may exceed 1.
        effects: of the sum, before the limiter, such as ``[("compressor", {})]``.
        part: samples that the effects and the limiter take at once; so much is read ahead.

    >>> mixer = Mixer(rate=8000)
    >>> low, high = (mixer.add(Audio([0.25] * 8, 8000), start=s) for s in (0, 4 / 8000))
    >>> mixer.render(2, 4)[:, 0].tolist()
    [0.25, 0.25, 0.5, 0.5]
    >>> mixer.length
    12
    """

    _instead = "Make another one there."
    layout = "stereo"

    def __init__(
        self,
        rate: int = 48000,
        *,
        limit: float | None = -0.1,
        effects: Sequence[Effect] = (),
        part: int = PART,
    ) -> None:
        self.rate = check_rate("Mixer", rate)
        self.tracks: list[MixerTrack] = []
        self._limited: Processed | None = None
        self._closed = False
        chain = check_effects("Mixer", effects, self.rate) if effects else []
        if limit is not None:
            check_number("Mixer", "limit", limit, -24.0, 0.0, "dB")
            chain.append(("limiter", {"limit": limit}))
        if chain:
            self._limited = Processed(
                _Sum(self),
                lambda: effect_stream("Mixer", chain, self.rate, "stereo"),
                run_up=1.0 if effects else 0.2,
                part=part,
            )

    def add(
        self,
        sound: Audio | VideoFile,
        *,
        start: Seconds | None = None,
        trim: Sequence[Seconds | None] | None = None,
        volume: Control = 1.0,
        pan: Control = 0.0,
        loop: bool = False,
        fade_in: Seconds = 0.0,
        fade_out: Seconds = 0.0,
        curve: str = "linear",
        speed: float = 1.0,
        effects: Sequence[Effect] = (),
        track: int | str = 0,
        call: str = "Mixer.add",
    ) -> MixerTrack:
        """Add a sound.

        Args:
            sound: an ``Audio``, or a file as ``audio.open`` takes it, which is streamed.
            start: the mixer's time at which it begins, in seconds; by default that of the
                ``Audio``, or 0.
            trim: ``(from, to)``: the part of it in seconds; None for its beginning or end.
            volume: a factor, or a function of places.
            pan: from -1, left, to 1, right, or a function of places. The middle leaves mono and
                stereo as they are; the power is the same at each side.
            loop: start over at the end.
            fade_in: seconds.
            fade_out: seconds before the end.
            curve: of the fades: "linear" or "equal_power".
            speed: 2 plays twice as fast at the same pitch.
            effects: such as ``[("eq", {"bass": 3}), ("compressor", {})]``, in order.
            track: number or language of the file's sound track.
            call: the call for messages.

        Returns:
            The track, whose ``volume`` and ``pan`` may be changed.
        """
        self._check_open(call)
        rate = self.rate
        fades = [
            round(check_time(call, name, value, low=0) * rate)
            for name, value in (("fade_in", fade_in), ("fade_out", fade_out))
        ]
        check_choice(call, "curve", curve, CURVES)
        if not isinstance(loop, bool):
            raise ParameterError.invalid(call, "loop", "True or False", loop)
        first, last = check_trim(call, trim)
        if start is None:
            begin = sound.start if isinstance(sound, Audio) else Fraction(0)
        else:
            begin = check_time(call, "start", start)
        factor = Fraction(check_number(call, "speed", speed, 0.05, 100.0)).limit_denominator(10**6)
        chain = check_effects(call, effects, rate) if effects else []
        for name, value in (("volume", volume), ("pan", pan)):
            if not callable(value):
                check_number(call, name, value, 0.0 if name == "volume" else -1.0,
                             1000.0 if name == "volume" else 1.0)  # fmt: skip
        opened: MemorySound | FileSound
        if isinstance(sound, Audio):
            opened = MemorySound(sound, rate)
        else:
            opened = FileSound(sound, rate, track=track, call=call)
        try:
            made = self._track(opened, begin, first, last, factor, chain, loop, fades, curve)
        except BaseException:
            opened.close()
            raise
        made.volume, made.pan = volume, pan
        self.tracks.append(made)
        return made

    def _track(
        self, opened: MemorySound | FileSound, begin: Fraction, first: Fraction,
        last: Fraction | None, speed: Fraction, effects: Sequence[Effect], loop: bool,
        fades: list[int], curve: str,
    ) -> MixerTrack:  # fmt: skip
        rate = self.rate
        source: BlockSource = opened
        if last is not None:
            length: int | None = round((last - first) * rate)
        else:
            whole = opened.exact_length() if loop else opened.length
            length = None if whole is None else max(whole - round(first * rate), 0)
        if loop and not length:
            raise ParameterError("Mixer.add: a sound without samples cannot be repeated.")
        at = round(first * rate)
        if speed != 1:
            layout = source.layout
            source = Processed(
                source, lambda: tempo_stream("Mixer.add", float(speed), rate, layout), speed=speed
            )
            at = round(first * rate / speed)
            length = None if length is None else round(length / speed)
        if effects:
            chain, inner = list(effects), source.layout
            source = Processed(
                source, lambda: effect_stream("Mixer.add", chain, rate, inner), part=LONG_PART
            )
        return MixerTrack(
            source, start=round(begin * rate), first=at, length=length, loop=loop,
            fade_in=fades[0], fade_out=fades[1], curve=curve, close=opened.close,
        )  # fmt: skip

    @property
    def length(self) -> int | None:
        """Samples until the last sound ends; None if one has no end."""
        ends = [track.end for track in self.tracks]
        found = [end for end in ends if end is not None]
        return max(found, default=0) if len(found) == len(ends) else None

    def render(self, start: int, count: int) -> Samples:
        """Return ``count`` samples from a place on, an array of shape (count, 2), f32."""
        self._check_open("Mixer.render")
        if self._limited is not None:
            return self._limited.render(start, count)
        return self.mixed(start, count)

    def mixed(self, start: int, count: int) -> Samples:
        """Return samples before the limiter."""
        made = np.zeros((count, 2), np.float32)
        for track in self.tracks:
            made += track.stereo(start, count)
        return made

    def remove(self, track: MixerTrack) -> None:
        """Remove a sound and close its file."""
        self.tracks.remove(track)
        track.close()

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the mixer is closed. Make a new one.")

    def close(self) -> None:
        """Close all files. Closing twice is allowed."""
        self._closed = True
        tracks, self.tracks = self.tracks, []
        for track in tracks:
            track.close()


class _Sum:
    """The tracks of a mixer before its limiter."""

    def __init__(self, mixer: Mixer) -> None:
        self.rate, self.layout = mixer.rate, mixer.layout
        self._mixer = mixer

    def render(self, start: int, count: int) -> Samples:
        """Return the sum of all tracks."""
        return self._mixer.mixed(start, count)


def check_trim(
    call: str, trim: Sequence[Seconds | None] | None
) -> tuple[Fraction, Fraction | None]:
    """Return where a part begins and ends; the end may be None.

    >>> check_trim("add_audio", (1, 2.5))
    (Fraction(1, 1), Fraction(5, 2))
    """
    expected = "(from, to) in seconds, the first before the second"
    if trim is None:
        return Fraction(0), None
    if isinstance(trim, str) or not isinstance(trim, Sequence) or len(trim) != 2:
        raise ParameterError.invalid(call, "trim", expected, trim)
    first = Fraction(0) if trim[0] is None else check_time(call, "trim", trim[0], low=0)
    last = None if trim[1] is None else check_time(call, "trim", trim[1], low=0)
    if last is not None and last <= first:
        raise ParameterError.invalid(call, "trim", expected, trim)
    return first, last


def _values(control: Control, start: int, count: int) -> float | NDArray:
    """Return a number, or one for each sample, whatever the borders of the blocks."""
    if not callable(control):
        return float(control)
    begin, end = start // GRID, (start + count - 1) // GRID + 1
    places = np.arange(begin, end + 1) * GRID
    values = np.asarray(control(places), np.float64)
    if values.ndim == 0:
        return float(values)
    if (values == values[0]).all():
        return float(values[0])
    return np.interp(np.arange(start, start + count), places, values)


def _scaled(block: Samples, volume: float | NDArray) -> Samples:
    if isinstance(volume, float):
        return block if volume == 1 else block * np.float32(volume)
    return block * volume.astype(np.float32)[:, None]
