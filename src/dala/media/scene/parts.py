"""Scenes in parts of time: each encoded on its own, and their packets in one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from dala.errors import DalaError, ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.files.decode import SoundDecoder, sound_source
from dala.media.audio.files.writer import MixedSound, check_codec
from dala.media.progress import Progress
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.options import RenderOptions
from dala.media.scene.sound.voices import SceneSound, file_of, live_names, sounding_nodes
from dala.media.sources.seconds import to_fraction
from dala.media.video.animated.facts import animation_kind
from dala.media.video.chunks.packets import PacketReader, PacketTarget
from dala.media.video.chunks.stitching import OpenPart, Stitched, stitch
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.media.video.reader import Reader
from dala.media.video.source import source_of
from dala.media.video.tracks import Tracks
from dala.media.video.tracks.containers import container_of
from dala.media.video.writer import Writer
from dala.notices import notify
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

#: FFmpeg's muxers by suffix, where the names differ.
_MUXERS = {"mkv": "matroska", "m4v": "mp4", "ts": "mpegts", "ogv": "ogg"}


def rendered_sound(
    scene: Scene,
    path: PathLike,
    options: RenderOptions,
    start: Fraction,
    length: Fraction,
    call: str,
) -> tuple[Tracks | None, str]:
    """Return the sound of a part of a scene, and its processing, for its user.

    It is copied without a change if ``audio_from`` asks for it, or if one node is heard, from the
    first frame on, at its own volume and speed, and the container takes its codec. Else all nodes
    are mixed.
    """
    codec = options.audio_codec
    if codec is not None:
        check_codec(call, codec, "audio_codec")
    if options.audio_from is not None:
        return _copied(scene, options.audio_from, start, length, call), "copied by audio_from"
    if not options.audio:
        return None, "left out"
    if live := live_names(scene.container()):
        notify(f"{call}: live sound is not rendered: {live}. Scene.live sends it.")
    heard = [node for node in sounding_nodes(scene.container()) if _is_heard(node)]
    if not heard:
        return None, "there is none"
    kind = animation_kind(path, options.codec) if isinstance(path, str | os.PathLike) else None
    if kind is not None:
        notify(f"{path}: {kind} has no sound; that of the scene is left out.")
        return None, f"left out, as {kind} has none"
    if codec is None and len(heard) == 1 and _is_plain(scene, heard[0], start, path):
        node = heard[0]
        source = node.sound if isinstance(node, AudioNode) else node
        sound = _copied(scene, source, Fraction(0), length, call)
        return sound, f"copied from {node.id!r} without a change"
    mixed = SceneSound(scene)
    rate = mixed.rate
    made = MixedSound(
        mixed, call, begin=round(start * rate), length=round(length * rate), codec=codec,
        optional=True, closing=mixed.close,
    )  # fmt: skip
    names = ", ".join(node.id for node in heard[:8]) + (", ..." if len(heard) > 8 else "")
    return made, f"mixed at {rate} Hz from {names}"


def _is_heard(node: Node) -> bool:
    """Return whether a node's file has sound. Other errors are reported when it is rendered."""
    if isinstance(node, AudioNode):
        return True
    try:
        _decoder(node).close()
    except (DalaError, OSError) as error:
        return "has no sound" not in str(error)
    return True


def _decoder(node: Node) -> SoundDecoder:
    found = file_of(node)
    assert found is not None
    assert not isinstance(found, Audio)
    return SoundDecoder(sound_source(found, node.id), 0, node.id)


def _is_plain(scene: Scene, node: Node, start: Fraction, path: PathLike) -> bool:
    """Return whether copying a node's packets equals mixing, without encoding again."""
    clip, values = node.clip, node.property_values
    unchanged = (
        values["volume"] == 1 and values["pan"] == 0
        and not any(scene.animator.animates(node, name) for name in ("volume", "pan"))
        and clip.plain and clip.runs == 1 and clip.begin == start and clip.end is None
        and node.parent is scene.container() and not scene.ducks
    )  # fmt: skip
    if isinstance(node, AudioNode):
        faded = bool(node.fade_in or node.fade_out or node.effect_list or node.track)
        unchanged = unchanged and not isinstance(node.sound, Audio) and not faded
    if not unchanged or not isinstance(path, str | os.PathLike):
        return False
    suffix = os.path.splitext(os.fspath(path))[1].lower().lstrip(".")
    decoder = _decoder(node)
    try:
        takes = container_of(_MUXERS.get(suffix, suffix)).takes_sound
        return len(decoder.tracks) == 1 and bool(takes(decoder.codec))
    finally:
        decoder.close()


