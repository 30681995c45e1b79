"""The public names are inventoried: removing or renaming one fails here."""

from __future__ import annotations

import inspect

import pytest

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
    "matmul": "(a, b, out)",
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
    "softmax": "(a, out, axis=-1)",
    "submit": "(spec, priority='realtime')",
    "subtract": "(a, b, out)",
    "supported_dtypes": "()",
    "tanh": "(a, out)",
    "to_array": "(b, shape=None, dtype=None)",
    "version": "()",
    "Pipeline": None,
    "Cube": None,
    "Within": None,
    "load_cube": "(source)",
    "save_cube": "(cube, path)",
    "free_pipeline": "(p)",
    "pipeline": "()",
    "pipeline_add": "(p, spec)",
    "pipeline_run": "(p)",
    "pipeline_run_async": "(p)",
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
    "argmax",
    "beauty",
    "bicubic_scale",
    "blur",
    "brightness",
    "chroma_key",
    "contrast",
    "conv2d",
    "convolve1d",
    "cumsum",
    "denoise",
    "dilate",
    "edge_detect",
    "elementwise_add",
    "elementwise_div",
    "elementwise_mul",
    "elementwise_sub",
    "erode",
    "fft",
    "gamma",
    "gather",
    "gaussian_blur",
    "generate_gradient",
    "grayscale",
    "histogram",
    "hue",
    "ifft",
    "invert",
    "layer_norm",
    "lut_apply",
    "matmul",
    "median",
    "overlay_alpha",
    "preprocess",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "relu",
    "remap",
    "reshape",
    "resize",
    "rgb_to_yuv",
    "saturation",
    "scalar_mul",
    "sepia",
    "sharpen",
    "sigmoid",
    "softmax",
    "tanh",
    "transpose",
    "video_mix",
    "vignette",
    "warp_affine",
    "warp_perspective",
    "yuv_to_rgb",
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


#: Calls that wait, and their twins that are awaited.
TWINS = [
    ("run_kernel", "run_kernel_async"),
    ("read", "read_async"),
    ("pipeline_run", "pipeline_run_async"),
]


@pytest.mark.parametrize(("plain", "twin"), TWINS)
def test_twins_take_the_same_arguments(plain, twin):
    calls = [inspect.signature(getattr(compute, name)) for name in (plain, twin)]
    assert calls[0].parameters == calls[1].parameters


#: Calls that are methods too, by the class that has them.
METHODS = {
    compute.Buffer: [
        "dtype", "free", "read", "read_async", "read_binary", "read_list", "shape", "to_array",
    ],
    compute.Command: ["poll", "wait"],
    compute.Stream: ["submit"],
    compute.Kernel: ["run"],
}  # fmt: skip


def test_calls_that_are_methods_too():
    for kind, names in METHODS.items():
        for name in names:
            assert hasattr(kind, name), (kind, name)
    for name in ("read", "read_async", "read_binary", "read_list", "to_array"):
        function = [*inspect.signature(getattr(compute, name)).parameters.values()][1:]
        method = [*inspect.signature(getattr(compute.Buffer, name)).parameters.values()][1:]
        assert [(p.name, p.default) for p in function] == [(p.name, p.default) for p in method]


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
