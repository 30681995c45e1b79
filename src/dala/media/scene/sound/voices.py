"""The sound of a scene: the nodes that are heard, mixed on the scene's clock, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.errors import DalaError
from dala.media.audio.arriving import LiveSound, LiveVoice
from dala.media.audio.audio import Audio
from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.audio.effects import effect_stream
from dala.media.audio.mixing.blocks import (
    LONG_PART,
    PART,
    BlockSource,
    FileSound,
    MemorySound,
    Processed,
)
from dala.media.audio.mixing.mixer import Mixer, MixerTrack
from dala.media.audio.samples import apply_fades
from dala.media.notices import notify
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.timeline import TimelineNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.sound.clips import ClipSound, nearest
from dala.media.scene.sound.ducking import DuckGain, joined_voices
from dala.media.scene.sound.hearing import ArrivedSound, LiveClip, LiveClock, live_of
from dala.media.video.reader import Reader
from dala.media.video.source import source_of
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene
    from dala.media.video.source import VideoFile

#: Factors of samples by place and count.
Gains: TypeAlias = Callable[[int, int], NDArray]

#: Samples per second of scenes.
RATE: Final = 48000
#: Samples that are mixed at once in scenes that run live.
_LIVE_PART: Final = 1024
#: Seconds before a clip and after it in which its file is open.
_NEAR: Final = 2


def file_of(node: Node) -> VideoFile | Audio | None:
    """Return what a node is heard from: a file, a URL or an Audio.

    None if it has no sound of its own, or sound that arrives live.
    """
    if isinstance(node, AudioNode):
        return None if isinstance(node.sound, LiveSound) else node.sound
    if not isinstance(node, VideoNode) or not node.audio:
        return None
    stream = node.stream
    if isinstance(stream, Reader):
        return None if stream.source.live else stream.source
    if isinstance(stream, str) and "://" in stream:
        return None if source_of(stream).live else stream
    return stream if isinstance(stream, str | os.PathLike) else None


class NodeSound:
    """The file or Audio of a node, opened when it is needed.

    A video without sound is silent. Errors are kept by the scene, as those of pictures are.
    """

    def __init__(self, node: Node, found: VideoFile | Audio, rate: int) -> None:
        self.rate = rate
        self.layout = "stereo"
        self._node = node
        self._found = found
        self._opened: FileSound | MemorySound | None = None
        self._failed = False
        if isinstance(found, Audio):
            self._opened = MemorySound(found, rate)
            self.layout = self._opened.layout
        elif isinstance(node, AudioNode) and node.layout == "mono":
            self.layout = "mono"

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        if self._opened is None and not self._failed:
            self._open()
        if self._opened is None:
            return np.zeros((count, LAYOUTS[self.layout]), np.float32)
        made = self._opened.render(start, count)
        if self._opened.error is not None:
            self._node.scene._report(self._node, self._opened.error)
            self._opened.error = None
        return made

    def _open(self) -> None:
        node = self._node
        track = node.track if isinstance(node, AudioNode) else 0
        try:
            assert not isinstance(self._found, Audio)
            self._opened = FileSound(
                self._found, self.rate, layout=self.layout, track=track, call=node.id
            )
        except (DalaError, OSError) as error:
            self._failed = True
            silent = isinstance(node, VideoNode) and "has no sound" in str(error)
            if not silent:
                node.scene._report(node, error)

    def rest(self) -> None:
        """Close the file until it is needed again."""
        if isinstance(self._opened, FileSound):
            self._opened.close()
            self._opened = None

    close = rest


class NodeVoice:
    """A node on the clock of its scene or group: clip times, effects and fades."""

    def __init__(self, node: Node, source: BlockSource, rate: int) -> None:
        self.rate, self.layout = rate, source.layout
        self._node = node
        self._source = source
        self._heard: BlockSource
        if isinstance(source, LiveVoice):
            self._heard = LiveClip(source, lambda: node.clip)
        else:
            self._heard = ClipSound(source, lambda: node.clip, node.length)
        effects = node.effect_list if isinstance(node, AudioNode) else []
        if effects:
            layout = source.layout
            self._heard = Processed(
                self._heard,
                lambda: effect_stream("add_audio", effects, rate, layout),
                part=PART if isinstance(source, LiveVoice) else LONG_PART,
            )

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        node, rate = self._node, self.rate
        clip = node.clip
        if isinstance(self._source, NodeSound) and clip.bounded:
            margin = _NEAR * rate
            near = clip.start is None or start + count >= nearest(clip.start * rate) - margin
            if not near or (clip.end is not None and start > nearest(clip.end * rate) + margin):
                self._source.rest()
                return np.zeros((count, LAYOUTS[self.layout]), np.float32)
        made = self._heard.render(start, count)
        if isinstance(node, AudioNode) and (node.fade_in or node.fade_out):
            begin = nearest(clip.begin * rate)
            end = clip.natural_end(node.length())
            total = None if end is None else nearest(end * rate) - begin
            fades = [round(value * rate) for value in (node.fade_in, node.fade_out)]
            made = apply_fades(made, start - begin, total, fades[0], fades[1], node.curve)
        return self._crossed(made, start)

    def _crossed(self, made: Samples, start: int) -> Samples:
        """Return samples of a timeline's node that fade with its transitions, at equal power."""
        node, rate = self._node, self.rate
        line, clip = node.parent, node.clip
        if not isinstance(line, TimelineNode) or clip.end is None:
            return made
        begin, end = nearest(clip.begin * rate), nearest(clip.end * rate)
        fades = [nearest(seconds * rate) for seconds in line.sound_fades(node)]
        if not any(fades):
            return made
        return apply_fades(made, start - begin, end - begin, fades[0], fades[1], "equal_power")


