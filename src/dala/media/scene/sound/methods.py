"""The methods of scenes that are about sound as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Unpack

import numpy as np

from dala.errors import DalaError, ParameterError
from dala.media.audio.mixing.blocks import FileSound, MemorySound
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.scene.nodes.property_types import plain_json
from dala.media.scene.options import DuckOptions, LevelOptions
from dala.media.scene.sound.ducking import Duck
from dala.media.scene.sound.voices import RATE, file_of, live_of, open_sound
from dala.media.sources.seconds import Moment
from dala.options import check_all, takes
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.keywords import DuckKeywords, LevelKeywords
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

#: Samples of each measurement, and between two of them: 100 a second.
_WINDOW: Final = 2048
_HOP: Final = RATE // 100
#: Measurements that are made at once.
_BATCH: Final = 256


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Level(LevelOptions):
    """The loudness of a node over the time of the scene, from 0 to 1; made by ``scene.level``.

    It is measured once, when it is first asked for, 100 times a second in windows of 43 ms around
    each time, and depends on nothing but the sound: it is the same in each run, at any frame rate,
    in a file or live. Volume, pan and ducking do not change it.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     beep = scene.add_audio(dala.media.audio.tone(440, 1, amplitude=0.1), start=1)
    ...     level = scene.level(beep)
    ...     [round(level.at(time), 2) for time in (0.5, 1.5, 3)]
    [0.0, 1.0, 0.0]
    """

    node: Node
    #: The values, once they are measured.
    _measured: list[NDArray] = field(default_factory=list)

    def at(self, time: float) -> float:
        """Return the level at a time of the scene."""
        local = self._source_time(Fraction(float(time)).limit_denominator(10**9))
        if local is None:
            return 0.0
        values = self.values()
        place = float(local) * RATE / _HOP
        if not len(values) or place <= -1 or place >= len(values):
            return 0.0
        first = math.floor(place)
        share = place - first
        low, high = (float(values[n]) if 0 <= n < len(values) else 0.0 for n in (first, first + 1))
        return low + (high - low) * share

    def _source_time(self, time: Fraction) -> Fraction | None:
        """Return the time of the node's sound at a time of the scene; None where it is silent."""
        moment: Moment | None = Moment.of(time)
        for group in reversed([*self.node.around()]):
            moment = None if moment is None else group.local_time(moment)
        if moment is None or not self.node.clip.exists(moment):
            return None
        place = self.node.clip.place(moment.exact, self.node.length())
        return None if place is None or place.over else place.time

    def values(self) -> NDArray:
        """Return the measured values, 100 a second."""
        if not self._measured:
            self._measured.append(self._measure())
        return self._measured[0]

    def _measure(self) -> NDArray:
        if file_of(self.node) is None:
            return np.zeros(0)
        try:
            source = open_sound(self.node, RATE, "mono", "Scene.level")
        except DalaError as error:
            self.node.scene._report(self.node, error)
            return np.zeros(0)
        try:
            raw = self._raw(source)
        finally:
            source.close()
        made = raw
        if self.release > 0 and len(raw):
            fall = math.exp(-1 / (100 * self.release))
            made = np.empty_like(raw)
            last = 0.0
            for number, value in enumerate(raw):
                last = max(float(value), last * fall)
                made[number] = last
        peak = float(made.max(initial=0.0)) if self.normalize else 1.0
        return np.minimum(made / peak, 1.0) if peak > 0 else made

    def _raw(self, source: FileSound | MemorySound) -> NDArray:
        """Return the amplitude in the band for each hop; a sine of amplitude 1 has 1."""
        shape = np.hanning(_WINDOW + 1)[:-1]
        scale = 2 / (_WINDOW * float(np.square(shape).sum()))
        frequencies = np.fft.rfftfreq(_WINDOW, 1 / RATE)
        low, high = self.band or (0.0, RATE / 2)
        inside = (frequencies >= low) & (frequencies <= high)
        if not inside.any():
            inside[np.argmin(np.abs(frequencies - (low + high) / 2))] = True
        length = source.exact_length()
        count = -(-length // _HOP) if length else 0
        made = np.zeros(count)
        for at in range(0, count, _BATCH):
            number = min(_BATCH, count - at)
            first = at * _HOP - _WINDOW // 2
            block = source.render(first, (number - 1) * _HOP + _WINDOW)[:, 0]
            views = np.lib.stride_tricks.sliding_window_view(block, _WINDOW)[::_HOP][:number]
            spectrum = np.fft.rfft(views * shape, axis=1)[:, inside]
            power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1) * scale
            made[at : at + number] = np.sqrt(2 * power)
        return made

    def facts(self) -> dict[str, JsonValue]:
        """Return its form in a scene file."""
        chosen = {name: plain_json(value) for name, value in self.changed().items()}
        return {"audio": self.node.id, **chosen}

    def __repr__(self) -> str:
        band = "" if self.band is None else f", {self.band[0]:g} to {self.band[1]:g} Hz"
        return f"<Level of {self.node.id}{band}>"


