"""The longest pause of an event loop while videos are read, models are loaded and scenes played.

A heartbeat sleeps a millisecond at a time and notes how late it wakes. What it notes includes the
time that other threads hold the interpreter. "plain" is the same work by blocking calls in the
coroutine, "PyAV, to_thread" the usual way to read a video without blocking.
"""

from __future__ import annotations

import asyncio
import pathlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from benchmarks.harness import write
from dala.media import Scene, video

WIDTH, HEIGHT, COUNT, ROUNDS = 1920, 1080, 30, 7
BEAT = 0.001
Work = Callable[[], Awaitable[Any]]


async def _pause(work: Work) -> tuple[float, float]:
    """Return the longest delay of a heartbeat during some work, and the work's time, in ms."""
    late = 0.0

    async def beat() -> None:
        nonlocal late
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(BEAT)
            late = max(late, time.perf_counter() - begin - BEAT)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(5 * BEAT)
    late, begin = 0.0, time.perf_counter()
    await work()
    took = time.perf_counter() - begin
    await asyncio.sleep(2 * BEAT)  # a pause until the end of the work counts too
    heart.cancel()
    return late * 1e3, took * 1e3


def clip(path: pathlib.Path) -> None:
    """Write a second of moving stripes."""
    x = np.arange(WIDTH)
    with video.write(path, fps=COUNT) as sink:
        for k in range(COUNT):
            row = np.stack([(x + 8 * k) % 256, (x // 2) % 256, (255 - x + k) % 256], -1)
            sink.write(np.broadcast_to(row.astype(np.uint8), (HEIGHT, WIDTH, 3)).copy())


def reading(path: pathlib.Path) -> dict[str, Work]:
    """Return the ways to read a video."""

    async def dala() -> None:
        async for _ in video.open(path):
            pass

    async def plain() -> None:
        for _ in video.open(path):
            await asyncio.sleep(0)

    async def pyav() -> None:
        import av

        container = await asyncio.to_thread(av.open, str(path))
        frames = container.decode(video=0)

        def one() -> Any:
            frame = next(frames, None)
            return None if frame is None else frame.to_ndarray(format="rgba")

        while await asyncio.to_thread(one) is not None:
            pass
        await asyncio.to_thread(container.close)

    return {"dala": dala, "plain": plain, "PyAV, to_thread": pyav}


def loading() -> dict[str, Work]:
    """Return the ways to load a model."""
    from dala.ml.gpu import load_model, load_model_async

    async def dala() -> None:
        await load_model_async("mobilenet_v2", "cpu", pull=False)

    async def plain() -> None:
        load_model("mobilenet_v2", "cpu", pull=False)

    return {"dala": dala, "plain": plain}


def playing() -> dict[str, Work]:
    """Return the ways to play a scene, on a surface without a window."""

    def build() -> Scene:
        scene = Scene(WIDTH, HEIGHT, fps=30)
        back = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
        box = scene.add_image(back, size=(WIDTH, HEIGHT))
        scene.add_animation(box, "opacity", 0.2, 1.0, 1.0)
        return scene

    scenes = {name: build() for name in ("dala", "plain")}

    async def dala() -> None:
        await scenes["dala"].play(None, 0.5)

    async def plain() -> None:
        for k in range(15):
            scenes["plain"].render(k / 30)
            await asyncio.sleep(1 / 30)

    return {"dala": dala, "plain": plain}


def main() -> None:
    """Measure, print and write the results."""
    from dala.ml.weights.find import find_weights

    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "clip.mp4"
        clip(path)
        rows = {f"read {COUNT} frames of {WIDTH}x{HEIGHT}": reading(path)}
        if find_weights("mobilenet_v2") is not None:
            rows["load mobilenet_v2"] = loading()
        rows[f"play half a second of a {WIDTH}x{HEIGHT} scene"] = playing()
        for title, ways in rows.items():
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for way in ways.values():
                asyncio.run(_pause(way))
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    found[name].append(asyncio.run(_pause(way)))
            print(f"\n{title}: longest pause of the loop, median of {ROUNDS} runs (worst)")
            results[title] = {}
            for name, pairs in found.items():
                pauses, took = zip(*pairs, strict=True)
                row = {
                    "pause_median_ms": statistics.median(pauses),
                    "pause_worst_ms": max(pauses),
                    "took_median_ms": statistics.median(took),
                }
                results[title][name] = row
                print(
                    f"  {name:18s} {row['pause_median_ms']:8.2f} ms ({row['pause_worst_ms']:.2f})"
                    f"   took {row['took_median_ms']:.0f} ms"
                )
    write("eventloop", results, ("av", "onnxruntime"))


if __name__ == "__main__":
    main()
