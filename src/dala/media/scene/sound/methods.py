"""The methods of scenes that are about sound as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.media.audio.checks import check_number
from dala.media.scene.sound.ducking import Duck
from dala.media.scene.sound.hearing import live_of
from dala.media.scene.sound.levels import RELEASE, Level
from dala.media.scene.sound.voices import file_of

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene


class SceneSounds:
    """The methods ``duck`` and ``level`` of scenes.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     scene.ducks
    []
    """

    __slots__: tuple[str, ...] = ()

    def duck(
        self,
        music: Node | str,
        *,
        under: Node | str | Sequence[Node | str],
        amount: float = 12.0,
        threshold: float = -40.0,
        attack: float = 0.05,
        release: float = 0.3,
    ) -> Duck:
        """Make music quieter while a voice is heard.

        Args:
            music: an audio or video node.
            under: the node of the voice, or several.
            amount: by how much it becomes quieter, in dB.
            threshold: the level of the voice above which it does, in dB.
            attack: time constant of becoming quieter, in seconds.
            release: time constant of becoming louder again, in seconds.

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
        scene: Scene = _scene(self)
        scene._check_open(call)
        found = _heard(scene, music, call, "music", live=True)
        several = under if isinstance(under, Sequence) and not isinstance(under, str) else [under]
        voices = tuple(_heard(scene, node, call, "under", live=True) for node in several)
        if not voices:
            raise ParameterError.invalid(call, "under", "a node or several", under)
        if found in voices:
            raise ParameterError(f"{call}: {found.id!r} cannot be ducked under itself.")
        made = Duck(
            found,
            voices,
            check_number(call, "amount", amount, 0.0, 60.0, "dB"),
            check_number(call, "threshold", threshold, -60.0, 0.0, "dB"),
            check_number(call, "attack", attack, 0.00001, 2.0, "s"),
            check_number(call, "release", release, 0.00001, 9.0, "s"),
        )
        scene.ducks.append(made)
        return made

    def level(
        self,
        audio: Node | str,
        band: Sequence[float] | None = None,
        *,
        release: float = RELEASE,
        normalize: bool = True,
    ) -> Level:
        """Return how loud a node is over time, from 0 to 1, for ``add_animation(..., by=level)``.

        Args:
            audio: an audio or video node.
            band: (lowest, highest) frequency in Hz, such as (20, 200) for the beat; by default all.
            release: seconds after which it has fallen to 37% after a peak; 0 for the plain level.
            normalize: let 1 be the loudest moment of the band; else 1 is a sine at full scale.

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
        scene: Scene = _scene(self)
        scene._check_open(call)
        found = _heard(scene, audio, call, "audio", live=False)
        limits: tuple[float, float] | None = None
        if band is not None:
            expected = "(lowest, highest) in Hz, such as (20, 200)"
            if isinstance(band, str) or not isinstance(band, Sequence) or len(band) != 2:
                raise ParameterError.invalid(call, "band", expected, band)
            low, high = (check_number(call, "band", f, 0.0, 24000.0, "Hz") for f in band)
            if low >= high:
                raise ParameterError.invalid(call, "band", expected, band)
            limits = low, high
        if not isinstance(normalize, bool):
            raise ParameterError.invalid(call, "normalize", "True or False", normalize)
        fall = check_number(call, "release", release, 0.0, 60.0, "s")
        return Level(found, limits, fall if math.isfinite(fall) else RELEASE, normalize)


def _heard(scene: Scene, node: Node | str, call: str, argument: str, *, live: bool) -> Node:
    """Return a node that is heard; one whose sound arrives live only if that is allowed."""
    found = scene._find(node, call)
    if file_of(found) is None and not (live and live_of(found) is not None):
        expected = "an audio node, or a video with its sound"
        advice = "Live sound is not known before." if live_of(found) is not None else ""
        raise ParameterError.invalid(call, argument, expected, found.id, advice)
    return found


def _scene(sounds: SceneSounds) -> Scene:
    return sounds  # type: ignore[return-value]
