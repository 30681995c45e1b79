"""Audio of a scene's video, copied in sync with the rendered part."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

from dala.errors import ParameterError
from dala.media.scene.nodes.video import VideoNode
from dala.media.sources.seconds import to_fraction
from dala.media.video.reader import Reader
from dala.media.video.source import source_of
from dala.media.video.tracks import Tracks
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene


def sound_of(
    scene: Scene, given: Node | PathLike | None, start: Fraction, length: Fraction, call: str
) -> Tracks | None:
    """Return the sound of a video node, its id, or a file, in sync with the node's pictures."""
    if given is None:
        return None
    node: object = scene.nodes.get(given, given) if isinstance(given, str) else given
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
