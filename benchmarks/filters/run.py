"""Filters on 1920x1080 RGBA u8 on the CPU, against OpenCV, hand-scheduled Halide and Pillow.

Every level of instructions that the processor has is measured in a process of its own, beside the
peers, which are held to that level too; Pillow as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import dala
from benchmarks.filters import compile as compiling
from benchmarks.filters.rows import Row, Run, Scene, rows
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala.gpu.compute import Pipeline, buffer_zeros, from_dlpack, run_kernel
from dala.machine.processor import CPU_LEVELS, cpu_level

_AVX512 = "AVX512-COMMON,AVX512-SKX,AVX512-ICL"
#: What holds OpenCV, and Intel's library in it, to a level; ``halide.py`` chooses its own target.
_OPENCV = {
    "avx2": {"OPENCV_CPU_DISABLE": _AVX512, "OPENCV_IPP": "avx2"},
    "sse": {
        "OPENCV_CPU_DISABLE": f"{_AVX512},AVX2,FMA3,AVX,FP16,SSE4.2,SSE4.1",
        "OPENCV_IPP": "sse42",
    },
}


def _ours(s: Scene, row: Row, out: Any) -> Run:
    source = from_dlpack(s.frame if row.dtype == "u8" else s.floats)
    target = from_dlpack(out)
    first, params = row.stages[0]
    if first == "copy":
        spec = {"op": "copy_buffer", "src": source, "dst": target}
        return Pipeline().add(spec).run
    inputs = [source, *row.inputs]
    if first == "yuv_to_rgb":
        inputs = [from_dlpack(row.inputs[0])]
    if len(row.stages) == 1:
        return lambda: run_kernel(first, inputs, target, params)
    pipeline, last = Pipeline(), len(row.stages) - 1
    for i, (name, params) in enumerate(row.stages):
        after = target if i == last else buffer_zeros(row.shape, "u8", transient=True)
        pipeline.add(
            {
                "op": "run_kernel",
                "kernel": name,
                "inputs": inputs,
                "output": after,
                "params": params,
            }
        )
        inputs = [after]
    return pipeline.run


def _difference(ours: Any, theirs: Any, mean: bool) -> float:
    if ours.ndim == 3 and theirs.ndim == 3 and theirs.shape[2] < ours.shape[2]:
        ours = ours[..., : theirs.shape[2]]
    if ours.dtype == np.uint8:
        distance = np.abs(ours.astype(np.int16) - theirs)
    else:
        distance = np.abs(ours - theirs) * 255
    return float(distance.mean() if mean else distance.max())


def _measure(s: Scene, row: Row, rounds: int) -> dict[str, Any]:
    mine = s.picture(row.shape, row.dtype)
    try:
        entrants = {"dala": _ours(s, row, mine)}
        entrants["dala"]()
    except (ModuleNotFoundError, NotImplementedError) as error:
        return {"missing": str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    checked, left_out = {}, {}
    for name, peer in row.peers.items():
        theirs = s.picture(peer.shape or row.shape, row.dtype)
        try:
            run = peer.make(theirs)
            run()
        except Exception as error:
            left_out[name] = f"{type(error).__name__}: {str(error)[:120]}"
            continue
        far = _difference(mine, theirs, peer.mean)
        checked[name] = {"steps": far, "within": peer.within, "mean": peer.mean}
        if far > peer.within:
            left_out[name] = f"its picture is {far:g} steps from ours, more than {peer.within:g}"
        else:
            entrants[name] = run
    rounds = affordable(entrants, rounds)
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    judged = judge(times, row.targets, machine, row.limit_ms)
    return {"times": times, **judged, "checked": checked, "left_out": left_out, "note": row.note}


def measure(rounds: int, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return all rows, or those with one of some words, at the level of this process.

    Without ``only``, the compilation of new combinations follows.
    """
    dala.use("cpu")
    scene, results = Scene(), {}
    for row in rows(scene):
        if not only or any(word in row.title for word in only):
            results[row.title] = _measure(scene, row, rounds)
            report(f"{row.title} ({cpu_level()})", results[row.title])
    return results if only else {**results, "compile cost": compiling.main()}


def _at_level(level: str, rounds: int, only: tuple[str, ...]) -> dict[str, Any]:
    """Return what a process of a level measures; it prints its rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks.filters", "--out", str(path)]
        # The processor's own level is used as users do: with all of its instructions.
        chosen = {"DALA_CPU": level, **_OPENCV[level]} if level != cpu_level() else {}
        subprocess.run(
            [*command, "--rounds", str(rounds), *only], check=True, env={**os.environ, **chosen}
        )
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def _columns(by_level: dict[str, dict[str, Any]]) -> None:
    """Print our time of each row at each level."""
    print("\nDala, minima in ms".ljust(40), *(f"{level:>8s}" for level in by_level))
    for title, row in next(iter(by_level.values())).items():
        if "times" in row:
            each = (found[title]["times"]["dala"]["min_ms"] for found in by_level.values())
            print(f"{title:39s}", *(f"{ms:8.3f}" for ms in each))


def main(rounds: int = 40, only: tuple[str, ...] = ()) -> None:
    """Time every row at every level; with ``only``, just the named rows, and write nothing."""
    own = cpu_level()
    levels = CPU_LEVELS[CPU_LEVELS.index(own) :] if own in CPU_LEVELS else (own,)
    by_level = {level: _at_level(level, rounds, only) for level in levels}
    _columns(by_level)
    if only:
        return
    results = {title: {"levels": {}} for title in by_level[own]}
    for level, found in by_level.items():
        for title, row in found.items():
            results[title]["levels"][level] = row
    packages = ("opencv-python-headless", "opencv-python", "halide", "pillow", "pillow-simd")
    write("filters", results, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.filters")
    parser.add_argument("only", nargs="*", help="rows whose titles have one of these words")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, help="measure only the level of this process")
    args = parser.parse_args()
    if args.out:
        args.out.write_text(json.dumps(measure(args.rounds, tuple(args.only))))
    else:
        main(args.rounds, tuple(args.only))
