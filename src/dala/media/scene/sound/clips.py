"""A sound as a clip plays it: trimmed, repeated, faster, slower or backwards, on a clock."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.audio.effects import tempo_stream
from dala.media.audio.mixing.blocks import BlockSource, Processed
from dala.media.sources.clip import ClipPiece, ClipTimes

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

#: Samples that are decoded at once to play them backwards.
_CHUNK: Final = 1 << 16
#: Speeds at which the pitch is kept; others are silent.
_SLOWEST, _FASTEST = Fraction(1, 20), Fraction(100)


class ClipSound:
    """A source on the clock of the scene or group that plays it.

    At a constant speed the pitch is kept; backwards, the sound runs backwards. Where the speed
    changes the pitch changes with it, as that of a tape does.

    Args:
        source: what is played.
        node: the node, whose clip has the times.
    """

    def __init__(self, source: BlockSource, node: Node) -> None:
        self.rate, self.layout = source.rate, source.layout
        self._source = source
        self._node = node
        self._variants: dict[Fraction, BlockSource] = {Fraction(1): source}

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        rate, clip = self.rate, self._node.clip
        if clip.plain and not clip.bounded and clip.runs == 1 and start >= 0:
            return self._source.render(start, count)
        made = silence(self.layout, count)
        begin, end = Fraction(start, rate), Fraction(start + count, rate)
        length = self._node.length() if clip.trim[1] is None else None
        for piece in clip.pieces(begin, end, length):
            first = max(nearest(piece.start * rate) - start, 0)
            last = min(nearest(piece.end * rate) - start, count)
            if last > first:
                made[first:last] = self._piece(piece, clip, last - first)
        return made

    def _piece(self, piece: ClipPiece, clip: ClipTimes, count: int) -> Samples:
        speed = clip.speed.constant
        if speed is None:
            return self._tape(piece, count)
        if not _SLOWEST <= abs(speed) <= _FASTEST:
            return silence(self.layout, count)
        place = piece.source_start * self.rate / speed
        return self._variant(speed).render(nearest(place), count)

    def _variant(self, speed: Fraction) -> BlockSource:
        """Return the source at a speed; its place 0 is the beginning of the source."""
        found = self._variants.get(speed)
        if found is not None:
            return found
        source: BlockSource = ReversedSound(self._source) if speed < 0 else self._source
        if abs(speed) != 1:
            rate, layout, factor = self.rate, self.layout, float(abs(speed))
            source = Processed(
                source, lambda: tempo_stream("add_audio", factor, rate, layout), speed=abs(speed)
            )
        self._variants = {Fraction(1): self._source, speed: source}
        return source

    def _tape(self, piece: ClipPiece, count: int) -> Samples:
        first = float(piece.source_start * self.rate)
        last = float(piece.source_end * self.rate)
        places = first + (last - first) * (np.arange(count) / count)
        low = math.floor(min(first, last))
        block = self._source.render(low, math.ceil(abs(last - first)) + 2)
        at = places - low
        known = np.arange(len(block))
        columns = [np.interp(at, known, block[:, c]) for c in range(block.shape[1])]
        return np.stack(columns, axis=1).astype(np.float32)


class ReversedSound:
    """A source backwards: its place -n is the place n of the source."""

    def __init__(self, source: BlockSource) -> None:
        self.rate, self.layout = source.rate, source.layout
        self._source = source
        self._chunk: tuple[int, Samples] | None = None

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        first = -(start + count)
        parts, at = [], first
        while at < first + count:
            begin, chunk = self._chunk_at(at)
            part = chunk[at - begin : first + count - begin]
            parts.append(part)
            at += len(part)
        return np.concatenate(parts)[::-1]

    def _chunk_at(self, place: int) -> tuple[int, Samples]:
        begin = place // _CHUNK * _CHUNK
        if self._chunk is None or self._chunk[0] != begin:
            self._chunk = begin, self._source.render(begin, _CHUNK)
        return self._chunk


def silence(layout: str, count: int) -> Samples:
    """Return so many samples of silence."""
    return np.zeros((count, LAYOUTS[layout]), np.float32)


def nearest(value: Fraction) -> int:
    """Return the nearest integer; halves go up, so that sums of places round alike.

    >>> nearest(Fraction(1, 2)), nearest(Fraction(3, 2)), nearest(Fraction(-1, 2))
    (1, 2, 0)
    """
    return math.floor(value + Fraction(1, 2))
