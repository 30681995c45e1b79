"""The compute calls that are not about making buffers: running, reading, asking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dala
from dala.errors import ArityError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.dtypes import DTYPES
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines import devices as machine
from dala.gpu.compute.future import Future
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernel import names as kernel_names
from dala.gpu.compute.stream import stream

if TYPE_CHECKING:
    from dala.gpu.surface import Surface

_NO_PARAMS: Mapping[str, Any] = {}


def run_kernel(
    kernel: Kernel | str,
    inputs: Sequence[Buffer],
    output: Buffer,
    params: Mapping[str, Any] = _NO_PARAMS,
) -> None:
    """Runs a kernel, by name or itself, over some inputs into an output.

    Everything is checked before anything is written. On a device with a queue of its own the call
    returns when the work is enqueued; reading waits for it.

    >>> from dala.gpu.compute import buffer
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> run_kernel("relu", [a], a, {"slope": 0.5})
    >>> a.read_list()
    [-0.5, 2.0]
    """
    if type(kernel) is not Kernel:
        kernel = find_kernel(kernel)
    kernel.run(inputs, output, params)


async def run_kernel_async(
    kernel: Kernel | str,
    inputs: Sequence[Buffer],
    output: Buffer,
    params: Mapping[str, Any] = _NO_PARAMS,
) -> None:
    """As :func:`run_kernel`, awaited: the event loop goes on until the output is written.

    >>> import asyncio
    >>> from dala.gpu.compute import buffer
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> asyncio.run(run_kernel_async("relu", [a], a, {"slope": 0.5}))
    >>> a.read_list()
    [-0.5, 2.0]
    """
    await stream.default().run_async(
        {
            "op": "run_kernel",
            "kernel": kernel,
            "inputs": inputs,
            "output": output,
            "params": params,
        }
    )


def run_to_surface(
    kernel: Kernel | str,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Mapping[str, Any] = _NO_PARAMS,
) -> None:
    """As :func:`run_kernel`, and what it made becomes the picture of a surface.

    The picture comes in order with the surface's other commands and replaces all pixels, whatever
    the clip. The output may be written again at once.

    Args:
        kernel: by name or itself.
        inputs: its inputs.
        output: (height, width, 4) of u8, the size of the surface; or of f32 within 0..1; with three
            channels or none (gray) it is opaque.
        surface: from ``dala.gpu.create_surface``.
        params: its parameters.

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
def add(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Out = a + b"""
    find_kernel("elementwise_add").run([a, b], out)


def subtract(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Out = a - b"""
    find_kernel("elementwise_sub").run([a, b], out)


def multiply(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Out = a * b"""
    find_kernel("elementwise_mul").run([a, b], out)


def divide(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Out = a / b; floor division for integers"""
    find_kernel("elementwise_div").run([a, b], out)


def relu(a: Buffer, out: Buffer, slope: float = 0.0) -> None:
    """Out = a where above zero, else slope * a"""
    find_kernel("relu").run([a], out, {"slope": slope})


def sigmoid(a: Buffer, out: Buffer) -> None:
    """Out = 1 / (1 + exp(-a))"""
    find_kernel("sigmoid").run([a], out)


def tanh(a: Buffer, out: Buffer) -> None:
    """Out = tanh(a)"""
    find_kernel("tanh").run([a], out)


def scale(a: Buffer, scalar: float, out: Buffer) -> None:
    """Out = a * scalar"""
    find_kernel("scalar_mul").run([a], out, {"scalar": scalar})


def softmax(a: Buffer, out: Buffer, axis: int = -1) -> None:
    """Out = exp(a) / sum of exp(a) along an axis, the largest number taken off first"""
    find_kernel("softmax").run([a], out, {"axis": axis})


def matmul(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Out = the matrix product of a and b, as ``np.matmul``

    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a, b = buffer([[1.0, 2.0]], device="cpu"), buffer([[3.0], [4.0]], device="cpu")
    >>> out = buffer_zeros((1, 1), device="cpu")
    >>> matmul(a, b, out)
    >>> out.read_list()
    [11.0]
    """
    find_kernel("matmul").run([a, b], out)


# buffers --------------------------------------------------------------------------------------
def _checked(b: Any, call: str) -> Buffer:
    if not isinstance(b, Buffer):
        raise ArityError(f"{call}: a Buffer is expected, {type(b).__name__} came.")
    return b


def shape(b: Buffer) -> tuple[int, ...]:
    """The buffer's shape."""
    _checked(b, "shape").storage("shape")
    return b.shape


def dtype(b: Buffer) -> str:
    """The buffer's dtype, such as "f32"."""
    _checked(b, "dtype").storage("dtype")
    return b.dtype


def size(b: Buffer) -> int:
    """The buffer's size in bytes."""
    _checked(b, "size").storage("size")
    return b.nbytes


def read(b: Buffer) -> bytes:
    """A copy of the buffer's bytes, little-endian."""
    return _checked(b, "read").read()


def read_binary(b: Buffer) -> memoryview:
    """The buffer's bytes without a copy on the cpu and reference devices, else a copy."""
    return _checked(b, "read_binary").read_binary()


def read_list(b: Buffer) -> list[Any]:
    """The buffer's numbers in one flat list."""
    return _checked(b, "read_list").read_list()


def read_async(b: Buffer) -> Future[bytes]:
    """As :func:`read` without waiting: a future to wait for or to await."""
    return _checked(b, "read_async").read_async()


def free(b: Buffer) -> None:
    """Gives a buffer's memory back. Freeing twice is fine; any other use after it raises."""
    _checked(b, "free").free()


def free_many(buffers: Iterable[Buffer]) -> None:
    """Frees several buffers."""
    for b in [_checked(b, "free_many") for b in buffers]:
        b.free()


# the device -----------------------------------------------------------------------------------
def device_info() -> dict[str, Any]:
    """What the current device is: ``name``, ``gpu``, ``backend``, ``version`` and more."""
    engine = auto.current()
    return {"id": engine.id, **engine.info(), "version": version()}


def gpu_available() -> bool:
    """True where a real GPU can be used; False on the CPU and on software adapters."""
    return bool(machine.gpus()[0])


def device_count() -> int:
    """How many devices :func:`dala.devices` lists."""
    return len(auto.devices())


def supported_dtypes() -> list[str]:
    """The dtypes the current device computes with."""
    engine = auto.current()
    return [d for d in DTYPES if d in engine.dtypes]


def kernels() -> list[str]:
    """Names of all kernels, custom ones included."""
    return kernel_names()


def version() -> str:
    """The library's version."""
    return dala.__version__
