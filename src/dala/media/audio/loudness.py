"""Loudness by EBU R128, measured by libavfilter's ``ebur128``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import ParameterError
from dala.media.audio.checks import Samples, check_number, from_decibels
from dala.media.audio.effects import effect_stream
from dala.media.audio.graph import FilterStream, filtered
from dala.media.notices import notify
from dala.media.video.source import AvObject, pyav

if TYPE_CHECKING:
    from dala.media.audio.audio import Audio

#: What the meter reports for silence.
_SILENT: Final = -70.0


@dataclass(frozen=True)
class Loudness:
    """The loudness of a sound, by EBU R128.

    Attributes:
        integrated: of the whole sound, in LUFS; -inf for silence.
        range: the loudness range (LRA), in LU.
        momentary: the largest of any 0.4 s, in LUFS.
        short_term: the largest of any 3 s, in LUFS; -inf for shorter sounds.
        true_peak: the largest value between samples, in dB of full scale (dBTP).
        peak: the largest sample, in dB of full scale.

    >>> from dala.media import audio
    >>> audio.silence(1).loudness().integrated
    -inf
    """

    integrated: float
    range: float
    momentary: float
    short_term: float
    true_peak: float
    peak: float


class LoudnessMeter(FilterStream):
    """Measures the loudness of blocks of samples.

    >>> import numpy as np
    >>> meter = LoudnessMeter("example", 48000, "mono")
    >>> meter.feed(np.zeros((48000, 1), np.float32))
    >>> meter.result().range
    0.0
    """

    def __init__(self, call: str, rate: int, layout: str, *, true_peak: bool = True) -> None:
        peak = "true" if true_peak else "none"
        super().__init__(call, [("ebur128", f"metadata=1:peak={peak}")], rate, layout)
        self._last: dict[str, str] = {}
        self._momentary = self._short = -math.inf
        self._peak = 0.0

    def feed(self, block: Samples) -> None:
        """Measure a block."""
        self._peak = max(self._peak, float(np.abs(block).max(initial=0.0)))
        self.process(block)

    def result(self) -> Loudness:
        """Return the loudness of all blocks. Nothing may be measured after."""
        # A block shorter than the meter's step of 0.1 s is measured with silence after it.
        step = self.rate // 10 + 1
        short = (-self._count) % step if self._count < 4 * step else 0
        self._pad = short
        self.finish()
        found = self._last
        return Loudness(
            integrated=_lufs(found.get("I")),
            range=float(found.get("LRA", 0.0)),
            momentary=self._momentary,
            short_term=self._short,
            # The filter rounds to thousandths, which is too coarse for quiet sounds.
            true_peak=_decibels(max(float(found.get("true_peak", 0.0)), self._peak)),
            peak=_decibels(self._peak),
        )

    def _pull(self) -> Samples:
        """Read the measurements of the frames that come out, instead of their samples."""
        av = pyav()
        while True:
            try:
                frame: AvObject = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                return self._nothing
            given = {key.removeprefix("lavfi.r128."): v for key, v in frame.metadata.items()}
            self._last |= given
            end = (frame.pts or 0) + frame.samples
            if end >= self.rate * 4 // 10:
                self._momentary = max(self._momentary, _lufs(given.get("M")))
            if end >= self.rate * 3:
                self._short = max(self._short, _lufs(given.get("S")))


def measure(
    call: str, blocks: Iterable[Samples], rate: int, layout: str, *, true_peak: bool = True
) -> Loudness:
    """Return the loudness of blocks of samples. Without ``true_peak`` it is several times faster,
    and has the largest sample instead.
    """
    meter = LoudnessMeter(call, rate, layout, true_peak=true_peak)
    for block in blocks:
        meter.feed(block)
    return meter.result()


def normalized(sound: Audio, peak: float | None, loudness: float | None, limit: float) -> Samples:
    """Return the samples of a sound at a level; see ``Audio.normalize``."""
    call = "Audio.normalize"
    if peak is not None and loudness is not None:
        raise ParameterError(f"{call}: give peak or loudness, not both.")
    if loudness is None:
        wanted = check_number(call, "peak", -1.0 if peak is None else peak, -120.0, 60.0, "dB")
        if sound.peak == 0:
            return sound.samples
        return sound.samples * np.float32(from_decibels(wanted) / float(sound.peak))
    target = check_number(call, "loudness", loudness, -70.0, 0.0, "LUFS")
    check_number(call, "limit", limit, -24.0, 0.0, "dB")
    found = measure(call, [sound.samples], sound.rate, sound.layout, true_peak=False).integrated
    if not math.isfinite(found):
        notify(f"{call}: the sound is silent, so it is left as it is.")
        return sound.samples
    made = sound.samples * np.float32(from_decibels(target - found))
    if np.abs(made).max(initial=0.0) <= from_decibels(limit):
        return made
    notify(f"{call}: peaks above {limit:g} dB are limited to reach {target:g} LUFS.")
    stream = effect_stream(call, [("limiter", {"limit": limit})], sound.rate, sound.layout)
    return filtered(stream, made)


def _lufs(text: str | None) -> float:
    value = -math.inf if text is None or text == "nan" else float(text)
    return value if value > _SILENT else -math.inf


def _decibels(value: float) -> float:
    return 20 * math.log10(value) if value > 0 else -math.inf
