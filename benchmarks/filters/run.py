"""Filters on 1920x1080 RGBA u8 on the CPU, against OpenCV, hand-scheduled Halide and Pillow."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

import dala
from benchmarks.filters import compile as compiling
from benchmarks.filters.rows import Row, Run, Scene, rows
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala.gpu.compute import Pipeline, buffer_zeros, from_dlpack, run_kernel


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


def main(rounds: int = 40, only: tuple[str, ...] = ()) -> None:
    """Time every row, then the compilation of new combinations.

    With ``only``, time just the named rows, print them and write nothing. With DALA_CPU, such as
    "avx2", the results are a file of their own.
    """
    dala.use("cpu")
    scene, results = Scene(), {}
    for row in rows(scene):
        if not only or any(word in row.title for word in only):
            results[row.title] = _measure(scene, row, rounds)
            report(row.title, results[row.title])
    if only:
        return
    results["compile cost"] = compiling.main()
    packages = ("opencv-python-headless", "opencv-python", "halide", "pillow", "pillow-simd")
    level = os.environ.get("DALA_CPU", "")
    write(f"filters_{level}" if level else "filters", results, packages)


if __name__ == "__main__":
    main(only=tuple(sys.argv[1:]))
