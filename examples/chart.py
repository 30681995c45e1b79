"""A chart: axes with ticks and labels, lines that grow, a value at the end of each.

python examples/chart.py                 # out/chart.png and out/chart.mp4
python examples/chart.py --show window   # plays it
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala.gpu import LinearGradient, Path
from dala.media import Scene

SIZE = (960, 540)
SECONDS = 6.0
NIGHT, GRID, INK = "#0e1420", "#2a3446", "#c8d2e4"
SERIES = (("Harbor", "#4cc2ff", 0.8), ("Airport", "#ffb454", 1.3), ("Summit", "#7ee787", 1.8))


def temperatures() -> list[np.ndarray]:
    """Return the mean temperature of each month at three places, in degrees Celsius."""
    month = np.arange(12)
    wave = -np.cos((month - 0.6) * np.pi / 6)
    noise = np.random.default_rng(7).normal(0, 0.5, (3, 12))
    return [mean + swing * wave + noise[n] for n, (mean, swing) in enumerate(
        ((12.5, 7.5), (9.5, 11.0), (1.0, 8.0))
    )]  # fmt: skip


def nice_ticks(low: float, high: float, count: int = 6) -> np.ndarray:
    """Return round values over a range: multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / count
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
    return np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step


def degrees(value: float) -> str:
    """Return a temperature as text."""
    return f"{value:.0f}°".replace("-", "\N{MINUS SIGN}")


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    width, height = size
    unit = height / 540  # everything scales with the height
    scene = Scene(width, height, background=NIGHT, fps=30, device=device)
    scene.duration = SECONDS
    left, right = 84 * unit, width - 150 * unit
    top, bottom = 96 * unit, height - 64 * unit
    values = temperatures()
    ticks = nice_ticks(min(v.min() for v in values), max(v.max() for v in values))

    def across(month: float) -> float:
        return left + (right - left) * month / 11

    def down(value: float) -> float:
        return bottom - (bottom - top) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    scene.add_text(
        "Mean temperature", size=30 * unit, weight="bold", position=(left, 24 * unit), color="white"
    )
    scene.add_text(
        "degrees Celsius, by month", size=17 * unit, position=(left, 60 * unit), color=INK
    )
    for n, tick in enumerate(ticks):
        line = Path.polyline([(left, down(tick)), (right, down(tick))])
        row = scene.add_shape(line, stroke=GRID, width=max(1.5 * unit, 1))
        scene.add_animation(row, "trim", (0, 0), (0, 1), 0.6, "cubic-out", delay=0.05 * n)
        scene.add_text(
            degrees(tick), size=16 * unit, color=INK, position=(left - 12 * unit, down(tick)),
            anchor="right",
        )  # fmt: skip
    for n, name in enumerate("JFMAMJJASOND"):
        x = across(n)
        mark = Path.polyline([(x, bottom), (x, bottom + 7 * unit)])
        scene.add_shape(mark, stroke=INK, width=max(1.5 * unit, 1))
        scene.add_text(
            name, size=16 * unit, color=INK, position=(x, bottom + 12 * unit), anchor="top"
        )
    axis = Path.polyline([(left, top), (left, bottom), (right, bottom)])
    scene.add_shape(axis, stroke=INK, width=2 * unit, join="round", cap="round")

    for (name, color, begin), series in zip(SERIES, values, strict=True):
        points = [(across(n), down(value)) for n, value in enumerate(series)]
        line = Path.polyline(points)
        flat = Path.polygon([(x, bottom) for x, _ in points] + [(right, bottom), (left, bottom)])
        full = Path.polygon([*points, (right, bottom), (left, bottom)])
        fade = LinearGradient((0, top), (0, bottom), [(0, f"{color}66"), (1, f"{color}08")])
        area = scene.add_shape(flat, fill=fade)
        scene.add_animation(area, "path", flat, full, 1.6, "cubic-out", delay=begin)
        drawn = scene.add_shape(line, stroke=color, width=3.5 * unit, join="round", cap="round")
        scene.add_animation(drawn, "trim", (0, 0), (0, 1), 2.0, "cubic-in-out", delay=begin)
        for n, point in enumerate(points):
            dot = scene.add_shape(Path.circle(0, 0, 5 * unit), fill=color, position=point, scale=0)
            scene.add_animation(dot, "scale", 0, 1, 0.35, "back-out", delay=begin + 0.3 + n * 0.12)
        label = scene.add_text(
            f"{name}  {degrees(series[-1])}", size=18 * unit, weight="bold", color=color,
            position=(right + 14 * unit, points[-1][1]), anchor="left", opacity=0,
        )  # fmt: skip
        scene.add_animation(label, "opacity", 0, 1, 0.4, delay=begin + 1.9)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=5.0))
