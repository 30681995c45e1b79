"""Small videos made with FFmpeg's own test sources and encoders, apart from the code under test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")

#: H.273's numbers.
TAGS = {"bt601": 6, "bt709": 1, "bt2020": 9}


def source(
    name: str = "testsrc2", size: str = "96x64", rate: int = 25, pixels: str = "rgb24"
) -> Iterator[Any]:
    """Frames without end of one of FFmpeg's test sources."""
    graph = av.filter.Graph()
    made = graph.add(name, f"size={size}:rate={rate}")
    shaped = graph.add("format", f"pix_fmts={pixels}")
    sink = graph.add("buffersink")
    made.link_to(shaped)
    shaped.link_to(sink)
    graph.configure()
    while True:
        yield graph.pull()


def encode(
    path: Path,
    frames: Iterable[Any],
    *,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    rate: int = 25,
    stamps: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    options: dict[str, str] | None = None,
    tags: tuple[int, int] | None = None,
    rotation: int | None = None,
    aspect: Fraction | None = None,
    tone: bool = False,
    muxer: dict[str, str] | None = None,
) -> Path:
    """A file of frames (of PyAV), each shown at its stamp; ``tags`` are range and matrix."""
    frames = list(frames)
    base = time_base or Fraction(1, rate)
    with av.open(str(path), "w", options=muxer or {}) as out:
        stream = out.add_stream(codec, rate=rate, options=options or {})
        context = stream.codec_context
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, pixels
        context.time_base = base
        context.thread_count = 1  # with more, the bytes depend on how busy the machine is
        if tags is not None:
            context.color_range, context.colorspace = tags
        if aspect is not None:
            context.sample_aspect_ratio = aspect
        if rotation is not None:
            stream.set_display_rotation(rotation)
        sound = out.add_stream("aac", rate=48000, layout="mono") if tone else None
        for i, frame in enumerate(frames):
            frame.pts, frame.time_base = (i if stamps is None else stamps[i]), base
            frame.pict_type = 0
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            for i in range(round(len(frames) / rate * 48000) // 1024):
                wave = np.sin((np.arange(1024) + i * 1024) * 0.05) * 0.4
                chunk = av.AudioFrame.from_ndarray(wave[None].astype(np.float32), "fltp", "mono")
                chunk.sample_rate, chunk.pts, chunk.time_base = 48000, i * 1024, Fraction(1, 48000)
                out.mux(sound.encode(chunk))
            out.mux(sound.encode(None))
    return path


def numbered(count: int, size: tuple[int, int] = (48, 64)) -> list[Any]:
    """Pictures that tell which one they are: eight fields, black or white, are the bits of i."""
    made = []
    noise = np.random.default_rng(1)  # so that no two packets are the same
    for i in range(count):
        picture = noise.integers(0, 20, (*size, 1), np.uint8).repeat(3, axis=2)
        for bit in range(8):
            if i >> bit & 1:
                picture[:, bit * size[1] // 8 : (bit + 1) * size[1] // 8] = 255
        made.append(av.VideoFrame.from_ndarray(picture, "rgb24"))
    return made


def number_of(picture: Any) -> int:
    """Which of the numbered pictures it is."""
    array = np.asarray(picture)[..., :3].mean(axis=(0, 2))
    fields = array.reshape(8, -1)[:, 1:-1].mean(axis=1)
    return sum(1 << bit for bit in range(8) if fields[bit] > 127)


def packets(path: Path, kind: str) -> list[tuple[Fraction, Fraction, bytes]]:
    """Time to show, time to decode, and bytes of each packet of a kind of stream."""
    with av.open(str(path)) as file:
        return [
            (p.pts * p.time_base, (p.pts if p.dts is None else p.dts) * p.time_base, bytes(p))
            for p in file.demux(**{kind: 0})
            if p.size
        ]
