"""Weights in torch's files, read without torch and without running what the file says.

A pickle can name any function of Python and have it called. Here it can name tensors, ordered
dicts and modules of networks, which become plain records; everything else is refused by name.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dala.errors import ModelError

_STORAGES: Final = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
#: How an old file begins: a pickled number.
_MAGIC: Final = 0x1950A86A20F9469CFC6C
#: Modules whose classes become records.
_RECORDS: Final = (
    "torch.nn.",
    "models.",
    "torchvision.",
    "numpy.core.multiarray",
    "numpy._core.multiarray",
)
#: NumPy's own arrays in a file become records too: nothing here needs them.
_NUMPY: Final = ("ndarray", "dtype")


class Record:
    """What is left of an object: its class's name and its attributes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.made_with = args

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {"state": state})

    kind = ""


class _Storage:
    """Numbers of a file that are not read yet."""

    def __init__(self, key: str, dtype: str, count: int) -> None:
        self.key, self.dtype, self.count = key, np.dtype(dtype), count


class _Tensor:
    """Where a tensor's numbers lie."""

    def __init__(self, storage: _Storage, offset: int, size: Any, stride: Any) -> None:
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor over no storage")
    return _Tensor(storage, offset, size, stride)


def _encode(text: Any, *_: Any) -> bytes:
    """Bytes that an old protocol wrote as text."""
    return str(text).encode("latin-1")


def _parameter(data: Any, *_: Any) -> Any:
    return data


_FUNCTIONS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): tuple,
    ("_codecs", "encode"): _encode,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The few names a file of weights may use."""
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        found = _FUNCTIONS.get((module, name))
        if found is not None:
            return found
        if module.startswith(_RECORDS) or (module == "numpy" and name in _NUMPY):
            return type(name, (Record,), {"kind": f"{module}.{name}"})
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """A reference to a storage: ("storage", kind, key, device, count)."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a reference to something that is no storage")
        return _Storage(str(pid[2]), pid[1], int(pid[4]))


def read_torch(data: bytes) -> Any:
    """What ``torch.save`` put into a file: dicts, records and arrays.

    Raises:
        ModelError: it is no such file, a damaged one, or one that asks for more than weights.
    """
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            found, read = _from_zip(data)
        else:
            found, read = _from_old(data)
        return _filled(found, read, {})
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"read_torch: not a file of weights, or a damaged one: {type(error).__name__}: {error}"
        ) from None


def _from_zip(data: bytes) -> tuple[Any, Callable[[_Storage], Any]]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [name for name in archive.namelist() if name.endswith("data.pkl")]
    folder = names[0].removesuffix("data.pkl")
    found = _Unpickler(io.BytesIO(archive.read(names[0]))).load()
    return found, lambda s: np.frombuffer(archive.read(f"{folder}data/{s.key}"), s.dtype)


def _from_old(data: bytes) -> tuple[Any, Callable[[_Storage], Any]]:
    file = io.BytesIO(data)
    if _Unpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("it does not begin as torch's files do")
    _Unpickler(file).load()  # the format's version
    _Unpickler(file).load()  # facts of the machine
    found = _Unpickler(file).load()
    keys = _Unpickler(file).load()
    sizes: dict[str, np.dtype[Any]] = {}
    _walk(found, lambda t: sizes.setdefault(t.storage.key, t.storage.dtype))
    arrays: dict[str, Any] = {}
    for key in map(str, keys):
        count = int.from_bytes(file.read(8), "little")
        dtype = sizes.get(key)
        if dtype is None:
            raise pickle.UnpicklingError(f"storage {key} belongs to no tensor")
        arrays[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return found, lambda s: arrays[s.key]


def _walk(value: Any, visit: Callable[[_Tensor], Any]) -> None:
    """Visits every tensor in nested things."""
    if isinstance(value, _Tensor):
        visit(value)
    elif isinstance(value, dict):
        for item in value.values():
            _walk(item, visit)
    elif isinstance(value, list | tuple):
        for item in value:
            _walk(item, visit)


def _filled(value: Any, read: Callable[[_Storage], Any], seen: dict[int, Any]) -> Any:
    """The same with arrays in place of tensors."""
    if isinstance(value, _Tensor):
        flat = read(value.storage)
        strides = tuple(s * flat.itemsize for s in value.stride)
        last = value.offset + sum(
            (n - 1) * s for n, s in zip(value.size, value.stride, strict=True)
        )
        if 0 not in value.size and not 0 <= last < flat.size:
            raise pickle.UnpicklingError("a tensor reaches beyond its storage")
        part = flat[value.offset :]
        return np.lib.stride_tricks.as_strided(part, value.size, strides).copy()
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, dict):
        seen[id(value)] = made = type(value)()
        made.update((k, _filled(v, read, seen)) for k, v in value.items())
        return made
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, read, seen) for item in value)
    if isinstance(value, Record):
        seen[id(value)] = value
        for name, item in list(value.__dict__.items()):
            value.__dict__[name] = _filled(item, read, seen)
    return value
