"""The clip of the video benchmark: ten seconds of moving texture with grain, as H.264."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np

WIDTH, HEIGHT, RATE = 1920, 1080, 30

Picture = np.ndarray[Any, Any]


def make(path: pathlib.Path, seconds: float, size: tuple[int, int] = (WIDTH, HEIGHT)) -> int:
    """Write the clip and return its number of frames; deterministic."""
    return make_all({path: seconds}, size)[path]


def make_all(paths: Mapping[pathlib.Path, float], size: tuple[int, int]) -> dict[pathlib.Path, int]:
    """Write the clip in several lengths, and return the number of frames of each."""
    import av

    width, height = size
    random = np.random.default_rng(7)
    back, front = _texture(random, height + 400, width + 700), _texture(random, 360, 640)
    front = front[..., ::-1].copy()
    grain = random.normal(0.0, 2.0, (height + 64, width + 64, 1)).round().astype(np.int16)
    counts = {path: round(RATE * seconds) for path, seconds in paths.items()}
    with ExitStack() as held:
        outputs = []
        for path, count in counts.items():
            out = held.enter_context(av.open(str(path), "w"))
            made: Any = out.add_stream(
                "libx264", rate=RATE, options={"crf": "21", "preset": "fast"}
            )
            made.width, made.height, made.pix_fmt = width, height, "yuv420p"
            made.codec_context.color_range, made.codec_context.colorspace = 1, 1
            outputs.append((out, made, count))
        for i in range(max(counts.values())):
            t = i / RATE
            x, y = int(350 + 340 * np.sin(0.9 * t)), int(200 + 190 * np.cos(1.3 * t))
            picture = back[y : y + height, x : x + width].copy()
            left = (120 + 6 * i) % (width - 640)
            top = int((height - 360) * (0.5 + np.sin(2.1 * t) / 2.4))
            picture[top : top + 360, left : left + 640] = front
            down, right = random.integers(0, 64, 2)
            noisy = picture + grain[down : down + height, right : right + width]
            frame = av.VideoFrame.from_ndarray(noisy.clip(0, 255).astype(np.uint8), "rgb24")
            frame = frame.reformat(format="yuv420p", dst_colorspace=1)
            for out, stream, count in outputs:
                if i < count:
                    frame.pts, frame.time_base = i, Fraction(1, RATE)
                    out.mux(stream.encode(frame))
        for out, stream, _ in outputs:
            out.mux(stream.encode(None))
    return counts


def _texture(random: np.random.Generator, height: int, width: int) -> Picture:
    """Fractal noise from 256 pixels down to 2."""
    total = np.zeros((height, width, 3), np.float32)
    cell, weight = 256, 1.0
    while cell >= 2:
        grid = random.random((height // cell + 2, width // cell + 2, 3), dtype=np.float32) - 0.5
        rows, down = _places(height, cell)
        columns, right = _places(width, cell)
        down, right = down[:, None, None], right[None, :, None]
        above = grid[rows][:, columns] * (1 - right) + grid[rows][:, columns + 1] * right
        below = grid[rows + 1][:, columns] * (1 - right) + grid[rows + 1][:, columns + 1] * right
        total += weight * (above * (1 - down) + below * down)
        cell, weight = cell // 2, weight * 0.62
    low, high = total.min(), total.max()
    return ((total - low) / (high - low) * 255.0).astype(np.uint8)


def _places(count: int, cell: int) -> tuple[Picture, Picture]:
    place = np.arange(count, dtype=np.float32) / cell
    whole = place.astype(np.intp)
    return whole, place - whole
