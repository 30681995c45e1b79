"""Other rates and layouts of samples, by libswresample."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.audio.graph import FilterStream, Step

#: The length of the resampler's filter, and how it rounds: better than FFmpeg's defaults.
_QUALITY = "filter_size=64:phase_shift=10:cutoff=0.97:linear_interp=0"


class Converter:
    """Blocks of samples in another rate and layout, aligned with what goes in.

    Mono becomes stereo, and stereo mono, without a change of level; other layouts are mixed with
    the coefficients of libswresample, which do not scale the result to fit.

    >>> import numpy as np
    >>> halved = Converter("example", 16000, "mono", 8000, "stereo")
    >>> parts = halved.process(np.ones((160, 1), np.float32)), halved.finish()
    >>> sum(len(part) for part in parts)
    80
    """

    def __init__(self, call: str, rate: int, layout: str, to_rate: int, to_layout: str) -> None:
        self.rate, self.layout = to_rate, to_layout
        self._spread = layout == "mono" and to_layout == "stereo"
        self._average = layout == "stereo" and to_layout == "mono"
        inner = to_layout if self._average else layout
        steps: list[Step] = []
        if not (self._spread or self._average) and layout != to_layout:
            steps.append(("aformat", f"channel_layouts={to_layout}"))
        if rate != to_rate:
            steps.append(("aresample", f"{to_rate}:{_QUALITY}"))
        ratio = Fraction(to_rate, rate)
        self._stream = None
        if steps:
            self._stream = FilterStream(
                call, steps, rate, inner, total=lambda count: math.ceil(count * ratio)
            )
        self._nothing = np.empty((0, LAYOUTS[to_layout]), np.float32)

    @property
    def passes(self) -> bool:
        """Whether samples are returned as they are."""
        return self._stream is None and not self._spread and not self._average

    def process(self, block: Samples) -> Samples:
        """Push samples; return those that are converted."""
        if self._average:
            block = block.mean(axis=1, keepdims=True, dtype=np.float32)
        if self._stream is not None:
            block = self._stream.process(block)
        return np.repeat(block, 2, axis=1) if self._spread else block

    def finish(self) -> Samples:
        """Return the last samples."""
        if self._stream is None:
            return self._nothing
        block = self._stream.finish()
        return np.repeat(block, 2, axis=1) if self._spread else block


def converted(
    call: str, samples: Samples, rate: int, layout: str, to_rate: int, to_layout: str
) -> Samples:
    """Return samples in another rate and layout."""
    made = Converter(call, rate, layout, to_rate, to_layout)
    if made.passes:
        return samples
    return np.concatenate([made.process(samples), made.finish()])
