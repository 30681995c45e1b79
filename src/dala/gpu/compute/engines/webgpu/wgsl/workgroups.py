"""The workgroup memory of a shader, which wgpu does not compare with the device's limit."""

from __future__ import annotations

import re
from typing import Final

_VARIABLE: Final = re.compile(r"var\s*<\s*workgroup\s*>\s*\w+\s*:\s*([^;=]+)")
_CONSTANT: Final = re.compile(r"const\s+(\w+)\s*(?::\s*\w+\s*)?=\s*(\w{1,12})\s*;")
_ARRAY: Final = re.compile(r"array\s*<(.*),\s*(\w{1,99})\s*,?\s*>", re.DOTALL)
_NUMBER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[iu]?")
_VECTOR: Final = re.compile(r"vec([234])\s*<\s*(\w+)\s*>")

_BYTES: Final = {"f64": 8, "i64": 8, "u64": 8, "f16": 2, "bool": 4}
_SHORT: Final = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}


def workgroup_bytes(source: str) -> int:
    """Return the workgroup memory that a shader declares, in bytes.

    Types and sizes of arrays are plain, as in our shaders; others (structures, sizes computed from
    constants) count as nothing.

    >>> workgroup_bytes("const n = 4u; var<workgroup> a: array<vec4<f32>, n>;")
    64
    >>> workgroup_bytes("var<workgroup> a: array<atomic<u32>, 32>; var<workgroup> b: atomic<u32>;")
    132
    """
    if "workgroup>" not in source:
        return 0
    constants = {name: _number(text) for name, text in _CONSTANT.findall(source)}
    return sum(_size(text.strip(), constants) for text in _VARIABLE.findall(source))


def _size(text: str, constants: dict[str, int]) -> int:
    array = _ARRAY.fullmatch(text)
    if array is not None:
        count = constants.get(array[2]) or _number(array[2])
        return count * _size(array[1].strip(), constants)
    return _plain_size(text)


def _number(text: str) -> int:
    found = _NUMBER.fullmatch(text)
    return 0 if found is None else int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10)


def _plain_size(text: str) -> int:
    text = re.sub(r"vec([234])([fiuh])\b", lambda m: f"vec{m[1]}<{_SHORT[m[2]]}>", text)
    vector = _VECTOR.fullmatch(text)
    if vector is not None:
        n = int(vector[1])
        return (4 if n == 3 else n) * _plain_size(vector[2])  # a vec3 is padded in arrays
    if re.fullmatch(r"atomic\s*<\s*[iu]32\s*>|[fiu]32", text):
        return 4
    return _BYTES.get(text, 0)
