"""Live: a generated camera through filters to a receiver, in real time.

    python -m benchmarks.live [--seconds 20] [--parts]

Each row sends 1080p at 30 frames a second to a UDP port of this machine and prints the frames that
were shown, dropped and repeated, the latency from capture to packet, and the CPU seconds of all
threads and processes for a second of video. Results are stored in ``results/live.json``, and the
CPU time of the parts of a replaced background, which other work changes less, in
``results/live_background.json``.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import time
from collections.abc import Callable, Sequence

from benchmarks.harness import write
from dala.media import camera, live
from dala.media.filters.plans import Filter
from dala.media.video.chain import VideoChain
from dala.ml.background import Background
from dala.ml.prepare import preprocess

SIZE, FPS, ROUNDS = (1920, 1080), 30, 7


def background() -> Background:
    """Return what blurs the background of a frame."""
    return Background(radius=12, smooth=0.6)


def background_parts() -> dict[str, float]:
    """Return the CPU milliseconds of a frame with its background blurred, and of its parts."""
    with camera.open("test", size=SIZE, fps=FPS, format="native") as source:
        frames = [next(source) for _ in range(3)]
    work = background()
    rgb = [frame.to("rgb") for frame in frames]
    batch = preprocess(rgb[0], model=work.model)
    blur = [("blur", {"radius": 12})]
    with (
        VideoChain(work.filters, workers=1, range="limited") as chain,
        VideoChain(blur, workers=1, range="limited") as blurring,
    ):
        parts: dict[str, Callable[[int], object]] = {
            "whole": lambda n: next(chain.stream([frames[n]])),
            "model with its input": lambda n: work.mask(rgb[n]),
            "model": lambda n: work.model.predict(batch),
            "Gaussian blur of the same radius": lambda n: next(blurring.stream([frames[n]])),
        }
        found: dict[str, float] = {}
        for _ in range(ROUNDS):
            for name, call in parts.items():
                call(0)
                before = time.process_time()
                for number in range(9):
                    call(number % 3)
                took = (time.process_time() - before) / 9 * 1e3
                found[name] = min(found.get(name, took), took)
    return {name: round(took, 2) for name, took in found.items()}


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def row(process: Sequence[Filter] | Background | None, seconds: float) -> dict:
    """Send for a while and return the figures."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        source = camera.open("test", size=SIZE, fps=FPS, format="native")
        before = cpu()
        address = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        stats = live.send(source, address, process, seconds=seconds).stats
        stats["cpu_seconds_per_second"] = round((cpu() - before) / seconds, 3)
        stats["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return stats


def main() -> None:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--parts", action="store_true", help="only the parts of the last row")
    given = parser.parse_args()
    seconds = given.seconds
    parts = background_parts()
    print(f"background, CPU ms a frame: {parts}")
    write("live_background", {"size": SIZE, "cpu_ms": parts}, ("av", "onnxruntime"))
    if given.parts:
        return
    rows = {
        "as it is": None,
        "Gaussian blur, radius 12": [("blur", {"radius": 12})],
        "background replaced (selfie)": background(),
    }
    found = {}
    for name, process in rows.items():
        found[name] = got = row(process, seconds)
        print(
            f"{name:30} shown {got['shown']:.0f} of {seconds * FPS:.0f}, dropped "
            f"{got['dropped']:.0f}, latency {got['latency_ms']:.0f} ms (worst "
            f"{got['worst_latency_ms']:.0f}), {got['cpu_seconds_per_second']:.2f} cores"
        )
    write("live", {"size": SIZE, "fps": FPS, "seconds": seconds, "rows": found}, ("av",))


if __name__ == "__main__":
    main()
