"""How everything here is timed: contestants take turns, minimum and median of many rounds."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

RESULTS = pathlib.Path(__file__).parent / "results"


def race(
    contestants: dict[str, Callable[[], Any]], rounds: int = 40
) -> dict[str, dict[str, float]]:
    """Times each contestant once a round, in turn; milliseconds, minimum and median."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()
        run()
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {
        name: {"min_ms": min(t), "median_ms": statistics.median(t)} for name, t in times.items()
    }


def show(title: str, rows: dict[str, dict[str, float]], ours: str = "dala") -> None:
    """Prints one table, with ratios to ours."""
    print(f"\n{title}")
    base = rows[ours]["min_ms"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["min_ms"]):
        ratio = row["min_ms"] / base
        note = "" if name == ours else f"  {ratio:5.2f}x ours"
        print(f"  {name:24s} min {row['min_ms']:9.3f} ms  median {row['median_ms']:9.3f} ms{note}")


def versions(*packages: str) -> dict[str, str]:
    """Installed versions of some packages."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def write(topic: str, results: Any, packages: tuple[str, ...]) -> None:
    """Writes one topic's results as JSON."""
    RESULTS.mkdir(exist_ok=True)
    page = {
        "topic": topic,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpu": _cpu_name(),
        },
        "versions": versions("dala", "numpy", "llvmlite", "wgpu", *packages),
        "results": results,
    }
    path = RESULTS / f"{topic}.json"
    path.write_text(json.dumps(page, indent=2) + "\n")
    print(f"\nwritten to {path}")


def _cpu_name() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
