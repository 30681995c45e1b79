"""``dala filter`` on a ten-second video, 1080p30 H.264 in and out, against ffmpeg and OpenCV.

Each contestant is a process, timed from its start to the complete file. All use the encoder
settings of ``dala filter``; ffmpeg also runs with x264's default threads and look-ahead, and the
faster of the two counts.

    python -m benchmarks.video [--seconds N] [--rounds N]     # printed and written
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.harness import Machine, judge, verdict, write
from benchmarks.video import peers
from benchmarks.video.clip import make as make_clip
from dala.media.video.encode import CODECS, default_threads

BLUR = ["--blur", "radius=3,sigma=1.5"]
GRADE = ["--saturation", "0.2", "--contrast", "0.1", "--brightness", "0.05"]
TARGETS = {"ffmpeg": 1.0, "pyav + opencv": 1.3}
MEMORY = 350
#: Largest mean luma difference: ffmpeg grades luma and chroma, the others RGB.
WITHIN = 4.0


@dataclass
class Runs:
    """The runs of one contestant."""

    seconds: list[float] = field(default_factory=list)
    #: CPU time of all threads.
    cpu: list[float] = field(default_factory=list)
    megabytes: float = 0.0


#: A small process in between: a forked child starts with its parent's peak memory, by the kernel's
#: count.
LAUNCH = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
took = time.perf_counter() - start
cpu = used.ru_utime + used.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), took, cpu, used.ru_maxrss]))
"""


def once(command: list[str], runs: Runs, compiled: pathlib.Path) -> None:
    """Run a process and record its wall time, CPU time and peak memory.

    The first run writes bytecode to a folder that the others read, as for installed packages.
    """
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, *command],
        capture_output=True, text=True, check=True, env=env,
    )  # fmt: skip
    code, took, cpu, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-500:]}")
    runs.seconds.append(took)
    runs.cpu.append(cpu)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    runs.megabytes = max(runs.megabytes, peak / unit)


def commands(clip: str, folder: pathlib.Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The contestants' command lines, and why others are missing."""
    _, options = CODECS["h264"]
    params, threads = options["x264-params"], default_threads("libx264")
    crf, preset = int(options["crf"]), options["preset"]

    def out(name: str) -> str:
        return str(folder / f"{name}.mp4")

    dala = [sys.executable, "-m", "dala", "filter", clip, out("dala"), "--device", "cpu"]
    found = {"dala": [*dala, *BLUR, *GRADE]}
    left_out = {}
    if importlib.util.find_spec("imageio_ffmpeg"):
        import imageio_ffmpeg

        binary = imageio_ffmpeg.get_ffmpeg_exe()
        for name, file, chosen in (("ffmpeg", "f1", params), ("ffmpeg, x264 by itself", "f2", "")):
            found[name] = peers.ffmpeg_command(
                binary, clip, out(file), crf, preset, chosen, threads
            )
    else:
        left_out["ffmpeg"] = "imageio-ffmpeg is not installed"
    if importlib.util.find_spec("cv2"):
        script = [sys.executable, "-m", "benchmarks.video.peers"]
        found["pyav + opencv"] = [*script, clip, out("opencv"), params, str(threads)]
    else:
        left_out["pyav + opencv"] = "OpenCV is not installed"
    return found, left_out


def lumas(path: str) -> list[Any]:
    """Luma of every thirtieth frame, and the number of frames."""
    import av

    found, count = [], 0
    with av.open(path) as source:
        for frame in source.decode(video=0):
            if count % 30 == 0:
                found.append(frame.to_ndarray()[: frame.height].astype(np.int16))
            count += 1
    return [*found, count]


def _path(command: list[str]) -> str:
    return next(word for word in command if word.endswith(".mp4") and "clip.mp4" not in word)


def apart(ours: list[Any], theirs: list[Any]) -> float:
    """Mean luma difference of two videos, in steps of 255."""
    if ours[-1] != theirs[-1]:
        return 255.0
    pairs = zip(ours[:-1], theirs[:-1], strict=True)
    return float(np.mean([np.abs(a - b).mean() for a, b in pairs]))


def measure(seconds: int, rounds: int) -> dict[str, Any]:
    """Run all contestants in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        clip = folder / "clip.mp4"
        frames = make_clip(clip, seconds)
        found, left_out = commands(str(clip), folder)
        distances: dict[str, float] = {}
        for contestant, command in found.items():  # untimed: warm the caches, check the results
            once(command, Runs(), folder / "compiled")
            if contestant == "dala":
                ours = lumas(_path(command))
            else:
                distances[contestant] = apart(ours, lumas(_path(command)))
        for contestant, distance in distances.items():
            if distance > WITHIN:
                left_out[contestant] = f"its film is {distance:.1f} steps of luma from ours"
                del found[contestant]
        runs = {contestant: Runs() for contestant in found}
        with Machine() as machine:
            for _ in range(rounds):
                for contestant, command in found.items():
                    once(command, runs[contestant], folder / "compiled")
        sizes = {c: pathlib.Path(_path(command)).stat().st_size for c, command in found.items()}
    times = {
        c: {"min_ms": min(r.seconds) * 1e3, "median_ms": statistics.median(r.seconds) * 1e3}
        for c, r in runs.items()
    }
    row = judge(times, TARGETS, machine)
    used = {c: min(r.cpu) for c, r in runs.items()}
    memory = {c: round(r.megabytes) for c, r in runs.items()}
    row["targets"][f"< {MEMORY} MB"] = memory["dala"] < MEMORY  # independent of other processes
    extra = {"cpu_s": used, "peak_mb": memory, "bytes": sizes, "luma_apart": distances}
    return {"frames": frames, "rounds": rounds, "times": times, **row, **extra,
            "left_out": left_out}  # fmt: skip


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"\n{found['frames']} frames of 1920x1080, blur and grade, H.264 to H.264")
    base = found["times"]["dala"]["min_ms"]
    for name, t in sorted(found["times"].items(), key=lambda item: item[1]["min_ms"]):
        fps = found["frames"] / t["min_ms"] * 1e3
        ratio = "" if name == "dala" else f"  {t['min_ms'] / base:.2f}x ours"
        print(
            f"  {name:22s} min {t['min_ms'] / 1e3:6.2f} s  median {t['median_ms'] / 1e3:6.2f} s  "
            f"{fps:5.1f} fps  cpu {found['cpu_s'][name]:5.2f} s  {found['peak_mb'][name]} MB{ratio}"
        )
    for name, why in found["left_out"].items():
        print(f"  {name}: left out ({why})")
    for target, met in found["targets"].items():
        print(f"  target {target}: {verdict(met, found['others'])}")


def main(seconds: int = 10, rounds: int = 9) -> None:
    """Run everything, and write ``results/video.json``."""
    found = measure(seconds, rounds)
    show(found)
    write("video", found, ("av", "opencv-python-headless", "imageio-ffmpeg"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.video")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    main(given.seconds, given.rounds)
