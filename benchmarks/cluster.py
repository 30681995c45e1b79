"""Clusters: the overhead of a task on Ray, and how a plan would scale to a thousand machines.

``python -m benchmarks.cluster overhead`` sends tasks that do nothing through a local Ray and prints
the milliseconds of each. ``python -m benchmarks.cluster scale --plot docs/images/batch_scale.png``
plans a real job over a 1080p video of ten minutes on this machine, multiplies it to 10,000 of
them, and draws the estimate with our own scenes and text. Nothing runs on a thousand machines.
"""

from __future__ import annotations

import argparse
import itertools
import math
import pathlib
import statistics
import tempfile
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

import dala
from dala import batch
from dala.batch.environment import environment
from dala.batch.planning.plans import BatchPlan
from dala.batch.planning.scaling import MachineKind, ScalePoint, scale
from dala.batch.runners import Resources, Runner, make_runner
from dala.batch.tasks import BatchTask, Failed, Finished, run_task
from dala.media import Scene, video
from dala.media.video.joining.packets import CopiedPart, PacketFile, copy_packets

VIDEOS = 10_000
MINUTES = 10.0
COUNTS = tuple(sorted({round(10 ** (k / 24)) for k in range(73)}))
#: What machines are assumed to be. The times of GPUs are assumptions: none was measured here.
CASES = {
    "16 cores, filters on them, a folder of 1 GB/s": MachineKind(storage=1e9),
    "16 cores, filters on them, a store of 20 GB/s": MachineKind(storage=2e10),
    "64 cores and a GPU, filters of 1 ms, 20 GB/s": MachineKind(
        cores=64, gpus=1, gpu_seconds=0.001, storage=2e10
    ),
    "64 cores and a GPU, a model of 5 ms, 200 GB/s": MachineKind(
        cores=64, gpus=1, gpu_seconds=0.005, storage=2e11
    ),
}
COLORS = {
    "CPU": "#58b7ff", "GPU": "#7ddc7a", "storage": "#ffb454", "network": "#ffd76a",
    "driver": "#ff6e8a", "chunks": "#c79bff", "start": "#9aa7b4",
}  # fmt: skip
NAMES = {
    "CPU": "CPU (decoder, encoder)", "GPU": "GPU", "storage": "storage", "network": "network",
    "driver": "driver", "chunks": "too few chunks", "start": "start of workers",
}  # fmt: skip


# overhead -----------------------------------------------------------------------------------------
def _tasks(work: str, prefix: str, count: int) -> list[BatchTask]:
    spec = {
        "chain": [], "quality": None, "device": "cpu", "max_pixels": 1000, "color": "srgb",
        "background": "white",
    }  # fmt: skip
    part = {"root": work, "names": [], "out": f"{work}/{{stem}}.png"}
    fixed = environment("cpu", "")
    return [
        BatchTask(f"{prefix}{k}", "pictures", "nothing", work, spec, part, fixed, (work,))
        for k in range(count)
    ]


def _drive(runner: Runner, tasks: list[BatchTask]) -> float:
    """Run tasks; return the seconds of one."""
    start, left, flying = time.perf_counter(), list(tasks), 0
    while left or flying:
        while left and flying < runner.capacity():
            runner.submit(left.pop())
            flying += 1
        for event in runner.wait(1.0):
            assert not isinstance(event, Failed), event
            flying -= isinstance(event, Finished)
    return (time.perf_counter() - start) / len(tasks)


