"""The sound of a scene: the nodes that are heard, mixed on the scene's clock, block by block."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.errors import DalaError
from dala.media.audio.arriving import LiveSound, LiveVoice, sound_of_reader
from dala.media.audio.audio import Audio
from dala.media.audio.checks import Samples, apply_fades
from dala.media.audio.effects import effect_stream
from dala.media.audio.mixing import blocks as b
from dala.media.audio.mixing.blocks import BlockSource
from dala.media.audio.mixing.mixer import Mixer, MixerTrack, mix_tracks
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.timeline import TimelineNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.sound.clips import ClipSound, nearest, silence
from dala.media.scene.sound.ducking import DuckGain
from dala.media.video.reader import Reader
from dala.media.video.source import source_of
from dala.notices import notify
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene
    from dala.media.sources.clip import ClipTimes
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
    """Return the source of a node's sound: a file, a URL or an Audio.

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


def open_sound(node: Node, rate: int, layout: str, call: str) -> b.FileSound | b.MemorySound:
    """Return the sound of a node that has a file or an Audio, as a source of blocks."""
    found = file_of(node)
    assert found is not None
    if isinstance(found, Audio):
        return b.MemorySound(found, rate, layout)
    track = node.track if isinstance(node, AudioNode) else 0
    return b.FileSound(found, rate, layout=layout, track=track, call=call)


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


def live_clip(voice: LiveVoice, node: Node) -> b.BlockFunction:
    """Return a live voice in the time of its node: silent before the start and after the end."""

    def render(start: int, count: int) -> Samples:
        made, clip = voice.render(start, count), node.clip
        if clip.start is not None:
            made[: min(max(nearest(clip.start * voice.rate) - start, 0), count)] = 0
        if clip.end is not None:
            made[min(max(nearest(clip.end * voice.rate) - start, 0), count) :] = 0
        return made

    return b.BlockFunction(voice.rate, voice.layout, render)


