"""Inputs of a kernel call that are not buffers: arrays, tensors, and pictures of packages above.

Each becomes a buffer, without a copy where memory allows, and the result is returned as the kind of
the first input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeGuard, cast

import numpy as np

from dala.errors import DalaError, DeviceUnavailable, DtypeError, ReadOnlyError, ShapeMismatch
from dala.extensions import input_modules
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.call.checks import check_count
from dala.gpu.compute.create import buffer_zeros, from_dlpack
from dala.gpu.compute.dtypes import NUMPY, dtype_name
from dala.typing import KernelInput, NDArray, SupportsDLPack

if TYPE_CHECKING:
    from dala.gpu.compute.runnable import Runnable
    from dala.typing import Params

#: A module of another array library, which has no types here.
Library: TypeAlias = Any


class ForeignInput(Protocol):
    """An input that is not a buffer, as a package converts it."""

    def buffer(self, device: str | None) -> Buffer:
        """Return the numbers on a device, or where they are if it is None."""

    def give(self, result: Buffer) -> KernelInput:
        """Return a result as the input's kind."""


@dataclass
class _Same:
    """A buffer."""

    value: Buffer

    def buffer(self, device: str | None) -> Buffer:
        return self.value

    def give(self, result: Buffer) -> KernelInput:
        return result


@dataclass
class _Array:
    """A NumPy array."""

    value: NDArray

    def buffer(self, device: str | None) -> Buffer:
        return from_dlpack(np.asarray(self.value, order="C"), device=device)

    def give(self, result: Buffer) -> KernelInput:
        return result.numpy()


@dataclass
class _DeepPicture:
    """A picture of bools, uint16 or other floats, which is computed as u8 or f32.

    Bools are black and white, uint16 is x / 65535, and floats are 0 to 1.
    """

    value: NDArray
    #: The dtypes, besides those of pictures.
    dtypes: ClassVar = tuple(map(np.dtype, (np.bool_, np.uint16, np.float16, np.float64)))

    def buffer(self, device: str | None) -> Buffer:
        if self.value.dtype == np.bool_:
            return from_dlpack(self.value.astype(np.uint8) * np.uint8(255), device=device)
        scale = np.float32(65535 if self.value.dtype == np.uint16 else 1)
        return from_dlpack((self.value / scale).astype(np.float32), device=device)

    def give(self, result: Buffer) -> KernelInput:
        array, wanted = result.numpy(), self.value.dtype
        if array.dtype != np.float32 or wanted == np.bool_:
            return array
        if wanted == np.uint16:
            array = np.rint(np.clip(np.nan_to_num(array), 0, 1) * 65535)
        return array.astype(wanted)


@dataclass
class _Tensor:
    """A tensor of another library."""

    value: SupportsDLPack

    def buffer(self, device: str | None) -> Buffer:
        return from_dlpack(self.value, device=device)

    def give(self, result: Buffer) -> KernelInput:
        return tensor_like(result, self.value)


