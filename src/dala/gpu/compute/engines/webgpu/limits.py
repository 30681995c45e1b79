"""The limits that a device is asked for: the adapter's own, or those of a class of devices.

``DALA_WEBGPU_LIMITS=default`` asks for no more than every WebGPU browser gives, and ``downlevel``
for no more than OpenGL ES 3.1 does, as phones and small boards have it. wgpu then refuses whatever
exceeds them, so that a program can be tried on a large machine for a small one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dala.errors import ParameterError

#: The environment variable that names a class of limits.
VARIABLE: Final = "DALA_WEBGPU_LIMITS"

#: The limit that programs meet first.
STORAGE_BUFFERS: Final = "max-storage-buffers-per-shader-stage"
#: The memory that the invocations of a workgroup share, in bytes; wgpu does not check it.
WORKGROUP_MEMORY: Final = "max-compute-workgroup-storage-size"

#: What WebGPU guarantees, from its specification; the last three are of wgpu.
DEFAULT: Final[Mapping[str, int]] = MappingProxyType({
    "max-texture-dimension-1d": 8192,
    "max-texture-dimension-2d": 8192,
    "max-texture-dimension-3d": 2048,
    "max-texture-array-layers": 256,
    "max-bind-groups": 4,
    "max-bind-groups-plus-vertex-buffers": 24,
    "max-bindings-per-bind-group": 1000,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "max-sampled-textures-per-shader-stage": 16,
    "max-samplers-per-shader-stage": 16,
    "max-storage-buffers-per-shader-stage": 8,
    "max-storage-textures-per-shader-stage": 4,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-uniform-buffer-binding-size": 64 << 10,
    "max-storage-buffer-binding-size": 128 << 20,
    "min-uniform-buffer-offset-alignment": 256,
    "min-storage-buffer-offset-alignment": 256,
    "max-vertex-buffers": 8,
    "max-buffer-size": 256 << 20,
    "max-vertex-attributes": 16,
    "max-vertex-buffer-array-stride": 2048,
    "max-inter-stage-shader-variables": 16,
    "max-color-attachments": 8,
    "max-color-attachment-bytes-per-sample": 32,
    "max-compute-workgroup-storage-size": 16 << 10,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
    "max-immediate-size": 0,
    "max-non-sampler-bindings": 1_000_000,
    "max-binding-array-elements-per-shader-stage": 0,
    "max-binding-array-sampler-elements-per-shader-stage": 0,
})  # fmt: skip

#: What wgpu counts on where there is OpenGL ES 3.1 and compute shaders. Some Metal drivers take 32
#: bytes of workgroup memory for themselves.
DOWNLEVEL: Final[Mapping[str, int]] = MappingProxyType({
    **DEFAULT,
    "max-texture-dimension-1d": 2048,
    "max-texture-dimension-2d": 2048,
    "max-texture-dimension-3d": 256,
    "max-storage-buffers-per-shader-stage": 4,
    "max-uniform-buffer-binding-size": 16 << 10,
    "max-inter-stage-shader-variables": 15,
    "max-color-attachments": 4,
    "max-compute-workgroup-storage-size": (16 << 10) - 32,
})  # fmt: skip

CLASSES: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {"default": DEFAULT, "downlevel": DOWNLEVEL}
)


def limits_class() -> str:
    """Return the class that ``DALA_WEBGPU_LIMITS`` names, or "" for the adapters' own limits.

    Raises:
        ParameterError: there is no such class.

    >>> limits_class() in ("", *CLASSES)
    True
    """
    name = os.environ.get(VARIABLE, "").strip()
    if name and name not in CLASSES:
        raise ParameterError.invalid(
            "webgpu", VARIABLE, " or ".join(CLASSES), name, "Unset it for the adapter's own limits."
        )
    return name


def within(own: Mapping[str, int], name: str) -> dict[str, int]:
    """Return an adapter's limits, lowered to those of a class; "" leaves them as they are.

    A limit that an adapter does not reach stays the adapter's own.

    >>> own = {"max-buffer-size": 1 << 31, "min-uniform-buffer-offset-alignment": 32}
    >>> within(own, "default")
    {'max-buffer-size': 268435456, 'min-uniform-buffer-offset-alignment': 256}
    """
    most = CLASSES.get(name, {})
    return {
        key: (max if key.startswith("min-") else min)(value, most.get(key, value))
        for key, value in own.items()
    }


def largest_buffer(limits: Mapping[str, int]) -> tuple[int, str]:
    """Return the largest buffer that a kernel can use, and the limit that decides it.

    Shaders count bytes in u32. Sizes are whole vec4, of 16 bytes.

    >>> largest_buffer(DEFAULT)
    (134217728, 'max-storage-buffer-binding-size')
    """
    name = min("max-storage-buffer-binding-size", "max-buffer-size", key=limits.__getitem__)
    return min(limits[name], (1 << 32) - 1) & ~15, name


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
