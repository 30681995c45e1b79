"""Loudness by EBU R128, measured by libavfilter's ``ebur128``.

The largest momentary and short-term loudness are ours: the filter's steps of 0.1 s miss them by up
to 0.5 LU, more than the standard's tests allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dala.media.audio.checks import Samples
from dala.media.audio.graph import FilterStream
from dala.media.video.source import av
from dala.typing import NDArray

#: What the meter reports for silence.
_SILENT: Final = -70.0
#: Steps in a second in which the largest loudness is found.
_STEPS: Final = 100
#: Seconds that are measured at a time: it takes seven times the memory of the samples.
_BLOCK_SECONDS: Final = 10


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

    Args:
        call: the call for messages.
        rate: samples per second.
        layout: the channels.
        true_peak: measure between samples; else the largest sample is the peak. It takes most of
            the time.
        maxima: measure the largest momentary and short-term loudness.

    >>> import numpy as np
    >>> meter = LoudnessMeter("example", 48000, "mono")
    >>> meter.feed(np.zeros((48000, 1), np.float32))
    >>> meter.result().range
    0.0
    """

    def __init__(
        self, call: str, rate: int, layout: str, *, true_peak: bool = True, maxima: bool = True
    ) -> None:
        peak = "true" if true_peak else "none"
        super().__init__(call, [("ebur128", f"metadata=1:peak={peak}")], rate, layout)
        self._last: dict[str, str] = {}
        self._windows = _Windows(call, rate, layout) if maxima else None
        self._peak = 0.0

    def feed(self, block: Samples) -> None:
        """Measure a block."""
        most = _BLOCK_SECONDS * self.rate
        for at in range(0, len(block), most):
            part = block[at : at + most]
            self._peak = max(self._peak, float(np.abs(part).max(initial=0.0)))
            if self._windows is not None:
                self._windows.feed(part)
            self.process(part)

    @property
    def momentary(self) -> float:
        """The largest loudness of any 0.4 s so far, in LUFS."""
        return -math.inf if self._windows is None else self._windows.momentary

    @property
    def short_term(self) -> float:
        """The largest loudness of any 3 s so far, in LUFS."""
        return -math.inf if self._windows is None else self._windows.short_term

    def result(self) -> Loudness:
        """Return the loudness of all blocks. Nothing may be measured after."""
        # A block shorter than the meter's step of 0.1 s is measured with silence after it.
        step = self.rate // 10 + 1
        short = (-self._count) % step if self._count < 4 * step else 0
        self.pad = short
        self.finish()
        found = self._last
        return Loudness(
            integrated=_lufs(found.get("I")),
            range=float(found.get("LRA", 0.0)),
            momentary=self.momentary,
            short_term=self.short_term,
            # The filter rounds to thousandths, which is too coarse for quiet sounds.
            true_peak=_decibels(max(float(found.get("true_peak", 0.0)), self._peak)),
            peak=_decibels(self._peak),
        )

    def _pull(self) -> Samples:
        """Read the measurements of the frames that come out, instead of their samples."""
        for frame in self._graph.pull():
            self._last |= {key.removeprefix("lavfi.r128."): v for key, v in frame.metadata.items()}
        return self._nothing


