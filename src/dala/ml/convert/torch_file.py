"""A reader of torch files that needs no torch and executes no code in the file.

A pickle can call any Python function. This unpickler allows only tensors, ordered dicts and network
modules, which become plain :class:`PickledObject`; everything else raises an error.
"""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dala.budget import check_deadline
from dala.ml.convert import damaged
from dala.ml.convert.unpickle import Pickled, Unpickler, checked_key
from dala.typing import NDArray

_STORAGES: Final = {
    "FloatStorage": "<f4", "HalfStorage": "<f2", "DoubleStorage": "<f8", "LongStorage": "<i8",
    "IntStorage": "<i4", "ShortStorage": "<i2", "ByteStorage": "u1", "BoolStorage": "?",
}  # fmt: skip
#: The pickled number at the start of a file in the old format.
_MAGIC: Final = 0x1950A86A20F9469CFC6C
#: Modules whose classes become PickledObject.
_OBJECT_MODULES: Final = (
    "torch.nn.", "models.", "torchvision.", "numpy.core.multiarray", "numpy._core.multiarray",
)  # fmt: skip
#: NumPy arrays in a file become PickledObject too, as no model needs them.
_NUMPY: Final = ("ndarray", "dtype")
#: The size of all arrays, as a multiple of the file size, at most. Arrays can share storage.
_MAX_EXPANSION: Final = 8
#: Classes in a file, at most; a class takes a hundred times the memory of its name.
_MAX_KINDS: Final = 4096


class PickledObject:
    """An object in a pickle: the name of its class, and its attributes."""

    def __init__(self, *args: Pickled, **kwargs: Pickled) -> None:
        self.arguments = args

    def __setstate__(self, state: Pickled) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {"state": state})

    kind = ""

    if TYPE_CHECKING:  # attributes are those of the file

        def __getattr__(self, name: str) -> Pickled: ...


class _Storage(NamedTuple):
    """A storage in a file, not read yet."""

    key: str
    dtype: np.dtype[np.generic]


class _Tensor:
    """A view of a storage."""

    def __init__(
        self, storage: Pickled, offset: Pickled, size: Pickled, stride: Pickled, *_: Pickled
    ) -> None:
        whole = [offset, *size, *stride]
        if not isinstance(storage, _Storage) or len(size) != len(stride) or len(size) > 32:
            raise pickle.UnpicklingError("a tensor without storage or shape")
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in whole):
            raise pickle.UnpicklingError("a tensor whose offset, size or stride is not an int")
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)


def _encode(text: Pickled, *_: Pickled) -> bytes:
    """Return bytes that an old protocol stored as text."""
    if not isinstance(text, str):
        raise pickle.UnpicklingError("encoded bytes that are not text")
    return text.encode("latin-1")


def _ordered(pairs: Pickled = ()) -> Pickled:
    return OrderedDict((checked_key(k), v) for k, v in pairs)


def _set(items: Pickled = ()) -> Pickled:
    return {checked_key(item) for item in items}


#: The functions that a file may call.
_FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Pickled]]] = {
    ("collections", "OrderedDict"): _ordered,
    ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
    ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
    ("torch", "Size"): lambda items=(): tuple(items),
    ("_codecs", "encode"): _encode,
    ("builtins", "set"): _set,
    ("__builtin__", "set"): _set,
}


class _TorchUnpickler(Unpickler):
    """Reads the pickles of torch files."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._kinds: dict[tuple[str, str], type[PickledObject]] = {}
        #: The dtypes of the storages that were referred to, by key.
        self.dtypes: dict[str, np.dtype[np.generic]] = {}

    def find_class(self, module: str, name: str) -> Pickled:
        """Return the replacement of an allowed name; raise for all others."""
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        found = _FUNCTIONS.get((module, name))
        if found is not None:
            return found
        if module.startswith(_OBJECT_MODULES) or (module == "numpy" and name in _NUMPY):
            kind = self._kinds.get((module, name))
            if kind is None:
                if len(self._kinds) >= _MAX_KINDS:
                    raise pickle.UnpicklingError(f"more than {_MAX_KINDS:,} classes")
                kind = type(name, (PickledObject,), {"kind": f"{module}.{name}"})
                self._kinds[module, name] = kind
            return kind
        raise pickle.UnpicklingError(f"the file uses {module}.{name}")

    def persistent_load(self, pid: Pickled) -> Pickled:
        """Return the storage of a reference ("storage", kind, key, device, count)."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a reference to something other than a storage")
        _, kind, key, _, count = pid[:5]
        if kind not in _STORAGES.values() or not isinstance(key, str) or type(count) is not int:
            raise pickle.UnpicklingError("a storage of unknown kind")
        found = _Storage(key, np.dtype(kind))
        self.dtypes.setdefault(key, found.dtype)
        return found

    def create(self, function: Pickled, args: tuple[Pickled, ...]) -> Pickled:
        """Call an allowed function, or create a PickledObject."""
        kind = isinstance(function, type) and issubclass(function, PickledObject)
        if kind or any(function is allowed for allowed in _FUNCTIONS.values()):
            return function(*args)
        raise pickle.UnpicklingError(f"a call of type {type(function).__name__}")

    def set_state(self, target: Pickled, state: Pickled) -> None:
        """Set the attributes of a PickledObject; those of a dict are ignored."""
        if isinstance(target, PickledObject):
            target.__setstate__(state)
        elif not isinstance(target, OrderedDict):
            raise pickle.UnpicklingError("a state for an object without one")