def is_tensor(value: object) -> TypeGuard[SupportsDLPack]:
    """Return whether a value is a tensor of another library, such as torch or JAX.

    >>> is_tensor(np.zeros(2)), is_tensor([1.0])
    (False, False)
    """
    return not isinstance(value, np.ndarray | np.generic | Buffer) and (
        (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"))
        or hasattr(value, "__cuda_array_interface__")
    )


def on_its_gpu(tensor: SupportsDLPack) -> Buffer | None:
    """Return a tensor in a GPU's memory as a buffer over it, where Dala uses that GPU by CUDA."""
    where = getattr(tensor, "__dlpack_device__", lambda: (2, 0))()
    if where[0] != 2:
        return None
    try:
        return from_dlpack(tensor, device=f"cuda:{where[1]}")
    except DeviceUnavailable:
        return None


def tensor_like(result: Buffer | NDArray, given: SupportsDLPack) -> SupportsDLPack:
    """Return a result as a tensor of the library, and on the device, of another tensor."""
    space = getattr(given, "__array_namespace__", None)
    library: Library = space() if space is not None else _library(given)
    shared = isinstance(result, Buffer) and result.engine.sharing is not None
    if not hasattr(given, "__dlpack__"):  # Numba
        cuda = library.cuda
        move = cuda.as_cuda_array if shared else lambda b: cuda.to_device(np.asarray(b))
        return cast("SupportsDLPack", move(result))
    if shared and result.__dlpack_device__() == given.__dlpack_device__():
        return cast("SupportsDLPack", library.from_dlpack(result))
    array = np.asarray(result)
    try:
        made: Library = library.from_dlpack(array)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        made = library.asarray(array)  # such as JAX with memory that it finds badly aligned
    if given.__dlpack_device__()[0] != 1:  # not the host
        where: Library = getattr(given, "device", None)
        if hasattr(made, "to"):
            made = made.to(where)
        else:
            try:  # from the array: JAX does not move a tensor that is on the host already
                made = library.asarray(array, device=where)
            except TypeError:  # CuPy's has no such option, and takes the current device
                made = library.asarray(array)
    tensor: SupportsDLPack = made
    return tensor


def _library(value: object) -> Library:
    return sys.modules[type(value).__module__.partition(".")[0]]


def find(value: object, call: str, name: str, is_picture: bool) -> ForeignInput:
    """Return an input of a call in a form that can become a buffer.

    Args:
        value: the input.
        call: the kernel's name.
        name: the input's name.
        is_picture: True if the kernel reads pixels, where white has a value in every dtype.

    Raises:
        DtypeError: it is no array, tensor, picture or buffer; a TypeError.
    """
    if isinstance(value, Buffer):
        return _Same(value)
    if isinstance(value, np.ma.MaskedArray):
        raise DtypeError.invalid(
            call, name, "an array without a mask", type(value), "Fill it first: x.filled(0)."
        )
    if isinstance(value, np.ndarray):
        if is_picture and value.dtype in _DeepPicture.dtypes:
            return _DeepPicture(value)
        return _Array(_checked(value, call, name))
    for module in input_modules(value):
        found: ForeignInput | None = module.kernel_input(value, call)
        if found is not None:
            return found
    if is_tensor(value):
        return _Tensor(value)
    expected = "a Buffer, an array, a tensor, a Pillow image or a Frame"
    raise DtypeError.invalid(call, name, expected, type(value), _advice(value))


def _checked(array: NDArray, call: str, name: str) -> NDArray:
    """Return an array of a dtype that buffers have; bools become 0 and 1."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    if array.dtype not in NUMPY.values():
        expected = "an array of float32, float64, int32, int64, uint32 or uint8"
        advice = "Convert it first, such as x.astype(np.float32)."
        raise DtypeError.invalid(call, name, expected, str(array.dtype), advice)
    return array


def _advice(value: object) -> str:
    if isinstance(value, str | os.PathLike):
        return "Open a file first: Frame.open(path)."
    if isinstance(value, bool | int | float | np.generic):
        return "Numbers are parameters, given by name; or make an array of one: np.float32([x])."
    if isinstance(value, bytes | bytearray | memoryview):
        return "Give it a shape: np.frombuffer(x, np.uint8).reshape(height, width, 4)."
    return "Make an array first: np.array(x, np.float32)."


def call_on(
    kernel: Runnable, values: Sequence[KernelInput], out: Buffer | NDArray | None, params: Params
) -> KernelInput:
    """Run a kernel on inputs of any kind; return ``out``, or a result of the first input's kind."""
    call = kernel.name
    check_count(kernel, len(values))
    named = zip(values, kernel.inputs, strict=False)
    held = [find(v, call, name, name in kernel.pictures) for v, name in named]
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ReadOnlyError(f"{call}: out is read-only. Give a writable array.", call=call)
    try:
        buffers = _on_one_device(held, out)
        target = out if isinstance(out, Buffer) else None
        if isinstance(out, np.ndarray):
            engine = buffers[0].engine if buffers else buffer_zeros(1, "u8").engine
            target = allocate(engine, out.shape, _dtype(out, call), zero=False, call=call)
    except DalaError as error:
        raise error.within(call) from error
    if target is None:
        target = kernel.new_output(buffers, params)
    kernel.run(buffers, target, params)
    if isinstance(out, np.ndarray):
        np.copyto(out, target.numpy())
    return held[0].give(target) if out is None else out


def _on_one_device(held: Iterable[ForeignInput], out: Buffer | NDArray | None) -> list[Buffer]:
    """Return the inputs as buffers: on the device of ``out`` or of the first buffer among them."""
    device = out.device if isinstance(out, Buffer) else None
    made: dict[int, Buffer] = {}
    held = list(held)
    for n, one in enumerate(held):  # those that have a device come first
        if not isinstance(one, _Array | _DeepPicture | _Tensor):
            made[n] = one.buffer(None)
            device = device or made[n].device
    for n, one in enumerate(held):
        if n not in made or (not isinstance(one, _Same) and made[n].device != device):
            made[n] = one.buffer(device)
    return [made[n] for n in range(len(held))]


def _dtype(out: NDArray, call: str) -> str:
    name = dtype_name(out.dtype, call=call)
    if out.dtype != NUMPY[name]:
        raise ShapeMismatch.invalid(call, "out", "an array in native byte order", out.dtype)
    return name
