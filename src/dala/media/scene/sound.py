"""Audio of a scene's video, copied through: moved and cut to the part that is rendered."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from dala.errors import ParameterError
from dala.media.scene.nodes.video import VideoNode
from dala.media.sources.feed import exact
from dala.media.video.passthrough import AudioPassthrough
from dala.media.video.reader import Reader
from dala.media.video.source import VideoSource, source_of

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene


class SceneSound(AudioPassthrough):
    """Packets of a file, some seconds later or earlier, as far as the picture goes."""

    def __init__(self, source: VideoSource, call: str, move: Fraction, length: Fraction) -> None:
        super().__init__(source, call)
        self._move = move
        self._length = length
        self._moved = False
        if not self._streams:
            self.close()
            raise ParameterError(f"{call}: 'audio_from' {source.label!r} has no sound.")

    def add_to(self, output: Any, shift_to_zero: bool) -> None:
        """Makes a stream in the output for each; the source's picture begins where it is shown."""
        super().add_to(output, True)
        self._shift += self._move
        self._moved = True

    def _advance(self) -> None:
        while True:
            super()._advance()
            if self._next is None:
                return
            shift = self._shift if self._moved else self._shift + self._move
            time = self._next.dts * Fraction(self._next.time_base) + shift
            if time >= self._length:
                self._next = None
            if self._next is None or time >= 0:
                return


def sound_of(
    scene: Scene, given: Any, start: Fraction, length: Fraction, call: str
) -> SceneSound | None:
    """The sound of a video node, its id, or a file; it lies as the node's pictures do."""
    if given is None:
        return None
    node = scene.nodes.get(given, given) if isinstance(given, str) else given
    move, stream = -start, node
    if isinstance(node, VideoNode):
        if node.source.speed != 1:
            raise ParameterError(
                f"{call}: {node.id!r} is played at speed {float(node.source.speed):g}, and sound "
                "is carried as it is. Leave audio_from out, or give another file."
            )
        move += exact("offset", node.source.offset)
        stream = node.stream
    # Anything else than a path, URL or camera is refused by source_of.
    source = stream.source if isinstance(stream, Reader) else source_of(cast(str, stream), call)
    if source.live:
        raise ParameterError(f"{call}: 'audio_from' is a file; {source.label!r} is live.")
    return SceneSound(source, call, move, length)