def read_torch(data: bytes) -> Pickled:
    """Read a file of ``torch.save`` as dicts, arrays and PickledObject.

    Raises:
        ModelError: the file is not a torch file, is damaged, or contains more than weights.
    """
    with damaged("read_torch: not a file of weights, or damaged", Exception):
        zipped = zipfile.is_zipfile(io.BytesIO(data))
        found, read = (_from_zip if zipped else _from_old)(data)
        return _TensorReader(read, _MAX_EXPANSION * len(data)).replaced(found)


def _from_zip(data: bytes) -> tuple[Pickled, Callable[[_Storage], NDArray]]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [name for name in archive.namelist() if name.endswith("data.pkl")]
    if not names:
        raise pickle.UnpicklingError("the archive has no data.pkl")
    folder = names[0].removesuffix("data.pkl")
    arrays: dict[str, bytes] = {}
    room = len(data)

    def member(name: str) -> bytes:
        # torch does not compress, so members that are larger than the file, one or all together
        # (they may overlap), are an attack.
        nonlocal room
        facts = archive.getinfo(name)
        room -= facts.file_size
        if facts.compress_type != zipfile.ZIP_STORED or room < 0:
            raise pickle.UnpicklingError(f"{name} is compressed or larger than the file")
        return archive.read(facts)

    def read(storage: _Storage) -> NDArray:
        if storage.key not in arrays:
            arrays[storage.key] = member(f"{folder}data/{storage.key}")
        raw = arrays[storage.key]
        return np.frombuffer(raw, storage.dtype, len(raw) // storage.dtype.itemsize)

    return _TorchUnpickler(io.BytesIO(member(names[0]))).load(), read


def _from_old(data: bytes) -> tuple[Pickled, Callable[[_Storage], NDArray]]:
    file = io.BytesIO(data)
    if _TorchUnpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("the magic number is missing")
    _TorchUnpickler(file).load()  # the protocol version
    _TorchUnpickler(file).load()  # facts about the machine
    reader = _TorchUnpickler(file)
    found = reader.load()
    keys = _TorchUnpickler(file).load()
    arrays: dict[str, NDArray] = {}
    for key in map(str, keys):
        count = int.from_bytes(file.read(8), "little")
        dtype = reader.dtypes.get(key)
        if dtype is None:
            raise pickle.UnpicklingError(f"storage {key} has no tensor")
        if count * dtype.itemsize > len(data) - file.tell():
            raise pickle.UnpicklingError(f"storage {key} is longer than the file")
        arrays[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return found, lambda s: arrays[s.key].view(s.dtype)


class _TensorReader:
    """Replaces tensors by arrays. Shared objects are read once, and all arrays together take at
    most ``room`` bytes, so a small file cannot expand without limit.
    """

    def __init__(self, read: Callable[[_Storage], NDArray], room: int) -> None:
        self.read, self.room = read, room
        #: Results by id of their source, which is kept so that ids stay unique.
        self.seen: dict[int, tuple[Pickled, Pickled]] = {}

    def replaced(self, value: Pickled) -> Pickled:
        """Return a value with tensors replaced by arrays."""
        check_deadline("read_torch")
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        made: Pickled = value
        if isinstance(value, _Tensor):
            made = self.array(value)
        elif isinstance(value, dict):
            made = type(value)()
            self.seen[id(value)] = value, made
            made.update((k, self.replaced(v)) for k, v in value.items())
        elif isinstance(value, list):
            made = []
            self.seen[id(value)] = value, made
            made.extend(map(self.replaced, value))
        elif isinstance(value, tuple):
            made = tuple(map(self.replaced, value))
        elif isinstance(value, PickledObject):
            self.seen[id(value)] = value, value
            for name, item in list(value.__dict__.items()):
                value.__dict__[name] = self.replaced(item)
        self.seen[id(value)] = value, made
        return made

    def array(self, tensor: _Tensor) -> NDArray:
        """Return a tensor as an array."""
        flat = self.read(tensor.storage)
        count = math.prod(tensor.size)
        places = zip(tensor.size, tensor.stride, strict=True)
        last = tensor.offset + sum((n - 1) * step for n, step in places)
        if count and (last >= flat.size or count > flat.size):
            raise pickle.UnpicklingError("a tensor exceeds its storage")
        self.room -= count * flat.itemsize
        if self.room < 0:
            raise pickle.UnpicklingError("the tensors are much larger than the file")
        if not count:
            return np.zeros(tensor.size, flat.dtype)
        strides = tuple(step * flat.itemsize for step in tensor.stride)
        part = flat[tensor.offset :]
        return np.lib.stride_tricks.as_strided(part, tensor.size, strides).copy()
