"""Stages between decoder and queue: deinterlacing, and one size for all frames."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dala.errors import VideoError
from dala.media.video.decoding.nvdec import on_host
from dala.media.video.source import AvObject, DecodedFrame, av, pulled

#: Frames that detection looks at before the first one is shown.
_PROBED = 12
#: The share of frames judged interlaced, of those that could be judged, from which a video is.
_SHARE = 0.7


class FilterGraph:
    """Filters of FFmpeg for frames of one size and format."""

    def __init__(self, frame: DecodedFrame, *filters: tuple[str, str]) -> None:
        self.key = _key(frame)
        self._graph = graph = av.filter.Graph()
        source = graph.add(
            "buffer",
            video_size=f"{frame.width}x{frame.height}",
            pix_fmt=frame.format.name,
            time_base=str(Fraction(frame.time_base)),
            colorspace=str(int(frame.colorspace)),
            range=str(int(frame.color_range)),
        )
        nodes = [source, *(graph.add(name, args) for name, args in filters)]
        graph.link_nodes(*nodes, graph.add("buffersink")).configure()

    def fits(self, frame: DecodedFrame) -> bool:
        """Return whether a frame has the size and format of this graph."""
        return self.key == _key(frame)

    def put(self, frame: DecodedFrame | None) -> list[DecodedFrame]:
        """Push a frame, or None for the end, and return the frames that come out."""
        self._graph.push(frame)
        return list(pulled(self._graph.vpull))


def _key(frame: DecodedFrame) -> tuple[int | str, ...]:
    tags = int(frame.colorspace), int(frame.color_range)
    return frame.width, frame.height, frame.format.name, *tags


class Deinterlacer:
    """Makes whole pictures of the two fields of interlaced frames, by FFmpeg's bwdif.

    Args:
        every: deinterlace every frame; else those that are flagged, or all of a video that is
            found to be interlaced though its flags do not say so.
        known: what detection found before, in another run over the same video.
    """

    def __init__(self, every: bool, known: str | None = None) -> None:
        #: "flags", "tff", "bff" or "none"; None before it is known.
        self.found = "all" if every else known
        self._probe: list[DecodedFrame] = []
        self._graph: FilterGraph | None = None

    def put(self, frame: DecodedFrame) -> list[DecodedFrame]:
        """Return the frames that are ready."""
        if self.found in (None, "none") and frame.interlaced_frame:
            self.found = "flags"
        self._probe.append(on_host(frame))
        if self.found is None:
            if len(self._probe) < _PROBED:
                return []
            self.found = scan_of(self._probe)
        return self._released()

    def finish(self) -> list[DecodedFrame]:
        """Return the frames that are still held."""
        if self._probe:
            self.found = scan_of(self._probe)
        return [*self._released(), *self._flushed()]

    def _released(self) -> list[DecodedFrame]:
        waiting, self._probe = self._probe, []
        return [made for frame in waiting for made in self._filtered(frame)]

    def _filtered(self, frame: DecodedFrame) -> list[DecodedFrame]:
        if self.found == "none":
            return [frame]
        ready: list[DecodedFrame] = []
        if self._graph is not None and not self._graph.fits(frame):
            ready = self._flushed()
        if self._graph is None:
            parity = self.found if self.found in ("tff", "bff") else "auto"
            which = "interlaced" if self.found == "flags" else "all"
            self._base = frame.time_base
            options = f"mode=send_frame:parity={parity}:deint={which}"
            self._graph = FilterGraph(frame, ("bwdif", options))
        return [*ready, *self._timed(self._graph.put(frame))]

    def _flushed(self) -> list[DecodedFrame]:
        graph, self._graph = self._graph, None
        return [] if graph is None else self._timed(graph.put(None))

    def _timed(self, frames: list[DecodedFrame]) -> list[DecodedFrame]:
        """Set the times back to the file's unit; bwdif halves it, as it could show both fields."""
        for frame in frames:
            frame.pts = round(frame.pts * Fraction(frame.time_base) / self._base)
            frame.time_base = self._base
        return frames


