"""Render a tab to a file: every picture of its source, through its chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.arguments import Integer, Quantity
from dala.budget import Limits
from dala.errors import ParameterError
from dala.media.frame import Frame
from dala.media.scene.options import RenderOptions
from dala.media.scene.parts import rendered_sound
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.media.video.tracks.tracks import Tracks
from dala.options import Options, OptionSpec, option
from dala.studio.cards.card import Card
from dala.studio.cards.chain import ChainRunner, pixels_of
from dala.studio.cards.values import LoadedFiles
from dala.studio.folders import kind_of
from dala.studio.home.jobs import StudioJob
from dala.studio.picture.moment import rgba8
from dala.studio.scenes.source import SceneFile
from dala.studio.sources.source import MovingFile, StudioSource
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene
    from dala.media.video.reader import Reader
    from dala.media.video.writer import Writer

#: Seconds of a camera, or of a scene without an end.
_SECONDS: Final = 10
_QUALITY: Final = 92


@dataclass(frozen=True, kw_only=True)
class StudioOptions(Options):
    """The options of rendering that only the studio has."""

    quality: int = option(Integer(1, 100), _QUALITY, "of JPEG, WebP and AVIF", page=True)
    seconds: float = option(
        Quantity(0.04, 3600),
        float(_SECONDS),
        "of a camera, or of a scene without an end.",
        page=True,
    )


def render_options() -> dict[str, OptionSpec]:
    """Return the options of rendering that the page may set.

    >>> sorted(render_options())
    ['codec', 'crf', 'quality', 'seconds']
    """
    return {**EncoderOptions.page(), **StudioOptions.page()}


@dataclass(frozen=True)
class Rendering:
    """A request to render: the source, the cards at the time of asking, and where to."""

    source: StudioSource
    cards: tuple[Card, ...]
    time: Fraction
    target: Path
    #: Values of :func:`render_options`.
    options: Mapping[str, Any]
    device: str
    files: LoadedFiles
    bounds: Limits
    #: The seconds from and to which is rendered; None for all of it.
    part: tuple[Fraction, Fraction] | None = None

    @property
    def moving(self) -> bool:
        """Whether the result is a video."""
        return kind_of(self.target) == "video"

    def run(self, job: StudioJob) -> None:
        """Render all pictures.

        Raises:
            DalaError, OSError: a card or the file is refused.
            JobStopped: the job was cancelled; no file is left.
        """
        with ChainRunner(self.files, self.device, self.bounds) as runner:
            links, problems = runner.prepare(self.cards)
            if problems:
                raise ParameterError(problems[0].text)
            if self.moving:
                self._video(job, lambda picture: runner.run(picture, links))
            else:
                frame = self._still()
                self._store(pixels_of(runner.run(frame, links)))
                job.step(1, 1)

    # pictures ---------------------------------------------------------------------------------
    def _still(self) -> ImageLike:
        if isinstance(self.source, SceneFile):
            with closing(self._scene()) as scene:
                return np.array(self.source.frame(scene, self.time))
        if self.source.kind == "video":
            from dala.media import video

            with video.open(self._path(), device=self.device) as reader:
                if self.time > 0:
                    reader.seek(float(self.time))
                return np.array(next(iter(reader)).numpy())
        found = self.source.at(self.time)
        if found is None:
            raise ParameterError("render: the source has no picture yet.")
        return found

    def _store(self, pixels: NDArray) -> None:
        from dala.media.files import store
        from dala.media.pictures.filtering import LOSSY

        quality = self.options.get("quality", _QUALITY)
        lossy = self.target.suffix.lower() in LOSSY
        if pixels.dtype != np.uint8:
            pixels = rgba8(pixels)
        store(self.target, pixels, {"quality": int(quality)} if lossy else {}, background="white")

    # videos -----------------------------------------------------------------------------------
    def _path(self) -> PathLike:
        assert isinstance(self.source, MovingFile)
        return self.source.file

    def _scene(self) -> Scene:
        assert isinstance(self.source, SceneFile)
        return self.source.made(self.device)[0]

    def _video(self, job: StudioJob, process: Callable[[ImageLike], ImageLike]) -> None:
        from dala.media.video.files import open_writer

        chosen = {k: v for k, v in self.options.items() if k in EncodeOptions.specs()}
        with ExitStack() as held:
            frames, rate, total, tracks, sound = self._frames(held)
            encoding = EncodeOptions(
                fps=rate, tracks_from=tracks, audio_from=sound, device=self.device, **chosen
            )
            sink: Writer | None = None
            for frame in frames:
                made = process(frame)
                sink = sink or held.enter_context(open_writer(self.target, encoding))
                sink.write(_with_time(made, frame))
                job.step(1, total)
            if sink is None:
                raise ParameterError("render: the source has no pictures.")

    def _frames(
        self, held: ExitStack
    ) -> tuple[Iterator[ImageLike], Fraction, int | None, Reader | Tracks | None, Tracks | None]:
        """Return the pictures, their rate and number, the source's tracks, and a scene's sound."""
        if isinstance(self.source, SceneFile):
            scene = held.enter_context(closing(self._scene()))
            rate = scene.frame_rate
            start, end = self.part or (Fraction(0), Fraction(scene.duration or _SECONDS))
            count = max(round((end - start) * rate), 1)
            sound, _ = rendered_sound(
                scene, self.target, RenderOptions(), start, count / rate, "render"
            )
            if sound is not None:
                held.callback(sound.close)
            pictures = (self.source.frame(scene, start + n / rate) for n in range(count))
            return pictures, rate, count, None, sound
        if self.source.kind == "video":
            from dala.media import video

            reader = held.enter_context(video.open(self._path(), device=self.device))
            rate = reader.fps or Fraction(25)
            if self.part is not None:
                return self._part(reader, rate, *self.part)
            known = reader.frames
            if known is None and reader.duration is not None:
                known = round(reader.duration * rate)
            return iter(reader), rate, known, reader if self.source.path else None, None
        rate = self.source.rate or Fraction(25)
        start = Fraction(0)
        seconds = Fraction(self.options.get("seconds", _SECONDS))
        if self.part is not None:
            start, seconds = self.part[0], self.part[1] - self.part[0]
        count = max(round(seconds * rate), 1)
        return self._live(start, count, rate), rate, count, None, None

    def _part(
        self, reader: Reader, rate: Fraction, start: Fraction, end: Fraction
    ) -> tuple[Iterator[ImageLike], Fraction, int, Tracks | None, None]:
        """Return the pictures of a part of a video, whose times begin at 0, and its tracks."""
        zero = next(reader).time or Fraction(0)
        reader.seek(zero + start)
        tracks = None
        if self.source.path:
            tracks = Tracks(
                reader.source,
                "render",
                everything=True,
                to_zero=True,
                offset=-start,
                length=end - start,
            )

        def pictures() -> Iterator[ImageLike]:
            for frame in reader:
                time = (frame.time or Fraction(0)) - zero
                if time >= end:
                    return
                if frame.time_base is not None:
                    frame.pts = round(max(time - start, Fraction(0)) / frame.time_base)
                yield frame

        return pictures(), rate, max(round((end - start) * rate), 1), tracks, None

    def _live(self, start: Fraction, count: int, rate: Fraction) -> Iterator[ImageLike]:
        """Yield pictures of a camera, or of a still one, at their rate."""
        begin = monotonic()
        for number in range(count):
            if self.source.live:
                sleep(max(begin + float(number / rate) - monotonic(), 0))
            found = self.source.at(start + number / rate)
            if found is not None:
                yield np.array(pixels_of(found))


def _with_time(made: ImageLike, frame: ImageLike) -> ImageLike:
    """Return a result with the time of the frame it was made from."""
    if isinstance(frame, Frame) and frame.pts is not None and not isinstance(made, Frame):
        return Frame.from_array(
            rgba8(pixels_of(made)), pts=frame.pts, time_base=frame.time_base, device=frame.device
        )
    return made
