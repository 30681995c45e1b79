"""Filters of libavfilter on blocks of samples, through PyAV's filter graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dala.budget import checked
from dala.errors import AudioError
from dala.media.audio.checks import Samples, joined, silent
from dala.media.video.source import AvObject, av, ffmpeg_errors, pulled

#: The name of a filter of libavfilter, and its arguments.
Step: TypeAlias = tuple[str, str]

#: Samples that are pushed at once. Larger blocks are divided.
BLOCK = 16384


class SoundGraph:
    """Filters of libavfilter one after another, over frames of f32 samples.

    Args:
        steps: the filters.
        rate: samples per second.
        layout: the channels.
        inputs: how many inputs the first filter has.
    """

    def __init__(self, steps: Sequence[Step], rate: int, layout: str, *, inputs: int = 1) -> None:
        self._rate, self._layout = rate, layout
        self._graph = graph = av.filter.Graph()
        graph.threads = 1  # one for each sound; these filters gain nothing from more
        self._inputs = [
            graph.add_abuffer(
                format="flt", sample_rate=rate, layout=layout, time_base=Fraction(1, rate),
                name=f"input {number}",
            )
            for number in range(inputs)
        ]  # fmt: skip
        chain = (*steps, ("aformat", "sample_fmts=flt"), ("abuffersink", ""))
        nodes = [graph.add(name, args) if args else graph.add(name) for name, args in chain]
        for number, given in enumerate(self._inputs):
            given.link_to(nodes[0], 0, number)
        for one, after in pairwise(nodes):
            one.link_to(after)
        graph.configure()
        self._sink = nodes[-1]

    def push(self, block: Samples, at: int, *, number: int = 0) -> None:
        """Push samples of a time, which counts in samples, into an input."""
        self._inputs[number].push(sound_frame(block, self._rate, self._layout, at))

    def end(self, *, number: int = 0) -> None:
        """End an input."""
        self._inputs[number].push(None)

    def pull(self) -> Iterator[AvObject]:
        """Yield the frames that are ready."""
        return pulled(self._sink.pull)


@dataclass(eq=False)
class FilterStream:
    """A chain of filters over blocks of samples, aligned with the input.

    Args:
        call: the call for messages.
        steps: the filters.
        rate: samples per second.
        layout: the channels.
        lead: silent samples that are pushed first.
        drop: samples of the output that are dropped first: the delay of the filters.
        pad: silent samples that are pushed at the end, so that the filters let out the rest.
        total: the length of the output for a length of the input; None for whatever comes out.
        side: samples of a second input of the first filter, such as an impulse response.

    >>> import numpy as np
    >>> halved = FilterStream("example", [("volume", "0.5")], 48000, "mono")
    >>> halved.process(np.ones((3, 1), np.float32)).tolist() + halved.finish().tolist()
    [[0.5], [0.5], [0.5]]
    """

    call: str
    steps: Sequence[Step]
    rate: int
    layout: str
    _: KW_ONLY
    lead: int = 0
    drop: int = 0
    pad: int = 0
    total: Callable[[int], int] | None = None
    side: Samples | None = None

    def __post_init__(self) -> None:
        names = " and ".join(name for name, _ in self.steps) or "the conversion"
        self._errors = partial(ffmpeg_errors, f"{self.call}: {names} failed", AudioError)
        self._pushed = self._count = self._made = 0
        self._nothing = silent(0, self.layout)
        side = self.side
        with self._errors():
            inputs = 1 if side is None else 2
            self._graph = SoundGraph(self.steps, self.rate, self.layout, inputs=inputs)
            if side is not None:
                self._graph.push(side, 0, number=1)
                self._graph.end(number=1)
            self._put(silent(self.lead, self.layout))

    def process(self, block: Samples) -> Samples:
        """Push samples; return the filtered samples that are ready."""
        if not len(block):
            return self._nothing
        self._count += len(block)
        return self._put(block)

    def finish(self) -> Samples:
        """Return the last samples. Nothing may be pushed after."""
        parts = [self._put(silent(self.pad, self.layout))]
        with self._errors():
            self._graph.end()
        parts.append(self._cut(self._pull()))
        made = np.concatenate(parts)
        if self.total is None:
            return made
        # What is beyond the expected length is the filters' answer to the padding.
        wanted = self.total(self._count) - (self._made - len(made))
        if wanted <= len(made):
            return made[: max(wanted, 0)]
        rest = np.zeros((wanted - len(made), made.shape[1]), np.float32)
        return np.concatenate([made, rest])

    def _put(self, block: Samples) -> Samples:
        parts = []
        with self._errors():
            for at in checked(range(0, len(block), BLOCK), self.call):
                part = block[at : at + BLOCK]
                self._graph.push(part, self._pushed)
                self._pushed += len(part)
                parts.append(self._pull())
        return self._cut(joined(parts or [self._nothing], self.layout))

    def _pull(self) -> Samples:
        parts = [frame_samples(frame) for frame in self._graph.pull()]
        return joined(parts or [self._nothing], self.layout)

    def _cut(self, made: Samples) -> Samples:
        """Drop the delay of the filters."""
        if self.drop:
            dropped = min(self.drop, len(made))
            self.drop -= dropped
            made = made[dropped:]
        self._made += len(made)
        if len(made):
            self._nothing = made[:0]
        return made


def sound_frame(block: Samples, rate: int, layout: str, at: int) -> AvObject:
    """Return samples as a frame of PyAV in the format "flt", at a time that counts in samples."""
    flat = np.ascontiguousarray(block, np.float32).reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(flat, format="flt", layout=layout)
    frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
    return frame


def frame_samples(frame: AvObject) -> Samples:
    """Return the samples of a frame of PyAV in the format "flt" as (count, channels).

    It is a view of the frame's memory, which lives as long as the array.
    """
    count = frame.samples
    channels = frame.layout.nb_channels
    array: Samples = np.frombuffer(frame.planes[0], np.float32, count * channels)
    return array.reshape(count, channels)


def filtered(stream: FilterStream | Converter, samples: Samples) -> Samples:
    """Return all samples after the filters of a stream."""
    return np.concatenate([stream.process(samples), stream.finish()])


# rates and layouts --------------------------------------------------------------------------------
#: The length of the resampler's filter, and how it rounds: better than FFmpeg's defaults.
_QUALITY = "filter_size=64:phase_shift=10:cutoff=0.97:linear_interp=0"


class Converter:
    """Converts blocks of samples to another rate and layout, aligned with the input.

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
        self._nothing = silent(0, to_layout)

    @property
    def passes(self) -> bool:
        """True if samples are returned as they are."""
        return self._stream is None and not self._spread and not self._average

    def process(self, block: Samples) -> Samples:
        """Push samples; return the converted samples that are ready."""
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
    return samples if made.passes else filtered(made, samples)
