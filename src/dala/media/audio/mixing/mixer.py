"""Any number of sounds on one clock, mixed block by block, exact to the sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from dala.arguments import Flag, Items
from dala.errors import FreedError, ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    CURVE,
    Samples,
    Seconds,
    apply_fades,
    check_number,
    check_rate,
    check_time,
    pan_mono,
    pan_stereo,
    silent,
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
    BlockFunction,
    BlockSource,
    FileSound,
    MemorySound,
    Processed,
)
from dala.media.video.source import VideoFile
from dala.resources import Closing
from dala.typing import NDArray

#: A number, or a function of places (samples on the mixer's clock, an array) to numbers.
Control: TypeAlias = "float | Callable[[NDArray], NDArray]"

#: Controls are asked for every so many samples, and linear in between.
GRID: Final = 64
_SQRT2: Final = np.float32(math.sqrt(2))


@dataclass(eq=False)
class MixerTrack:
    """A sound of a mixer, as :meth:`Mixer.add` made it.

    ``volume`` and ``pan`` may be set at any time: a number, or a function that gets an array of
    places (samples on the mixer's clock) and returns their values.

    >>> mixer = Mixer(rate=8000, limit=None)
    >>> track = mixer.add(Audio([0.5] * 4, 8000), volume=0.5)
    >>> mixer.render(0, 2).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """

    source: BlockSource
    _: KW_ONLY
    #: The place on the mixer's clock at which it begins.
    start: int
    #: The place of the source at which it begins, and the samples of it; None for no end.
    first: int = 0
    length: int | None = None
    loop: bool = False
    fade_in: int = 0
    fade_out: int = 0
    curve: str = "linear"
    #: Factor of the samples.
    volume: Control = 1.0
    #: From -1, left, to 1, right.
    pan: Control = 0.0
    close: Callable[[], None] = lambda: None
    #: Factors of the samples by place and count, such as those of ducking.
    gain: Callable[[int, int], NDArray] | None = None
    _kept: tuple[int, int, Samples] | None = field(default=None, init=False)

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
            return silent(count, self.source.layout)
        inside = at >= 0 and (length is None or at + count <= length)
        if inside:
            return self.source.render(self.first + at, count)
        made = silent(count, self.source.layout)
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
                BlockFunction(self.rate, self.layout, self.mixed),
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
        CURVE.check(call, "curve", curve)
        Flag().check(call, "loop", loop)
        first, last = check_trim(call, trim)
        if start is None:
            begin = sound.start if isinstance(sound, Audio) else Fraction(0)
        else:
            begin = check_time(call, "start", start)
        factor = Fraction(check_number(call, "speed", speed, 0.05, 100.0)).limit_denominator(10**6)
        chain = check_effects(call, effects, rate) if effects else []
        for name, value, low, high in (("volume", volume, 0.0, 1000.0), ("pan", pan, -1.0, 1.0)):
            if not callable(value):
                check_number(call, name, value, low, high)
        opened: MemorySound | FileSound
        if isinstance(sound, Audio):
            opened = MemorySound(sound, rate)
        else:
            opened = FileSound(sound, rate, track=track, call=call)
        with ExitStack() as held:
            held.callback(opened.close)
            length: int | None
            if last is not None:
                length = round((last - first) * rate)
            else:
                whole = opened.exact_length() if loop else opened.length
                length = None if whole is None else max(whole - round(first * rate), 0)
            if loop and not length:
                raise ParameterError("Mixer.add: a sound without samples cannot be repeated.")
            source: BlockSource = opened
            form = rate, source.layout
            if factor != 1:
                tempo = partial(tempo_stream, call, float(factor), *form)
                source = Processed(source, tempo, speed=factor)
                length = None if length is None else round(length / factor)
            if chain:
                work = partial(effect_stream, call, chain, *form)
                source = Processed(source, work, part=LONG_PART)
            made = MixerTrack(
                source, start=round(begin * rate), first=round(first * rate / factor),
                length=length, loop=loop, fade_in=fades[0], fade_out=fades[1], curve=curve,
                volume=volume, pan=pan, close=opened.close,
            )  # fmt: skip
            held.pop_all()
        self.tracks.append(made)
        return made

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
        return mix_tracks(self.tracks, start, count)

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


def mix_tracks(tracks: Iterable[MixerTrack], start: int, count: int) -> Samples:
    """Return the sum of tracks from a place on."""
    made = silent(count, "stereo")
    for track in tracks:
        made += track.stereo(start, count)
    return made


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
    begin, end = Items(expected, (2,)).check(call, "trim", trim)
    first = Fraction(0) if begin is None else check_time(call, "trim", begin, low=0)
    last = None if end is None else check_time(call, "trim", end, low=0)
    if last is not None and last <= first:
        raise ParameterError.invalid(call, "trim", expected, trim)
    return first, last


def _values(control: Control, start: int, count: int) -> float | NDArray:
    """Return a number, or one for each sample, the same for blocks of any size."""
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
