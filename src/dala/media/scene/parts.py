"""Scenes in parts of time: each encoded on its own, and their packets in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dala.errors import ParameterError
from dala.media.progress import Progress
from dala.media.scene.options import RenderOptions
from dala.media.scene.sound.rendered import rendered_sound
from dala.media.sources.seconds import to_fraction
from dala.media.video.chunks.checking import Stitched
from dala.media.video.chunks.packets import PacketReader, PacketTarget
from dala.media.video.chunks.stitching import OpenPart, stitch
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.media.video.tracks import Tracks
from dala.media.video.writer import Writer
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene

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
        """Yield what is called with the number of finished frames, by the option ``progress``."""
        progress = self.options.progress
        if progress is True:
            with Progress(total, "frames") as bar:
                yield lambda done: bar.step()
        else:
            yield lambda done: progress(done, total) if callable(progress) else None
