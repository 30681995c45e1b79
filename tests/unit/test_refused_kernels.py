"""Refused kernels: names, inputs, outputs, parameters, devices."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu.compute import (
    Buffer,
    Kernel,
    Pipeline,
    add,
    buffer,
    buffer_zeros,
    from_array,
    from_dlpack,
    kernel,
    multiply,
    run_kernel,
    scale,
    sigmoid,
    submit,
)
from dala.gpu.compute.kernel import get as find_kernel


@pytest.fixture(autouse=True)
def _on_reference():
    with dala.device("reference"):
        yield


# kernels ------------------------------------------------------------------------------------------


def test_unknown_kernel_suggests_a_name(refuses, canvas):
    refuses(
        errors.UnknownKernel,
        KeyError,
        "run_kernel: no kernel 'grayscal'. Did you mean 'grayscale'?",
        lambda: run_kernel("grayscal", [canvas], canvas),
    )


def test_unknown_kernel_without_a_suggestion(refuses, canvas):
    refuses(
        errors.UnknownKernel,
        KeyError,
        "run_kernel: no kernel 'zzzzz'. kernels() lists all.",
        lambda: run_kernel("zzzzz", [canvas], canvas),
    )


def test_kernel_of_invalid_type(refuses, canvas):
    refuses(
        errors.UnknownKernel,
        KeyError,
        "run_kernel: kernel must be a name or a Kernel, got 3.",
        lambda: run_kernel(3, [canvas], canvas),
    )


def test_too_few_inputs(refuses, canvas):
    refuses(
        errors.ArityError,
        TypeError,
        "elementwise_add: inputs must be 2 buffers (a, b), got 1.",
        lambda: run_kernel("elementwise_add", [canvas], canvas),
    )


def test_inputs_must_be_a_list(refuses, canvas):
    refuses(
        errors.ArityError,
        TypeError,
        "relu: inputs must be a list of buffers, got Buffer. Write [a] for one input.",
        lambda: run_kernel("relu", canvas, canvas),
    )


def test_input_must_be_a_buffer(refuses, canvas):
    refuses(
        errors.ArityError,
        TypeError,
        "relu: x must be a Buffer, got an array of shape (3,) and dtype float64. "
        "Make one with buffer(...) or from_array(...).",
        lambda: run_kernel("relu", [np.zeros(3)], canvas),
    )


def test_output_must_be_a_buffer(refuses, canvas):
    refuses(
        errors.ArityError,
        TypeError,
        "relu: output must be a Buffer, got None. Make one with buffer(...) or from_array(...).",
        lambda: run_kernel("relu", [canvas], None),
    )


def test_missing_parameter(refuses, canvas):
    refuses(
        errors.ParameterError,
        ValueError,
        "scalar_mul: missing required parameter 'scalar'.",
        lambda: run_kernel("scalar_mul", [canvas], canvas),
    )


def test_unknown_parameter(refuses, canvas):
    refuses(
        errors.UnknownParameter,
        KeyError,
        "relu: no parameter 'slop'. Did you mean 'slope'?",
        lambda: run_kernel("relu", [canvas], canvas, {"slop": 1}),
    )


def test_parameter_of_a_kernel_without_parameters(refuses, canvas):
    refuses(
        errors.UnknownParameter,
        KeyError,
        "sigmoid: no parameter 'gain'. It takes no parameters.",
        lambda: run_kernel("sigmoid", [canvas], canvas, {"gain": 1}),
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a", "must be a number, got 'a'."),
        ([1], "must be a number, got [1]."),
        (float("nan"), "must be a number, got nan."),
    ],
)
def test_invalid_parameter(refuses, canvas, value, message):
    refuses(
        errors.ParameterError,
        ValueError,
        f"relu: slope {message}",
        lambda: run_kernel("relu", [canvas], canvas, {"slope": value}),
    )


@pytest.mark.parametrize(
    ("params", "got"),
    [
        (["slope", 1], "list"),
        ([("slope", 1)], "list"),
        ([], "list"),
        ("", "str"),
        (0, "int"),
        (False, "bool"),
        (None, "None"),
        (np.zeros(0), "ndarray"),
    ],
)
@pytest.mark.parametrize("name", ["relu", "softmax"])
def test_params_must_be_a_dict(refuses, canvas, name, params, got):
    """Also those that are empty, and of kernels as of operations, every time."""
    out = buffer_zeros(canvas.shape)
    run_kernel(name, [canvas], out)  # later calls find its plan
    spec = {"op": "run_kernel", "kernel": name, "inputs": [canvas], "output": out}
    calls = [
        lambda: run_kernel(name, [canvas], out, params),
        lambda: find_kernel(name).new_output([canvas], params),
    ]
    if params is not None:  # specs may say that there are none
        calls += [
            lambda: submit({**spec, "params": params}),
            lambda: Pipeline().add({**spec, "params": params}),
        ]
    for call in calls:
        refuses(
            errors.ParameterError,
            ValueError,
            f"{name}: params must be a dict, got {got}. Write {{'name': value}}.",
            call,
        )


def test_int_parameter(refuses, canvas):
    k = kernel("def refuse_repeat(x, *, n: int): return x * n")
    refuses(
        errors.ParameterError,
        ValueError,
        "refuse_repeat: n must be an int from -2147483648 to 2147483647, got 2.5.",
        lambda: k.run([canvas], canvas, {"n": 2.5}),
    )
    refuses(
        errors.ParameterError,
        ValueError,
        "refuse_repeat: n must be an int from -2147483648 to 2147483647, got 2147483648.",
        lambda: k.run([canvas], canvas, {"n": 2**31}),
    )


def test_inputs_of_different_dtypes(refuses, canvas):
    refuses(
        errors.DtypeMismatch,
        TypeError,
        "elementwise_add: b must be of dtype 'f32', as 'a' is, got 's32'. Convert one, or annotate "
        "the argument in the kernel (b: s32).",
        lambda: add(canvas, buffer([1, 2, 3], dtype="s32"), canvas),
    )


def test_output_dtype_that_loses_the_result(refuses, canvas):
    whole = buffer_zeros(3, "s32")
    refuses(
        errors.DtypeMismatch,
        TypeError,
        "sigmoid: output must be of a dtype that holds the f32 result without loss, got 's32'. "
        "Make the output f32, or cast in the kernel: return s32(...).",
        lambda: sigmoid(canvas, whole),
    )
    assert whole.read_list() == [0, 0, 0]


def test_shape_that_does_not_broadcast(refuses, canvas):
    refuses(
        errors.ShapeMismatch,
        ValueError,
        "elementwise_mul: b must be of a shape that broadcasts to the output's (3,), got (2,). "
        "Axes must be equal or 1, counted from the last.",
        lambda: multiply(canvas, buffer([1.0, 2.0]), canvas),
    )


def test_output_too_small(refuses):
    out = buffer_zeros(1)
    refuses(
        errors.ShapeMismatch,
        ValueError,
        "scalar_mul: x must be of a shape that broadcasts to the output's (1,), got (3,). "
        "Axes must be equal or 1, counted from the last.",
        lambda: scale(buffer([1.0] * 3), 2, out),
    )


def test_input_must_be_an_image(refuses, canvas):
    refuses(
        errors.ShapeError,
        ValueError,
        "grayscale: px must be an image of shape (height, width), (height, width, 3) or "
        "(height, width, 4), got (3,).",
        lambda: run_kernel("grayscale", [canvas], canvas),
    )


def test_images_of_different_sizes():
    out = buffer_zeros((4, 5, 4), "u8")
    with pytest.raises(errors.ShapeMismatch) as caught:
        run_kernel("grayscale", [buffer_zeros((4, 4, 4), "u8")], out)
    assert str(caught.value) == (
        "grayscale: px must be an image of the output's height and width (4, 5), got (4, 4, 4). "
        "Use the 'resize' kernel, or make the output of that size."
    )


def test_output_must_not_be_a_stencil_input():
    picture = from_array(np.arange(48, dtype=np.uint8).reshape(3, 4, 4))
    before = picture.read()
    with pytest.raises(errors.ShapeMismatch) as caught:
        run_kernel("sharpen", [picture], picture)
    assert str(caught.value) == (
        "sharpen: output must not be the input 'img', which is read at other positions than the "
        "one written. Make a second buffer."
    )
    assert picture.read() == before


def shared(kind):
    """Return two buffers over one memory; the second is the output."""
    memory = np.arange(48, dtype=np.uint8).reshape(3, 4, 4).copy()
    if kind == "two over an array":
        return from_dlpack(memory), from_dlpack(memory)
    mine = from_array(memory)
    return (from_dlpack(mine), mine) if kind == "one over ours" else (mine, from_dlpack(mine))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["two over an array", "one over ours", "ours under one"])
def test_output_over_the_memory_of_an_input(kind, device, warm):
    with dala.device(device):
        source, target = shared(kind)
        if warm:  # a plan for buffers of that kind is there already
            fresh, other = shared(kind)
            run_kernel("sharpen", [from_dlpack(np.zeros((3, 4, 4), np.uint8))], other)
            run_kernel("sharpen", [fresh], buffer_zeros((3, 4, 4), "u8"))
        before = target.read()
        with pytest.raises(errors.ShapeMismatch, match="'img', which is read at other positions"):
            run_kernel("sharpen", [source], target)
        assert target.read() == before
        run_kernel("invert", [source], target)  # its own pixel alone: in place is right
        assert source.read() == target.read() != before


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_output_over_part_of_an_input(device):
    with dala.device(device):
        memory = np.arange(8, dtype=np.float32)
        source, target = from_dlpack(memory[:6]), from_dlpack(memory[2:])
        with pytest.raises(errors.ShapeMismatch) as caught:
            run_kernel("relu", [source], target)
    assert str(caught.value) == (
        "relu: output must not share part of the memory of the input 'x'. "
        "Make a second buffer: buffer_zeros(...)."
    )
    assert memory.tolist() == list(range(8))


def test_read_only_output(canvas):
    storage = canvas.engine.adopt(memoryview(bytes(12)))
    read_only = Buffer(canvas.engine, storage, (3,), "f32", readonly=True)
    for write in (
        lambda: read_only.write([1, 2, 3]),
        lambda: run_kernel("relu", [read_only], read_only),
    ):
        with pytest.raises(errors.ReadOnlyError) as caught:
            write()
        assert str(caught.value).endswith(
            "the buffer shares read-only memory. Copy it first: buffer(np.array(x))."
        )
    assert read_only.read_list() == [0, 0, 0]


def test_empty_array_input(canvas, refuses):
    k = kernel("def refuse_first(a: Array): return a[0]")
    refuses(
        errors.ShapeMismatch,
        ValueError,
        "refuse_first: a must be an array with elements to fill (3,), got (0,).",
        lambda: k.run([buffer_zeros(0)], canvas),
    )


# devices ------------------------------------------------------------------------------------------


def test_buffers_of_two_devices(refuses, canvas):
    with dala.device("cpu"):
        other = buffer([1.0] * 3)
    refuses(
        errors.DeviceMismatch,
        ValueError,
        "elementwise_add: b must be on the output's device 'reference', got 'cpu'. "
        "Move it: b.to('reference').",
        lambda: add(canvas, other, canvas),
    )
    add(canvas, other.to("reference"), canvas)
    assert canvas.read_list() == [8.0] * 3
    canvas.write([7.0] * 3)


def test_unsupported_dtype(monkeypatch, canvas):
    engine = canvas.engine
    monkeypatch.setattr(engine, "dtypes", frozenset({"f32", "s32", "u32", "u8"}))
    with pytest.raises(errors.UnsupportedDtype) as caught:
        buffer_zeros(3, "f64")
    assert str(caught.value) == (
        "buffer_zeros: NumPy reference (reference) does not support 'f64', only f32, s32, u32, u8. "
        "Use dtype='f32'; for an array, x.astype(np.float32) rounds to 24 bits, about 7 digits. Or "
        "use device='cpu'."
    )
    wide = kernel("def refuse_wide(x): return f32(f64(x) * 2)")
    with pytest.raises(errors.UnsupportedDtype) as caught:
        wide.run([canvas], canvas)
    assert str(caught.value) == (
        "refuse_wide: computes with f64, which NumPy reference (reference) does not support. "
        "Use 32-bit dtypes (f32, s32, u32, u8), or move the buffers: b.to('cpu')."
    )
    assert canvas.read_list() == [7.0] * 3


def test_buffer_larger_than_the_device_allows(monkeypatch, canvas):
    monkeypatch.setattr(canvas.engine, "max_buffer_bytes", 1024, raising=False)
    with pytest.raises(errors.BufferTooLarge) as caught:
        buffer_zeros(300)
    assert str(caught.value) == (
        "buffer_zeros: shape (300,) of 'f32' needs 1,200 bytes; NumPy reference (reference) "
        "allows buffers of at most 1,024. Split the data, or use a narrower dtype."
    )


# the registry -------------------------------------------------------------------------------------


def test_built_in_name_is_refused():
    with pytest.raises(errors.KernelExists) as caught:
        Kernel.register("relu", "def relu(x): return x")
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        "Kernel.register: 'relu' is a built-in kernel and cannot be replaced. Choose another name, "
        "or use @kernel and pass the kernel itself."
    )


def test_unregister_of_an_unknown_kernel():
    with pytest.raises(errors.UnknownKernel, match="no kernel 'refuse_nobody'"):
        Kernel.unregister("refuse_nobody")


def test_inputs_and_params_must_agree_with_the_function():
    text = "def f(x, y, *, a): return x + y * a"
    with pytest.raises(errors.KernelSyntaxError, match="inputs is 1, but the function has 2"):
        Kernel.register("refuse_f", text, inputs=1)
    with pytest.raises(errors.KernelSyntaxError, match="params names 'b'"):
        Kernel.register("refuse_f", text, inputs=2, params=["b"])
    with pytest.raises(errors.KernelSyntaxError, match="params leaves out a"):
        Kernel.register("refuse_f", text, inputs=2, params=[])


def test_register_params_must_be_names():
    with pytest.raises(errors.ParameterError) as caught:
        Kernel.register("refuse_g", "def g(x, *, a=1.0): return x * a", params=[("a", 2.0)])
    assert str(caught.value) == (
        "Kernel.register: params must be a list of names such as ['amount'], got [('a', 2.0)]. "
        "Types and defaults belong in the function."
    )
