"""Streaming frames: upload, five filters, download.

The target is 120 frames per second of 3840x2160 RGBA on an H200.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dala.gpu.compute import buffer_zeros, from_array
from dala.media import FramePipeline

FILTERS: list[tuple[str, dict[str, Any]]] = [
    ("blur", {"radius": 3, "sigma": 1.5}),
    ("sharpen", {"amount": 0.3}),
    ("contrast", {"value": 0.1}),
    ("saturation", {"value": 0.2}),
    ("vignette", {"amount": 0.5}),
]
TARGET_FPS = 120
#: Number of different pictures in the ring, like a decoder's ring of frames.
RING = 6


def measure(size: tuple[int, int], *, small: bool) -> dict[str, dict[str, float]]:
    """Time upload and download alone, then streams with more and more frames in flight."""
    rng = np.random.default_rng(5)
    frames = [rng.integers(0, 256, (*size, 4), np.uint8) for _ in range(RING)]
    _check(rng)
    count, rounds = (6, 1) if small else (120, 5)
    rows = {
        "upload of a frame": _one_way(frames, count, rounds, up=True),
        "download of a frame": _one_way(frames, count, rounds, up=False),
    }
    for workers in (1, 2, 3, 4, 6):
        rows[f"stream, five filters, workers={workers}"] = _stream(frames, workers, count, rounds)
    return rows


def _check(rng: Any) -> None:
    """Check a small stream against the reference engine."""
    frames = [rng.integers(0, 256, (67, 101, 4), np.uint8) for _ in range(5)]
    with FramePipeline(101, 67) as here, FramePipeline(101, 67, device="reference") as meant:
        for frame, got in zip(frames, here.stream(frames, FILTERS, workers=3), strict=True):
            off = np.abs(got.astype(int) - meant.process(frame, FILTERS)).max()
            # Each stage may round either way; sharpening can amplify one step to three more.
            if off > 6:
                raise AssertionError(f"a streamed frame is {off} steps from the definition")


def _row(seconds: list[float], count: int, nbytes: int) -> dict[str, float]:
    best = min(seconds) / count
    return {
        "fps": 1 / best,
        "min_ms": best * 1e3,
        "median_ms": sorted(seconds)[len(seconds) // 2] / count * 1e3,
        "host_GB_per_s": nbytes / best / 1e9,
    }


def _one_way(frames: list[Any], count: int, rounds: int, *, up: bool) -> dict[str, float]:
    buffers = [from_array(frame) for frame in frames]
    engine = buffers[0].engine
    seconds = []
    for _ in range(rounds):
        engine.synchronize()
        start = time.perf_counter()
        for n in range(count):
            if up:
                buffers[n % RING].write(frames[n % RING])
            else:
                buffers[n % RING].numpy()
        engine.synchronize()
        seconds.append(time.perf_counter() - start)
    return _row(seconds, count, frames[0].nbytes)


def _stream(frames: list[Any], workers: int, count: int, rounds: int) -> dict[str, float]:
    height, width = frames[0].shape[:2]
    engine = buffer_zeros(1).engine
    seconds = []
    with FramePipeline(width, height) as pipeline:
        for number in range(rounds + 1):  # compile, and fill the rings
            engine.synchronize()
            start = time.perf_counter()
            source = (frames[n % RING] for n in range(count if number else 2 * workers + 2))
            for _ in pipeline.stream(source, FILTERS, workers=workers):
                pass
            if number:
                seconds.append(time.perf_counter() - start)
    return _row(seconds, count, 2 * frames[0].nbytes)


def show(rows: dict[str, dict[str, float]], *, judged: bool) -> dict[str, Any]:
    """Print the rows, and the target on a GPU; return the results for the JSON."""
    for name, row in rows.items():
        print(
            f"  {name:40s} {row['fps']:7.1f} frames/s  min {row['min_ms']:8.3f} ms a frame  "
            f"{row['host_GB_per_s']:6.2f} GB/s to and from the host"
        )
    best = max(row["fps"] for name, row in rows.items() if name.startswith("stream"))
    if not judged:
        return dict(rows)
    met = best >= TARGET_FPS
    print(f"  target >= {TARGET_FPS} frames/s: {'met' if met else 'MISSED'} ({best:.1f})")
    return {**rows, "target": {"least_fps": TARGET_FPS, "fps": best, "met": met}}
