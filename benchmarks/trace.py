"""What traces cost: a span where none runs, and a video filtered with a trace and without.

    python -m benchmarks.trace             # all
    python -m benchmarks.trace --rounds 9

The two take turns in one process, and after each round in the other order. Printed, not written.
Times of the processor are given beside those of the clock: a busy machine changes them less.
"""

from __future__ import annotations

import argparse
import tempfile
import timeit
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

import dala
from dala.media import video
from dala.media.video.chain import VideoChain
from dala.trace.recorder import OFF, tracer


def sites() -> None:
    """Print the cost of a span site."""

    def off() -> None:
        with tracer.span("pass", "blur") if tracer.on else OFF:
            pass

    def bare() -> None:
        if tracer.on:
            raise AssertionError

    def nothing() -> None:
        pass

    count = 200_000
    empty = min(timeit.repeat(nothing, number=count, repeat=7)) / count
    for name, call in (("if tracer.on", bare), ("with ... if tracer.on else OFF", off)):
        best = min(timeit.repeat(call, number=count, repeat=7)) / count
        print(f"off: {name}: {(best - empty) * 1e9:.0f} ns")
    with dala.trace(None):
        best = min(timeit.repeat(off, number=20_000, repeat=5)) / 20_000
        with tracer.span("outer"):
            inner = min(timeit.repeat(off, number=20_000, repeat=5)) / 20_000
    print(f"on: a span {(inner - empty) * 1e6:.2f} us, an outermost one {best * 1e6:.2f} us")


def once(source: Path, out: Path, trace: bool) -> tuple[float, float, int]:
    """Filter a video; return seconds, processor seconds, and the records of the trace."""
    run = dala.trace(None) if trace else None
    begin, used = perf_counter(), process_time()
    if run is not None:
        run.start()
    with (
        video.open(source, format="native", device="cpu") as reader,
        VideoChain([("blur", {"radius": 9})], device="cpu", range="limited") as chain,
        video.write(out, fps=reader.fps) as sink,
    ):
        for frame in chain.stream(reader):
            sink.write(frame, copy=False)
    count = len(tracer.records)
    seconds = perf_counter() - begin, process_time() - used
    if run is not None:
        run.stop()
    return *seconds, count


def overhead(rounds: int, frames: int) -> None:
    """Print the ratio of a run with a trace to one without."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.mp4", Path(folder) / "out.mp4"
        rng = np.random.default_rng(0)
        base = rng.integers(0, 255, (720, 1280, 3), np.uint8)
        video.write(source, (np.roll(base, 8 * n, 1) for n in range(frames)), fps=30, crf=30)
        once(source, out, False)  # compiles
        times: dict[bool, list[tuple[float, float, int]]] = {False: [], True: []}
        for number in range(rounds):
            for trace in (False, True) if number % 2 else (True, False):
                times[trace].append(once(source, out, trace))
    for at, name in enumerate(("clock", "processor")):
        off, on = ([row[at] for row in times[trace]] for trace in (False, True))
        ratios = sorted(b / a for a, b in zip(off, on, strict=True))
        print(
            f"{frames} frames of 720p, {name}: off {min(off):.3f} s (median {median(off):.3f}), "
            f"on {min(on):.3f} ({median(on):.3f}); of minima {min(on) / min(off) - 1:+.1%}, "
            f"median of pairs {median(ratios) - 1:+.1%}"
        )
    records = times[True][0][2]
    print(f"{records} records, {records / frames:.1f} for each frame")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=120)
    given = parser.parse_args()
    sites()
    overhead(given.rounds, given.frames)


if __name__ == "__main__":
    main()
