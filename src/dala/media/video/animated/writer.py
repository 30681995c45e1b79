"""Writing animated pictures: frames are kept until the end, because a palette needs all of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from dala import forks
from dala.arguments import Integer, Selection
from dala.errors import ParameterError, ShapeError, VideoError, did_you_mean
from dala.media.frame import Frame
from dala.media.parts import PartFile
from dala.media.pictures.pixels import to_rgba
from dala.media.video.animated.facts import common_unit, webp_chunks
from dala.media.video.options import EncodeOptions
from dala.media.video.source import AvObject, DecodedFrame, av, ffmpeg_errors, pulled
from dala.media.video.writer import Writer
from dala.notices import notify
from dala.typing import NDArray, PathLike

#: FFmpeg's encoder of each kind.
CODECS: Final = {"gif": "gif", "apng": "apng", "webp": "libwebp_anim"}
#: The unit of time of filters, and of GIF.
_HUNDREDTH: Final = Fraction(1, 100)
#: The options of each kind, with their defaults; "" leaves a choice to FFmpeg.
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "gif": {
        "colors": "256",
        "dither": "sierra3",
        "bayer_scale": "2",
        "palette": "global",
        "diff_mode": "rectangle",
    },
    "apng": {"pred": "mixed", "compression_level": ""},
    "webp": {"quality": "80", "lossless": "0", "compression_level": "4", "preset": ""},
}
#: The values of the options; "" is accepted where it is the default.
_KINDS: Final[Mapping[str, Integer | Selection]] = {
    "colors": Integer(3, 256),
    "dither": Selection(
        "none", "bayer", "heckbert", "floyd_steinberg", "sierra2", "sierra2_4a", "sierra3",
        "burkes", "atkinson",
    ),
    "bayer_scale": Integer(0, 5),
    "palette": Selection("global", "frame"),
    "diff_mode": Selection("none", "rectangle"),
    "quality": Integer(0, 100),
    "lossless": Selection("0", "1"),
    "compression_level": Integer(0, 9),
    "pred": Selection("none", "sub", "up", "avg", "paeth", "mixed"),
    "preset": Selection(
        "none", "default", "picture", "photo", "drawing", "icon", "text", hidden=("",)
    ),
}  # fmt: skip


def check_options(kind: str, options: Mapping[str, str]) -> None:
    """Raise ParameterError for an option that the kind does not have, or a wrong value."""
    for name, value in options.items():
        if name not in OPTIONS[kind]:
            listed = ", ".join(OPTIONS[kind])
            raise ParameterError(
                f"video.write: {kind} has no option {name!r}. "
                f"{did_you_mean(name, OPTIONS[kind]) or f'It has {listed}.'}"
            )
        accepted = _KINDS[name]
        try:
            accepted.accept(accepted.read(value))
        except ValueError:
            raise ParameterError.invalid("video.write", name, accepted.expected, value) from None


class Palette:
    """A palette for all frames of a GIF, by FFmpeg's ``palettegen``."""

    def __init__(self, size: tuple[int, int], options: Mapping[str, str]) -> None:
        self._graph = av.filter.Graph()
        made = self._graph.add("palettegen", f"max_colors={options['colors']}:stats_mode=full")
        source = _source(self._graph, size)
        self._graph.link_nodes(source, made, self._graph.add("buffersink")).configure()
        self._count = 0

    def add(self, pixels: NDArray) -> None:
        """Count the colors of a picture."""
        self._graph.push(_frame(pixels, self._count, _HUNDREDTH))
        self._count += 1

    def picture(self) -> DecodedFrame:
        """Return the colors, as a picture of 16 x 16."""
        self._graph.push(None)
        return self._graph.vpull()


def _source(graph: AvObject, size: tuple[int, int], format: str = "rgba") -> AvObject:
    return graph.add_buffer(width=size[0], height=size[1], format=format, time_base=_HUNDREDTH)


def _frame(pixels: NDArray, pts: int, unit: Fraction, format: str = "rgba") -> DecodedFrame:
    made = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgba")
    if format != "rgba":
        made = made.reformat(format=format)
    made.pts, made.time_base = pts, unit
    return made


