"""Batch jobs on one machine: overhead over ``dala filter``, two workers against one, estimates.

    python -m benchmarks.batch [--quick]             all but the last, about 5 minutes with --quick
    python -m benchmarks.batch --only overhead two_workers estimates
    python -m benchmarks.batch --pictures 100000     the memory of the driver

Contestants take turns as processes of their own. Their seconds and the CPU seconds of all their
processes (user and system, by ``getrusage``) are reported, minimum over the rounds: on a machine
that others use, only the latter can be compared. Videos are made by repeating the packets of ten
seconds. An estimate is what ``job.plan()`` said just before the run that it is compared with.
``--pictures`` filters so many pictures of 64x48 and samples the memory of the driver. What is not
measured again stays in ``results/batch.json``. The figures in ``docs/batch.md`` are written too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dala
from benchmarks.harness import RESULTS, Machine, write
from dala import batch
from dala.batch import BatchJob
from dala.media import Frame, video
from dala.media.video.joining.packets import CopiedPart, PacketFile, copy_packets

#: Begins a command line of ours.
DALA = ["-m", "dala"]
CHAIN = ["--blur", "3", "--saturation", "1.2"]
FILTERS = [("blur", {"radius": 3}), ("saturation", {"value": 1.2})]
SECONDS = 10
#: Of x264: its own default, and two that leave more of the time to the encoder.
PRESETS = ("medium", "slow", "slower")
GUIDE = Path(__file__).parent.parent / "docs" / "batch.md"


def film(folder: Path, minutes: float, size: tuple[int, int], name: str = "long") -> Path:
    """Make a long video from a short one, whose packets are repeated."""
    width, height = size
    short, long = folder / "short.mp4", folder / f"{name}.mp4"
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
    short.unlink()
    return long


def photos(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """Make pictures: eight different ones, in folders of a thousand."""
    width, height = size
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    folder.mkdir()
    made = []
    for number in range(8):
        noise = np.random.default_rng(number).normal(0, 4, (height, width, 3))
        waves = [128 + 60 * np.sin((x + 9 * number) / 7), 128 + 60 * np.cos(y / 5), x * 3 + y]
        pixels = np.clip(np.stack(waves, 2) % 256 + noise, 0, 255).astype(np.uint8)
        path = folder / "seed.jpg"
        Frame.from_array(pixels).save(path)
        made.append(path.read_bytes())
        path.unlink()
    for number in range(count):
        home = folder / f"{number // 1000:04}"
        if number % 1000 == 0:
            home.mkdir()
        (home / f"{number:07}.jpg").write_bytes(made[number % 8])
    return folder


def timed(words: list[str]) -> tuple[float, float]:
    """Run Python; return its seconds, and the CPU seconds of it and all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def race(folder: Path, rows: dict[str, list[str]], rounds: int) -> dict[str, dict[str, Any]]:
    """Run commands in turns; return the least seconds and CPU seconds of each."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(rounds):
        for label, words in rows.items():
            for old in folder.glob("out*"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            shutil.rmtree(folder / ".dala-batch", ignore_errors=True)
            found[label].append(timed(words))
    made = {}
    for label, times in found.items():
        best, used = min(t for t, _ in times), min(c for _, c in times)
        made[label] = {
            "seconds": round(best, 2),
            "cpu_seconds": round(used, 2),
            "rounds": [[round(value, 2) for value in pair] for pair in times],
        }
        print(f"{label:28} {best:8.2f} s  {used:8.2f} CPU s")
    return made


def overhead(minutes: float, size: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Compare ``dala filter`` with a job of one worker."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = film(folder, minutes, size)
        job = [*DALA, "batch", "videos", str(source), str(folder / "out.mp4"), *CHAIN]
        rows = race(
            folder,
            {
                "dala filter": [
                    *DALA,
                    "filter",
                    str(source),
                    str(folder / "out_filter.mp4"),
                    *CHAIN,
                ],
                "dala batch, 1 worker": [*job, "--workers", "1"],
            },
            rounds,
        )
    one, other = rows["dala filter"], rows["dala batch, 1 worker"]
    wall = round(other["seconds"] / one["seconds"] - 1, 3)
    cpu = round(other["cpu_seconds"] / one["cpu_seconds"] - 1, 3)
    print(f"overhead {wall:+.1%}, of CPU {cpu:+.1%}")
    return {"minutes": minutes, "size": list(size), "rows": rows, "overhead": wall,
            "overhead_cpu": cpu}  # fmt: skip


def two_workers(minutes: float, size: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Compare one with two workers, where the encoder uses one thread.

    A worker decodes and filters while it encodes. So one already keeps more than one core busy,
    and the more, the faster the preset: ``cores`` is what one worker uses.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = film(folder, minutes, size)

        def job(workers: int, preset: str) -> list[str]:
            files = f"{str(source)!r}, out={str(folder / 'out.mp4')!r}"
            made = f"chain={FILTERS!r}, chunk='15s', threads=1, options={{'preset': {preset!r}}}"
            run = f"run(workers={workers}, progress=False)"
            return ["-c", f"from dala import batch; batch.videos({files}, {made}).{run}"]

        jobs = {f"{preset}, {label}": job(workers, preset) for preset in PRESETS
                for workers, label in ((1, "1 worker"), (2, "2 workers"))}  # fmt: skip
        rows = race(folder, jobs, rounds)
    found: dict[str, Any] = {"minutes": minutes, "size": list(size), "rows": rows}
    for preset in PRESETS:
        one, two = rows[f"{preset}, 1 worker"], rows[f"{preset}, 2 workers"]
        speed = round(one["seconds"] / two["seconds"], 2)
        cores = round(one["cpu_seconds"] / one["seconds"], 2)
        found[preset] = {"times": speed, "cores": cores}
        print(f"{preset}: two workers are {speed:.2f} times as fast as one of {cores:.2f} cores")
    return found


def estimates(scale: float, size: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Compare ``plan()`` with runs, for videos, pictures and a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "film").mkdir()
        source = film(folder / "film", 2 * scale, size)
        photos(folder / "photos", round(4000 * scale), (320, 240))
        astronaut = dala.samples.photo("astronaut").numpy()[..., :3]
        with video.write(folder / "faces.mp4", fps=25, options={"g": 50}) as sink:
            for number in range(round(2400 * scale)):
                sink.write(np.roll(astronaut, number, 1)[:, :512])
        out = str(folder / "out")
        jobs: dict[str, tuple[Callable[[], BatchJob], list[str]]] = {
            "videos": (
                lambda: batch.videos(source, out=f"{out}.mp4", chain=FILTERS, chunk="15s",
                                     threads=1),
                ["videos", str(source), f"{out}.mp4", *CHAIN, "--chunk", "15s", "--threads", "1"],
            ),
            "images": (
                lambda: batch.images(folder / "photos", out=f"{out}/{{path}}.webp", chain=FILTERS),
                ["images", str(folder / "photos"), f"{out}/{{path}}.webp", *CHAIN],
            ),
            "detect": (
                lambda: batch.detect(folder / "faces.mp4", out=out, model="yolo_v5", every="1s"),
                ["detect", str(folder / "faces.mp4"), out, "--model", "yolo_v5", "--every", "1s"],
            ),
        }  # fmt: skip
        made: dict[str, Any] = {}
        for kind, (make, words) in jobs.items():
            found = []
            for _ in range(rounds):
                plan = make().plan()
                assert plan.minutes is not None
                assert plan.cpu_minutes is not None
                run = race(folder, {kind: [*DALA, "batch", *words]}, 1)[kind]
                estimated = [round(plan.minutes * 60, 2), round(plan.cpu_minutes * 60, 2)]
                measured = [run["seconds"], run["cpu_seconds"]]
                size_now = sum(p.stat().st_size for p in folder.rglob("out*") if p.is_file())
                size_now += sum(p.stat().st_size for p in (folder / "out").rglob("*")
                                if p.is_file())  # fmt: skip
                off = [round(e / m - 1, 3) for e, m in zip(estimated, measured, strict=True)]
                found.append({
                    "estimated": estimated, "measured": measured, "off": off,
                    "bytes_estimated": plan.bytes_written, "bytes_measured": size_now,
                    "workers": plan.workers,
                })  # fmt: skip
                print(f"{kind}: seconds and CPU seconds {estimated} estimated, {measured} measured,"
                      f" off by {off[0]:+.0%} and {off[1]:+.0%}; bytes {plan.bytes_written} of "
                      f"{size_now}")  # fmt: skip
            made[kind] = found
        return made


def pictures(count: int) -> dict[str, Any]:
    """Filter many tiny pictures; return the memory of the driver on the way."""
    from dala.batch import jobs
    from dala.batch.driver import Display

    marks: list[tuple[int, float]] = []

    class Watching(Display):
        """Notes the memory of this process."""

        done = 0

        def finished(self, task: Any, result: Any) -> None:
            self.done += result.frames
            if not marks or self.done - marks[-1][0] >= count / 20:
                pages = Path("/proc/self/statm").read_text().split()[1]
                memory = int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6
                marks.append((self.done, round(memory, 1)))
                print(f"{self.done:8} pictures  {memory:7.1f} MB", flush=True)
            super().finished(task, result)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = photos(folder / "in", count, (64, 48))
        jobs.Display = Watching  # type: ignore[misc]
        job = batch.images(source, out=f"{folder}/out/{{path}}.jpg", chain=["invert"])
        own, before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        report = job.run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(report)
        assert report.files == count
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        own = time.process_time() - own
    return {
        "pictures": count, "size": [64, 48], "tasks": report.tasks, "seconds": report.seconds,
        "cpu_ms_of_workers": round(used / count * 1e3, 3),
        "cpu_ms_of_driver": round(own / count * 1e3, 3),
        "memory_mb": [list(mark) for mark in marks],
    }  # fmt: skip


def publish(found: dict[str, Any]) -> None:
    """Write the figures into the guide, between two comments."""
    lines = []
    if "overhead" in found:
        part = found["overhead"]
        width, height = part["size"]
        lines += [
            f"`blur` and `saturation` on {part['minutes']:g} minutes of {width}x{height}, H.264"
            f"{_busy(part)}:", "", "| | seconds | CPU seconds |", "|---|---|---|",
            *_rows(part["rows"]), "",
            f"The job takes {part['overhead_cpu']:+.1%} CPU time and {part['overhead']:+.1%} time.",
            "",
        ]  # fmt: skip
    if "two_workers" in found:
        part = found["two_workers"]
        width, height = part["size"]
        lines += [
            f"{part['minutes']:g} minutes of {width}x{height} in parts of 15 seconds, one encoder "
            f"thread, by x264's preset{_busy(part)}:", "",
            "| | seconds | CPU seconds |", "|---|---|---|", *_rows(part["rows"]), "",
            *(f"With `{preset}` two workers are {part[preset]['times']:.2f} times as fast as one, "
              f"which keeps {part[preset]['cores']:.2f} cores busy." for preset in PRESETS),
            "A worker decodes and filters while it encodes; the faster the preset, the less is "
            "left of two cores for a second one.", "",
        ]  # fmt: skip
    if "estimates" in found:
        part = found["estimates"]
        lines += [
            f"Estimates of `plan()`, each beside the run after it{_busy(part)}:", "",
            "| job | seconds: estimated, measured | CPU seconds: estimated, measured | bytes |",
            "|---|---|---|---|",
        ]  # fmt: skip
        for kind in ("videos", "images", "detect"):
            for row in part[kind]:
                pairs = zip(row["estimated"], row["measured"], row["off"], strict=True)
                cells = [f"{guess:g}, {real:g} ({off:+.0%})" for guess, real, off in pairs]
                bytes_off = row["bytes_estimated"] / max(1, row["bytes_measured"]) - 1
                size = "" if kind == "detect" else f"{bytes_off:+.0%}"
                lines.append(f"| `{kind}` | {cells[0]} | {cells[1]} | {size} |")
        lines.append("")
    if "pictures" in found:
        part = found["pictures"]
        marks = part["memory_mb"]
        few = [*marks[:: max(1, len(marks) // 4)], marks[-1]]
        curve = ", ".join(f"{memory:g} MB after {done:,}" for done, memory in few)
        lines += [
            f"{part['pictures']:,} pictures of 64x48 in {part['tasks']} tasks took "
            f"{part['seconds']:.0f} s{_busy(part)}, each {part['cpu_ms_of_workers']:g} ms of a "
            f"processor in the workers and {part['cpu_ms_of_driver']:g} ms in the driver. The "
            f"memory of the driver: {curve}; the most was {max(m for _, m in marks):g} MB.",
        ]  # fmt: skip
    text = GUIDE.read_text()
    head, begin, rest = text.partition("<!-- figures of benchmarks.batch -->\n")
    _, end, tail = rest.partition("<!-- end of figures -->")
    assert begin
    assert end
    GUIDE.write_text(head + begin + "\n".join(lines).rstrip() + "\n" + end + tail)


def _busy(part: dict[str, Any]) -> str:
    return "" if not part["others"] else f" (others used {part['others']:.0%} of the machine)"


def _rows(rows: dict[str, dict[str, Any]]) -> list[str]:
    return [f"| {name} | {row['seconds']:g} | {row['cpu_seconds']:g} |" for name, row in
            rows.items()]  # fmt: skip


def main() -> None:
    """Run all rows, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller videos, fewer rounds")
    parser.add_argument("--only", nargs="+", choices=("overhead", "two_workers", "estimates"))
    parser.add_argument("--minutes", type=float, default=10.0, help="of the video for overhead")
    parser.add_argument("--pictures", type=int, default=0, help="only this many pictures")
    args = parser.parse_args()
    os.environ.setdefault("DALA_DEVICE", "cpu")
    size, rounds = ((320, 180), 2) if args.quick else ((640, 360), 3)
    rows: dict[str, Callable[[], dict[str, Any]]] = {
        "overhead": lambda: overhead(args.minutes, size, rounds),
        "two_workers": lambda: two_workers(3.0, (640, 360), rounds),
        "estimates": lambda: estimates(0.5 if args.quick else 1.0, (480, 270), rounds),
    }
    if args.pictures:
        rows = {"pictures": lambda: pictures(args.pictures)}
    elif args.only:
        rows = {name: rows[name] for name in args.only}
    path = RESULTS / "batch.json"
    kept: dict[str, Any] = json.loads(path.read_text())["results"] if path.exists() else {}
    kept["method"] = " ".join(str(__doc__).split("\n\n")[2].split())
    for name, run in rows.items():
        with Machine() as machine:
            found = run()
        others = None if machine.others is None else round(machine.others, 2)
        when = time.strftime("%Y-%m-%d %H:%M")
        kept[name] = {**found, "others": others, "load": round(os.getloadavg()[0], 1), "date": when}
        print(f"others used {0 if others is None else others:.0%} of the machine\n", flush=True)
    write("batch", kept, ("av",))
    publish(kept)


if __name__ == "__main__":
    main()
