"""``dala filter --blur`` against ffmpeg's ``gblur``: five codecs at four sizes.

Each row is one codec at one size. Both are processes with the same encoder options (those of
``dala filter``), timed from their start to the complete file. SSIM compares the luma of each result
with the clip's, blurred in floats: it says how well a file shows the wanted picture.

    python -m benchmarks.video.table [--rounds N] [--scale X] [--only h264,720p] [--ffmpeg PATH]
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import shutil
import statistics
import sys
import tempfile
from typing import Any

import numpy as np

from benchmarks.gif import ssim
from benchmarks.harness import Machine, judge, verdict, write
from benchmarks.video.clip import make as make_clip
from benchmarks.video.run import Runs, once
from dala.media.video.encode import CODECS, default_threads

SIGMA = 1.5
#: Width, height and seconds of each clip.
SIZES = {
    "480p": (854, 480, 10.0),
    "720p": (1280, 720, 10.0),
    "1080p": (1920, 1080, 6.0),
    "4K": (3840, 2160, 2.0),
}
#: The container of each codec.
FORMATS = {"h264": "mp4", "hevc": "mp4", "vp9": "webm", "av1": "mp4", "prores": "mov"}


def find_ffmpeg() -> str | None:
    """Return imageio-ffmpeg's program, else the system's."""
    if importlib.util.find_spec("imageio_ffmpeg"):
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    return shutil.which("ffmpeg")


def commands(
    codec: str, clip: pathlib.Path, folder: pathlib.Path, binary: str
) -> dict[str, list[str]]:
    """Return the command lines of both; the last word is the file that they write."""
    encoder, options = CODECS[codec]
    suffix = FORMATS[codec]
    theirs = [binary, "-v", "error", "-y", "-i", str(clip), "-vf", f"gblur=sigma={SIGMA}"]
    theirs += ["-c:v", encoder]
    for name, value in options.items():
        theirs += ["-b:v" if name == "b" else f"-{name}", value]
    if threads := default_threads(encoder):
        theirs += ["-threads", str(threads)]
    if codec == "prores":
        theirs += ["-pix_fmt", "yuv422p10le"]
    if suffix != "webm":
        theirs += ["-movflags", "+faststart"]
    ours = [sys.executable, "-m", "dala", "filter", "--device", "cpu", "--quiet", "--codec", codec]
    ours += ["--blur", f"radius=3,sigma={SIGMA}", str(clip), str(folder / f"dala.{suffix}")]
    return {"dala": ours, "ffmpeg": [*theirs, str(folder / f"ffmpeg.{suffix}")]}


def lumas(path: pathlib.Path, step: int) -> list[Any]:
    """Return the luma of every ``step``th frame, in steps of 255."""
    import av

    found = []
    with av.open(str(path)) as source:
        for number, frame in enumerate(source.decode(video=0)):
            if number % step == 0:
                plane = frame.reformat(format="yuv444p16le").to_ndarray()[..., 0]
                found.append(plane.astype(np.float32) / 257.0)
    return found


def blurred(plane: Any) -> Any:
    """Return a plane after a Gaussian blur in floats, its edges repeated."""
    at = np.arange(-6, 7)
    weights = np.exp(-(at**2) / (2 * SIGMA**2))
    weights /= weights.sum()
    for axis in (0, 1):
        pads = [(6, 6) if a == axis else (0, 0) for a in (0, 1)]
        wide, count = np.pad(plane, pads, mode="edge"), plane.shape[axis]
        parts = (w * wide.take(range(i, i + count), axis) for i, w in enumerate(weights))
        plane = sum(parts)
    return plane


def measure(codec: str, size: str, clip: pathlib.Path, rounds: int, binary: str) -> dict[str, Any]:
    """Run both in turn, ``rounds`` times each after an untimed run."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = commands(codec, clip, folder, binary)
        for command in found.values():
            once(command, Runs(), folder / "compiled")
        runs = {contestant: Runs() for contestant in found}
        with Machine() as machine:
            for _ in range(rounds):
                for contestant, command in found.items():
                    once(command, runs[contestant], folder / "compiled")
        step = 10 if size == "4K" else 30
        wanted = [blurred(plane) for plane in lumas(clip, step)]
        alike, sizes = {}, {}
        for contestant, command in found.items():
            path = pathlib.Path(command[-1])
            pairs = zip(wanted, lumas(path, step), strict=True)
            alike[contestant] = round(float(np.mean([ssim(a, b) for a, b in pairs])), 4)
            sizes[contestant] = path.stat().st_size
    times = {
        c: {"min_ms": min(r.seconds) * 1e3, "median_ms": statistics.median(r.seconds) * 1e3}
        for c, r in runs.items()
    }
    return {
        "times": times,
        **judge(times, {"ffmpeg": 1.0}, machine),
        "cpu_s": {c: round(min(r.cpu), 2) for c, r in runs.items()},
        "peak_mb": {c: round(r.megabytes) for c, r in runs.items()},
        "ssim": alike,
        "bytes": sizes,
    }


def show(title: str, row: dict[str, Any]) -> None:
    """Print one row."""
    (target,) = row["targets"]
    print(f"{title:14s}", end="")
    for name in ("dala", "ffmpeg"):
        print(
            f" {name} {row['times'][name]['min_ms'] / 1e3:6.2f} s, cpu {row['cpu_s'][name]:6.2f} s,"
            f" {row['peak_mb'][name]:4d} MB, SSIM {row['ssim'][name]:.4f},"
            f" {row['bytes'][name] / 1e6:6.2f} MB;",
            end="",
        )
    print(f"  {row['ratios']['ffmpeg']:.2f}x  {verdict(row['targets'][target], row['others'])}",
          flush=True)  # fmt: skip


def main(rounds: int = 3, scale: float = 1.0, only: str = "", binary: str | None = None) -> None:
    """Run the table; the whole of it is written to ``results/video_table.json``."""
    binary = binary or find_ffmpeg()
    if binary is None:
        print("ffmpeg: not installed")
        return
    words = set(only.split(",")) - {""}
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        for size, (width, height, seconds) in SIZES.items():
            if words & set(SIZES) and size not in words:
                continue
            codecs = [c for c in FORMATS if c in words] or list(FORMATS)
            clip = pathlib.Path(name) / f"{size}.mp4"
            frames = make_clip(clip, seconds * scale, (width, height))
            for codec in codecs:
                row = measure(codec, size, clip, rounds, binary)
                rows[f"{codec} {size}"] = {"frames": frames, "rounds": rounds, **row}
                show(f"{codec} {size}", row)
    if not words:
        write(
            "video_table",
            {"ffmpeg": pathlib.Path(binary).name, "rows": rows},
            ("av", "imageio-ffmpeg"),
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.video.table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the clips' seconds")
    parser.add_argument("--only", default="", help="codecs and sizes, with commas")
    parser.add_argument("--ffmpeg", help="a program to run against")
    given = parser.parse_args()
    main(given.rounds, given.scale, given.only, given.ffmpeg)