def _mapped(
    work: FrameSchedule, frames: Iterable[DecodedFrame], palette: Palette | None
) -> Iterator[DecodedFrame]:
    """Yield frames with colors of the palette, or of one palette each."""
    graph, options = av.filter.Graph(), work.options
    names = ("dither", "bayer_scale", "diff_mode")
    how = ":".join(f"{name}={options[name]}" for name in names)
    source, sink = _source(graph, work.size), graph.add("buffersink")
    if palette is None:  # one for each frame
        split = graph.add("split")
        maker = graph.add("palettegen", f"max_colors={options['colors']}:stats_mode=single")
        user = graph.add("paletteuse", f"{how}:new=1")
        source.link_to(split)
        split.link_to(maker, 0, 0)
        split.link_to(user, 1, 0)
        maker.link_to(user, 0, 1)
    else:
        colors = palette.picture()
        colors.pts, colors.time_base = 0, _HUNDREDTH
        table = _source(graph, (16, 16), colors.format.name)
        user = graph.add("paletteuse", how)
        source.link_to(user, 0, 0)
        table.link_to(user, 0, 1)
    user.link_to(sink)
    graph.configure()
    if palette is not None:
        table.push(colors)
        table.push(None)
    for frame in chain(frames, [None]):
        source.push(frame)
        yield from pulled(sink.pull)


def _complete(work: FrameSchedule) -> None:
    """Store the facts that the encoder leaves out: the last frame's duration, and transparency.

    Where a frame is smaller than the canvas the rest is transparent, but the header says so only if
    a frame has alpha itself.
    """
    data = bytearray(work.path.read_bytes())
    chunks = list(webp_chunks(bytes(data)))
    frames = [start for kind, start, _ in chunks if kind == b"ANMF"]
    if not frames:
        return
    for kind, start, _ in chunks:
        if kind == b"VP8X" and not work.opaque:
            data[start] |= 0x10
    before = sum(int.from_bytes(data[at + 12 : at + 15], "little") for at in frames[:-1])
    delay = min(max(work.times[-1] - before, 1), (1 << 24) - 1)
    data[frames[-1] + 12 : frames[-1] + 15] = delay.to_bytes(3, "little")
    work.path.write_bytes(data)


def encode(
    kind: str, work: FrameSchedule, pictures: Iterable[NDArray], palette: Palette | None
) -> None:
    """Encode the pictures of a schedule into its file; ``palette`` is for GIF."""
    last, format = work.times[-1] - work.times[-2], "bgra"
    codec = {name: value for name, value in work.options.items() if value}
    if kind == "gif":
        # GIF stores repetitions, not plays, and nothing for a single play.
        repeats = {0: 0, 1: -1}.get(work.plays, work.plays - 1)
        codec, format = {}, "pal8"
        muxer = {"loop": str(repeats), "final_delay": str(min(last, 65535))}
    elif kind == "apng":
        delay = (last * work.unit).limit_denominator(65535)
        format = "rgb24" if work.opaque else "rgba"
        muxer = {"plays": str(work.plays), "final_delay": f"{delay.numerator}/{delay.denominator}"}
    else:
        codec["compression_level"] = str(min(int(codec["compression_level"]), 6))
        muxer = {"loop": str(work.plays)}
    given = "rgba" if kind == "gif" else format
    frames: Iterable[DecodedFrame] = (
        _frame(pixels, start, work.unit, given)
        for start, pixels in zip(work.times, pictures, strict=False)
    )
    if kind == "gif":
        frames = _mapped(work, frames, palette)
    what = f"video.write: cannot encode {kind} at {work.size[0]}x{work.size[1]}"
    with (
        ffmpeg_errors(what, advice="No file was written."),
        av.open(f"file:{work.path}", "w", format=kind, options=muxer) as output,
    ):
        stream = output.add_stream(CODECS[kind], rate=1 / work.unit, options=codec)
        context = stream.codec_context
        context.width, context.height = work.size
        context.pix_fmt = format
        context.time_base = work.unit
        for frame in frames:
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    if kind == "webp":
        _complete(work)


_CALL: Final = "video.write"
#: Frames are kept in memory up to this many bytes, then in a temporary file.
_IN_MEMORY: Final = 256 << 20
#: The unit of time of each kind, and the shortest delay in it; below that, players slow down.
_TICKS: Final = {"gif": (Fraction(1, 100), 2), "webp": (Fraction(1, 1000), 11)}


@dataclass(frozen=True, slots=True)
class FrameSchedule:
    """Frames in order, as an encoder takes them."""

    path: Path
    size: tuple[int, int]
    #: Start of each frame, and the end, in units of ``unit``, from 0.
    times: tuple[int, ...]
    unit: Fraction
    #: How often it plays; 0 is forever.
    plays: int
    opaque: bool
    options: Mapping[str, str]


