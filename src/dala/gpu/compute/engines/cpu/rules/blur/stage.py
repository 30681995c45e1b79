"""Which blurs have a row function, its writer, and their weights in the job block."""

from __future__ import annotations

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.cpu.loops.plan import blur_radius
from dala.gpu.compute.engines.cpu.rules.blur.bytes import ByteBlur, byte_weights, is_narrow
from dala.gpu.compute.engines.cpu.rules.blur.floats import FloatBlur, float_weights
from dala.gpu.compute.engines.cpu.rules.blur.rows import RowBlur
from dala.gpu.compute.engines.sampling.gauss import EXACT_RADIUS, byte_steps


def blur_fits(task: Task) -> bool:
    """Return whether a task is a blur that has a row function."""
    if task.op != "blur" or len(task.inputs) != 1 or task.inputs[0] != task.output:
        return False
    shape = task.output.shape
    if task.output.dtype not in ("u8", "f32") or len(shape) not in (2, 3):
        return False
    if len(shape) == 3 and shape[2] not in (1, 3, 4):
        return False
    return 0 <= blur_radius(task) <= EXACT_RADIUS and float(task["sigma"]) > 0.0


def blur_form(task: Task) -> tuple[int, bool]:
    """Return the properties of a blur that its code depends on."""
    radius, sigma = blur_radius(task), float(task["sigma"])
    return radius, task.output.dtype == "u8" and is_narrow(byte_steps(radius, sigma))


def blur_weights(task: Task) -> bytes:
    """Return the weights as radius + 1 words of the job block."""
    pack = byte_weights if task.output.dtype == "u8" else float_weights
    return pack(blur_radius(task), float(task["sigma"]))


def row_blur(task: Task) -> type[RowBlur]:
    """Return the class that writes the row function of a blur."""
    return ByteBlur if task.output.dtype == "u8" else FloatBlur
