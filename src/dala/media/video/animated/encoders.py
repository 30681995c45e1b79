"""Encoders of animated pictures: FFmpeg's, with palettes from its filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.errors import ParameterError, VideoError, did_you_mean
from dala.media.video.animated.facts import webp_chunks
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import AvObject, DecodedFrame, pyav
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.video.animated.writer import FrameSchedule

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
_DITHERS: Final = (
    "none", "bayer", "heckbert", "floyd_steinberg", "sierra2", "sierra2_4a", "sierra3", "burkes",
    "atkinson",
)  # fmt: skip
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "dither": _DITHERS,
    "palette": ("global", "frame"),
    "diff_mode": ("none", "rectangle"),
    "lossless": ("0", "1"),
    "pred": ("none", "sub", "up", "avg", "paeth", "mixed"),
    "preset": ("", "none", "default", "picture", "photo", "drawing", "icon", "text"),
}
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "colors": (3, 256),
    "bayer_scale": (0, 5),
    "quality": (0, 100),
    "compression_level": (0, 9),
}


def check_options(kind: str, options: Mapping[str, str]) -> None:
    """Raise ParameterError for an option that the kind does not have, or a wrong value."""
    for name, value in options.items():
        if name not in OPTIONS[kind]:
            listed = ", ".join(OPTIONS[kind])
            raise ParameterError(
                f"video.write: {kind} has no option {name!r}. "
                f"{did_you_mean(name, OPTIONS[kind]) or f'It has {listed}.'}"
            )
        if name in _CHOICES and value not in _CHOICES[name]:
            listed = ", ".join(repr(c) for c in _CHOICES[name] if c)
            raise ParameterError.invalid("video.write", name, f"one of {listed}", value)
        if name in _NUMBERS:
            least, most = _NUMBERS[name]
            if not value.isdecimal() or not least <= int(value) <= most:
                expected = f"an int from {least} to {most}"
                raise ParameterError.invalid("video.write", name, expected, value)


class Palette:
    """A palette for all frames of a GIF, by FFmpeg's ``palettegen``."""

    def __init__(self, size: tuple[int, int], options: Mapping[str, str]) -> None:
        self._graph, self._source = _graph(size)
        maker = self._graph.add("palettegen", f"max_colors={options['colors']}:stats_mode=full")
        self._sink = self._graph.add("buffersink")
        self._source.link_to(maker)
        maker.link_to(self._sink)
        self._graph.configure()
        self._count = 0

    def add(self, pixels: NDArray) -> None:
        """Count the colors of a frame."""
        self._source.push(_frame(pixels, self._count, Fraction(1, 100)))
        self._count += 1

    def picture(self) -> DecodedFrame:
        """Return the palette: 16 x 16 pixels."""
        self._source.push(None)
        return self._sink.pull()


def _graph(size: tuple[int, int]) -> tuple[AvObject, AvObject]:
    graph: AvObject = pyav().filter.Graph()
    source = graph.add_buffer(
        width=size[0], height=size[1], format="rgba", time_base=Fraction(1, 100)
    )
    return graph, source


def _frame(pixels: NDArray, pts: int, unit: Fraction, format: str = "rgba") -> DecodedFrame:
    made = pyav().VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgba")
    if format != "rgba":
        made = made.reformat(format=format)
    made.pts, made.time_base = pts, unit
    return made


def _gif(work: FrameSchedule, pictures: Iterable[NDArray], palette: Palette | None) -> None:
    graph, source = _graph(work.size)
    options = work.options
    how = f"dither={options['dither']}:bayer_scale={options['bayer_scale']}"
    how += f":diff_mode={options['diff_mode']}"
    sink = graph.add("buffersink")
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
        colors.pts, colors.time_base = 0, Fraction(1, 100)
        table = graph.add_buffer(
            width=16, height=16, format=colors.format.name, time_base=Fraction(1, 100)
        )
        user = graph.add("paletteuse", how)
        source.link_to(user, 0, 0)
        table.link_to(user, 0, 1)
    user.link_to(sink)
    graph.configure()
    if palette is not None:
        table.push(colors)
        table.push(None)

    def mapped() -> Iterator[DecodedFrame]:
        for start, pixels in zip(work.times, pictures, strict=False):
            source.push(_frame(pixels, start, work.unit))
            yield from _pull(sink)
        source.push(None)
        yield from _pull(sink)

    # GIF stores repetitions, not plays, and nothing for a single play.
    repeats = {0: 0, 1: -1}.get(work.plays, work.plays - 1)
    last = work.times[-1] - work.times[-2]
    muxer = {"loop": str(repeats), "final_delay": str(min(last, 65535))}
    _encode(work, "gif", "gif", "pal8", mapped(), {}, muxer)


def _pull(sink: AvObject) -> Iterator[DecodedFrame]:
    av = pyav()
    while True:
        try:
            yield sink.pull()
        except (BlockingIOError, av.error.EOFError):
            return


def _apng(work: FrameSchedule, pictures: Iterable[NDArray], palette: Palette | None) -> None:
    format = "rgb24" if work.opaque else "rgba"
    frames = (
        _frame(pixels, start, work.unit, format)
        for start, pixels in zip(work.times, pictures, strict=False)
    )
    last = ((work.times[-1] - work.times[-2]) * work.unit).limit_denominator(65535)
    muxer = {"plays": str(work.plays), "final_delay": f"{last.numerator}/{last.denominator}"}
    codec = {name: value for name, value in work.options.items() if value}
    _encode(work, "apng", "apng", format, frames, codec, muxer)


def _webp(work: FrameSchedule, pictures: Iterable[NDArray], palette: Palette | None) -> None:
    frames = (
        _frame(pixels, start, work.unit, "bgra")
        for start, pixels in zip(work.times, pictures, strict=False)
    )
    codec = {name: value for name, value in work.options.items() if value}
    codec["compression_level"] = str(min(int(codec["compression_level"]), 6))
    _encode(work, "webp", "libwebp_anim", "bgra", frames, codec, {"loop": str(work.plays)})
    _complete(work)


def _complete(work: FrameSchedule) -> None:
    """Store what the encoder leaves out: how long the last frame is shown, and transparency.

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


def _encode(
    work: FrameSchedule,
    container: str,
    codec: str,
    format: str,
    frames: Iterator[DecodedFrame],
    options: Mapping[str, str],
    muxer: Mapping[str, str],
) -> None:
    av = pyav()
    try:
        with av.open(f"file:{work.path}", "w", format=container, options=dict(muxer)) as output:
            rate = 1 / work.unit
            stream = output.add_stream(codec, rate=rate, options=dict(options))
            context = stream.codec_context
            context.width, context.height = work.size
            context.pix_fmt = format
            context.time_base = work.unit
            for frame in frames:
                for packet in stream.encode(frame):
                    output.mux_one(packet)
            for packet in stream.encode(None):
                output.mux_one(packet)
    except (av.FFmpegError, ValueError) as error:
        raise VideoError(
            f"video.write: cannot encode {container} at {work.size[0]}x{work.size[1]}: "
            f"{ffmpeg_message(error)}. No file was written."
        ) from error


_Encode: TypeAlias = "Callable[[FrameSchedule, Iterable[NDArray], Palette | None], None]"
ENCODERS: Final[Mapping[str, _Encode]] = {"gif": _gif, "apng": _apng, "webp": _webp}
