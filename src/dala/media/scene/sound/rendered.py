"""The sound of a rendered file: copied from one source, or mixed from all nodes."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING

from dala.errors import DalaError
from dala.media.audio.audio import Audio
from dala.media.audio.files.decode import SoundDecoder, sound_source
from dala.media.audio.files.writer import MixedSound, check_codec
from dala.media.notices import notify
from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.sound.copied import sound_of
from dala.media.scene.sound.voices import SceneSound, file_of, sounding_nodes
from dala.media.video.animated.facts import animation_kind
from dala.media.video.tracks import Tracks
from dala.media.video.tracks.containers import container_of
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

#: FFmpeg's muxers by suffix, where the names differ.
_MUXERS = {"mkv": "matroska", "m4v": "mp4", "ts": "mpegts", "ogv": "ogg"}


def rendered_sound(
    scene: Scene,
    path: PathLike,
    given: Node | PathLike | None,
    wanted: bool,
    codec: str | None,
    video_codec: str | None,
    start: Fraction,
    length: Fraction,
    call: str,
) -> tuple[Tracks | None, str]:
    """Return the sound of a part of a scene, and what is done to it, for its user.

    It is copied without a change if ``audio_from`` asks for it, or if one node is heard, from the
    first frame on, at its own volume and speed, and the container takes its codec. Else all nodes
    are mixed.
    """
    if codec is not None:
        check_codec(call, codec, "audio_codec")
    if given is not None:
        copied = sound_of(scene, given, start, length, call)
        return copied, "copied by audio_from"
    if not wanted:
        return None, "left out"
    known = list(sounding_nodes(scene.container()))
    live = [n.id for n in sounding_nodes(scene.container(), live=True) if n not in known]
    if live:
        notify(f"{call}: live sound is not rendered: {', '.join(live)}. Scene.live sends it.")
    heard = [node for node in known if _is_heard(node)]
    if not heard:
        return None, "there is none"
    kind = animation_kind(path, video_codec) if isinstance(path, str | os.PathLike) else None
    if kind is not None:
        notify(f"{path}: {kind} has no sound; that of the scene is left out.")
        return None, f"left out, as {kind} has none"
    if codec is None and len(heard) == 1 and _is_plain(scene, heard[0], start, path):
        sound = sound_of(scene, _source(heard[0]), Fraction(0), length, call)
        return sound, f"copied from {heard[0].id!r} without a change"
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
    found = file_of(node)
    try:
        assert found is not None
        assert not isinstance(found, Audio)
        SoundDecoder(sound_source(found, node.id), 0, node.id).close()
    except (DalaError, OSError) as error:
        return "has no sound" not in str(error)
    return True


def _source(node: Node) -> Node | PathLike:
    found = node.sound if isinstance(node, AudioNode) else None
    return found if isinstance(found, str | os.PathLike) else node


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
        found: object = node.sound
        faded = bool(node.fade_in or node.fade_out or node.effect_list or node.track)
        unchanged = unchanged and not isinstance(found, Audio) and not faded
    if not unchanged or not isinstance(path, str | os.PathLike):
        return False
    suffix = os.path.splitext(os.fspath(path))[1].lower().lstrip(".")
    return _fits(node, container_of(_MUXERS.get(suffix, suffix)).takes_sound)


def _fits(node: Node, takes: object) -> bool:
    found = file_of(node)
    assert found is not None
    assert not isinstance(found, Audio)
    assert callable(takes)
    decoder = SoundDecoder(sound_source(found, node.id), 0, node.id)
    try:
        return len(decoder.tracks) == 1 and bool(takes(decoder.codec))
    finally:
        decoder.close()
