"""Functions of ``dala.gpu.compute`` that run kernels, read buffers and query devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import dala
from dala.arguments import items_of
from dala.errors import ArityError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.convert import as_array
from dala.gpu.compute.dtypes import DTYPES
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines import devices as machine
from dala.gpu.compute.engines.base import Info
from dala.gpu.compute.future import Future
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernel import names as kernel_names
from dala.gpu.compute.runnable import NO_PARAMS, Runnable
from dala.gpu.compute.stream import stream
from dala.typing import Params

#: Facts about a device, by name.
DeviceInfo: TypeAlias = Info

if TYPE_CHECKING:
    from dala.gpu.compute.arrays.operators import Value as Operand
    from dala.gpu.surface import Surface


def run_kernel(
    kernel: Runnable | str, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
) -> None:
    """Run a kernel on input buffers and write the result to an output buffer.

    All arguments are checked before anything is written. On a device with its own queue the call
    returns once the work is enqueued; reading the output waits for it.

    Args:
        kernel: a name from :func:`kernels`, or a kernel object.
        inputs: the input buffers, in the order of the kernel's arguments.
        output: the buffer to write.
        params: the kernel's parameters, by name.

    >>> from dala.gpu.compute import buffer
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> run_kernel("relu", [a], a, {"slope": 0.5})
    >>> a.read_list()
    [-0.5, 2.0]
    """
    find_kernel(kernel).run(inputs, output, params)


async def run_kernel_async(
    kernel: Runnable | str, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
) -> None:
    """Run a kernel without blocking the event loop, and return once the output is written.

    >>> import asyncio
    >>> from dala.gpu.compute import buffer
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> asyncio.run(run_kernel_async("relu", [a], a, {"slope": 0.5}))
    >>> a.read_list()
    [-0.5, 2.0]
    """
    await stream.default().run_async(
        {"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output, "params": params}
    )


def run_to_surface(
    kernel: Runnable | str,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Params = NO_PARAMS,
) -> None:
    """Run a kernel and show its output on a surface.

    The image replaces all pixels of the surface and ignores the clip. It is drawn in order with
    other commands. The output buffer can be reused at once.

    Args:
        kernel: a name from :func:`kernels`, or a kernel object.
        inputs: the input buffers.
        output: an image of the surface's size: (height, width, 4) u8, or f32 from 0 to 1. Gray
            (height, width) and RGB images are drawn opaque.
        surface: a surface from ``dala.gpu.create_surface``.
        params: the kernel's parameters.

    Raises:
        ShapeMismatch: the output does not have the surface's size.

    >>> from dala.gpu import create_surface
    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a = buffer([[[255, 0, 0, 255]]], dtype="u8", device="cpu")
    >>> with create_surface(1, 1) as s:
    ...     run_to_surface("invert", [a], buffer_zeros((1, 1, 4), "u8", device="cpu"), s)
    ...     s.get_pixels()
    b'\\x00\\xff\\xff\\xff'
    """
    from dala.gpu.shaders.transfer import run_and_put

    run_and_put(find_kernel(kernel, "run_to_surface"), inputs, output, surface, params)


# elementwise ----------------------------------------------------------------------------------
def _operator(op: str, kernel: str, a: Operand, b: Operand, out: Buffer | None) -> Buffer:
    """Return an operator's result: an expression, or the output."""
    from dala.gpu.compute.arrays.operators import binary, store

    if out is not None:
        if (
            isinstance(a, Buffer)
            and isinstance(b, Buffer)
            and (a.node is not None or b.node is not None)
            and a.dtype == b.dtype
            and store(binary(op, a, b, kernel), out, kernel)  # fused with its operands
        ):
            return out
        return _apply(kernel, [a, b], out)  # type: ignore[list-item]  # the checks raise
    if isinstance(a, Buffer) or isinstance(b, Buffer):
        made = binary(op, a, b, kernel)
        if made is not None:
            return made
    name, wrong = ("b", b) if isinstance(a, Buffer) else ("a", a)
    advice = "Make one with buffer(...) or from_array(...)."
    raise ArityError.invalid(kernel, name, "a Buffer", wrong, advice)


def _is_real(x: Operand) -> bool:
    """Return True for floats, and for buffers, arrays and lists of them."""
    if isinstance(x, Buffer):
        return x.dtype in ("f32", "f64")
    if isinstance(x, list | tuple):
        x = as_array(x, "divide")
    return isinstance(x, float) or (isinstance(x, np.ndarray | np.generic) and x.dtype.kind == "f")


def _function(kernel: str, a: Buffer, out: Buffer | None, **params: float) -> Buffer:
    """Return a function's result: an expression, or the output."""
    if isinstance(a, Buffer) and (out is None or a.node is not None):
        from dala.gpu.compute.arrays.operators import function, store

        made = function(kernel, a, *params.values())
        if out is None and made is not None:
            return made
        if out is not None and store(made, out, kernel):
            return out
    return _apply(kernel, [a], out, params)


