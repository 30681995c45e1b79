"""The public names are inventoried: removing or renaming one fails here."""

from __future__ import annotations

import inspect

import dala
import dala.gpu.compute as compute
from dala import errors

TOP = {
    "ArityError",
    "BufferTooLarge",
    "CommandTimeout",
    "DalaError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMismatch",
    "DeviceUnavailable",
    "DtypeError",
    "DtypeMismatch",
    "FreedError",
    "KernelExists",
    "KernelSyntaxError",
    "OutOfRange",
    "ParameterError",
    "ReadOnlyError",
    "ShapeError",
    "ShapeMismatch",
    "UnknownCommand",
    "UnknownKernel",
    "UnknownParameter",
    "UnsupportedDtype",
    "device",
    "devices",
    "diagnostics",
    "doctor",
    "gpu",
    "use",
}

COMPUTE = {
    "Array": None,
    "Buffer": None,
    "Command": None,
    "Future": None,
    "Image": None,
    "Kernel": None,
    "Pixel": None,
    "Stream": None,
    "add": "(a, b, out)",
    "buffer": "(data, shape=None, dtype='f32', *, device=None)",
    "buffer_from_binary": "(data, shape, dtype='u8', *, device=None)",
    "buffer_zeros": "(shape, dtype='f32', *, device=None, transient=False)",
    "device_count": "()",
    "device_info": "()",
    "divide": "(a, b, out)",
    "dtype": "(b)",
    "free": "(b)",
    "free_many": "(buffers)",
    "from_array": "(array, *, device=None)",
    "from_dlpack": "(x, *, device=None)",
    "gpu_available": "()",
    "kernel": None,
    "kernels": "()",
    "multiply": "(a, b, out)",
    "poll": "(command)",
    "read": "(b)",
    "read_async": "(b)",
    "read_binary": "(b)",
    "read_list": "(b)",
    "relu": "(a, out, slope=0.0)",
    "rgba": None,
    "run_kernel": "(kernel, inputs, output, params={})",
    "run_kernel_async": "(kernel, inputs, output, params={})",
    "scale": "(a, scalar, out)",
    "shape": "(b)",
    "sigmoid": "(a, out)",
    "size": "(b)",
    "submit": "(spec, priority='realtime')",
    "subtract": "(a, b, out)",
    "supported_dtypes": "()",
    "tanh": "(a, out)",
    "to_array": "(b, shape=None, dtype=None)",
    "version": "()",
    "Pipeline": None,
    "free_pipeline": "(p)",
    "pipeline": "()",
    "pipeline_add": "(p, spec)",
    "pipeline_run": "(p)",
    "wait": "(command, timeout=None)",
    "vec4": None,
    "vec3": None,
    "vec2": None,
    "u8": None,
    "u32": None,
    "s64": None,
    "s32": None,
    "f64": None,
    "f32": None,
}

BUILTIN_KERNELS = {
    "beauty",
    "brightness",
    "chroma_key",
    "contrast",
    "denoise",
    "dilate",
    "edge_detect",
    "elementwise_add",
    "elementwise_div",
    "elementwise_mul",
    "elementwise_sub",
    "erode",
    "gamma",
    "generate_gradient",
    "grayscale",
    "hue",
    "invert",
    "median",
    "overlay_alpha",
    "relu",
    "saturation",
    "scalar_mul",
    "sepia",
    "sharpen",
    "sigmoid",
    "tanh",
    "video_mix",
    "vignette",
}


def test_names_at_the_top():
    assert set(dir(dala)) >= TOP
    for name in TOP:
        assert getattr(dala, name) is not None


def test_every_error_is_public_and_a_dala_error():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, dala.DalaError)
        assert getattr(dala, name) is kind


def test_names_of_compute():
    assert set(compute.__all__) == set(COMPUTE)


def test_arguments_of_the_compute_calls():
    for name, wanted in COMPUTE.items():
        if wanted is None:
            continue
        signature = inspect.signature(getattr(compute, name))
        plain = signature.replace(
            parameters=[
                p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
            ],
            return_annotation=inspect.Signature.empty,
        )
        assert str(plain) == wanted, name


def test_built_in_kernels():
    assert set(compute.kernels()) >= BUILTIN_KERNELS


def test_submodules_do_not_hide_the_calls_of_their_name():
    for name in ("buffer", "kernel", "kernels", "pipeline"):
        assert callable(getattr(compute, name))
