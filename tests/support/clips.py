"""Tiny videos whose frames tell their number, with B-frames, open groups, odd times and sound."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

SIZE = 32


def picture(number: int, size: int = SIZE) -> np.ndarray:
    """A picture with the bits of a number as gray blocks, which survive encoding."""
    pixels = np.full((size, size, 3), 60, np.uint8)
    for bit in range(8):
        row, column = divmod(bit, 4)
        value = 200 if number >> bit & 1 else 60
        pixels[row * 16 : row * 16 + 16, column * 8 : column * 8 + 8] = value
    return pixels


def number_in(pixels: np.ndarray) -> int:
    """The number of a picture."""
    found = 0
    for bit in range(8):
        row, column = divmod(bit, 4)
        block = pixels[row * 16 + 4 : row * 16 + 12, column * 8 + 2 : column * 8 + 6, :3]
        found |= int(block.mean() > 130) << bit
    return found


def clip(
    path: Path,
    frames: int = 40,
    *,
    fps: Fraction | int = 25,
    gop: int = 8,
    bframes: int = 2,
    open_gop: bool = False,
    times: Sequence[int] | None = None,
    sound: bool = True,
    codec: str = "libx264",
    metadata: dict[str, str] | None = None,
) -> Path:
    """Write a video; ``times`` are in 1/600 of a second."""
    options = {"g": str(gop), "bf": str(bframes), "threads": "1"}
    if codec == "libx264":
        options |= {
            "crf": "10",
            "preset": "veryfast",
            "x264-params": f"keyint={gop}:min-keyint={gop}:scenecut=0:open-gop={int(open_gop)}:"
            f"bframes={bframes}:b-adapt=0:log-level=none",
        }
    base = Fraction(1, 600) if times is not None else 1 / Fraction(fps)
    with av.open(str(path), "w") as output:
        output.metadata.update(metadata or {})
        stream = output.add_stream(codec, rate=Fraction(fps), options=options)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = base
        heard = None
        if sound:
            heard = output.add_stream("aac", rate=16000)
            heard.layout = "mono"
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            frame = frame.reformat(format="yuv420p")
            frame.pts = number if times is None else times[number]
            frame.time_base = base
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
        if heard is not None:
            last = frames * base if times is None else times[-1] * base
            for start in range(0, max(1024, int(last * 16000)), 1024):
                wave = np.sin(np.arange(start, start + 1024) / 9)[None].astype(np.float32)
                samples = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
                samples.rate, samples.pts, samples.time_base = 16000, start, Fraction(1, 16000)
                output.mux(heard.encode(samples))
            output.mux(heard.encode(None))
    return path


def shown(path: Path | str) -> tuple[list[Fraction], list[int]]:
    """The times and numbers of all frames of a video."""
    from dala.media import video

    times, numbers = [], []
    with video.open(path, device="cpu") as reader:
        for frame in reader:
            assert frame.time is not None
            times.append(frame.time)
            numbers.append(number_in(frame.numpy()))
    return times, numbers


def sound_packets(path: Path | str) -> list[tuple[Fraction, int]]:
    """The time and size of each packet of sound, from the first picture on."""
    with av.open(str(path)) as file:
        if not file.streams.audio:
            return []
        heard = file.streams.audio[0]
        return [(Fraction(p.pts * p.time_base), p.size) for p in file.demux(heard) if p.size]