def scan_of(frames: list[DecodedFrame]) -> str:
    """Return how frames without flags were scanned, by FFmpeg's idet: "tff", "bff" or "none"."""
    try:
        graph = FilterGraph(frames[0], ("idet", ""))
        judged = [made for f in frames if graph.fits(f) for made in graph.put(f)]
        facts = (judged + graph.put(None))[-1].metadata
    except (av.FFmpegError, ValueError, IndexError):
        return "none"  # a format that idet does not know
    top, bottom, whole = (
        float(facts.get(f"lavfi.idet.multiple.{kind}", 0)) for kind in ("tff", "bff", "progressive")
    )
    if top + bottom < max(2.0, _SHARE * (top + bottom + whole)):
        return "none"
    return "tff" if top >= bottom else "bff"


class SizeKeeper:
    """Keeps frames at the size of the first one, scaled and with black bars where shapes differ.

    Args:
        policy: "scale", or "error" to raise VideoError at the first frame of another size.
        name: the video, for messages.
        say: is called with a notice when the size or the pixel format changes.
    """

    def __init__(self, policy: str, name: str, say: Callable[[str, str], None]) -> None:
        self._policy = policy
        self._name = name
        self._say = say
        #: Width, height and pixel format of the first frame.
        self.first: tuple[int, int, str] | None = None
        self._graph: FilterGraph | None = None

    def put(self, frame: DecodedFrame, count: int | None, begin: Fraction) -> DecodedFrame:
        """Return a frame in the first size.

        ``count`` is its number if that is known, ``begin`` the time at which the video begins.
        """
        facts = frame.width, frame.height, frame.format.name
        if self.first is None:
            self.first = facts
        if facts == self.first:
            return frame
        width, height, pixels = self.first
        time = frame.pts * Fraction(frame.time_base) - begin
        where = (
            f"at {float(time):.3f} s"
            if count is None
            else f"at frame {count} ({float(time):.3f} s)"
        )
        if facts[:2] == (width, height):
            self._say("format", f"the pixel format changes from {pixels} to {facts[2]} {where}.")
            return frame
        change = f"the size changes from {width}x{height} to {facts[0]}x{facts[1]} {where}"
        if self._policy == "error":
            raise VideoError(f"video: {self._name}: {change}. Use on_resize='scale' to go on.")
        self._say("size", f"{change}. From there on it is scaled to {width}x{height}.")
        frame = on_host(frame)
        if self._graph is None or not self._graph.fits(frame):
            self._graph = _scaler(frame, width, height)
        (made,) = self._graph.put(frame)
        made.pts, made.time_base = frame.pts, frame.time_base
        return made


#: Formats with a chroma sample for every pixel.
_EVERY_PIXEL = "yuv444p|yuvj444p|yuva444p|yuv444p10le|gray|gray16le|rgb24|rgba|gbrp|gbrap"


def _scaler(frame: DecodedFrame, width: int, height: int) -> FilterGraph:
    """Return filters that fit a frame into a size, centered."""
    scale = min(Fraction(width, frame.width), Fraction(height, frame.height))
    inner = max(1, round(frame.width * scale)), max(1, round(frame.height * scale))
    # A pixel or two of another shape come from rounding: no bars for these.
    if abs(inner[0] - width) <= 2 and abs(inner[1] - height) <= 2:
        return FilterGraph(frame, ("scale", f"{width}:{height}:flags=bicubic"))
    inner = min(width, inner[0] + inner[0] % 2), min(height, inner[1] + inner[1] % 2)
    left, top = (width - inner[0]) // 4 * 2, (height - inner[1]) // 4 * 2
    filters = [("scale", f"{inner[0]}:{inner[1]}:flags=bicubic")]
    if width % 2 or height % 2:  # which pad rounds to whole chroma samples
        filters.append(("format", f"pix_fmts={_EVERY_PIXEL}"))
    filters.append(("pad", f"{width}:{height}:{left}:{top}:black"))
    return FilterGraph(frame, *filters)


#: Decoders that read the alpha of a stream, which FFmpeg's own ones ignore.
_ALPHA_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}


def alpha_decoder(stream: AvObject) -> AvObject | None:
    """Return a decoder for the alpha of a WebM stream; None if it has none.

    Raises:
        KeyError: this build of FFmpeg does not have the decoder.
    """
    name = _ALPHA_DECODERS.get(stream.codec_context.name)
    tags = {key.lower(): value for key, value in stream.metadata.items()}
    if name is None or tags.get("alpha_mode") != "1":
        return None
    try:
        codec = av.Codec(name, "r")
    except ValueError as error:
        raise KeyError(name) from error
    context = av.CodecContext.create(codec, "r")
    context.extradata = stream.codec_context.extradata
    return context
