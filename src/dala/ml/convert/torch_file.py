"""Weights in torch's files, read without torch and without running what the file says.

A pickle can name any function of Python and have it called. Here it can name tensors, ordered
dicts and modules of networks, which become plain records; everything else is refused by name.
"""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, Final

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
_OBJECT_MODULES: Final = (
    "torch.nn.",
    "models.",
    "torchvision.",
    "numpy.core.multiarray",
    "numpy._core.multiarray",
)
#: NumPy's own arrays in a file become records too: nothing here needs them.
_NUMPY: Final = ("ndarray", "dtype")
#: All arrays of a file together are at most so many times its size: some share their storage.
_ROOM: Final = 8


class PickledObject:
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

    def __init__(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> None:
        whole = [offset, *size, *stride]
        if not isinstance(storage, _Storage) or len(size) != len(stride) or len(size) > 32:
            raise pickle.UnpicklingError("a tensor over no storage, or of no shape")
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in whole):
            raise pickle.UnpicklingError("a tensor whose place is told by no whole numbers")
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)


class _Maker:
    """A function that a file may call. No file can change it: it takes no state."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("the file gives a state to a function")


def _encode(text: Any, *_: Any) -> bytes:
    """Bytes that an old protocol wrote as text."""
    if not isinstance(text, str):
        raise pickle.UnpicklingError("bytes that are written as no text")
    return text.encode("latin-1")


def _parameter(data: Any, *_: Any) -> Any:
    return data


def _key(value: Any) -> Any:
    """A key of a dict or a member of a set: never a tuple, which may be nested without end, and
    hashing that runs Python out of its stack.
    """
    if not isinstance(value, str | bytes | int | float | None):
        raise pickle.UnpicklingError(f"a key that is a {type(value).__name__}")
    return value


def _ordered(pairs: Any = ()) -> Any:
    return OrderedDict((_key(k), v) for k, v in pairs)


def _set(items: Any = ()) -> Any:
    return {_key(item) for item in items}


def _size(items: Any = ()) -> Any:
    return tuple(items)


_FUNCTIONS: Final = {
    ("collections", "OrderedDict"): _Maker(_ordered),
    ("torch._utils", "_rebuild_tensor_v2"): _Maker(_Tensor),
    ("torch._utils", "_rebuild_parameter"): _Maker(_parameter),
    ("torch", "Size"): _Maker(_size),
    ("_codecs", "encode"): _Maker(_encode),
    ("builtins", "set"): _Maker(_set),
    ("__builtin__", "set"): _Maker(_set),
}


#: What the unpickler does for each opcode.
_STEPS: Final[dict[int, Any]] = dict(pickle._Unpickler.dispatch)


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler in Python: that in C can be made to fill the memory by one opcode."""

    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        """The few names a file of weights may use."""
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        found = _FUNCTIONS.get((module, name))
        if found is not None:
            return found
        if module.startswith(_OBJECT_MODULES) or (module == "numpy" and name in _NUMPY):
            return type(name, (PickledObject,), {"kind": f"{module}.{name}"})
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """A reference to a storage: ("storage", kind, key, device, count)."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a reference to something that is no storage")
        _, kind, key, _, count = pid[:5]
        if kind not in _STORAGES.values() or not isinstance(key, str) or type(count) is not int:
            raise pickle.UnpicklingError("a storage of no known kind")
        return _Storage(key, kind, count)

    def _set_item(self) -> None:
        _key(self.stack[-2])
        _STEPS[pickle.SETITEM[0]](self)

    def _set_items(self) -> None:
        for key in self.stack[::2]:
            _key(key)
        _STEPS[pickle.SETITEMS[0]](self)

    def _add_items(self) -> None:
        for item in self.stack:
            _key(item)
        _STEPS[pickle.ADDITEMS[0]](self)

    def _frozen_set(self) -> None:
        for item in self.stack:
            _key(item)
        _STEPS[pickle.FROZENSET[0]](self)

    def _dict(self) -> None:
        for key in self.stack[::2]:
            _key(key)
        _STEPS[pickle.DICT[0]](self)

    def _refused(self) -> None:
        raise pickle.UnpicklingError("an array of bytes, which torch's files do not have")

    def _build(self) -> None:
        if not isinstance(self.stack[-2], PickledObject | OrderedDict):
            raise pickle.UnpicklingError("a state for something that has none")
        if isinstance(self.stack[-2], OrderedDict):  # attributes of a dict: nothing needs them
            self.stack.pop()
            return
        _STEPS[pickle.BUILD[0]](self)

    dispatch: ClassVar[dict[int, Any]] = {
        **_STEPS,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
        pickle.ADDITEMS[0]: _add_items,
        pickle.FROZENSET[0]: _frozen_set,
        pickle.DICT[0]: _dict,
        pickle.BUILD[0]: _build,
        pickle.BYTEARRAY8[0]: _refused,  # its length is believed before anything is read
    }


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
        return _Filling(read, _ROOM * len(data)).filled(found)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"read_torch: not a file of weights, or a damaged one: {type(error).__name__}: "
            f"{str(error)[:300]}"
        ) from None


def _from_zip(data: bytes) -> tuple[Any, Callable[[_Storage], Any]]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [name for name in archive.namelist() if name.endswith("data.pkl")]
    if not names:
        raise pickle.UnpicklingError("there is no data.pkl in it")
    folder = names[0].removesuffix("data.pkl")
    arrays: dict[str, bytes] = {}

    def member(name: str) -> bytes:
        # torch does not compress, so a part that claims to be larger than the file is a trap.
        facts = archive.getinfo(name)
        if facts.compress_type != zipfile.ZIP_STORED or facts.file_size > len(data):
            raise pickle.UnpicklingError(f"{name} is compressed, which torch's files never are")
        return archive.read(facts)

    def read(storage: _Storage) -> Any:
        if storage.key not in arrays:
            arrays[storage.key] = member(f"{folder}data/{storage.key}")
        raw = arrays[storage.key]
        return np.frombuffer(raw, storage.dtype, len(raw) // storage.dtype.itemsize)

    return _Unpickler(io.BytesIO(member(names[0]))).load(), read


def _from_old(data: bytes) -> tuple[Any, Callable[[_Storage], Any]]:
    file = io.BytesIO(data)
    if _Unpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("it does not begin as torch's files do")
    _Unpickler(file).load()  # the format's version
    _Unpickler(file).load()  # facts of the machine
    found = _Unpickler(file).load()
    keys = _Unpickler(file).load()
    sizes: dict[str, np.dtype[Any]] = {}
    _walk(found, lambda t: sizes.setdefault(t.storage.key, t.storage.dtype), set())
    arrays: dict[str, Any] = {}
    for key in map(str, keys):
        count = int.from_bytes(file.read(8), "little")
        dtype = sizes.get(key)
        if dtype is None:
            raise pickle.UnpicklingError(f"storage {key} belongs to no tensor")
        if count * dtype.itemsize > len(data) - file.tell():
            raise pickle.UnpicklingError(f"storage {key} is longer than the file")
        arrays[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return found, lambda s: arrays[s.key].view(s.dtype)


def _walk(value: Any, visit: Callable[[_Tensor], Any], seen: set[int]) -> None:
    """Visits every tensor in nested things, each once."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, _Tensor):
        visit(value)
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            _walk(item, visit, seen)


