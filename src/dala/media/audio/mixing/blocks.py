"""Sounds as sources of blocks: any part of them, at one rate, without reading them as a whole.

A source renders samples from a place on, and silence where it has none. Rendering one block after
another is quick; going elsewhere seeks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from dala.errors import AudioError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import Samples, joined, silent
from dala.media.audio.files.reader import AudioReader
from dala.media.video.source import VideoFile

#: Seconds that are read over rather than sought.
_READ_OVER: Final = 2
#: Samples that are pushed into filters at once.
PART: Final = 4096
#: The same for the effects of one sound among others: caches are cold after each change to another.
LONG_PART: Final = 32768
#: Containers whose headers say how long their sound is, to the sample or nearly so.
_EXACT: Final = ("wav", "flac", "mov,mp4,m4a,3gp,3g2,mj2", "ogg", "matroska,webm", "aiff", "w64")


class BlockSource(Protocol):
    """A source of sound in blocks: a mixer, a file, the sound of a scene or of a timeline.

    ``render(start, count)`` returns an array of shape (count, channels), f32: the samples from
    ``start`` on, counted at ``rate`` from the time 0; before and after the sound they are 0.
    """

    rate: int
    layout: str

    def render(self, start: int, count: int) -> Samples:
        """Return ``count`` samples from the place ``start`` on."""


@dataclass(eq=False)
class BlockFunction:
    """A source of blocks that is a function of place and count."""

    rate: int
    layout: str
    render: Callable[[int, int], Samples]


class SampleFilter(Protocol):
    """Anything that filters samples block by block."""

    def process(self, block: Samples) -> Samples:
        """Return the filtered samples that are ready after a block."""


class MemorySound:
    """An ``Audio`` as a source of blocks; its first sample is at the place 0.

    >>> sound = MemorySound(Audio([0.5, 0.25], 8000), 8000)
    >>> sound.render(-1, 4)[:, 0].tolist()
    [0.0, 0.5, 0.25, 0.0]
    """

    error: Exception | None = None

    def __init__(self, sound: Audio, rate: int, layout: str | None = None) -> None:
        self.rate = rate
        self.layout = layout or ("mono" if sound.channels == 1 else "stereo")
        self._samples = sound.resample(rate, layout=self.layout).samples

    @property
    def length(self) -> int | None:
        """Number of samples."""
        return len(self._samples)

    def exact_length(self) -> int:
        """Return the number of samples."""
        return len(self._samples)

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        return part_of(self._samples, start, count)

    def close(self) -> None:
        """Nothing to release."""


class FileSound(AudioReader):
    """The sound of a file as a source of blocks.

    The place 0 is the time 0 of the file, or of its first picture. What cannot be decoded is
    silence; ``error`` is the reason, if the file ended early.

    Args:
        source: as of ``audio.open``.
        rate: samples per second to convert to.
        layout: the channels; by default mono for mono, else stereo.
        track: number or language of the track.
        call: the call for messages.
        pictures: let the time 0 be that of the first picture, if the file has pictures.
    """

    def __init__(
        self,
        source: VideoFile,
        rate: int,
        *,
        layout: str | None = None,
        track: int | str = 0,
        call: str = "audio.open",
        pictures: bool = True,
    ) -> None:
        super().__init__(
            source, track=track, rate=rate, layout=layout, pictures=pictures, call=call
        )
        if layout is None and self.layout != "mono":
            self.layout = "stereo"
        self.error: Exception | None = None
        self._last: int | None = None  # the place after the last sample
        self._silent_from: float = -np.inf
        self._consumed = False

    @property
    def length(self) -> int | None:
        """Number of samples, by the header if the end was not reached; None if it is unknown."""
        if self._last is not None:
            return self._last
        source = self._decoder.source
        remote = source.url and source.stream is None
        if self._decoder.container not in _EXACT and not remote:
            return self.exact_length()
        duration = self.duration
        return None if duration is None else round(duration * self.rate)

    def exact_length(self) -> int:
        """Return the number of samples; reads the file to its end if that was not done."""
        if self._last is None:
            while len(self._take(1 << 16)):
                pass
            self._finish()
            self._go_back(0)
        assert self._last is not None
        return self._last

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        made: Samples | None = None
        end = start + count
        at = end if self._last is not None and start >= self._last else self._go_to(start)
        while at < end:
            wanted = min(start - at, 1 << 16) if at < start else end - at
            part = self._take(wanted)
            if not len(part):
                self._finish()
                break
            self._consumed = True
            if at == start and len(part) == count:
                return part
            if at >= start:
                made = silent(count, self.layout) if made is None else made
                made[at - start : at - start + len(part)] = part
            at += len(part)
        return silent(count, self.layout) if made is None else made

    def _go_to(self, start: int) -> int:
        """Return the place of the next sample of the reader, which is near ``start``."""
        at = self._place()
        before = start < at and (self._consumed or start < self._silent_from)
        if before or start > at + _READ_OVER * self.rate:
            self._go_back(start)
            at = self._place()
        return at

    def _place(self) -> int:
        self._opened("AudioReader")
        self._fill(1)
        if self._waiting and self._at is not None:
            return self._at
        self._finish()
        return 1 << 62

    def _go_back(self, start: int) -> None:
        self._seek(max(start, 0))
        self._silent_from, self._consumed = start, False

    def _finish(self) -> None:
        """Remember the end, and the damaged parts."""
        place = self._at
        if self._last is None:
            self._last = place or 0
        try:
            self._end()
        except AudioError as error:
            self.error = error
        self._at = place


@dataclass(eq=False)
class Processed:
    """A source after filters, which are run from a little before a place that is sought.

    Args:
        source: what is filtered.
        stream: makes the filters.
        speed: seconds of the source for a second of the result.
        run_up: seconds that the filters run before a place.
        part: samples that are filtered at once; so much is read ahead.
    """

    source: BlockSource
    stream: Callable[[], SampleFilter]
    _: KW_ONLY
    speed: Fraction = Fraction(1)
    run_up: float = 1.0
    part: int = PART

    def __post_init__(self) -> None:
        self.rate, self.layout = self.source.rate, self.source.layout
        self._filters: SampleFilter | None = None
        self._at = self._fed = 0
        self._ready: list[Samples] = []

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        if self._filters is None or start != self._at:
            self._restart(start)
        made = self._taken(count)
        self._at = start + count
        return made

    def _restart(self, start: int) -> None:
        before = round(self.run_up * self.rate)
        self._filters = self.stream()
        self._ready = []
        self._fed = round((start - before) * self.speed)
        self._taken(before)

    def _taken(self, count: int) -> Samples:
        assert self._filters is not None
        have = sum(map(len, self._ready))
        while have < count:
            block = self._filters.process(self.source.render(self._fed, self.part))
            self._fed += self.part
            have += len(block)
            if len(block):
                self._ready.append(block)
        made = joined(self._ready, self.layout)
        self._ready = [made[count:]] if count < len(made) else []
        return made[:count]


def part_of(samples: Samples, start: int, count: int) -> Samples:
    """Return samples from a place on, with silence where there are none.

    >>> part_of(np.ones((2, 1), np.float32), 1, 3)[:, 0].tolist()
    [1.0, 0.0, 0.0]
    """
    if start >= 0 and start + count <= len(samples):
        return samples[start : start + count]
    made = np.zeros((count, samples.shape[1]), np.float32)
    first, last = max(start, 0), min(start + count, len(samples))
    if first < last:
        made[first - start : last - start] = samples[first:last]
    return made
