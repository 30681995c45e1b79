"""Encoders of animated pictures: FFmpeg's, with palettes from its filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.arguments import Integer, Selection
from dala.errors import ParameterError, did_you_mean
from dala.media.video.animated.facts import webp_chunks
from dala.media.video.source import AvObject, DecodedFrame, av, ffmpeg_errors, pulled
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.video.animated.writer import FrameSchedule

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
