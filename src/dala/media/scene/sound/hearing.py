"""Live sound in scenes: microphones, and the sound that arrives with live pictures."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dala.media.audio.arriving import LiveSound, LiveVoice, sound_of_reader
from dala.media.audio.checks import Samples
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.sound.clips import nearest
from dala.media.video.reader import Reader

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.sources.clip import ClipTimes


def live_of(node: Node) -> LiveSound | None:
    """Return the sound of a node that arrives while the scene runs; None if it has none."""
    if isinstance(node, AudioNode):
        return node.sound if isinstance(node.sound, LiveSound) else None
    if not isinstance(node, VideoNode) or not node.audio:
        return None
    reader = node.stream if isinstance(node.stream, Reader) else node.live_reader
    if reader is None or reader.closed:
        return None
    return sound_of_reader(reader)


class LiveClock:
    """The clock of a scene or group that runs live, and the live voices on it.

    Args:
        begin: returns the time of ``time.monotonic`` at which the clock is 0; None if unknown.
    """

    def __init__(self, begin: Callable[[], float | None]) -> None:
        self.begin = begin
        #: All voices, those of groups too.
        self.voices: weakref.WeakSet[LiveVoice] = weakref.WeakSet()

    def inside(self, clip: ClipTimes) -> LiveClock | None:
        """Return the clock of a group with times; None if it runs at another speed than ours."""
        if not clip.plain or clip.runs != 1:
            return None

        def begin() -> float | None:
            found = self.begin()
            return None if found is None else found + float(clip.begin)

        made = LiveClock(begin)
        made.voices = self.voices
        return made

    def voice(self, sound: LiveSound, rate: int) -> LiveVoice:
        """Return a sound on this clock."""
        made = sound.voice(self.begin, rate)
        self.voices.add(made)
        return made


class LiveClip:
    """A live voice in the time of its node: silent before the start and after the end."""

    def __init__(self, voice: LiveVoice, clip: Callable[[], ClipTimes]) -> None:
        self.rate, self.layout = voice.rate, voice.layout
        self._voice = voice
        self._clip = clip

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        made, clip = self._voice.render(start, count), self._clip()
        if clip.start is not None:
            made[: min(max(nearest(clip.start * self.rate) - start, 0), count)] = 0
        if clip.end is not None:
            made[min(max(nearest(clip.end * self.rate) - start, 0), count) :] = 0
        return made


class ArrivedSound:
    """The mix of a live scene, as far as its live voices have arrived.

    A mix reads ahead of what it returns: filters work in parts, and look at what comes. How far,
    shows in what it asked of the voices, and so much less is ready.

    Args:
        render: the mix.
        clock: the scene's.
        rate: samples per second.
    """

    def __init__(self, render: Callable[[int, int], Samples], clock: LiveClock, rate: int) -> None:
        self._render = render
        self._clock = clock
        self._rate = rate
        self._ahead = 0

    def arrived(self, start: int, count: int) -> Samples:
        """Return samples from a place on that are ready, at most ``count``."""
        begin, wanted = self._clock.begin(), start + count
        for voice in self._clock.voices:
            own = voice.begin()
            shift = 0 if begin is None or own is None else round((own - begin) * self._rate)
            self._ahead = max(self._ahead, voice.asked + shift - start)
            ready = voice.ready(wanted + self._ahead - shift) + shift - self._ahead
            count = min(count, max(ready - start, 0))
        if not count:
            return np.zeros((0, 2), np.float32)
        return self._render(start, count)