def _apply(
    kernel: str, inputs: list[Buffer], out: Buffer | None, params: Params = NO_PARAMS
) -> Buffer:
    found = find_kernel(kernel)
    if out is None:
        out = found.new_output(inputs, params)
    found.run(inputs, out, params)
    return out


def add(a: Operand, b: Operand, out: Buffer | None = None) -> Buffer:
    """Return a + b, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import add, buffer
    >>> a, b = buffer([6.0, 8.0], device="cpu"), buffer([2.0, 4.0], device="cpu")
    >>> add(a, b).read_list()
    [8.0, 12.0]
    """
    return _operator("add", "elementwise_add", a, b, out)


def subtract(a: Operand, b: Operand, out: Buffer | None = None) -> Buffer:
    """Return a - b, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, subtract
    >>> a, b = buffer([6.0, 8.0], device="cpu"), buffer([2.0, 4.0], device="cpu")
    >>> subtract(a, b).read_list()
    [4.0, 4.0]
    """
    return _operator("subtract", "elementwise_sub", a, b, out)


def multiply(a: Operand, b: Operand, out: Buffer | None = None) -> Buffer:
    """Return a * b, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, multiply
    >>> a, b = buffer([6.0, 8.0], device="cpu"), buffer([2.0, 4.0], device="cpu")
    >>> multiply(a, b).read_list()
    [12.0, 32.0]
    """
    return _operator("multiply", "elementwise_mul", a, b, out)


def divide(a: Operand, b: Operand, out: Buffer | None = None) -> Buffer:
    """Return a / b, in ``out`` or in a new buffer; integers use floor division.

    >>> from dala.gpu.compute import buffer, divide
    >>> a, b = buffer([6.0, 8.0], device="cpu"), buffer([2.0, 4.0], device="cpu")
    >>> divide(a, b).read_list()
    [3.0, 2.0]
    """
    whole = not (_is_real(a) or _is_real(b))
    return _operator("floor_divide" if whole else "divide", "elementwise_div", a, b, out)


def relu(a: Buffer, out: Buffer | None = None, slope: float = 0.0) -> Buffer:
    """Return a where positive, else slope * a, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, relu
    >>> relu(buffer([-1.0, 2.0], device="cpu"), slope=0.5).read_list()
    [-0.5, 2.0]
    """
    return _function("relu", a, out, slope=slope)


def sigmoid(a: Buffer, out: Buffer | None = None) -> Buffer:
    """Return 1 / (1 + exp(-a)), in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, sigmoid
    >>> sigmoid(buffer([0.0], device="cpu")).read_list()
    [0.5]
    """
    return _function("sigmoid", a, out)


def tanh(a: Buffer, out: Buffer | None = None) -> Buffer:
    """Return tanh(a), in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, tanh
    >>> tanh(buffer([0.0], device="cpu")).read_list()
    [0.0]
    """
    return _function("tanh", a, out)


def scale(a: Buffer, scalar: float, out: Buffer | None = None) -> Buffer:
    """Return a * scalar, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, scale
    >>> scale(buffer([1.0, 2.0], device="cpu"), 10).read_list()
    [10.0, 20.0]
    """
    return _function("scalar_mul", a, out, scalar=scalar)


def softmax(a: Buffer, out: Buffer | None = None, axis: int = -1) -> Buffer:
    """Return exp(a) / sum(exp(a)) along an axis, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, softmax
    >>> softmax(buffer([1.0, 1.0], device="cpu")).read_list()
    [0.5, 0.5]
    """
    return _apply("softmax", [a], out, {"axis": axis})


def matmul(a: Buffer, b: Buffer, out: Buffer | None = None) -> Buffer:
    """Return the matrix product of a and b, like ``np.matmul``, in ``out`` or in a new buffer.

    >>> from dala.gpu.compute import buffer, matmul
    >>> a, b = buffer([[1.0, 2.0]], device="cpu"), buffer([[3.0], [4.0]], device="cpu")
    >>> matmul(a, b).read_list()
    [11.0]
    """
    return _apply("matmul", [a, b], out)


# buffers --------------------------------------------------------------------------------------
def _checked(b: Buffer, call: str) -> Buffer:
    if not isinstance(b, Buffer):
        raise ArityError.invalid(call, "b", "a Buffer", b)
    return b


def _live(b: Buffer, call: str) -> Buffer:
    if _checked(b, call).freed:
        b.storage(call)  # raises
    return b