class _Control:
    """A property of a node at places of its clock, animated or not."""

    def __init__(self, node: Node, name: str, rate: int, low: float, high: float) -> None:
        self._node = node
        self._name = name
        self._rate = rate
        self._range = low, high

    def __call__(self, places: NDArray) -> NDArray:
        node, animator = self._node, self._node.scene.animator
        plain = float(node.property_values[self._name])
        if not animator.animates(node, self._name):
            return np.array(plain)
        values = []
        for place in places:
            value = animator.value_at(node, self._name, float(place) / self._rate)
            values.append(plain if value is None else float(value))  # type: ignore[arg-type]
        made: NDArray = np.clip(np.array(values), *self._range)
        return made


class Voices:
    """The sounding nodes of a group or scene, on its clock. A source of blocks, in stereo.

    With a ``clock`` it runs live, and nodes are heard whose sound arrives meanwhile.
    """

    layout = "stereo"

    def __init__(
        self, scene: Scene, group: GroupNode, rate: int, clock: LiveClock | None = None
    ) -> None:
        self.rate = rate
        self._clock = clock
        self._scene = scene
        self._group = group
        self._tracks: dict[Node, MixerTrack] = {}
        self._ducks: tuple[object, ...] = ()
        #: What duck the music: voices once more, as they are read at other places.
        self._keys: list[MixerTrack] = []

    def tracks(self) -> list[MixerTrack]:
        """Return a track for each node; nodes that were added or removed since are noticed."""
        found = list(_sounding(self._group, self._clock is not None))
        if found != list(self._tracks):
            for node in [n for n in self._tracks if n not in found]:
                self._tracks.pop(node).close()
            self._tracks = {n: self._tracks.get(n) or self._track(n) for n in found}
            self._ducks = ()
        ducks = self._scene.ducks
        if self._ducks != tuple(ducks):
            self._ducks = tuple(ducks)
            self._duck()
        return list(self._tracks.values())

    def _track(self, node: Node) -> MixerTrack:
        rate, volume = self.rate, self._volume(node)
        if isinstance(node, GroupNode | SceneNode):
            clock = None if self._clock is None else self._clock.inside(node.clip)
            if self._clock is not None and clock is None:
                _tell_silent(node)
            if isinstance(node, GroupNode):
                inner = Voices(self._scene, node, rate, clock)
            else:
                inner = Voices(node.child, node.child.container(), rate, clock)
            voice = NodeVoice(node, inner, rate)
            return MixerTrack(voice, start=0, close=inner.close, volume=volume)
        pan = _Control(node, "pan", rate, -1.0, 1.0)
        sound = None if self._clock is None else live_of(node)
        if sound is not None and self._clock is not None:
            voice = NodeVoice(node, self._clock.voice(sound, rate), rate)
            return MixerTrack(voice, start=0, volume=volume, pan=pan)
        found = file_of(node)
        assert found is not None
        source = NodeSound(node, found, rate)
        return MixerTrack(
            NodeVoice(node, source, rate), start=0, close=source.close, volume=volume, pan=pan
        )

    def _volume(self, node: Node) -> Callable[[NDArray], NDArray]:
        """Return the volume of a node, with those of the groups that it is passed out of."""
        controls = []
        at: Node | None = node
        while at is not None and at is not self._group:
            controls.append(_Control(at, "volume", self.rate, 0.0, 1000.0))
            at = at.parent
        if len(controls) == 1:
            return controls[0]
        return lambda places: np.prod(np.broadcast_arrays(*(c(places) for c in controls)), axis=0)

    def _duck(self) -> None:
        """Give ducked tracks their gain, from the tracks of the same clock that duck them."""
        for track in self._tracks.values():
            track.gain = None
        self._close_keys()
        for duck in self._scene.ducks:
            music = self._tracks.get(duck.music)
            under = [self._track(v) for v in duck.under if v in self._tracks]
            self._keys += under
            if music is not None and under:
                voices = joined_voices([key.stereo for key in under])
                gain = DuckGain(duck, self.rate, voices).render
                music.gain = gain if music.gain is None else _product(music.gain, gain)

    def render(self, start: int, count: int) -> Samples:
        """Return the sum of all nodes."""
        made = np.zeros((count, 2), np.float32)
        for track in self.tracks():
            made += track.stereo(start, count)
        return made

    def _close_keys(self) -> None:
        keys, self._keys = self._keys, []
        for key in keys:
            key.close()

    def close(self) -> None:
        """Close all files."""
        self._close_keys()
        for track in self._tracks.values():
            with suppress(Exception):  # close the others even if one fails
                track.close()
        self._tracks = {}