class SceneSounds(NodeBuilder):
    """The methods ``duck`` and ``level`` of scenes.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     scene.ducks
    []
    """

    @takes(DuckOptions)
    def duck(
        self,
        music: Node | str,
        *,
        under: Node | str | Sequence[Node | str],
        **given: Unpack[DuckKeywords],
    ) -> Duck:
        """Make music quieter while a voice is heard.

        Args:
            music: an audio or video node.
            under: the node of the voice, or several.

        Returns:
            The rule; ``scene.ducks`` lists all, and ``scene.ducks.remove(rule)`` ends it.

        >>> import dala
        >>> with dala.media.Scene(64, 36, device="cpu") as scene:
        ...     music, voice = (scene.add_audio(dala.media.audio.silence(1)) for _ in range(2))
        ...     rule = scene.duck(music, under=voice, amount=9)
        ...     len(scene.ducks)
        1
        """
        call = "Scene.duck"
        scene = self.scene_of()._check_open(call)
        found = _heard(scene, music, call, "music", live=True)
        several = under if isinstance(under, Sequence) and not isinstance(under, str) else [under]
        voices = tuple(_heard(scene, node, call, "under", live=True) for node in several)
        if not voices:
            raise ParameterError.invalid(call, "under", "a node or several", under)
        if found in voices:
            raise ParameterError(f"{call}: {found.id!r} cannot be ducked under itself.")
        made = Duck(music=found, under=voices, **check_all(call, Duck.specs(), given))
        scene.ducks.append(made)
        return made

    @takes(LevelOptions)
    def level(
        self,
        audio: Node | str,
        band: Sequence[float] | None = None,
        **given: Unpack[LevelKeywords],
    ) -> Level:
        """Return how loud a node is over time, from 0 to 1, for ``add_animation(..., by=level)``.

        Args:
            audio: an audio or video node.
            band: (lowest, highest) frequency in Hz, such as (20, 200) for the beat; by default all.

        >>> import dala
        >>> with dala.media.Scene(64, 36, device="cpu") as scene:
        ...     beep = scene.add_audio(dala.media.audio.tone(100, 1), start=1)
        ...     dot = scene.add_overlay(color="red", size=(8, 8))
        ...     beat = scene.level(beep, band=(20, 200))
        ...     pulse = scene.add_animation(dot, "scale", 1, 2, by=beat)
        ...     frame = scene.render(1.5)
        ...     round(dot.scale, 2)
        2.0
        """
        call = "Scene.level"
        scene = self.scene_of()._check_open(call)
        found = _heard(scene, audio, call, "audio", live=False)
        options = LevelOptions.checked(call, {"band": band, **given})
        if options.band is not None and options.band[0] >= options.band[1]:
            expected = "(lowest, highest) in Hz, such as (20, 200)"
            raise ParameterError.invalid(call, "band", expected, band)
        return Level.of(options, node=found)


def _heard(scene: Scene, node: Node | str, call: str, argument: str, *, live: bool) -> Node:
    """Return a node that is heard; one whose sound arrives live only if that is allowed."""
    found = scene._find(node, call)
    if file_of(found) is None and not (live and live_of(found) is not None):
        expected = "an audio node, or a video with its sound"
        advice = "Live sound is not known before." if live_of(found) is not None else ""
        raise ParameterError.invalid(call, argument, expected, found.id, advice)
    return found