class NodeSound:
    """The file or Audio of a node, opened when it is needed.

    A video without sound is silent. Errors are kept by the scene, as those of pictures are.
    """

    def __init__(self, node: Node, rate: int) -> None:
        self.rate = rate
        mono = isinstance(node, AudioNode) and node.layout == "mono"
        self.layout = "mono" if mono else "stereo"
        self._node = node
        self._opened: b.FileSound | b.MemorySound | None = None
        self._failed = False

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        if self._opened is None and not self._failed:
            self._open()
        if self._opened is None:
            return silence(self.layout, count)
        made = self._opened.render(start, count)
        if self._opened.error is not None:
            self._node.scene._report(self._node, self._opened.error)
            self._opened.error = None
        return made

    def _open(self) -> None:
        node = self._node
        try:
            self._opened = open_sound(node, self.rate, self.layout, node.id)
        except (DalaError, OSError) as error:
            self._failed = True
            silent = isinstance(node, VideoNode) and "has no sound" in str(error)
            if not silent:
                node.scene._report(node, error)

    def rest(self) -> None:
        """Close the file until it is needed again."""
        if isinstance(self._opened, b.FileSound):
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
            self._heard = live_clip(source, node)
        else:
            self._heard = ClipSound(source, node)
        effects = node.effect_list if isinstance(node, AudioNode) else []
        if effects:
            layout = source.layout
            self._heard = b.Processed(
                self._heard,
                lambda: effect_stream("add_audio", effects, rate, layout),
                part=b.PART if isinstance(source, LiveVoice) else b.LONG_PART,
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
                return silence(self.layout, count)
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


def _control(node: Node, name: str, rate: int) -> Callable[[NDArray], NDArray]:
    """Return a property of a node at places of its clock, animated or not."""
    item, animator = node.PROPERTIES[name], node.scene.animator

    def values(places: NDArray) -> NDArray:
        plain = float(node.property_values[name])
        if not animator.animates(node, name):
            return np.array(plain)
        found = [animator.value_at(node, name, float(place) / rate) for place in places]
        numbers = [plain if value is None else float(value) for value in found]  # type: ignore[arg-type]
        made: NDArray = np.clip(np.array(numbers), item.low, item.high)
        return made

    return values


class Voices:
    """The sounding nodes of a group or scene, on its clock. A source of blocks, in stereo.

    With a ``clock`` it runs live, and nodes are heard whose sound arrives meanwhile.
    """

    layout = "stereo"

    def __init__(self, group: GroupNode, rate: int, clock: LiveClock | None) -> None:
        self.rate = rate
        self._clock = clock
        self._group = group
        self._tracks: dict[Node, MixerTrack] = {}
        self._ducks: tuple[object, ...] = ()
        #: What duck the music: voices once more, as they are read at other places.
        self._keys: list[MixerTrack] = []

    def tracks(self) -> list[MixerTrack]:
        """Return a track for each node; nodes that were added or removed since are noticed."""
        found = list(sounding_nodes(self._group, self._clock is not None, inside=False))
        if found != list(self._tracks):
            for node in [n for n in self._tracks if n not in found]:
                self._tracks.pop(node).close()
            self._tracks = {n: self._tracks.get(n) or self._track(n) for n in found}
            self._ducks = ()
        ducks = tuple(self._group.scene.ducks)
        if self._ducks != ducks:
            self._ducks = ducks
            self._duck()
        return list(self._tracks.values())

    def _track(self, node: Node) -> MixerTrack:
        rate, own = self.rate, self._clock
        source: Voices | LiveVoice | NodeSound
        if (inner := _inside(node)) is not None:
            clock = None if own is None else own.inside(node.clip)
            if own is not None and clock is None and (live := live_names(inner)):
                notify(
                    f"Scene.live: {node.id} runs at another speed, so live sound in it is silent: "
                    f"{live}. Add it to the scene itself."
                )
            source = Voices(inner, rate, clock)
        elif own is not None and (sound := live_of(node)) is not None:
            source = own.voice(sound, rate)
        else:
            source = NodeSound(node, rate)
        made = MixerTrack(NodeVoice(node, source, rate), start=0, volume=self._volume(node))
        if not isinstance(source, LiveVoice):
            made.close = source.close
        if inner is None:
            made.pan = _control(node, "pan", rate)
        return made

    def _volume(self, node: Node) -> Callable[[NDArray], NDArray]:
        """Return the volume of a node, with those of the groups that it is passed out of."""
        passed = takewhile(lambda at: at is not self._group, (node, *node.around()))
        controls = [_control(at, "volume", self.rate) for at in passed]
        if len(controls) == 1:
            return controls[0]
        return lambda places: np.prod(np.broadcast_arrays(*(c(places) for c in controls)), axis=0)

    def _duck(self) -> None:
        """Give ducked tracks their gain, from the tracks of the same clock that duck them."""
        for track in self._tracks.values():
            track.gain = None
        self._close_keys()
        for duck in self._group.scene.ducks:
            music = self._tracks.get(duck.music)
            under = [self._track(v) for v in duck.under if v in self._tracks]
            self._keys += under
            if music is not None and under:
                voices = b.BlockFunction(self.rate, "stereo", partial(mix_tracks, under))
                gain = DuckGain(duck, voices).gains
                music.gain = gain if music.gain is None else _product(music.gain, gain)

    def render(self, start: int, count: int) -> Samples:
        """Return the sum of all nodes."""
        return mix_tracks(self.tracks(), start, count)

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
        super().__init__(rate, part=b.PART if begin is None else _LIVE_PART)
        self._clock = None if begin is None else LiveClock(begin)
        self._voices = Voices(scene.container(), rate, self._clock)
        #: How far the mix reads ahead of what it returns, in samples.
        self._ahead = 0

    def arrived(self, start: int, count: int) -> Samples:
        """Return samples as ``render`` does; fewer while live sound has not arrived yet.

        A mix reads ahead of what it returns: filters work in parts, and look at what comes. How
        far, shows in what it asked of the voices, and so much less is ready.
        """
        if self._clock is None:
            return self.render(start, count)
        begin, wanted = self._clock.begin(), start + count
        for voice in self._clock.voices:
            own = voice.begin()
            shift = 0 if begin is None or own is None else round((own - begin) * self.rate)
            self._ahead = max(self._ahead, voice.asked + shift - start)
            ready = voice.ready(wanted + self._ahead - shift) + shift - self._ahead
            count = min(count, max(ready - start, 0))
        return self.render(start, count) if count else silence(self.layout, 0)

    def mixed(self, start: int, count: int) -> Samples:
        """Return samples before the limiter."""
        return self._voices.render(start, count)

    def close(self) -> None:
        """Close all files. Closing twice is allowed."""
        super().close()
        self._voices.close()


def _inside(node: Node) -> GroupNode | None:
    """Return the nodes that a group or inner scene has; None for other nodes."""
    if isinstance(node, SceneNode):
        return node.child.container()
    return node if isinstance(node, GroupNode) else None


def sounding_nodes(group: GroupNode, live: bool = False, *, inside: bool = True) -> Iterator[Node]:
    """Yield the nodes that have a sound of their own, also in groups and inner scenes.

    With ``live``, those whose sound arrives while the scene runs are among them. Without
    ``inside``, groups with a time of their own and scenes are yielded, not the nodes in them.
    """
    for node in group.children:
        inner = _inside(node)
        if inner is None:
            if file_of(node) is not None or (live and live_of(node) is not None):
                yield node
        elif inside or (inner is node and node.clip.plain and not node.clip.bounded):
            yield from sounding_nodes(inner, live, inside=inside)
        elif is_heard(inner, live):
            yield node


def is_heard(group: GroupNode, live: bool = False) -> bool:
    """Return True if a node of a group has a sound of its own."""
    return next(sounding_nodes(group, live), None) is not None


def live_names(group: GroupNode) -> str:
    """Return the ids of the nodes that are heard live only, for notices."""
    known = list(sounding_nodes(group))
    return ", ".join(n.id for n in sounding_nodes(group, live=True) if n not in known)


def _product(first: Gains, second: Gains) -> Gains:
    return lambda start, count: first(start, count) * second(start, count)
