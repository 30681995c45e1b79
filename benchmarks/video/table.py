"""``dala filter --blur`` against ffmpeg's ``gblur``: five codecs at four sizes.

Each row is one codec at one size. Both are processes with the same encoder options (those of
``dala filter``), timed from their start to the complete file. SSIM compares the luma of each result
with the clip's, blurred in floats: it says how well a file shows the wanted picture. Beside them
stand the encoder alone, on ready frames in memory, and both programs on a video of one frame.
Clips are ten seconds, and shorter where a codec takes long: all of it is about ten minutes.

    python -m benchmarks.video.table [--rounds N] [--scale X] [--only h264,720p] [--ffmpeg PATH]
        [--out PATH]
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.gif import ssim
from benchmarks.harness import Machine, judge, verdict, write
from benchmarks.video.clip import RATE, make_all
from benchmarks.video.run import Runs, once
from dala.media.video.encode import CODECS, default_threads

SIGMA = 1.5
SIZES = {"480p": (854, 480), "720p": (1280, 720), "1080p": (1920, 1080), "4K": (3840, 2160)}
#: Seconds of the clip of each codec, at these sizes.
SECONDS = {
    "h264": (10, 10, 10, 2), "hevc": (10, 6, 3, 1), "vp9": (10, 6, 3, 1), "av1": (10, 10, 10, 2),
    "prores": (10, 4, 2, 0.5),
}  # fmt: skip
#: Rows that take longer than these seconds have one round less; frames that SSIM looks at.
LONG, LOOKED_AT = 3.0, 3
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


def encoder_alone(codec: str, path: pathlib.Path) -> dict[str, float]:
    """Encode the frames of a video, decoded beforehand; return seconds and processor time."""
    import av

    encoder, options = CODECS[codec]
    with av.open(str(path)) as source:
        frames = list(source.decode(video=0))
    first = frames[0]
    with av.open(str(path.with_name(f"alone{path.suffix}")), "w") as out:
        stream: Any = out.add_stream(encoder, rate=RATE, options=dict(options))
        stream.width, stream.height, stream.pix_fmt = first.width, first.height, first.format.name
        stream.codec_context.thread_count = default_threads(encoder)
        start, used = time.perf_counter(), time.process_time()
        for frame in frames:
            frame.pict_type = 0
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return {"s": time.perf_counter() - start, "cpu_s": time.process_time() - used}


def raced(found: dict[str, list[str]], rounds: int, compiled: pathlib.Path) -> dict[str, Any]:
    """Run commands in turn; return their times, processor times and memory."""
    runs = {contestant: Runs() for contestant in found}
    with Machine() as machine:
        for number in range(rounds):
            if number == max(rounds - 1, 1) and min(runs["ffmpeg"].seconds) > LONG:
                break
            for contestant, command in found.items():
                once(command, runs[contestant], compiled)
    times = {
        c: {"min_ms": min(r.seconds) * 1e3, "median_ms": statistics.median(r.seconds) * 1e3}
        for c, r in runs.items()
    }
    return {
        "rounds": len(runs["dala"].seconds),
        "times": times,
        **judge(times, {"ffmpeg": 1.0}, machine),
        "cpu_s": {c: round(min(r.cpu), 2) for c, r in runs.items()},
        "peak_mb": {c: round(r.megabytes) for c, r in runs.items()},
    }


def measure(
    codec: str, clip: pathlib.Path, tiny: pathlib.Path, frames: int, rounds: int, binary: str
) -> dict[str, Any]:
    """Run both in turn after an untimed run on a tiny clip."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compiled = clip.parent / "compiled"
        for command in commands(codec, tiny, folder, binary).values():
            once(command, Runs(), compiled)
        found = commands(codec, clip, folder, binary)
        row = raced(found, rounds, compiled)
        step = -(-frames // LOOKED_AT)
        wanted = [blurred(plane) for plane in lumas(clip, step)]
        alike, sizes = {}, {}
        for contestant, command in found.items():
            path = pathlib.Path(command[-1])
            pairs = zip(wanted, lumas(path, step), strict=True)
            alike[contestant] = round(float(np.mean([ssim(a, b) for a, b in pairs])), 4)
            sizes[contestant] = path.stat().st_size
        with multiprocessing.get_context("spawn").Pool(1) as pool:  # whose memory then goes back
            alone = pool.apply(encoder_alone, (codec, path))
    return {"frames": frames, **row, "ssim": alike, "bytes": sizes, "encoder_alone": alone}


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


def main(
    rounds: int = 3, scale: float = 1.0, only: str = "", binary: str | None = None, out: str = ""
) -> None:
    """Run the table; the whole of it is written to ``results/video_table.json``."""
    binary = binary or find_ffmpeg()
    if binary is None:
        print("ffmpeg: not installed")
        return
    words = set(only.split(",")) - {""}
    codecs = [c for c in FORMATS if c in words] or list(FORMATS)
    rows: dict[str, Any] = {}
    found: dict[str, Any] = {"ffmpeg": version_of(binary), "rows": rows}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for at, (size, pixels) in enumerate(SIZES.items()):
            if words & set(SIZES) and size not in words:
                continue
            lengths = {codec: SECONDS[codec][at] * scale for codec in codecs}
            paths = {folder / f"{size}-{seconds}.mp4": seconds for seconds in lengths.values()}
            tiny = folder / f"{size}-tiny.mp4"
            counts = make_all({**paths, tiny: 1 / RATE}, pixels)
            for codec, seconds in lengths.items():
                clip = folder / f"{size}-{seconds}.mp4"
                row = measure(codec, clip, tiny, counts[clip], rounds, binary)
                rows[f"{codec} {size}"] = row
                show(f"{codec} {size}", row)
            if size == "480p":
                one = commands("h264", tiny, folder, binary)
                found["one_frame"] = raced(one, 5, folder / "compiled")
    if not words or out:
        write("video_table", found, ("av", "imageio-ffmpeg"), out or None)


def version_of(binary: str) -> str:
    """Return the version of ffmpeg as it prints it."""
    said = subprocess.run([binary, "-version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.video.table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the clips' seconds")
    parser.add_argument("--only", default="", help="codecs and sizes, with commas")
    parser.add_argument("--ffmpeg", help="a program to run against")
    parser.add_argument("--out", default="", help="another file for the results")
    given = parser.parse_args()
    main(given.rounds, given.scale, given.only, given.ffmpeg, given.out)
