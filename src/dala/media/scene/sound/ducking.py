"""Ducking: music becomes quieter while a voice is heard, by libavfilter's sidechain compressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import AudioError
from dala.media.audio.checks import Samples, from_decibels
from dala.media.audio.graph import frame_samples
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.scene.nodes.property_types import plain_json
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import AvObject, pyav
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

#: The filter's largest ratio: decibels above the threshold for one that is left.
_RATIO: Final = 20
_PART: Final = 4096
#: Seconds that the filter runs before a place that is sought.
_RUN_UP: Final = 2


@dataclass(frozen=True, eq=False)
class Duck:
    """Music that becomes quieter under voices; made by ``scene.duck``.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     music, voice = (scene.add_audio(dala.media.audio.silence(1)) for _ in range(2))
    ...     scene.duck(music, under=voice, amount=9).amount
    9.0
    """

    music: Node
    under: tuple[Node, ...]
    #: By how much, in dB.
    amount: float
    #: The voice's level above which the music is reduced, in dB.
    threshold: float = -40.0
    #: Time constants in seconds.
    attack: float = 0.05
    release: float = 0.3

    def facts(self) -> dict[str, JsonValue]:
        """Return what a scene file holds of it."""
        under = [node.id for node in self.under]
        made: dict[str, JsonValue] = {
            "music": self.music.id,
            "under": under[0] if len(under) == 1 else under,
            "amount": plain_json(self.amount),
        }
        for name in ("threshold", "attack", "release"):
            value = getattr(self, name)
            if value != getattr(Duck, name):
                made[name] = plain_json(value)
        return made


class DuckGain:
    """The factors of ducked music, from blocks of the voices.

    The compressor reduces a constant 1 by the level of the voices, which is clipped where the
    reduction is the wanted amount. So the amount is reached by any voice, and never exceeded.
    """

    def __init__(self, duck: Duck, rate: int, voice: Callable[[int, int], Samples]) -> None:
        self._duck = duck
        self._rate = rate
        self._voice = voice
        above = duck.amount / (1 - 1 / _RATIO)
        self._ceiling = np.float32(from_decibels(min(duck.threshold + above, 0.0)))
        self._floor = np.float32(from_decibels(-duck.amount))
        self._graph: AvObject = None
        self._at: int | None = None
        self._fed = 0
        self._ready: list[NDArray] = []

    def render(self, start: int, count: int) -> NDArray:
        """Return a factor for each sample from a place on."""
        if self._at != start:
            self._restart(start)
        made = self._taken(count)
        self._at = start + count
        return made

    def _restart(self, start: int) -> None:
        before = _RUN_UP * self._rate
        self._open()
        self._ready, self._fed = [], start - before
        self._taken(before)

    def _open(self) -> None:
        av = pyav()
        duck = self._duck
        options = {
            "format": "flt", "sample_rate": self._rate, "layout": "mono",
            "time_base": Fraction(1, self._rate),
        }  # fmt: skip
        try:
            graph = av.filter.Graph()
            graph.threads = 1
            self._main = graph.add_abuffer(**options, name="main")
            self._side = graph.add_abuffer(**options, name="side")
            node = graph.add(
                "sidechaincompress",
                f"threshold={from_decibels(duck.threshold):.9f}:ratio={_RATIO}"
                f":attack={duck.attack * 1000}:release={duck.release * 1000}:knee=1"
                ":detection=rms",
            )
            self._main.link_to(node, 0, 0)
            self._side.link_to(node, 0, 1)
            packed = graph.add("aformat", "sample_fmts=flt")
            node.link_to(packed)
            self._sink = graph.add("abuffersink")
            packed.link_to(self._sink)
            graph.configure()
        except (av.FFmpegError, ValueError) as error:
            raise AudioError(f"duck: {ffmpeg_message(error)}.") from error
        self._graph = graph
        self._pushed = 0

    def _taken(self, count: int) -> NDArray:
        have = sum(map(len, self._ready))
        while have < count:
            voice = self._voice(self._fed, _PART).mean(axis=1)
            self._push(self._side, np.clip(voice, -self._ceiling, self._ceiling))
            self._push(self._main, np.ones(_PART, np.float32))
            self._pushed += _PART
            self._fed += _PART
            block = self._pulled()
            have += len(block)
            self._ready.append(block)
        joined = np.concatenate(self._ready)
        self._ready = [joined[count:]]
        made: NDArray = np.maximum(joined[:count], self._floor)
        return made

    def _push(self, buffer: AvObject, samples: NDArray) -> None:
        flat = np.ascontiguousarray(samples, np.float32)[None]
        frame = pyav().AudioFrame.from_ndarray(flat, format="flt", layout="mono")
        frame.sample_rate, frame.pts = self._rate, self._pushed
        frame.time_base = Fraction(1, self._rate)
        buffer.push(frame)

    def _pulled(self) -> NDArray:
        av = pyav()
        parts: list[NDArray] = [np.empty(0, np.float32)]
        while True:
            try:
                parts.append(frame_samples(self._sink.pull())[:, 0])
            except (av.BlockingIOError, av.EOFError):
                return np.concatenate(parts)


def joined_voices(voices: Sequence[Callable[[int, int], Samples]]) -> Callable[[int, int], Samples]:
    """Return the sum of voices as a function of place and count."""

    def voice(start: int, count: int) -> Samples:
        made = np.zeros((count, 2), np.float32)
        for one in voices:
            made += one(start, count)
        return made

    return voice
