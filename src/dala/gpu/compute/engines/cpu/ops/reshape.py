"""Reshape and transpose on the CPU, where they are a copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import Array, T, i64, static, u8, u32
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("reshape")
def make_reshape(engine: Engine, task: Task) -> Runner:
    """Return the runner that copies the input's bytes to the output."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        engine.copy(inputs[0], output)

    return run


#: Rows and columns of a block, whose lines stay in the L1 cache.
BLOCK: Final = 32


@native
def turn_pixels(
    src: Array[T],
    out: Array[T],
    height: i64,
    width: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
) -> None:
    """Write output rows, which are columns of the picture, in blocks."""
    left = i64(0)
    while left < height:
        right = min(left + BLOCK, height)
        for y in range(start, end):
            for x in range(left, right):
                for c in static(range(channels)):
                    out[(y * height + x) * channels + c] = src[(x * width + y) * channels + c]
        left = right


@implements("transpose")
def make_transpose(engine: CPUEngine, task: Task) -> Runner | None:
    """Copy arrays with fewer than two axes, and turn color pictures of bytes.

    The others are lowered to the kernel language.
    """
    if len(task["axes"]) < 2:
        return make_reshape(engine, task)
    shape = task.inputs[0].shape
    if task["axes"] != (1, 0, 2) or shape[2] not in (3, 4) or task.output.dtype != "u8":
        return None
    words = shape[2] == 4
    code = compile_native(turn_pixels, T=u32 if words else u8, channels=1 if words else shape[2])
    run_rows = code.parallel(shape[1], BLOCK)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src,), out = memories(inputs, output)
        run_rows(src, out, shape[0], shape[1])

    return run
