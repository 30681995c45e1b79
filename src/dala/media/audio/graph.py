"""Filters of libavfilter on blocks of samples, through PyAV's filter graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dala.errors import AudioError
from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import AvObject, pyav

#: The name of a filter of libavfilter, and its arguments.
Step: TypeAlias = tuple[str, str]

#: Samples that are pushed at once. Larger blocks are divided.
BLOCK = 16384


class FilterStream:
    """Filters that blocks of samples pass through in order, aligned with what goes in.

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

    def __init__(
        self,
        call: str,
        steps: Sequence[Step],
        rate: int,
        layout: str,
        *,
        lead: int = 0,
        drop: int = 0,
        pad: int = 0,
        total: Callable[[int], int] | None = None,
        side: Samples | None = None,
    ) -> None:
        av = pyav()
        self.rate = rate
        self.layout = layout
        self.channels = LAYOUTS[layout]
        self._call = call
        self._names = " and ".join(name for name, _ in steps) or "the conversion"
        self._lead = lead
        self._drop = drop
        self._pad = pad
        self._total = total
        self._pushed = 0
        self._count = 0
        self._made = 0
        self._nothing = np.empty((0, self.channels), np.float32)
        try:
            graph = av.filter.Graph()
            graph.threads = 1  # one for each sound; these filters gain nothing from more
            options = {
                "format": "flt", "sample_rate": rate, "layout": layout,
                "time_base": Fraction(1, rate),
            }  # fmt: skip
            self._source = last = graph.add_abuffer(**options)
            beside = None if side is None else graph.add_abuffer(**options, name="side")
            for number, (name, args) in enumerate(steps):
                node = graph.add(name, args) if args else graph.add(name)
                last.link_to(node)
                if number == 0 and beside is not None:
                    beside.link_to(node, 0, 1)
                last = node
            packed = graph.add("aformat", "sample_fmts=flt")
            last.link_to(packed)
            self._sink = graph.add("abuffersink")
            packed.link_to(self._sink)
            graph.configure()
            self._graph = graph
            if beside is not None and side is not None:
                self._source, main = beside, self._source
                self._push(side)
                beside.push(None)
                self._source = main
                self._pushed = 0
            self._put(self._silence(lead))
        except (av.FFmpegError, ValueError, OSError) as error:
            raise self._failed(error) from error

    def process(self, block: Samples) -> Samples:
        """Push samples; return those that the filters are done with."""
        if not len(block):
            return self._nothing
        self._count += len(block)
        return self._put(block)

    def finish(self) -> Samples:
        """Return the last samples. Nothing may be pushed after."""
        av = pyav()
        parts = [self._put(self._silence(self._pad))]
        try:
            self._source.push(None)
        except (av.FFmpegError, ValueError) as error:
            raise self._failed(error) from error
        parts.append(self._cut(self._pull()))
        made = np.concatenate(parts)
        if self._total is None:
            return made
        # What is beyond the expected length is the filters' answer to the padding.
        wanted = self._total(self._count) - (self._made - len(made))
        if wanted <= len(made):
            return made[: max(wanted, 0)]
        rest = np.zeros((wanted - len(made), made.shape[1]), np.float32)
        return np.concatenate([made, rest])

    def _silence(self, count: int) -> Samples:
        return np.zeros((count, self.channels), np.float32)

    def _put(self, block: Samples) -> Samples:
        av = pyav()
        parts = []
        try:
            for at in range(0, len(block), BLOCK):
                self._push(block[at : at + BLOCK])
                parts.append(self._pull())
        except (av.FFmpegError, ValueError) as error:
            raise self._failed(error) from error
        return self._cut(parts[0] if len(parts) == 1 else np.concatenate(parts or [self._nothing]))

    def _push(self, block: Samples) -> None:
        flat = np.ascontiguousarray(block, np.float32).reshape(1, -1)
        frame = pyav().AudioFrame.from_ndarray(flat, format="flt", layout=self.layout)
        frame.sample_rate = self.rate
        frame.pts = self._pushed
        frame.time_base = Fraction(1, self.rate)
        self._pushed += len(block)
        self._source.push(frame)

    def _pull(self) -> Samples:
        av = pyav()
        parts = []
        while True:
            try:
                frame = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                break
            parts.append(frame_samples(frame))
        if not parts:
            return self._nothing
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _cut(self, made: Samples) -> Samples:
        """Drop the delay of the filters."""
        if self._drop:
            dropped = min(self._drop, len(made))
            self._drop -= dropped
            made = made[dropped:]
        self._made += len(made)
        if len(made):
            self._nothing = made[:0]
        return made

    def _failed(self, error: Exception) -> AudioError:
        text = f"{self._call}: {self._names} failed: {ffmpeg_message(error)}."
        return AudioError(text)


def frame_samples(frame: AvObject) -> Samples:
    """Return the samples of a frame of PyAV in the format "flt" as (count, channels).

    It is a view of the frame's memory, which lives as long as the array.
    """
    count = frame.samples
    channels = frame.layout.nb_channels
    array: Samples = np.frombuffer(frame.planes[0], np.float32, count * channels)
    return array.reshape(count, channels)


def filtered(stream: FilterStream, samples: Samples) -> Samples:
    """Return all samples after the filters of a stream."""
    return np.concatenate([stream.process(samples), stream.finish()])
