"""Models on a GPU: answers beside the CPU provider's, ``predict`` beside the bare captured session.

Usage: ``python -m benchmarks.gpu.models [NAME...] [--device webgpu] [--seconds S] [--out FILE]``.
Weights are searched as by ``load_model`` and in ``../shared/models``. For each model:

- ``difference``: the largest difference of an output from the CPU provider's, by its largest number
- ``predict``: ``model.predict`` on a tensor in host memory, with the result read and decoded
- ``run``: ``model.run``, the same without decoding
- ``bare``: the captured session alone: update the input, run, read the outputs
- ``overhead``: ``run`` / ``bare``
- ``decoding``: ``predict`` / ``bare``
- ``crossing``: what leaves our device and comes back when it is waited for: the preprocessed tensor
  to host memory and to ONNX Runtime's device, and the outputs back, without the model
- ``frame``: a picture of 1280x720 on our device to the decoded result
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

import numpy as np

import dala
from benchmarks.harness import write
from dala.gpu.compute import from_array
from dala.ml.gpu import available_models, load_model
from dala.ml.weights.find import find_weights

BESIDE = pathlib.Path(__file__).parents[3] / "shared" / "models"


def timed(run: Any, seconds: float) -> dict[str, float]:
    """Return the minimum and the median in milliseconds."""
    for _ in range(3):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 500):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return {"min_ms": min(times), "median_ms": statistics.median(times)}


def taking_turns(contestants: dict[str, Any], seconds: float) -> dict[str, dict[str, float]]:
    """Time contestants in turn, as differences of a few percent need it."""
    for run in contestants.values():
        run()
        run()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {
        name: {"min_ms": min(t), "median_ms": statistics.median(t)} for name, t in times.items()
    }


def photograph() -> Any:
    """Return a picture of 1280x720: the astronaut, enlarged."""
    photo = np.asarray(dala.samples.photo("astronaut", device="cpu"))[..., :3]
    wide = np.repeat(np.repeat(photo, 3, 0), 3, 1)
    return np.ascontiguousarray(wide[100:820, 128:1408])


def study(name: str, picture: Any, seconds: float) -> dict[str, Any]:
    with load_model(name, "webgpu", pull=False) as gpu, load_model(name, "cpu", pull=False) as cpu:
        buffer = from_array(picture)
        tensor = dala.ml.preprocess(buffer, model=gpu)
        host = np.ascontiguousarray(tensor.numpy())
        got, want = gpu.run(host), cpu.run(host)
        differences = {
            key: float(np.abs(got[key] - want[key]).max() / max(1e-6, np.abs(want[key]).max()))
            for key in want
        }
        session = gpu._session
        runs = session._runs
        assert runs is not None
        (bound,) = runs._bound.values()
        port = gpu.ports[0].name

        def bare() -> Any:
            bound.inputs[port].update_inplace(host)
            runs.session.run_with_iobinding(bound.binding, bound.options)
            return [value.numpy() for value in bound.outputs.values()]

        def crossing() -> Any:
            bound.inputs[port].update_inplace(np.ascontiguousarray(tensor.numpy()))
            return [value.numpy() for value in bound.outputs.values()]

        times = taking_turns(
            {"run": lambda: gpu.run(host), "bare": bare, "predict": lambda: gpu.predict(host)},
            2 * seconds,
        )
        return {
            "provider": gpu.provider,
            "capture": gpu.info["capture"],
            "notes": session.notes,
            "difference": max(differences.values()),
            "differences": differences,
            "answer": str(gpu.predict(buffer))[:200],
            "answer_cpu": str(cpu.predict(buffer))[:200],
            **times,
            "overhead": times["run"]["median_ms"] / times["bare"]["median_ms"],
            "decoding": times["predict"]["median_ms"] / times["bare"]["median_ms"],
            "crossing": timed(crossing, seconds),
            "frame": timed(lambda: gpu.predict(buffer), seconds),
            "cpu": timed(lambda: cpu.run(host), seconds),
        }


def main() -> int:
    """Study every model whose weights are here, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timing")
    parser.add_argument("--out", help="a JSON file instead of benchmarks/results/gpu_models.json")
    args = parser.parse_args()
    if BESIDE.is_dir():
        os.environ.setdefault("DALA_MODELS", str(BESIDE))
    dala.use(args.device)
    picture = photograph()
    rows: dict[str, Any] = {}
    for name in args.names or available_models():
        if find_weights(name) is None:
            rows[name] = {"missing": "the weights are not on this machine"}
            continue
        try:
            rows[name] = study(name, picture, args.seconds)
        except Exception as error:  # the others are still worth their time
            rows[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(name, json.dumps(rows[name]), flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(rows, indent=2))
    else:
        write("gpu_models", rows, ("onnxruntime", "onnxruntime-ep-webgpu"))
    return 1 if any("failed" in row for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
