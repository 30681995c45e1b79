"""Compositing on a GPU, data resident: scenes of scaled, rotated, rounded pictures, shadows, rings.

    python3 -m benchmarks.gpu.compositing --out PATH     needs only numpy and wgpu
    python3 -m benchmarks.gpu.compositing --small        a dry run on any WebGPU adapter

``frame_ms`` is the time per frame over many frames between two waits, each submitted separately,
Python included. ``call_ms`` is the part spent in ``compose`` on the caller's thread, ``wait_ms`` a
frame with a wait, ``device_ms`` comes from device timestamps.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.harness import write
from dala.gpu.compute import buffer_zeros, device_info, from_array, gpu_available
from dala.gpu.compute.composite import DRAW, FILL, OPAQUE, PICTURE, RING, SHADOW, TINT, Compositor

#: The target: milliseconds per frame, 3840x2160, 100 nodes.
TARGET_MS = 1.0


class Scene:
    """A background and nodes of five kinds; deterministic."""

    def __init__(self, device: str, width: int, height: int, nodes: int) -> None:
        rng = np.random.default_rng(7)
        self.size = width, height
        self.compositor = Compositor(device)
        self.engine = self.compositor.engine
        self.target = buffer_zeros((height, width, 4), "u8", device=device)
        frame = rng.integers(0, 256, (height, width, 3), np.uint8)
        video = rng.integers(0, 256, (height // 3, width // 3, 3), np.uint8)
        art = rng.integers(0, 256, (height // 5, width // 8, 4), np.uint8)
        text = rng.integers(0, 256, (height // 20, width // 6, 4), np.uint8)
        self.pictures = [self.compositor.picture(p) for p in (frame, video, art, text)]
        draws = [self._draw(PICTURE, width / 2, height / 2, width, height, picture=0)]
        for i in range(nodes - 1):
            x, y = rng.uniform(0.1, 0.9, 2) * (width, height)
            w = width * rng.uniform(0.06, 0.22)
            draws += self._node(i % 5, x, y, w, w * rng.uniform(0.5, 0.8), rng)
        self.draws = np.stack(draws)

    def _node(self, sort: int, x: float, y: float, w: float, h: float, rng: Any) -> list[Any]:
        color = (*rng.integers(0, 256, 3).tolist(), 255)
        unit = self.size[0] / 240
        if sort == 0:  # a video scaled down, with a shadow and a ring
            black = (0, 0, 0, 160)
            return [
                self._draw(SHADOW, x, y + unit, w, h, radius=unit, width=unit, color=black),
                self._draw(PICTURE, x, y, w, h, picture=1, radius=unit),
                self._draw(RING, x, y, w, h, radius=unit, width=unit / 3, color=color),
            ]
        if sort == 1:  # rotated
            angle = rng.uniform(0, 360)
            return [self._draw(PICTURE, x, y, w, h, picture=1, angle=angle)]
        if sort == 2:  # with alpha
            return [self._draw(PICTURE, x, y, w, h, picture=2, opacity=0.8)]
        if sort == 3:
            return [self._draw(FILL, x, y, w, h, radius=unit, color=(*color[:3], 128))]
        return [self._draw(TINT, round(x), round(y), 0, 0, picture=3, color=color)]

    def _draw(
        self, kind: int, x: float, y: float, w: float, h: float, *, picture: int = 0,
        angle: float = 0.0, radius: float = 0.0, width: float = 0.0, opacity: float = 1.0,
        color: tuple[int, ...] = (255, 255, 255, 255),
    ) -> Any:  # fmt: skip
        draw = np.zeros((), DRAW)
        shown = self.pictures[picture]
        w, h = w or shown.width, h or shown.height
        turn = math.radians(angle)
        cos, sin = math.cos(turn), math.sin(turn)
        reach = 3 * width + 1 if kind == SHADOW else 1.0
        across = (abs(w * cos) + abs(h * sin)) / 2 + reach
        down = (abs(w * sin) + abs(h * cos)) / 2 + reach
        sx, sy = shown.width / w, shown.height / h
        for name, value in {
            "kind": kind, "picture": shown.number, "flags": OPAQUE if shown.opaque else 0,
            "x0": math.floor(x - across), "y0": math.floor(y - down),
            "x1": math.ceil(x + across), "y1": math.ceil(y + down),
            "cx": x, "cy": y, "cos": cos, "sin": sin, "hw": w / 2, "hh": h / 2,
            "radius": radius, "width": width, "sx": sx, "sy": sy,
            "u1": shown.width, "v1": shown.height,
            "taps_x": max(1, math.ceil(sx / 2)), "taps_y": max(1, math.ceil(sy / 2)),
            "color": color, "opacity": opacity,
        }.items():  # fmt: skip
            draw[name] = value
        return draw

    def compose(self, rects: list[tuple[int, int, int, int]] | None = None) -> None:
        self.compositor.compose(self.target, self.draws, rects, background=(0, 0, 0, 255))


def check(device: str) -> int:
    """The largest difference of a small scene from the reference, in steps of 255."""
    made = []
    for where in (device, "reference"):
        scene = Scene(where, 240, 136, 25)
        scene.compose()
        made.append(scene.target.numpy().astype(int))
    return int(np.abs(made[0] - made[1]).max())


def measure(engine: Any, run: Callable[[], Any], rounds: int, frames: int) -> dict[str, float]:
    """Measure the times described in the module docstring."""
    run()
    engine.synchronize()
    many, calls, waits = [], [], []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(frames):
            run()
        engine.synchronize()
        many.append((time.perf_counter() - start) / frames)
        start = time.perf_counter()
        run()
        calls.append(time.perf_counter() - start)
        engine.synchronize()
        waits.append(time.perf_counter() - start)
    row = {"frame_ms": min(many), "call_ms": min(calls), "wait_ms": min(waits)}
    with engine.profile() as times:
        if times is not None:
            for _ in range(frames):
                run()
                times.mark()
    if times is not None:
        row["device_ms"] = min(times.passes)
    return {name: seconds * 1e3 for name, seconds in row.items()}


def main(rounds: int = 20, *, small: bool = False, out: str | None = None) -> None:
    """Measure on the GPU; report and stop if there is none."""
    if not gpu_available() and not small:
        print("no GPU here: nothing measured (a dry run: ... gpu_compositing --small)")
        return
    dala.use("webgpu" if small else "gpu")
    device = buffer_zeros(1).device
    off = check(device)
    if off > 2:
        raise AssertionError(f"{off} steps from the definition")
    rounds, frames = (3, 3) if small else (rounds, 100)
    width, height = (1920, 1080) if small else (3840, 2160)
    rows: dict[str, Any] = {}
    scene = Scene(device, width, height, 100)
    lefts, top = range(0, width, width // 5), height // 4
    moving = [(x, top, x + 200, top + 150) for x in lefts]
    frame = from_array(np.zeros((height, width, 4), np.uint8), device=device)
    rgb = from_array(np.zeros((height, width, 3), np.uint8), device=device)
    line, host = np.zeros((60, 700, 4), np.uint8), np.zeros((height, width, 3), np.uint8)
    video, text = scene.compositor.picture(frame), scene.compositor.picture(line)

    def with_text() -> None:
        text.update(line)
        scene.compose(moving)

    def with_video() -> None:
        video.update(frame)
        scene.compose()

    tasks: dict[str, Callable[[], Any]] = {
        "100 nodes": scene.compose,
        "100 nodes, 5 rectangles": lambda: scene.compose(moving),
        "100 nodes, 5 rectangles, a new text": with_text,
        "100 nodes, a new frame on the device": with_video,
        "picture from a buffer, RGBA": lambda: video.update(frame),
        "picture from a buffer, RGB": lambda: video.update(rgb),
        "picture from the host, RGB": lambda: video.update(host),
        "text from the host": lambda: text.update(line),
    }
    print(
        f"{width}x{height}, {len(scene.draws)} draws, on {device_info()['name']}; {off} steps off"
    )
    for name, run in tasks.items():
        row = rows[name] = measure(scene.engine, run, rounds, frames)
        print(f"  {name:38s} " + "  ".join(f"{n[:-3]} {ms:8.3f} ms" for n, ms in row.items()))
    if not small:
        met = rows["100 nodes"]["frame_ms"] < TARGET_MS
        rows["targets"] = {f"100 nodes < {TARGET_MS:g} ms": met}
        print(f"  target: 100 nodes under {TARGET_MS:g} ms a frame: {'met' if met else 'MISSED'}")
    if out is not None or not small:
        write("gpu_compositing", rows, (), out)


def _command(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.compositing")
    parser.add_argument("--out", help="where the JSON goes (default: benchmarks/results)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--small", action="store_true", help="1080p, any WebGPU adapter")
    options = parser.parse_args(arguments)
    main(options.rounds, small=options.small, out=options.out)


if __name__ == "__main__":
    _command(sys.argv[1:])
