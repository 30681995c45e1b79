"""Buffers and kernels for any device.

>>> from dala.gpu.compute import buffer, buffer_zeros, run_kernel, read_list
>>> a, b = buffer([1.0, 2.0, 3.0], device="cpu"), buffer([4.0, 5.0, 6.0], device="cpu")
>>> c = buffer_zeros((3,), device="cpu")
>>> run_kernel("elementwise_add", [a, b], c)
>>> read_list(c)
[5.0, 7.0, 9.0]
"""

from __future__ import annotations

# Submodules with the name of a function (buffer, kernel, kernels) are imported before it is bound.
import dala.gpu.compute.kernels  # noqa: F401
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.spec import Spec
from dala.gpu.compute.create import (
    buffer,
    buffer_from_binary,
    buffer_zeros,
    from_array,
    from_dlpack,
    to_array,
)
from dala.gpu.compute.cube import Cube, load_cube, save_cube
from dala.gpu.compute.functions import (
    add,
    device_count,
    device_info,
    divide,
    dtype,
    free,
    free_many,
    gpu_available,
    kernels,
    matmul,
    multiply,
    read,
    read_async,
    read_binary,
    read_list,
    relu,
    run_kernel,
    run_kernel_async,
    run_to_surface,
    scale,
    shape,
    sigmoid,
    size,
    softmax,
    subtract,
    supported_dtypes,
    tanh,
    version,
)
from dala.gpu.compute.future import Future
from dala.gpu.compute.kernel import Kernel, kernel
from dala.gpu.compute.lang.markers import (
    Array,
    Image,
    Pixel,
    Within,
    f32,
    f64,
    rgba,
    s32,
    s64,
    u8,
    u32,
    vec2,
    vec3,
    vec4,
)
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.pipeline.pipeline import (
    Pipeline,
    free_pipeline,
    pipeline,
    pipeline_add,
    pipeline_run,
    pipeline_run_async,
)
from dala.gpu.compute.runnable import Runnable
from dala.gpu.compute.stream.command import Command, poll, wait
from dala.gpu.compute.stream.stream import Stream, submit

__all__ = [
    "Array",
    "Buffer",
    "Command",
    "Cube",
    "Future",
    "Image",
    "Kernel",
    "Operation",
    "Pipeline",
    "Pixel",
    "Runnable",
    "Spec",
    "Stream",
    "Within",
    "add",
    "buffer",
    "buffer_from_binary",
    "buffer_zeros",
    "device_count",
    "device_info",
    "divide",
    "dtype",
    "f32",
    "f64",
    "free",
    "free_many",
    "free_pipeline",
    "from_array",
    "from_dlpack",
    "gpu_available",
    "kernel",
    "kernels",
    "load_cube",
    "matmul",
    "multiply",
    "pipeline",
    "pipeline_add",
    "pipeline_run",
    "pipeline_run_async",
    "poll",
    "read",
    "read_async",
    "read_binary",
    "read_list",
    "relu",
    "rgba",
    "run_kernel",
    "run_kernel_async",
    "run_to_surface",
    "s32",
    "s64",
    "save_cube",
    "scale",
    "shape",
    "sigmoid",
    "size",
    "softmax",
    "submit",
    "subtract",
    "supported_dtypes",
    "tanh",
    "to_array",
    "u8",
    "u32",
    "vec2",
    "vec3",
    "vec4",
    "version",
    "wait",
]
