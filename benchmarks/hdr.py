"""HDR to SDR: a 4K frame of HLG on the CPU, against zscale and tonemap of the ffmpeg command.

Both read the same raw file of 10-bit 4:2:0 frames (a gradient with grain, all of the range) and
make RGBA of 8 bits. The time of a frame is that of a run of many frames, less that of a run of one,
so that the start of a process does not count. Needs an ``ffmpeg`` with zscale (Debian: ffmpeg).
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Machine, judge, report, write
from dala.gpu.compute import buffer_zeros, from_dlpack, run_kernel

WIDTH, HEIGHT = 3840, 2160
#: Frames of a run.
FRAMES = 9
ROUNDS = 5
#: How many times as fast we want to be.
TARGET = 1.5

TAGS = "setparams=range=tv:color_primaries=bt2020:color_trc=arib-std-b67:colorspace=bt2020nc"
#: The chain that FFmpeg's documentation and most guides give; hable is its fastest good curve.
CHAIN = (
    "zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt709,tonemap={curve}:desat=0,"
    "zscale=t=bt709:m=bt709:r=tv,format=rgba"
)


def write_frames(path: Path) -> None:
    """Write two frames of HLG: brightness from left to right, colors from top to bottom."""
    noise = np.random.default_rng(1)
    with path.open("wb") as file:
        for _ in range(2):
            luma = np.linspace(64, 920, WIDTH) + noise.integers(0, 20, (HEIGHT, WIDTH))
            file.write(luma.astype("<u2").tobytes())
            for turn in (0.0, 1.5):
                wave = np.sin(np.linspace(turn, turn + 6, HEIGHT // 2))[:, None] * 60 + 512
                grain = noise.integers(-8, 9, (HEIGHT // 2, WIDTH // 2))
                file.write((wave + grain).astype("<u2").tobytes())


def run_dala(path: Path, frames: int) -> float:
    """Return the seconds to read and tone-map frames."""
    sizes = [(HEIGHT, WIDTH), (HEIGHT // 2, WIDTH // 2), (HEIGHT // 2, WIDTH // 2)]
    params = {"matrix": "bt2020", "transfer": "hlg", "light": "sdr"}
    start = time.perf_counter()
    with path.open("rb") as file, buffer_zeros((HEIGHT, WIDTH, 4), "u8", device="cpu") as made:
        for _ in range(frames):
            file.seek(0)
            planes = []
            for rows, columns in sizes:
                raw = np.fromfile(file, np.uint8, rows * columns * 2)
                planes.append(from_dlpack(raw.reshape(rows, columns, 2), device="cpu"))
            run_kernel("yuv16_to_rgb", planes, made, params)
            for plane in planes:
                plane.free()
    return time.perf_counter() - start


def run_ffmpeg(path: Path, frames: int, curve: str) -> float:
    """Return the seconds of the ffmpeg command for a number of frames."""
    command = [
        "ffmpeg", "-hide_banner", "-loglevel", "error", "-stream_loop", "-1", "-f", "rawvideo",
        "-pix_fmt", "yuv420p10le", "-s", f"{WIDTH}x{HEIGHT}", "-r", "25", "-i", str(path),
        "-frames:v", str(frames), "-vf", f"{TAGS},{CHAIN.format(curve=curve)}", "-f", "null", "-",
    ]  # fmt: skip
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def race_frames(path: Path) -> dict[str, dict[str, float]]:
    """Return the milliseconds of a frame for each contestant, which take turns."""
    ways: dict[str, Any] = {"dala": lambda n: run_dala(path, n)}
    for curve in ("hable", "mobius"):
        ways[f"zscale+tonemap, {curve}"] = lambda n, c=curve: run_ffmpeg(path, n, c)
    times: dict[str, list[float]] = {name: [] for name in ways}
    run_dala(path, 1)  # compiles
    for _ in range(ROUNDS):
        for name, way in ways.items():
            one = way(1)
            times[name].append((way(FRAMES) - one) / (FRAMES - 1) * 1e3)
    return {n: {"min_ms": min(t), "median_ms": statistics.median(t)} for n, t in times.items()}


def main() -> None:
    if shutil.which("ffmpeg") is None:
        sys.exit("benchmarks.hdr: there is no ffmpeg command. Debian: apt install ffmpeg.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hlg.yuv"
        write_frames(path)
        with Machine() as machine:
            times = race_frames(path)
    found = judge(times, {"zscale+tonemap": TARGET}, machine)
    row = {"times": times, "left_out": {}, **found}
    title = f"HLG to SDR, {WIDTH}x{HEIGHT}, 10-bit 4:2:0 to RGBA"
    report(title, row)
    text = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True)
    version = text.stdout.split("\n", 1)[0]
    write("hdr", {"rows": {title: row}, "ffmpeg": version}, ("av",))


if __name__ == "__main__":
    main()