class SceneSound(Mixer):
    """The sound of a scene, on its clock, with a limiter at the end: a source of blocks.

    ``render(start, count)`` returns samples from a place on, at ``rate``; the place 0 is the
    scene's time 0. Outputs of all kinds use it: files, ``play``, streams.

    Args:
        scene: the scene.
        rate: samples per second.
        begin: for a scene that runs live: returns the time of ``time.monotonic`` at which the
            scene's time is 0, or None before that is known. Microphones and the sound of live
            videos are heard then.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     beep = scene.add_audio(dala.media.audio.tone(440, 1, amplitude=0.5), start=1)
    ...     with SceneSound(scene) as sound:
    ...         abs(sound.render(0, 48000)).max() > 0, abs(sound.render(48000, 480)).max() > 0.4
    (np.False_, np.True_)
    """

    def __init__(
        self, scene: Scene, rate: int = RATE, *, begin: Callable[[], float | None] | None = None
    ) -> None:
        super().__init__(rate, part=PART if begin is None else _LIVE_PART)
        clock = None if begin is None else LiveClock(begin)
        self._voices = Voices(scene, scene.container(), rate, clock)
        self._live = None if clock is None else ArrivedSound(self.render, clock, rate)

    def arrived(self, start: int, count: int) -> Samples:
        """Return samples as ``render`` does; fewer while live sound has not arrived yet."""
        return self.render(start, count) if self._live is None else self._live.arrived(start, count)

    def mixed(self, start: int, count: int) -> Samples:
        """Return samples before the limiter."""
        return self._voices.render(start, count)

    def close(self) -> None:
        """Close all files. Closing twice is allowed."""
        super().close()
        self._voices.close()


def _tell_silent(node: GroupNode | SceneNode) -> None:
    """Report live sound in a group that runs at another speed, or again."""
    group = node if isinstance(node, GroupNode) else node.child.container()
    known = list(sounding_nodes(group))
    live = [n.id for n in sounding_nodes(group, live=True) if n not in known]
    if live:
        notify(
            f"Scene.live: {node.id} runs at another speed, so live sound in it is silent: "
            f"{', '.join(live)}. Add it to the scene itself."
        )


def sounding_nodes(group: GroupNode, live: bool = False) -> Iterator[Node]:
    """Yield the nodes that have a sound of their own, also in groups and inner scenes.

    With ``live``, those whose sound arrives while the scene runs are among them.
    """
    for node in group.children:
        if isinstance(node, GroupNode):
            yield from sounding_nodes(node, live)
        elif isinstance(node, SceneNode):
            yield from sounding_nodes(node.child.container(), live)
        elif file_of(node) is not None or (live and live_of(node) is not None):
            yield node


def _sounding(group: GroupNode, live: bool) -> Iterator[Node]:
    """Yield the nodes of a group that are heard; groups without a time of their own are passed."""
    for node in group.children:
        if isinstance(node, GroupNode):
            if node.clip.plain and not node.clip.bounded:
                yield from _sounding(node, live)
            elif any(True for _ in sounding_nodes(node, live)):
                yield node
        elif isinstance(node, SceneNode):
            if any(True for _ in sounding_nodes(node.child.container(), live)):
                yield node
        elif file_of(node) is not None or (live and live_of(node) is not None):
            yield node


def _product(first: Gains, second: Gains) -> Gains:
    return lambda start, count: first(start, count) * second(start, count)
