"""The methods of scenes that are about sound as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from dala.errors import ParameterError
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.options import DuckOptions, LevelOptions
from dala.media.scene.sound.ducking import Duck
from dala.media.scene.sound.levels import Level
from dala.media.scene.sound.voices import file_of, live_of
from dala.options import check_all, takes

if TYPE_CHECKING:
    from dala.media.scene.keywords import DuckKeywords, LevelKeywords
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene


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
