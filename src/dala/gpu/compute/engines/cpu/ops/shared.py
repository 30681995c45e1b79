"""Helpers for operations: dtypes, sizes, the memory of buffers, and plain runners.

Modules of operations import everything from here: these helpers, and the names that they all need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.jit import jit
from dala.gpu.compute.engines.cpu.job import freed_error
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.native.arguments import Argument
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.compute.engines.cpu.vector.types import BY_NAME, Type
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.typing import NDArray

__all__ = [
    "Engine", "Memory", "NDArray", "Runner", "Statics", "Storage", "Task", "Values", "array_runner",
    "implements", "memories", "native_type", "numpy_type", "picture_size", "pool", "scratch_memory",
    "scratch_runner", "share", "vector_bytes",
]  # fmt: skip

_NATIVE: Final = {"s32": "i32", "s64": "i64"}


#: Keyword arguments of ``compile_native``: values of type Static. With that type, ``**`` would be
#: checked against the other parameters too.
Statics: TypeAlias = dict[str, Any]


def native_type(dtype: str) -> Type:
    """Return the native type for a dtype."""
    return BY_NAME[_NATIVE.get(dtype, dtype)]


def numpy_type(t: Type) -> np.dtype[np.generic]:
    """Return the NumPy dtype for a native type."""
    kind = "f" if t.floating else "i" if t.signed else "u"
    return np.dtype(f"{kind}{t.size}")


def memories(inputs: Sequence[Storage], output: Storage) -> tuple[list[Memory], Memory]:
    """Return the memory of a call's buffers; hold it while native code uses it."""
    found, target = [s.handle for s in inputs], output.handle
    if target is None or None in found:
        raise freed_error()
    return found, target


def picture_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return height, width and channels of a picture, which has one channel without a last axis."""
    height, width, channels = (*shape, 1)[:3]
    return height, width, channels


def share(count: int, *, tiles: int = 4, least: int = 1) -> int:
    """Return the rows per tile: some tiles for each thread, of at least so many rows."""
    return max(1, least, -(-count // (pool().threads * tiles)))


def vector_bytes() -> int:
    """Return the bytes of the processor's vectors of floats."""
    features = jit().features
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def array_runner(run: Callable[..., None], *numbers: Argument) -> Runner:
    """Return the runner that gives a call's arrays and then numbers to native code."""

    def run_arrays(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        held, target = memories(inputs, output)
        run(*held, target, *numbers)

    return run_arrays


def scratch_runner(
    engine: Engine, task: Task, sizes: Sequence[int], run: Callable[..., None], *numbers: Argument
) -> Runner:
    """Return the runner that gives native code scratch memory too, between arrays and numbers."""

    def run_arrays(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        held, target = memories(inputs, output)
        with scratch_memory(engine, task.op, *sizes) as storages:
            run(*held, target, *(s.handle for s in storages), *numbers)

    return run_arrays
