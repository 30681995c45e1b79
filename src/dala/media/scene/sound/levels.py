"""The level of a sound over time, for animations: "the circle pulses with the beat"."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import DalaError
from dala.media.audio.mixing.blocks import FileSound, MemorySound
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.scene.nodes.property_types import plain_json
from dala.media.scene.options import LevelOptions
from dala.media.scene.sound.voices import RATE, file_of, open_sound
from dala.media.sources.moment import Moment
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

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
        """Return what a scene file holds of it."""
        chosen = {name: plain_json(value) for name, value in self.changed().items()}
        return {"audio": self.node.id, **chosen}

    def __repr__(self) -> str:
        band = "" if self.band is None else f", {self.band[0]:g} to {self.band[1]:g} Hz"
        return f"<Level of {self.node.id}{band}>"