class AnimationWriter(Writer):
    """An animated GIF, APNG or WebP being written; made by ``video.write``.

    A frame is shown until the next one; the last for its ``duration``, or as long as the one
    before. As with videos, the file appears when it is complete::

        with video.write("out.gif", fps=25, loop=0) as sink:
            for picture in pictures:
                sink.write(picture)
    """

    def __init__(self, path: PathLike | BinaryIO, kind: str, options: EncodeOptions) -> None:
        given = options.ffmpeg
        check_options(kind, given)
        self._held = ExitStack()
        self._stream: BinaryIO | None = None
        if not isinstance(path, str | os.PathLike):
            self._stream = path
            folder = self._held.enter_context(tempfile.TemporaryDirectory(prefix="dala-"))
            path = Path(folder) / f"stream.{kind}"
        forks.finalize(self, self._held.close)
        own = replace(options, format=kind, codec=CODECS[kind], options=None, crf=None)
        super().__init__(path, replace(own, alpha=False, width=None, height=None))
        self._kind = kind
        self._plays = min(options.loop or 0, 65535)
        self._given = {**OPTIONS[kind], **given}
        if options.width and options.height:
            self._size = options.width, options.height
        self._spool = self._held.enter_context(
            tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the stack closes it
        )
        self._times: list[Fraction] = []
        self._end: Fraction | None = None
        self._opaque = True
        self._palette: Palette | None = None

    def _append(self, given: Frame, copy: bool) -> None:
        size = self._size_of(given)
        if max(size) > 65535:
            raise ShapeError(f"{_CALL}: {self._kind} is at most 65535 wide and high, got {size}.")
        time = self._time(given)
        pixels = to_rgba(given, _CALL)
        try:
            self._opaque = self._opaque and bool((pixels[..., 3] == 255).all())
            self._spool.write(pixels.data)
            if self._kind == "gif" and self._given["palette"] == "global":
                if self._palette is None:
                    self._palette = Palette(size, self._given)
                self._palette.add(pixels)
        except OSError as error:
            self.abandon()
            raise VideoError(
                f"{_CALL}: the frames of {str(self.path)!r} cannot be kept until the end: "
                f"{error.strerror}."
            ) from error
        except BaseException:
            self.abandon()
            raise
        self._size = size
        self._times.append(time)
        own = given.duration is not None and not self.options.retime
        self._end = time + given.duration * given.time_base if own and given.duration else None
        self._last = time
        self.frames += 1

    # nodeco
    def _finish(self) -> None:
        """Encode the frames and complete the file. Closing twice is fine.

        Raises:
            VideoError: no frame was written, or encoding failed. There is no file then.
        """
        assert self.path is not None
        assert self._size is not None
        kept, times, unit = self._schedule()
        try:
            part = self._held.enter_context(PartFile(self.path))
            work = FrameSchedule(
                part.path, self._size, times, unit, self._plays, self._opaque, self._given
            )
            encode(self._kind, work, self._pictures(kept), self._palette)
            if self._stream is None:
                part.complete()
            else:
                with part.path.open("rb") as made:
                    shutil.copyfileobj(made, self._stream)
        except OSError as error:
            raise VideoError(
                f"{_CALL}: {str(self.path)!r} cannot be written: {error.strerror or error}."
            ) from error

    def abandon(self) -> None:
        """Discard the frames. An existing file of that name stays untouched."""
        self._held.close()
        self._palette = None
        super().abandon()

    def _layout(self, encoder: str, pixel_format: str | None, alpha: bool) -> str:
        return "rgba"  # the frames are kept; encoders take them from there

    # implementation ---------------------------------------------------------------------------
    def _schedule(self) -> tuple[list[int], tuple[int, ...], Fraction]:
        """Return the frames to encode, their times and the end in ticks, and the tick."""
        starts = [time - self._times[0] for time in self._times]
        end = self._end and self._end - self._times[0]
        if end is None:
            step = 1 / self.fps if self.fps else Fraction(1, 10)
            end = starts[-1] + (starts[-1] - starts[-2] if len(starts) > 1 else step)
        if self._kind == "apng":
            unit = common_unit([*starts, end])
            return list(range(len(starts))), tuple(round(t / unit) for t in [*starts, end]), unit
        unit, least = _TICKS[self._kind]
        kept: list[int] = []
        ticks: list[int] = []
        for number, start in enumerate(starts):
            tick = round(start / unit)
            if not ticks or tick - ticks[-1] >= least:
                kept.append(number)
                ticks.append(tick)
        if left := len(starts) - len(kept):
            most = "50" if self._kind == "gif" else "90"
            notify(
                f"{_CALL}: {self.path}: {self._kind} has at most {most} frames per second; {left} "
                f"of {len(starts)} frames are left out."
            )
        return kept, (*ticks, max(round(end / unit), ticks[-1] + least)), unit

    def _pictures(self, kept: list[int]) -> Iterator[NDArray]:
        assert self._size is not None
        shape = (self._size[1], self._size[0], 4)
        count = shape[0] * shape[1] * 4
        for number in kept:
            self._spool.seek(number * count)
            yield np.frombuffer(self._spool.read(count), np.uint8).reshape(shape)