def _copied(scene: Scene, given: object, start: Fraction, length: Fraction, call: str) -> Tracks:
    """Return the sound of a video node, its id, or a file, in sync with the node's pictures."""
    node = scene.nodes.get(given, given) if isinstance(given, str) else given
    shift, stream = -start, node
    if isinstance(node, VideoNode):
        if node.source.speed != 1:
            raise ParameterError(
                f"{call}: audio_from must be a node at speed 1, got {node.id!r} at speed "
                f"{float(node.source.speed):g}. Sound is copied unchanged."
            )
        shift += to_fraction("offset", node.source.offset)
        stream = node.stream
    # source_of refuses everything but paths, URLs and cameras.
    source = stream.source if isinstance(stream, Reader) else source_of(cast(str, stream), call)
    if source.live:
        raise ParameterError.invalid(call, "audio_from", "a file", source.label, "It is live.")
    sound = Tracks(source, call, to_zero=True, offset=shift, length=length)
    if not sound.has_sound:
        sound.close()
        raise ParameterError(f"{call}: audio_from {source.label!r} has no sound.")
    return sound


_CALL = "Scene.render_to"


class SceneRun(NamedTuple):
    """A scene on its way into a file: the times of its frames, and how they are written."""

    scene: Scene
    options: RenderOptions
    #: Frames per second.
    rate: Fraction
    #: The scene's time of frame 0.
    begin: Fraction

    @classmethod
    def of(cls, scene: Scene, options: RenderOptions) -> Self:
        """Return the run of a scene with checked options."""
        rate = scene.frame_rate if options.fps is None else Fraction(options.fps)
        return cls(scene, options, rate, to_fraction("start", options.start))

    def spans(self, total: int) -> list[tuple[int, int]]:
        """Return the first and last (excluded) frame of each part.

        Parts are so many seconds long, the last one from half of that on. A scene in which nodes
        follow others is one part: what they follow is found from frame to frame.
        """
        if self.options.chunk is None or self.scene.followers:
            return [(0, total)]
        size = max(1, round(Fraction(self.options.chunk) * self.rate))
        count = max(1, ceil(total / size))
        if count > 1 and total - (count - 1) * size < size / 2:
            count -= 1
        return [(n * size, total if n == count - 1 else (n + 1) * size) for n in range(count)]

    def render_part(
        self, suffix: str, span: tuple[int, int], target: Path, report: Callable[[int], object]
    ) -> int:
        """Render a part of the scene to a file of packets; return the number of frames.

        Args:
            suffix: of the container that the packets will be in.
            span: the first and last (excluded) frame.
            target: the file of packets.
            report: is called with the number of frames so far.
        """
        scene, rate = self.scene, self.rate
        encoding = EncodeOptions.of(
            EncoderOptions.of(self.options), fps=rate, device=scene.device, width=scene.width,
            height=scene.height,
        )  # fmt: skip
        with Writer(PacketTarget(target, suffix.lstrip(".")), encoding) as sink:
            for number in range(*span):
                frame = scene.render(self.begin + number / rate)
                made = frame.like(frame.pixels)
                made.pts, made.time_base, made.duration = number, 1 / rate, None
                sink.write(made)
                report(sink.frames)
            return sink.frames

    def sound(self, path: PathLike, total: int) -> Tracks | None:
        """Return the sound of so many frames; the name of the result chooses its codec."""
        found, self.scene.sound_report = rendered_sound(
            self.scene, path, self.options, self.begin, total / self.rate, _CALL
        )
        return found

    def stitch(
        self, path: PathLike, target: Path, parts: int, open_part: OpenPart, total: int
    ) -> Stitched:
        """Write the packets of all parts to a file, with the sound of the scene.

        Args:
            path: the name of the result, by which the codec of the sound is chosen.
            target: the file to write.
            parts: their number.
            open_part: opens the packets of a part.
            total: the number of frames.
        """
        expected = np.arange(total, dtype=np.int64), 1 / self.rate
        sound = self.sound(path, total)
        return stitch(parts, open_part, None, target, tracks=sound, expected=expected)

    def in_parts(self, path: PathLike, total: int) -> int:
        """Render the scene in parts, one after another; see ``Scene.render_to``."""
        if not isinstance(path, str | Path) or not Path(path).suffix:
            raise ParameterError.invalid(_CALL, "path", "the name of a video, with chunk", path)
        if self.options.alpha:
            raise ParameterError.invalid(_CALL, "alpha", "False with chunk", self.options.alpha)
        target, spans = Path(path), self.spans(total)
        with TemporaryDirectory(prefix="dala-scene-") as folder, self.reported(total) as report:
            places = [Path(folder, f"{number}.packets") for number in range(len(spans))]
            for span, place in zip(spans, places, strict=True):

                def shifted(done: int, first: int = span[0]) -> object:
                    return report(first + done)

                self.render_part(target.suffix, span, place, shifted)
            self.stitch(
                target, target, len(spans),
                lambda number: PacketReader(places[number].open("rb"), str(places[number])), total,
            )  # fmt: skip
        return total

    @contextmanager
    def reported(self, total: int) -> Iterator[Callable[[int], object]]:
        """Yield the function for the number of finished frames, by the option ``progress``."""
        progress = self.options.progress
        if progress is True:
            with Progress(total, "frames") as bar:
                yield lambda done: bar.step()
        else:
            yield lambda done: progress(done, total) if callable(progress) else None
