"""Where engines find their own code for an operation, and the definition where they have none.

Each engine keeps its code in a package, a module a domain; a module has a table ``MAKERS`` from the
operation's name to a function ``make(engine, task) -> Runner`` (or None where it has no code for
that task).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task

#: The module that holds an operation's code, in ``cpu/ops`` and ``webgpu/ops`` alike.
MODULES: Final = {
    "argmax": "reduce",
    "blur": "blur",
    "conv2d": "conv",
    "convolve1d": "signal",
    "cumsum": "scan",
    "fft": "fft",
    "gather": "arrange",
    "histogram": "scan",
    "ifft": "fft",
    "layer_norm": "norm",
    "lut_apply": "lut",
    "matmul": "matmul",
    "preprocess": "resize",
    "reduce_max": "reduce",
    "reduce_min": "reduce",
    "reduce_sum": "reduce",
    "remap": "warp",
    "reshape": "arrange",
    "resize": "resize",
    "rgb_to_yuv": "yuv",
    "softmax": "norm",
    "transpose": "arrange",
    "warp_affine": "warp",
    "warp_perspective": "warp",
    "yuv_to_rgb": "yuv",
}


def find_code(package: str, engine: Engine, task: Task) -> Runner | None:
    """What an engine's package ("cpu.ops", "webgpu.ops") has for a task, or None.

    An operation from elsewhere (a model) has its definition only, which runs on the host.
    """
    if task.op not in MODULES:
        return by_definition(engine, task)
    name = f"{__name__.rpartition('.')[0]}.{package}.{MODULES[task.op]}"
    if find_spec(name) is None:
        return None
    maker = import_module(name).MAKERS.get(task.op)
    runner: Runner | None = maker(engine, task) if maker is not None else None
    return runner


def run_definition(task: Task, arrays: Sequence[np.ndarray[Any, Any]], out: Any) -> None:
    """Computes a task by its definition and stores the result as the dtype asks."""
    with np.errstate(all="ignore"):
        result = np.asarray(task.define(task, *arrays))
        if task.output.dtype == "u8" and result.dtype.kind == "f":
            result = np.clip(np.floor(np.nan_to_num(result) + 0.5), 0, 255)
        out[...] = result.astype(out.dtype, copy=False).reshape(out.shape)


def as_array(memory: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Bytes as the array they hold, over the same memory."""
    return np.frombuffer(memory, NUMPY[dtype]).reshape(shape)


def by_definition(engine: Engine, task: Task) -> Runner:
    """Runs the definition on the host and sends the result, for what is too little to matter."""

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        arrays = [
            as_array(engine.download(s), t.shape, t.dtype)
            for s, t in zip(inputs, task.inputs, strict=True)
        ]
        out = np.empty(task.output.shape, NUMPY[task.output.dtype])
        run_definition(task, arrays, out)
        engine.upload(output, memoryview(out.reshape(-1).view(np.uint8)))

    return run