class _Windows:
    """The largest loudness of any 0.4 s and of any 3 s, in steps of 10 ms.

    The filter ``ebur128`` has steps of 0.1 s, in which a sound of 0.4 s is up to 0.5 LU too low.
    """

    def __init__(self, call: str, rate: int, layout: str) -> None:
        steps = [("biquad", _biquad(*stage)) for stage in _weighting(rate)]
        self._filters = FilterStream(call, steps, rate, layout)
        self._weights = np.array([_weight(c.name) for c in av.AudioLayout(layout).channels])
        self._rate = rate
        self._rest: NDArray = np.zeros(0)
        self._count = 0
        self._powers: NDArray = np.zeros(0)
        self.momentary = self.short_term = -math.inf

    def feed(self, block: Samples) -> None:
        """Measure a block."""
        weighted = self._filters.process(block).astype(np.float64)
        energy = np.concatenate([self._rest, np.square(weighted) @ self._weights])
        first = self._count
        # Steps begin at whole samples nearest to each 10 ms.
        last = (first_sample(first, self._rate) + len(energy)) * _STEPS // self._rate
        begin = [first_sample(n, self._rate) for n in range(first, last + 1)]
        at = np.array(begin) - begin[0]
        self._rest = energy[at[-1] :]
        if last == first:
            return
        self._count = last
        known = len(self._powers)
        powers = np.concatenate([self._powers, np.add.reduceat(energy[: at[-1]], at[:-1])])
        self.momentary = max(self.momentary, self._largest(powers, known, 0.4))
        self.short_term = max(self.short_term, self._largest(powers, known, 3))
        self._powers = powers[-(3 * _STEPS - 1) :]

    def _largest(self, powers: NDArray, known: int, seconds: float) -> float:
        """Return the loudness of the loudest window that ends with a new step."""
        size = round(seconds * _STEPS)
        sums = np.concatenate([[0.0], np.cumsum(powers)])
        windows = sums[size:] - sums[:-size] if len(powers) >= size else sums[:0]
        mean = float(windows[max(known - size + 1, 0) :].max(initial=0.0)) / (seconds * self._rate)
        found = -0.691 + 10 * math.log10(mean) if mean > 0 else -math.inf
        return found if found > _SILENT else -math.inf


def first_sample(step: int, rate: int) -> int:
    """Return the first sample of a step of 10 ms.

    >>> [first_sample(step, 44100) for step in range(3)]
    [0, 441, 882]
    """
    return -(-step * rate // _STEPS)


def _weighting(rate: int) -> list[tuple[float, ...]]:
    """Return b0, b1, b2, a1 and a2 of the two filters of ITU-R BS.1770 for a rate.

    A shelf for the head and a high-pass, both by the bilinear transform of their analog forms, so
    that at 48 kHz they have the coefficients of the recommendation.
    """
    k = math.tan(math.pi * 1681.974450955533 / rate)
    q, high = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    band = high**0.4996667741545416
    a0 = 1 + k / q + k * k
    shelf = (
        (high + band * k / q + k * k) / a0,
        2 * (k * k - high) / a0,
        (high - band * k / q + k * k) / a0,
        2 * (k * k - 1) / a0,
        (1 - k / q + k * k) / a0,
    )
    k, q = math.tan(math.pi * 38.13547087602444 / rate), 0.5003270373238773
    a0 = 1 + k / q + k * k
    return [shelf, (1.0, -2.0, 1.0, 2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0)]


def _biquad(b0: float, b1: float, b2: float, a1: float, a2: float) -> str:
    return f"b0={b0!r}:b1={b1!r}:b2={b2!r}:a0=1:a1={a1!r}:a2={a2!r}:precision=f64"


def _weight(channel: str) -> float:
    """Return the weight of a channel: 0 for low frequencies, more for rear channels."""
    if channel.startswith("LFE"):
        return 0.0
    return 1.41 if channel.startswith(("B", "S", "TB")) else 1.0


def measure(
    call: str,
    blocks: Iterable[Samples],
    rate: int,
    layout: str,
    *,
    true_peak: bool = True,
    maxima: bool = True,
) -> Loudness:
    """Return the loudness of blocks of samples; see ``LoudnessMeter``."""
    meter = LoudnessMeter(call, rate, layout, true_peak=true_peak, maxima=maxima)
    for block in blocks:
        meter.feed(block)
    return meter.result()


def _lufs(text: str | None) -> float:
    value = -math.inf if text is None or text == "nan" else float(text)
    return value if value > _SILENT else -math.inf


def _decibels(value: float) -> float:
    return 20 * math.log10(value) if value > 0 else -math.inf
