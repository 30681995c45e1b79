"""Ducking: music becomes quieter while a voice is heard, by libavfilter's sidechain compressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import AudioError
from dala.media.audio.checks import Samples, from_decibels
from dala.media.audio.graph import SoundGraph, frame_samples
from dala.media.audio.mixing.blocks import BlockSource, Processed
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.scene.nodes.property_types import plain_json
from dala.media.scene.options import DuckOptions
from dala.media.video.source import ffmpeg_errors
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

#: The filter's largest ratio: decibels above the threshold for one that is left.
_RATIO: Final = 20
#: Seconds that the filter runs before a place that is sought.
_RUN_UP: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Duck(DuckOptions):
    """Music that becomes quieter under voices; made by ``scene.duck``.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     music, voice = (scene.add_audio(dala.media.audio.silence(1)) for _ in range(2))
    ...     scene.duck(music, under=voice, amount=9).amount
    9.0
    """

    music: Node
    under: tuple[Node, ...]

    def facts(self) -> dict[str, JsonValue]:
        """Return its form in a scene file."""
        under = [node.id for node in self.under]
        chosen = {"amount": self.amount, **self.changed()}
        return {
            "music": self.music.id,
            "under": under[0] if len(under) == 1 else under,
            **{name: plain_json(value) for name, value in chosen.items()},
        }


class DuckGain(Processed):
    """The factors of ducked music, from blocks of the voices, as samples of one channel.

    The compressor reduces a constant 1 by the level of the voices, which is clipped where the
    reduction is the wanted amount. So the amount is reached by any voice, and never exceeded.
    """

    def __init__(self, duck: Duck, voices: BlockSource) -> None:
        super().__init__(voices, lambda: _Compressor(duck, voices.rate), run_up=_RUN_UP)
        self._floor = np.float32(from_decibels(-duck.amount))

    def gains(self, start: int, count: int) -> NDArray:
        """Return a factor for each sample from a place on."""
        made: NDArray = np.maximum(self.render(start, count)[:, 0], self._floor)
        return made


class _Compressor:
    """A constant 1 that a sidechain compressor reduces by the level of blocks."""

    def __init__(self, duck: Duck, rate: int) -> None:
        above = duck.amount / (1 - 1 / _RATIO)
        self._ceiling = np.float32(from_decibels(min(duck.threshold + above, 0.0)))
        self._pushed = 0
        options = (
            f"threshold={from_decibels(duck.threshold):.9f}:ratio={_RATIO}"
            f":attack={duck.attack * 1000}:release={duck.release * 1000}:knee=1:detection=rms"
        )
        with ffmpeg_errors("duck", AudioError):
            self._graph = SoundGraph([("sidechaincompress", options)], rate, "mono", inputs=2)

    def process(self, block: Samples) -> Samples:
        """Return the factors that are ready after a block."""
        level = np.clip(block.mean(axis=1), -self._ceiling, self._ceiling)
        self._graph.push(level, self._pushed, number=1)
        self._graph.push(np.ones(len(block), np.float32), self._pushed)
        self._pushed += len(block)
        none = np.empty((0, 1), np.float32)
        return np.concatenate([none, *map(frame_samples, self._graph.pull())])
