"""``audio.open``: the sound of a file as a stream of blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, Self

from dala import forks
from dala.arguments import Integer
from dala.budget import check_deadline
from dala.errors import AudioError, FreedError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    LAYOUT,
    LAYOUTS,
    Samples,
    Seconds,
    check_rate,
    check_room,
    check_time,
    joined,
)
from dala.media.audio.files.decode import AudioTrack, SoundDecoder, sound_source
from dala.media.audio.graph import Converter
from dala.media.video.source import VideoFile
from dala.resources import Closing, untrack
from dala.resources import track as count

_CALL: Final = "audio.open"
#: Samples of a block by default.
BLOCK: Final = 4096
#: Samples before a place from which the resampler runs, so that it answers as without a seek.
_RUN_UP: Final = 1024


def open(
    source: VideoFile,
    *,
    track: int | str = 0,
    rate: int | None = None,
    layout: str | None = None,
    block: int = BLOCK,
    playlists: bool = False,
) -> AudioReader:
    """Open the sound of a file for reading: a context manager that iterates blocks of ``Audio``.

    The file is never read as a whole: a reader of ten hours needs no more memory than one of ten
    seconds. ``reader.read()`` returns all of it, or so many seconds.

    Args:
        source: a path, a URL, a file object or bytes: an audio file, or a video with sound.
        track: the number of the sound track, or its language ("deu").
        rate: samples per second to convert to; by default those of the file.
        layout: channels to convert to; by default those of the file.
        block: samples of each block.
        playlists: as of ``video.open``.

    Raises:
        AudioNotFound: there is no such file.
        AudioError: it has no sound, or cannot be opened. While reading: the file is damaged or
            truncated; raised after all that can be decoded.
        MissingPackage: PyAV is not installed.

    Example::

        with audio.open("song.mp3", rate=48000) as reader:
            reader.seek(30)
            for block in reader:
                print(float(block.start), block.rms)
    """
    return AudioReader(
        source, track=track, rate=rate, layout=layout, block=block, playlists=playlists
    )


class AudioReader(Closing):
    """The sound of a file, block by block. Made by ``audio.open``.

    Iterating yields ``Audio`` with exact start times. Packets that cannot be decoded, and gaps, are
    silence, so that the sound stays in time; a notice says so.

    Example::

        with audio.open("film.mkv", track="deu") as reader:
            print(reader.rate, reader.layout, reader.duration)
            minute = reader.read(60)
    """

    _instead = "Open the file there."

    def __init__(
        self,
        source: VideoFile,
        *,
        track: int | str = 0,
        rate: int | None = None,
        layout: str | None = None,
        block: int = BLOCK,
        playlists: bool = False,
        pictures: bool = False,
        call: str = _CALL,
    ) -> None:
        Integer(1, 1 << 24).check(call, "block", block)
        wanted_rate = None if rate is None else check_rate(call, rate)
        wanted_layout = None if layout is None else LAYOUT.check(call, "layout", layout)
        self._decoder = SoundDecoder(
            sound_source(source, call, playlists=playlists), track, call, pictures=pictures
        )
        #: Samples per second.
        self.rate = wanted_rate or self._decoder.rate
        #: The channels.
        self.layout = wanted_layout or self._decoder.layout
        self._block = block
        self._waiting: list[Samples] = []
        self._at: int | None = None
        self._blocks: Iterator[Samples] = self._converted(None)
        self._finished = self._sought = False
        self._home = forks.Home()
        count("audio reader", "host", 0)
        self._finalizer = forks.finalize(self, _release, self._decoder)

    # facts ------------------------------------------------------------------------------------
    @property
    def label(self) -> str:
        """The file, for messages."""
        return self._decoder.source.label

    @property
    def codec(self) -> str:
        """FFmpeg's name of the codec."""
        return self._decoder.codec

    @property
    def channels(self) -> int:
        """Number of channels."""
        return LAYOUTS[self.layout]

    @property
    def tracks(self) -> list[AudioTrack]:
        """All sound tracks of the file."""
        return self._opened("tracks").tracks

    @property
    def duration(self) -> Fraction | None:
        """Duration in seconds by the file's header; None if it does not say."""
        return self._opened("duration").duration

    @property
    def time(self) -> Fraction | None:
        """The time of the next sample in seconds; None before the first, and at the end."""
        self._opened("time")
        return None if self._at is None else Fraction(self._at, self.rate)

    @property
    def closed(self) -> bool:
        """True once the reader is closed."""
        return not self._finalizer.alive

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<AudioReader {self.label!r}, {self.rate} Hz, {self.layout}{state}>"

    # reading ----------------------------------------------------------------------------------
    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Audio:
        made = self._take(self._block)
        if not len(made):
            self._end()
            raise StopIteration
        return self._audio(made)

    def read(self, seconds: Seconds | None = None) -> Audio:
        """Return the next seconds as one ``Audio``, or all that is left.

        Raises:
            MemoryLimitExceeded: it would not fit into the memory.
        """
        call = "AudioReader.read"
        most = None
        if seconds is not None:
            most = round(check_time(call, "seconds", seconds, low=0) * self.rate)
        if most is not None or self.duration is not None:
            known = round((self.duration or 0) * self.rate)
            count = known if most is None else min(most, known or most)
            check_room(call, count, self.channels)
        parts, total = [], 0
        start = None
        while most is None or total < most:
            part = self._take(1 << 18 if most is None else min(1 << 18, most - total), call)
            if not len(part):
                break
            if start is None and self._at is not None:
                start = self._at - len(part)
            parts.append(part)
            total += len(part)
            check_room(call, total, self.channels)
        if not parts:
            self._end()
        samples = joined(parts, self.layout)
        begin = Fraction(start or 0, self.rate)
        return Audio(samples, self.rate, layout=self.layout, start=begin)

    def seek(self, seconds: Seconds) -> None:
        """Continue at a time, exact to the sample."""
        time = check_time("AudioReader.seek", "seconds", seconds)
        self._seek(round(time * self.rate))

    def _seek(self, place: int) -> None:
        self._opened("AudioReader.seek").seek(self._native(place))
        self._finished, self._sought = False, True
        self._waiting, self._at = [], None
        self._blocks = self._converted(place)

    def _native(self, place: int) -> int:
        """Return a place in the file's rate before a place, on a sample of both rates."""
        rate = self._decoder.rate
        step = rate // math.gcd(rate, self.rate)
        before = place * rate // self.rate - (_RUN_UP if rate != self.rate else 0)
        return before // step * step

    def _fill(self, count: int) -> None:
        have = sum(map(len, self._waiting))
        while have < count and (block := next(self._blocks, None)) is not None:
            if len(block):
                self._waiting.append(block)
                have += len(block)

    def _take(self, count: int, call: str = "AudioReader") -> Samples:
        check_deadline(call)  # before the decoder, which goes on after an error of this
        self._opened(call)
        self._fill(count)
        found = joined(self._waiting, self.layout)
        self._waiting = [found[count:]] if count < len(found) else []
        made = found[:count]
        if self._at is not None:
            self._at += len(made)
        return made

    def _converted(self, place: int | None) -> Iterator[Samples]:
        """Yield blocks in the reader's rate and layout, from a place on, or from the beginning."""
        decoder = self._decoder
        convert: Converter | None = None
        drop = 0
        for begin, block in self._from(place):
            if convert is None:
                convert = Converter(_CALL, decoder.rate, decoder.layout, self.rate, self.layout)
                at = round(Fraction(begin * self.rate, decoder.rate))
                drop = 0 if place is None else max(place - at, 0)
                self._at = at + drop
            made = convert.process(block)
            if drop:
                cut = min(drop, len(made))
                drop, made = drop - cut, made[cut:]
            yield made
        if convert is not None:
            yield convert.finish()[drop:]

    def _from(self, place: int | None) -> Iterator[tuple[int, Samples]]:
        """Yield blocks of the decoder that begin where a place needs them to."""
        decoder = self._decoder
        blocks = decoder.blocks()
        if place is None:
            yield from blocks
            return
        wanted = self._native(place)
        first = next(blocks, None)
        if first is None or first[0] > wanted:  # the file's index is not exact
            decoder.rewind()
            blocks = decoder.blocks()
            first = next(blocks, None)
        while first is not None:
            at, block = first
            if at + len(block) > wanted:
                cut = max(wanted - at, 0)
                yield at + cut, block[cut:]
                break
            first = next(blocks, None)
        yield from blocks

    # the end ----------------------------------------------------------------------------------
    def _end(self) -> None:
        """Report damage once, after the last sample."""
        if self._finished:
            return
        self._finished = True
        at, self._at = self._at, None
        decoder = self._decoder
        damaged = decoder.damaged
        decoder.report()
        if decoder.error is not None:
            raise decoder.error
        if at is None and damaged and not self._sought:
            raise AudioError(
                f"{_CALL}: no sound of {self.label!r} could be decoded: all {damaged} packets are "
                "damaged."
            )

    def _audio(self, samples: Samples) -> Audio:
        at = (self._at or 0) - len(samples)
        return Audio(samples, self.rate, layout=self.layout, start=Fraction(at, self.rate))

    def _opened(self, call: str) -> SoundDecoder:
        if self.closed:
            raise FreedError(f"{call}: the reader of {self.label!r} is closed. Open it again.")
        self._home.check(f"{call}: {self.label!r}", "Open it again.")
        return self._decoder

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        self._finalizer()


def _release(decoder: SoundDecoder) -> None:
    decoder.close()
    untrack("audio reader", "host", 0)
