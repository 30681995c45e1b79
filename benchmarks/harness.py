"""Timing: contestants take turns; minimum and median over many rounds."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, Self

RESULTS = pathlib.Path(__file__).parent / "results"

#: Seconds that a contestant runs before it is timed.
SETTLING = 0.01

#: If other processes use more than this share of the cores, targets are undecided.
MAX_OTHERS = 0.1


def race(
    contestants: dict[str, Callable[[], Any]], rounds: int = 40, *, settle: bool = False
) -> dict[str, dict[str, float]]:
    """Time each contestant once per round, in turn. Return minima and medians in milliseconds.

    With ``settle`` each runs for ``SETTLING`` seconds before it is timed: then the threads of the
    previous contestant have stopped spinning, and its own are awake. ``cpu_ms`` is the least
    processor time of a run, of all threads: it says more where others use the machine.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    cpu = dict.fromkeys(contestants, float("inf"))
    for run in contestants.values():
        run()
        run()
    for _ in range(rounds):
        for name, run in contestants.items():
            if settle:
                until = time.perf_counter() + SETTLING
                run()
                while time.perf_counter() < until:
                    run()
            start, used = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
            cpu[name] = min(cpu[name], (time.process_time() - used) * 1e3)
    return {
        name: {"min_ms": min(t), "median_ms": statistics.median(t), "cpu_ms": cpu[name]}
        for name, t in times.items()
    }


def affordable(
    contestants: dict[str, Callable[[], Any]], rounds: int, seconds: float = 20.0
) -> int:
    """Return how many settled rounds fit into some seconds, at most ``rounds``."""
    start = time.perf_counter()
    for run in contestants.values():
        run()
        run()
    return max(5, min(rounds, int(seconds / (time.perf_counter() - start))))


class Machine:
    """Watches the machine during a measurement: ``others`` is the share used by other processes.

    A busy machine does not slow all contestants down alike: a short run may fit between two time
    slices of another process, a long one never does, and minima do not correct for that.
    """

    others: float | None = None  # unknown where there is no /proc/stat

    def __enter__(self) -> Self:
        self._start = _clocks()
        return self

    def __exit__(self, *_: object) -> None:
        before, after = self._start, _clocks()
        if before is not None and after is not None:
            busy, own, all_of_it = (b - a for a, b in zip(before, after, strict=True))
            self.others = max(busy - own, 0.0) / max(all_of_it, 1e-9)

    @property
    def quiet(self) -> bool:
        return self.others is None or self.others <= MAX_OTHERS


def _clocks() -> tuple[float, float, float] | None:
    """Return busy seconds of all cores, our own CPU seconds, and total seconds of all cores."""
    try:
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    ticks = [int(n) / os.sysconf("SC_CLK_TCK") for n in fields]
    idle = ticks[3] + ticks[4]  # idle, and waiting for a disk
    return sum(ticks) - idle, sum(os.times()[:4]), sum(ticks)


def judge(
    times: dict[str, dict[str, float]],
    targets: dict[str, float],
    machine: Machine,
    limit_ms: float | None = None,
    ours: str = "dala",
    by: str = "min_ms",
) -> dict[str, Any]:
    """Return ratios (a peer's time / ours), and for each target whether it was met.

    A target names a peer and the minimum ratio; of a peer's variants ("opencv, LUT") the fastest
    counts. A peer that is missing or wrong leaves its target unmet. On a busy machine targets are
    undecided: None. ``by`` selects minima or medians.
    """
    base = times[ours][by]
    ratios = {name: t[by] / base for name, t in times.items() if name != ours}
    met: dict[str, bool | None] = {}
    for peer, least in targets.items():
        rivals = [r for name, r in ratios.items() if name.partition(",")[0] == peer]
        met[f">= {least:.2f}x {peer}"] = bool(rivals) and min(rivals) >= least
    if limit_ms is not None:
        met[f"< {limit_ms:g} ms"] = base < limit_ms
    if not machine.quiet:
        met = dict.fromkeys(met)
    found = {"ratios": ratios, "targets": met, "others": machine.others}
    return found if by == "min_ms" else {**found, "by": " by medians"}


def report(title: str, found: dict[str, Any]) -> None:
    """Print a judged row, or why it is missing."""
    if "times" not in found:
        kind, why = next(iter(found.items()))
        print(f"\n{title}\n  {kind}: {why}")
        return
    show(title, found["times"])
    for name, why in found["left_out"].items():
        print(f"  {name}: left out ({why})")
    for target, met in found["targets"].items():
        print(f"  target {target}{found.get('by', '')}: {verdict(met, found['others'])}")


def verdict(met: bool | None, others: float | None) -> str:
    """Return a target's outcome as text."""
    if met is None:
        return f"UNDECIDED (others used {others or 0:.0%} of the machine)"
    return "met" if met else "MISSED"


def show(title: str, rows: dict[str, dict[str, float]], ours: str = "dala") -> None:
    """Print one table with ratios."""
    print(f"\n{title}")
    base = rows[ours]["min_ms"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["min_ms"]):
        ratio = row["min_ms"] / base
        note = "" if name == ours else f"  {ratio:5.2f}x ours"
        print(f"  {name:24s} min {row['min_ms']:9.3f} ms  median {row['median_ms']:9.3f} ms{note}")


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def write(
    topic: str, results: Any, packages: tuple[str, ...], path: str | os.PathLike[str] | None = None
) -> None:
    """Write one topic's results as JSON, by default into ``results/``."""
    target = pathlib.Path(path) if path is not None else RESULTS / f"{topic}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    page = {
        "topic": topic,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "load": [round(n, 2) for n in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        },
        "versions": versions("dala", "numpy", "llvmlite", "wgpu", *packages),
        "results": results,
    }
    target.write_text(json.dumps(page, indent=2) + "\n")
    print(f"\nwritten to {target}")


def _cpu_name() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
