"""Live: a generated camera through filters to a receiver, in real time.

    python -m benchmarks.live [--seconds 20]

Each row sends 1080p at 30 frames a second to a UDP port of this machine and prints the frames that
were shown, dropped and repeated, the latency from capture to packet, and the CPU seconds of all
threads and processes for a second of video. Results are stored in ``results/live.json``.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
from collections.abc import Callable, Sequence

from benchmarks.harness import write
from dala.media import Frame, camera, live
from dala.media.filters.plans import Filter
from dala.typing import ImageLike

SIZE, FPS = (1920, 1080), 30


def background() -> Callable[[Frame], ImageLike]:
    """Return a function that blurs the background of a frame."""
    from dala.ml.background import Background
    from dala.ml.gpu import load_model

    work = Background(load_model("selfie"), radius=12, smooth=0.6)
    return work.process


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def row(process: Sequence[Filter] | Callable[[Frame], ImageLike] | None, seconds: float) -> dict:
    """Send for a while and return the figures."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        planes = "rgba" if callable(process) else "native"
        source = camera.open("test", size=SIZE, fps=FPS, format=planes)
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
    seconds = parser.parse_args().seconds
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
