"""Audio of a scene's video, copied in sync with the rendered part."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

from dala.errors import ParameterError
from dala.media.scene.nodes.video import VideoNode
from dala.media.sources.feed import to_fraction
from dala.media.video.passthrough import AudioPassthrough
from dala.media.video.reader import Reader
from dala.media.video.source import AvObject, VideoSource, source_of
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene


class SceneSound(AudioPassthrough):
    """Audio packets of a file, shifted in time and cut to the duration of the video."""

    def __init__(self, source: VideoSource, call: str, shift: Fraction, length: Fraction) -> None:
        super().__init__(source, call)
        self._offset = shift
        self._length = length
        self._shifted = False
        if not self._streams:
            self.close()
            raise ParameterError(f"{call}: audio_from {source.label!r} has no sound.")

    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Create the audio streams in the output, in sync with the source's pictures."""
        super().add_to(output, True)
        self._shift += self._offset
        self._shifted = True

    def _advance(self) -> None:
        while True:
            super()._advance()
            if self._next is None:
                return
            shift = self._shift if self._shifted else self._shift + self._offset
            time = self._next.dts * Fraction(self._next.time_base) + shift
            if time >= self._length:
                self._next = None
            if self._next is None or time >= 0:
                return


def sound_of(
    scene: Scene, given: Node | PathLike | None, start: Fraction, length: Fraction, call: str
) -> SceneSound | None:
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
    return SceneSound(source, call, shift, length)
