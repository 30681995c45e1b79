"""Buffers and kernels for any device.

>>> from dala.gpu.compute import buffer, buffer_zeros, run_kernel, read_list
>>> a, b = buffer([1.0, 2.0, 3.0], device="cpu"), buffer([4.0, 5.0, 6.0], device="cpu")
>>> c = buffer_zeros((3,), device="cpu")
>>> run_kernel("elementwise_add", [a, b], c)
>>> read_list(c)
[5.0, 7.0, 9.0]

The names of :mod:`dala.gpu.compute.language` can be imported from here too. They load on first use
and are not part of ``import *``. ``shape`` and ``tanh`` are functions of buffers here; inside a
kernel the names mean the same, wherever they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from dala.gpu.compute.lang.declaration import CONSTANTS as _CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS as _FUNCTIONS
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
from dala.lazy import attach

if TYPE_CHECKING:
    from dala.gpu.compute.language import IntOrFloat as IntOrFloat
    from dala.gpu.compute.language import Vector as Vector
    from dala.gpu.compute.language import abs as abs
    from dala.gpu.compute.language import atan as atan
    from dala.gpu.compute.language import atan2 as atan2
    from dala.gpu.compute.language import ceil as ceil
    from dala.gpu.compute.language import clamp as clamp
    from dala.gpu.compute.language import cos as cos
    from dala.gpu.compute.language import div as div
    from dala.gpu.compute.language import dot as dot
    from dala.gpu.compute.language import e as e
    from dala.gpu.compute.language import exp as exp
    from dala.gpu.compute.language import floor as floor
    from dala.gpu.compute.language import fract as fract
    from dala.gpu.compute.language import inf as inf
    from dala.gpu.compute.language import isnan as isnan
    from dala.gpu.compute.language import len as len
    from dala.gpu.compute.language import length as length
    from dala.gpu.compute.language import like as like
    from dala.gpu.compute.language import log as log
    from dala.gpu.compute.language import max as max
    from dala.gpu.compute.language import min as min
    from dala.gpu.compute.language import mix as mix
    from dala.gpu.compute.language import nan as nan
    from dala.gpu.compute.language import pi as pi
    from dala.gpu.compute.language import position as position
    from dala.gpu.compute.language import pow as pow
    from dala.gpu.compute.language import round as round
    from dala.gpu.compute.language import select as select
    from dala.gpu.compute.language import sign as sign
    from dala.gpu.compute.language import sin as sin
    from dala.gpu.compute.language import smoothstep as smoothstep
    from dala.gpu.compute.language import sqrt as sqrt
    from dala.gpu.compute.language import step as step
    from dala.gpu.compute.language import tan as tan
    from dala.gpu.compute.language import tau as tau

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

if not TYPE_CHECKING:  # so that type checkers refuse a misspelled name, as Python does
    _LANGUAGE = {"IntOrFloat", "Vector", *_CONSTANTS, *_FUNCTIONS} - {"bool", "float", "int"}
    _homes = dict.fromkeys(_LANGUAGE, "dala.gpu.compute.language")
    __getattr__ = attach(__name__, _homes, keep=False)[0]

    def __dir__():
        return sorted({*globals(), *_LANGUAGE})