class _Filling:
    """Puts arrays in place of tensors. What is named twice is made once, so a small file cannot
    name itself to a large one; and all arrays together have ``room`` bytes.
    """

    def __init__(self, read: Callable[[_Storage], Any], room: int) -> None:
        self.read, self.room = read, room
        #: Results by the id of what they are of, which is kept, so that ids stay its own.
        self.seen: dict[int, tuple[Any, Any]] = {}

    def filled(self, value: Any) -> Any:
        """The same with arrays in place of tensors."""
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        made: Any = value
        if isinstance(value, _Tensor):
            made = self.array(value)
        elif isinstance(value, dict):
            made = type(value)()
            self.seen[id(value)] = value, made
            made.update((k, self.filled(v)) for k, v in value.items())
        elif isinstance(value, list):
            made = []
            self.seen[id(value)] = value, made
            made.extend(map(self.filled, value))
        elif isinstance(value, tuple):
            made = tuple(map(self.filled, value))
        elif isinstance(value, PickledObject):
            self.seen[id(value)] = value, value
            for name, item in list(value.__dict__.items()):
                value.__dict__[name] = self.filled(item)
        self.seen[id(value)] = value, made
        return made

    def array(self, tensor: _Tensor) -> Any:
        """The numbers of a tensor."""
        flat = self.read(tensor.storage)
        count = math.prod(tensor.size)
        places = zip(tensor.size, tensor.stride, strict=True)
        last = tensor.offset + sum((n - 1) * step for n, step in places)
        if count and (last >= flat.size or count > flat.size):
            raise pickle.UnpicklingError("a tensor reaches beyond its storage")
        self.room -= count * flat.itemsize
        if self.room < 0:
            raise pickle.UnpicklingError("its tensors are many times larger than the file")
        if not count:
            return np.zeros(tensor.size, flat.dtype)
        strides = tuple(step * flat.itemsize for step in tensor.stride)
        part = flat[tensor.offset :]
        return np.lib.stride_tricks.as_strided(part, tensor.size, strides).copy()
