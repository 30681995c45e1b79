"""Batch jobs on one machine: overhead over ``dala filter``, two workers against one, estimates.

    python -m benchmarks.batch [--minutes 10] [--size 640x360] [--rounds 3]
    python -m benchmarks.batch --pictures 100000

The video is made by repetition. Contestants take turns as processes of their own; their seconds and
the CPU seconds of all their processes are reported, minimum over the rounds: on a machine that
others use, only the latter can be compared. ``--pictures`` filters so many tiny pictures instead,
and prints the memory of the driver on the way. Results are stored in ``results/batch.json``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.harness import write
from dala import batch
from dala.media import Frame, video
from dala.media.video.joining.packets import CopiedPart, PacketFile, copy_packets

CHAIN = ["--blur", "3", "--saturation", "1.2"]
FILTERS = [("blur", {"radius": 3}), ("saturation", {"value": 1.2})]
SECONDS = 10


def film(folder: Path, minutes: float, size: tuple[int, int]) -> Path:
    """Make a long video from a short one, whose packets are repeated."""
    width, height = size
    short, long = folder / "short.mp4", folder / "long.mp4"
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    with video.write(short, fps=30, options={"crf": 18, "g": 60, "bf": 2}) as sink:
        for number in range(SECONDS * 30):
            waves = np.sin((x + 4 * number) / 23) + np.cos((y - 3 * number) / 17)
            noise = np.random.default_rng(number).normal(0, 6, (height, width))
            gray = np.clip(128 + 50 * waves + noise, 0, 255).astype(np.uint8)
            sink.write(np.stack([gray, np.roll(gray, 9, 0), np.roll(gray, 9, 1)], axis=2))
    file = PacketFile(short, "benchmark")
    count = max(1, round(minutes * 60 / SECONDS))
    copy_packets([CopiedPart(file, Fraction(0), Fraction(SECONDS))] * count, long, "benchmark")
    file.close()
    return long


def timed(words: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds, and the CPU seconds of it and all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dala", *words], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def videos(minutes: float, size: tuple[int, int], rounds: int, chunk: str) -> dict:
    """Compare ``dala filter`` with jobs of one and two workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = film(folder, minutes, size)

        def job(workers: int, threads: int | None) -> list[str]:
            words = ["batch", "videos", str(source), str(folder / f"{workers}.{threads}.mp4")]
            more = ["--threads", str(threads)] if threads else []
            return [*words, *CHAIN, "--chunk", chunk, "--workers", str(workers), *more]

        rows = {
            "dala filter": ["filter", str(source), str(folder / "filter.mp4"), *CHAIN],
            "batch, 1 worker": job(1, None),
            "batch, 1 worker, 1 thread": job(1, 1),
            "batch, 2 workers, 1 thread": job(2, 1),
        }
        planned = batch.videos(source, out=folder / "plan.mp4", chain=FILTERS, chunk=chunk)
        one = batch.videos(source, out=folder / "one.mp4", chain=FILTERS, chunk=chunk, threads=1)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
        estimates = {"batch, 1 worker": [], "batch, 1 worker, 1 thread": []}
        for _ in range(rounds):
            for label, words in rows.items():
                if label in estimates:
                    plan = (planned if label == "batch, 1 worker" else one).plan()
                    seconds = [plan.worker_minutes or 0, plan.cpu_minutes or 0]
                    estimates[label].append([round(one * 60, 2) for one in seconds])
                for old in folder.glob("[0-9]*.mp4"):
                    old.unlink()
                shutil.rmtree(folder / ".dala-batch", ignore_errors=True)
                found[label].append(timed(words))
        made: dict = {"minutes": minutes, "size": list(size), "chunk": chunk, "rows": {}}
        for label, times in found.items():
            best, used = min(t for t, _ in times), min(c for _, c in times)
            made["rows"][label] = {"seconds": round(best, 2), "cpu_seconds": round(used, 2)}
            print(f"{label:28} {best:8.2f} s  {used:8.2f} CPU s")
        for label, guesses in estimates.items():
            measured = [[round(value, 2) for value in pair] for pair in found[label]]
            off = [
                [round(g / m - 1, 3) for g, m in zip(guess, pair, strict=True)]
                for guess, pair in zip(guesses, measured, strict=True)
            ]
            made["rows"][label] |= {"estimated": guesses, "measured": measured, "off": off}
            print(f"{label}: seconds and CPU seconds estimated {guesses}, measured {measured}, "
                  f"off by {off}")  # fmt: skip
        cpu = {label: row["cpu_seconds"] for label, row in made["rows"].items()}
        made["overhead_cpu"] = round(cpu["batch, 1 worker"] / cpu["dala filter"] - 1, 3)
        wall = {label: row["seconds"] for label, row in made["rows"].items()}
        made["overhead"] = round(wall["batch, 1 worker"] / wall["dala filter"] - 1, 3)
        speed = wall["batch, 1 worker, 1 thread"] / wall["batch, 2 workers, 1 thread"]
        made["two_workers"] = round(speed, 2)
        print(f"overhead {made['overhead']:+.1%}, of CPU {made['overhead_cpu']:+.1%}; "
              f"two workers {speed:.2f} times one; load {os.getloadavg()[0]:.1f}")  # fmt: skip
        made["load"] = round(os.getloadavg()[0], 1)
        return made


def pictures(count: int) -> dict:
    """Filter many tiny pictures; return the memory of the driver on the way."""
    from dala.batch.display import Display

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        seed = folder / "seed.png"
        Frame.from_array(np.full((4, 4, 3), 99, np.uint8)).save(seed)
        data = seed.read_bytes()
        for number in range(count):
            (folder / "in" / f"{number:07}.png").write_bytes(data)
        marks: list[tuple[int, float]] = []

        class Watching(Display):
            """Notes the memory of this process."""

            done = 0

            def finished(self, task, result) -> None:
                self.done += result.frames
                if not marks or self.done - marks[-1][0] >= count / 20:
                    text = Path("/proc/self/statm").read_text().split()[1]
                    marks.append((self.done, int(text) * 4096 / 1e6))
                super().finished(task, result)

        import dala.batch.jobs as jobs

        jobs.Display = Watching
        job = batch.images(f"{folder}/in/", out=f"{folder}/out/{{path}}.png", chain=["invert"])
        report = job.run()
        print(report)
        for done, memory in marks:
            print(f"{done:8} pictures  {memory:7.1f} MB")
        assert report.files == count
        return {
            "pictures": count,
            "seconds": report.seconds,
            "memory_mb": [[done, round(memory, 1)] for done, memory in marks],
        }


def main() -> None:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunk", default="60s")
    parser.add_argument("--pictures", type=int, default=0)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    if args.pictures:
        pictures(args.pictures)
        return
    write("batch", videos(args.minutes, (width, height), args.rounds, args.chunk), ("av",))


if __name__ == "__main__":
    main()