def overhead(count: int = 200, rounds: int = 5) -> None:
    """Print the milliseconds of a task that does nothing: here, and on a local Ray."""
    with tempfile.TemporaryDirectory() as work:
        runner = make_runner("ray", Resources(workers=1))
        print(runner.start())
        try:
            _drive(runner, _tasks(work, "warm", 20))
            here, there = [], []
            for k in range(rounds):
                start = time.perf_counter()
                for task in _tasks(work, f"here{k}-", count):
                    run_task(task)
                here.append((time.perf_counter() - start) / count)
                there.append(_drive(runner, _tasks(work, f"ray{k}-", count)))
        finally:
            runner.stop(cancel=False)
    more = [b - a for a, b in zip(here, there, strict=True)]
    for name, values in (("in this process", here), ("on Ray", there), ("overhead", more)):
        least, middle = min(values) * 1e3, statistics.median(values) * 1e3
        print(f"{name:16} {least:6.2f} ms at least, {middle:6.2f} ms in the middle")


# scale --------------------------------------------------------------------------------------------
def _clip(path: pathlib.Path, seconds: float = 20.0) -> None:
    """Write a 1080p video: a photograph that moves, with noise."""
    rng = np.random.default_rng(1)
    photo = dala.samples.photo("coffee").numpy()[..., :3]
    big = np.tile(photo, (7, 7, 1))
    noise = rng.integers(0, 12, (1080, 1920, 3), np.uint8)
    with video.write(path, fps=25, options={"g": "50", "crf": "20", "preset": "veryfast"}) as sink:
        for k in range(round(seconds * 25)):
            sink.write(big[2 * k : 2 * k + 1080, 3 * k : 3 * k + 1920] // 2 + np.roll(noise, k, 1))


def measured() -> tuple[BatchPlan, float]:
    """Return the plan of ten minutes of 1080p, and the share of the time that filters take."""
    with tempfile.TemporaryDirectory() as name, dala.device("cpu"):
        folder = pathlib.Path(name)
        _clip(folder / "clip.mp4")
        file = PacketFile(folder / "clip.mp4", "benchmark")
        span = CopiedPart(file, Fraction(0), Fraction(20))
        copy_packets([span] * round(MINUTES * 3), folder / "film.mp4", "benchmark")
        file.close()
        plans = []
        for chain in (["denoise"], []):
            job = batch.videos(
                str(folder / "film.mp4"), out=str(folder / f"{len(chain)}" / "{stem}.mp4"),
                chain=chain, crf=20, threads=1,
            )  # fmt: skip
            plan = job.plan()
            # Time of processors: others may use this machine.
            plans.append(replace(plan, worker_minutes=plan.cpu_minutes))
    full, plain = plans
    assert full.worker_minutes is not None
    assert plain.worker_minutes is not None
    print(f"a frame takes {full.worker_minutes * 60e3 / full.frames:.0f} ms of a processor, "
          f"{plain.worker_minutes * 60e3 / plain.frames:.0f} ms without filters")  # fmt: skip
    return full, max(0.0, 1 - plain.worker_minutes / full.worker_minutes)


def multiplied(plan: BatchPlan, videos: int = VIDEOS, minutes: float = MINUTES) -> BatchPlan:
    """Return the plan of so many videos of so many minutes, like the one of a plan."""
    assert plan.worker_minutes is not None
    assert plan.bytes_written is not None
    times = videos * minutes * 60 / plan.seconds
    return replace(
        plan,
        files=videos,
        chunks=videos * math.ceil(minutes),
        frames=round(plan.frames * times),
        seconds=plan.seconds * times,
        bytes_read=round(plan.bytes_read * times),
        bytes_written=round(plan.bytes_written * times),
        worker_minutes=plan.worker_minutes * times,
    )


def draw(plan: BatchPlan, share: float, path: pathlib.Path) -> None:
    """Draw efficiency over the number of machines, in the color of the bottleneck."""
    width, height = 1000, 620
    left, top, right, bottom = 80, 96, 960, 470
    canvas = np.zeros((height, width, 4), np.uint8)
    canvas[:] = (17, 24, 32, 255)
    curves = {name: scale(plan, COUNTS, kind, filter_share=share) for name, kind in CASES.items()}

    def place(point: ScalePoint) -> tuple[float, float]:
        x = left + (right - left) * math.log10(point.machines) / 3
        return x, bottom - (bottom - top) * min(point.efficiency, 1.0)

    for share_line in range(0, 101, 25):
        y = bottom - (bottom - top) * share_line // 100
        canvas[y : y + 1, left:right] = (44, 56, 70, 255)
    for decade in range(4):
        x = left + (right - left) * decade // 3
        canvas[top:bottom, x : x + 1] = (44, 56, 70, 255)
    with Scene(width, height, background="#111820") as scene:
        scene.add_image(_with_curves(canvas, curves, place), position=(0, 0))
        title = f"{plan.files:,} videos of {MINUTES:.0f} minutes (1080p): efficiency by machines"
        scene.add_text(title, size=22, position=(left - 50, 18), color="white")
        scene.add_text(
            "An estimate from a calibration on two cores; nothing here was run on a cluster. "
            "Color: what limits the speed.",
            size=14, position=(left - 50, 52), color="#9ab",
        )  # fmt: skip
        for percent in range(0, 101, 25):
            y = bottom - (bottom - top) * percent // 100
            scene.add_text(f"{percent}%", size=14, position=(left - 46, y - 10), color="#9ab")
        for decade in range(4):
            x = left + (right - left) * decade // 3
            scene.add_text(f"{10**decade:,}", size=14, position=(x - 12, bottom + 8), color="#9ab")
        scene.add_text("machines", size=14, position=(right - 64, bottom + 26), color="#9ab")
        for number, (name, points) in enumerate(curves.items()):
            x, y = place(_marked(points))
            scene.add_text(
                f"{number + 1}",
                size=15,
                position=(x + 6, y + (8 if number == 1 else -28)),
                color="white",
            )
            at = (left - 50 + 460 * (number % 2), 512 + 24 * (number // 2))
            hours = points[-1].seconds / 3600
            text = f"{number + 1}  {name}: {_hours(hours)} on 1,000"
            scene.add_text(text, size=14, position=at, color="white")
        seen = dict.fromkeys(p.bottleneck for points in curves.values() for p in points)
        x = left - 50
        for name in seen:
            scene.add_text(NAMES[name], size=15, position=(x, 580), color=COLORS[name])
            x += 8 * len(NAMES[name]) + 30
        scene.render().save(path)


def _hours(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.0f} minutes"


def _marked(points: list[ScalePoint]) -> ScalePoint:
    """Return the point of a curve at which its number stands: where it falls, or near its end."""
    return next((p for p in points if p.efficiency < 0.7), points[-3])


def _with_curves(canvas, curves, place):  # type: ignore[no-untyped-def]
    """Draw each curve, three pixels thick."""
    for points in curves.values():
        for a, b in itertools.pairwise(points):
            (x1, y1), (x2, y2) = place(a), place(b)
            steps = max(2, round(math.hypot(x2 - x1, y2 - y1) * 2))
            color = [int(COLORS[b.bottleneck][k : k + 2], 16) for k in (1, 3, 5)]
            for t in np.linspace(0, 1, steps):
                x, y = round(x1 + (x2 - x1) * t), round(y1 + (y2 - y1) * t)
                canvas[y - 1 : y + 2, x - 1 : x + 2, :3] = color
    return canvas


def main() -> None:
    """Measure, or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("overhead", "scale"))
    parser.add_argument("--plot", type=pathlib.Path, help="a PNG file for the chart of scale")
    args = parser.parse_args()
    if args.what == "overhead":
        overhead()
        return
    one, share = measured()
    print(one, f"filters take {share:.0%} of a worker's time", sep="\n")
    plan = multiplied(one)
    for name, kind in CASES.items():
        print(name)
        for point in scale(plan, (1, 10, 100, 1000), kind, filter_share=share):
            print(f"  {point.machines:5} machines {_hours(point.seconds / 3600):>14} "
                  f"{point.efficiency:4.0%}  {point.bottleneck}")  # fmt: skip
    if args.plot:
        draw(plan, share, args.plot)


if __name__ == "__main__":
    main()
