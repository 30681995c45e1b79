"""The six dtypes, their NumPy equivalents and their other names."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DtypeError

#: A dtype: a name such as "f32" or "float32", a NumPy dtype, or a scalar type.
DtypeLike: TypeAlias = "str | type | np.dtype[np.generic]"

DTYPES: Final = ("f32", "f64", "s32", "s64", "u32", "u8")

# Any: NumPy's stubs accept no union of scalar types in iinfo and finfo.
NUMPY: Final[dict[str, np.dtype[Any]]] = {
    "f32": np.dtype("<f4"), "f64": np.dtype("<f8"), "s32": np.dtype("<i4"),
    "s64": np.dtype("<i8"), "u32": np.dtype("<u4"), "u8": np.dtype("u1"),
}  # fmt: skip

ITEMSIZE: Final = {name: dtype.itemsize for name, dtype in NUMPY.items()}

_ALIASES: Final = {
    "float": "f32", "float32": "f32", "float64": "f64", "double": "f64", "int": "s32",
    "i32": "s32", "int32": "s32", "i64": "s64", "int64": "s64", "uint32": "u32", "uint8": "u8",
    "byte": "u8",
}  # fmt: skip

_FROM_NUMPY: Final = {(dtype.kind, dtype.itemsize): name for name, dtype in NUMPY.items()}


def dtype_name(dtype: DtypeLike, *, call: str = "dtype") -> str:
    """Return the short name of a dtype, such as "f32".

    >>> dtype_name("float64"), dtype_name(np.uint8), dtype_name("s32")
    ('f64', 'u8', 's32')
    """
    if isinstance(dtype, str):
        if dtype in NUMPY:
            return dtype
        if dtype in _ALIASES:
            return _ALIASES[dtype]
    elif dtype is float:
        return "f32"
    elif dtype is int:
        return "s32"
    else:
        try:
            found = np.dtype(dtype)
        except TypeError:
            found = None
        if found is not None:
            name = _FROM_NUMPY.get((found.kind, found.itemsize))
            if name is not None:
                return name
            dtype = found.name
    expected = f"one of {', '.join(DTYPES)}, or a NumPy name such as 'float32' or 'uint8'"
    advice = "Convert the data to one of them first."
    raise DtypeError.invalid(call, "dtype", expected, dtype, advice)
