"""Tensors in the memory of a GPU: read from, and given to, other libraries.

DLPack's structures are read and written by ctypes. The older interface of CUDA arrays, which Numba
has, is read too.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Final

import numpy as np

from dala.errors import DtypeError

#: DLPack's numbers of devices: CUDA's memory, and what it manages.
CUDA, MANAGED = 2, 13
#: The stream that CUDA uses where none is named.
DEFAULT_STREAM: Final = 1
_READ_ONLY: Final = 1
_CODES: Final = {"i": 0, "u": 1, "f": 2, "b": 6}


class _Tensor(ctypes.Structure):
    _fields_: ClassVar = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_: ClassVar = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_: ClassVar = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_NAMES: Final = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
#: The names of capsules that were taken; these objects are what capsules point to.
_USED: Final = {name: b"used_" + name for name in _NAMES}


def _function(name: str, result: Any, *kinds: Any) -> Any:
    """Return a function of Python's C interface; a prototype of its own, as others use it too."""
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


# Capsules by address: one that is being destroyed cannot be referred to.
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_new = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)


@dataclass(eq=False)
class GpuTensor:
    """A tensor of another library. Its memory is valid until ``release`` is called."""

    address: int
    shape: tuple[int, ...]
    #: In elements.
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    readonly: bool
    release: Callable[[], None]
    #: The stream on which it is written; None if it waits for ours already.
    stream: int | None = None

    @property
    def pitch(self) -> int | None:
        """Bytes from one row to the next, where rows are whole; None if elements are apart."""
        wanted, strides = 1, self.strides
        for axis in range(len(self.shape) - 1, -1, -1):
            size = self.shape[axis]
            if strides is not None and size > 1 and strides[axis] != wanted:
                whole = strides[axis] > wanted and prod(self.shape[:axis]) == 1
                return strides[axis] * self.dtype.itemsize if whole else None
            wanted *= size
        return self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: all but the outermost axis that is longer than 1."""
        axis = next((k for k, size in enumerate(self.shape) if size > 1), 0)
        return prod(self.shape[axis + 1 :]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return prod(self.shape) * self.dtype.itemsize


def read_tensor(tensor: Any, stream: int) -> GpuTensor:
    """Return a tensor of a GPU, to be used on a stream.

    Raises:
        BufferError, RuntimeError, TypeError: its library does not share it.
    """
    if not hasattr(tensor, "__dlpack__"):
        return _read_interface(tensor)
    waits = True
    try:
        capsule = tensor.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:
        try:
            capsule = tensor.__dlpack__(stream=stream)
        except NotImplementedError:  # PyAV leaves it to us
            capsule, waits = tensor.__dlpack__(stream=None), False
    found = _read_capsule(capsule)
    if type(tensor).__module__.startswith("jax"):
        found.readonly = True  # arrays of JAX never change
    found.stream = None if waits else DEFAULT_STREAM
    return found


def _read_capsule(capsule: Any) -> GpuTensor:
    name = next(name for name in _NAMES if _is_valid(id(capsule), name))
    made: Any = _NAMES[name].from_address(_pointer(id(capsule), name))
    given: _Tensor = made.tensor
    kinds = {code: kind for kind, code in _CODES.items()}
    if given.code not in kinds or given.lanes != 1 or given.bits % 8:
        expected = "a tensor of f32, f64, s32, s64, u32 or u8"
        got = f"DLPack's code {given.code} of {given.bits} bits"
        advice = "Convert it first, such as x.float() in torch."
        raise DtypeError.invalid("from_dlpack", "x", expected, got, advice)
    _rename(id(capsule), _USED[name])  # ours now
    shape = tuple(given.shape[: given.ndim])
    return GpuTensor(
        (given.data or 0) + given.byte_offset,
        shape,
        tuple(given.strides[: given.ndim]) if given.strides else None,
        np.dtype(f"{kinds[given.code]}{given.bits // 8}"),
        name == b"dltensor_versioned" and bool(made.flags & _READ_ONLY),
        lambda: made.deleter(ctypes.addressof(made)) if made.deleter else None,
    )


def _read_interface(tensor: Any) -> GpuTensor:
    facts = tensor.__cuda_array_interface__
    dtype, strides = np.dtype(facts["typestr"]), facts.get("strides")
    address, readonly = facts["data"]
    held = [tensor]
    return GpuTensor(
        address, tuple(facts["shape"]),
        None if strides is None else tuple(step // dtype.itemsize for step in strides), dtype,
        readonly, held.clear, facts.get("stream"),
    )  # fmt: skip


# giving memory away -------------------------------------------------------------------------------
class _Given:
    """What a capsule refers to: DLPack's structure, and what to do once it is dropped."""

    def __init__(self, managed: Any, sizes: Any, release: Callable[[], None]) -> None:
        self.managed = managed
        self.sizes = sizes
        self.release = release


_given: Final[dict[int, _Given]] = {}
_numbers = itertools.count(1)


def make_capsule(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    ordinal: int,
    release: Callable[[], None],
    *,
    readonly: bool,
    versioned: bool,
) -> Any:
    """Return a capsule of DLPack over memory of a GPU; ``release`` is called when it is dropped.

    Raises:
        BufferError: it is read-only, which only DLPack 1.0 can say.
    """
    if readonly and not versioned:
        raise BufferError("the buffer shares read-only memory. Copy it first: buffer(np.array(x)).")
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed: Any = _NAMES[name]()
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes = (ctypes.c_int64 * (2 * max(len(shape), 1)))(*shape, *strides)
    pointer = ctypes.POINTER(ctypes.c_int64)
    first = ctypes.addressof(sizes)
    managed.tensor = _Tensor(
        address, CUDA, ordinal, len(shape), _CODES[dtype.kind], dtype.itemsize * 8, 1,
        ctypes.cast(first, pointer), ctypes.cast(first + 8 * len(shape), pointer), 0,
    )  # fmt: skip
    if versioned:
        managed.major, managed.flags = 1, _READ_ONLY if readonly else 0
    number = managed.context = next(_numbers)
    managed.deleter = _delete if not versioned else _delete_versioned
    _given[number] = _Given(managed, sizes, release)
    return _new(ctypes.addressof(managed), name, ctypes.cast(_destroy, ctypes.c_void_p))


def _drop(kind: type[Any], address: int) -> None:
    with suppress(Exception):  # the interpreter is ending
        given = _given.pop(kind.from_address(address).context, None)
        if given is not None:
            given.release()


_delete = _Deleter(lambda address: _drop(_Managed, address))
_delete_versioned = _Deleter(lambda address: _drop(_Versioned, address))


def _end(capsule: int) -> None:
    """Drop a capsule that no one has taken."""
    with suppress(Exception):
        for name, kind in _NAMES.items():
            if _is_valid(capsule, name):
                _drop(kind, _pointer(capsule, name))


_destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end)
for _function_of_c in (_delete, _delete_versioned, _destroy):
    # Other libraries may call them after this module has ended.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function_of_c))
