"""The sound of a rendered file: copied from one source, or mixed from all nodes."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from dala.errors import DalaError, ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.files.decode import SoundDecoder, sound_source
from dala.media.audio.files.writer import MixedSound, check_codec
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.sound.voices import SceneSound, file_of, live_names, sounding_nodes
from dala.media.sources.seconds import to_fraction
from dala.media.video.animated.facts import animation_kind
from dala.media.video.reader import Reader
from dala.media.video.source import source_of
from dala.media.video.tracks import Tracks
from dala.media.video.tracks.containers import container_of
from dala.notices import notify
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.options import RenderOptions
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
    """Return the sound of a part of a scene, and what is done to it, for its user.

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
    """Return whether copying a node's packets is what mixing would be, without encoding again."""
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