def shape(b: Buffer) -> tuple[int, ...]:
    """Return the buffer's shape.

    >>> from dala.gpu.compute import buffer_zeros, shape
    >>> shape(buffer_zeros((2, 3), device="cpu"))
    (2, 3)
    """
    return _live(b, "shape").shape


def dtype(b: Buffer) -> str:
    """Return the buffer's dtype, such as "f32".

    >>> from dala.gpu.compute import buffer_zeros, dtype
    >>> dtype(buffer_zeros(2, "u8", device="cpu"))
    'u8'
    """
    return _live(b, "dtype").dtype


def size(b: Buffer) -> int:
    """Return the buffer's size in bytes.

    >>> from dala.gpu.compute import buffer_zeros, size
    >>> size(buffer_zeros((2, 3), device="cpu"))
    24
    """
    return _live(b, "size").nbytes


def read(b: Buffer) -> bytes:
    """Return a copy of the buffer's bytes, little-endian.

    >>> from dala.gpu.compute import buffer, read
    >>> read(buffer([1, 2], dtype="u8", device="cpu"))
    b'\\x01\\x02'
    """
    return _checked(b, "read").read()


def read_binary(b: Buffer) -> memoryview:
    """Return the buffer's bytes, read-only.

    They are its own memory on the cpu and reference devices, else a copy.

    >>> from dala.gpu.compute import buffer, read_binary
    >>> bytes(read_binary(buffer([1, 2], dtype="u8", device="cpu")))
    b'\\x01\\x02'
    """
    return _checked(b, "read_binary").read_binary()


def read_list(b: Buffer) -> list[float]:
    """Return the buffer's elements in one flat list.

    >>> from dala.gpu.compute import buffer, read_list
    >>> read_list(buffer([[1, 2], [3, 4]], dtype="s32", device="cpu"))
    [1, 2, 3, 4]
    """
    return _checked(b, "read_list").read_list()


def read_async(b: Buffer) -> Future[memoryview]:
    """Start copying the buffer's bytes and return a future, which can be awaited.

    >>> from dala.gpu.compute import buffer, read_async
    >>> bytes(read_async(buffer([1, 2], dtype="u8", device="cpu")).result())
    b'\\x01\\x02'
    """
    return _checked(b, "read_async").read_async()


def free(b: Buffer) -> None:
    """Free a buffer's memory. Freeing twice is allowed; using a freed buffer raises FreedError.

    >>> from dala.gpu.compute import buffer_zeros, free
    >>> b = buffer_zeros(2, device="cpu")
    >>> free(b)
    >>> b.freed
    True
    """
    _checked(b, "free").free()


def free_many(buffers: Iterable[Buffer]) -> None:
    """Free several buffers.

    >>> from dala.gpu.compute import buffer_zeros, free_many
    >>> a, b = buffer_zeros(2, device="cpu"), buffer_zeros(3, device="cpu")
    >>> free_many([a, b])
    >>> a.freed, b.freed
    (True, True)
    """
    found = items_of(buffers)
    if found is None:
        raise ArityError.invalid("free_many", "buffers", "a list of Buffers", buffers)
    for b in [_checked(b, "free_many") for b in found]:
        b.free()


# the device -----------------------------------------------------------------------------------
def device_info() -> DeviceInfo:
    """Return facts about the current device: ``name``, ``gpu``, ``backend``, ``version`` and more.

    >>> import dala
    >>> from dala.gpu.compute import device_info
    >>> with dala.device("cpu"):
    ...     device_info()["backend"]
    'cpu'
    """
    engine = auto.current()
    return {"id": engine.id, **engine.info(), "version": version()}


def gpu_available() -> bool:
    """Return True if there is a hardware GPU; False with only a CPU or software adapters.

    >>> from dala.gpu.compute import gpu_available
    >>> gpu_available() in (True, False)
    True
    """
    return bool(machine.gpus()[0])


def device_count() -> int:
    """Return the number of devices that :func:`dala.devices` lists.

    >>> from dala.gpu.compute import device_count
    >>> device_count() >= 1
    True
    """
    return len(auto.devices())


def supported_dtypes() -> list[str]:
    """Return the dtypes that the current device supports.

    >>> import dala
    >>> from dala.gpu.compute import supported_dtypes
    >>> with dala.device("cpu"):
    ...     supported_dtypes()
    ['f32', 'f64', 's32', 's64', 'u32', 'u8']
    """
    engine = auto.current()
    return [d for d in DTYPES if d in engine.dtypes]


def kernels() -> list[str]:
    """Return the names of all kernels, custom ones included.

    >>> from dala.gpu.compute import kernels
    >>> "blur" in kernels()
    True
    """
    return kernel_names()


def version() -> str:
    """Return the library's version.

    >>> import dala
    >>> from dala.gpu.compute import version
    >>> version() == dala.__version__
    True
    """
    return dala.__version__
