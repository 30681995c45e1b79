"""WGSL identifiers, literals and lines."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from typing import Final

import numpy as np

from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_names
from dala.gpu.compute.lang.ir import Param

#: The WGSL type of each type of the IR.
WGSL_TYPE: Final = {
    "bool": "bool", "s32": "i32", "u32": "u32", "s64": "i64", "f32": "f32", "f64": "f64",
}  # fmt: skip

#: Reserved words of WGSL, and words that the generated code uses.
_WORDS: Final = """
    alias array atomic bitcast bool break case const const_assert continue continuing default
    diagnostic discard else enable f16 f32 f64 false fn for i32 i64 if let loop mat2x2 mat3x3
    mat4x4 override ptr requires return sampler struct switch texture true u32 u64 var vec2 vec3
    vec4 while abs acos all any asin atan atan2 ceil clamp cos cosh cross dot exp exp2 floor fma
    fract ldexp length log log2 max min mix modf normalize pow round select sign sin sinh smoothstep
    sqrt step tan tanh transpose trunc
    NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
    cast catch class co_await co_return co_yield coherent column_major common compile
    compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype
    delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
    fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements
    import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module
    move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent
    noperspective null nullptr of operator package packoffset partial pass patch pixelfragment
    precise precision premerge priv protected pub public readonly ref regardless register
    reinterpret_cast require resource restrict self set shared sizeof smooth snorm static
    static_assert static_cast std subroutine super target template this thread_local throw trait
    try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying
    virtual volatile wgsl where with writeonly yield
    p output kernel main Block left over
"""

#: Words used outside the kernel's function.
_MAIN_WORDS: Final = "group groups lane at e i q r row column tile strip result"

_NUMBERED: Final = ("d", "e", "r", "up", "rest")


def bindings(
    read: Iterable[str], write: Iterable[str], block: str = "Block", first: int = 0
) -> list[str]:
    """Return the declarations of buffers ("name: type") and of the uniform block ``p``.

    >>> bindings(["a: array<u32>"], [], "Numbers")[1]
    '@group(0) @binding(1) var<uniform> p: Numbers;'
    """
    kinds = [f"<storage, read> {text}" for text in read]
    kinds += [f"<storage, read_write> {text}" for text in write]
    every = [*kinds, f"<uniform> p: {block}"]
    return [f"@group(0) @binding({k}) var{text};" for k, text in enumerate(every, first)]


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Return lines indented by some levels."""
    return ["    " * depth + line for line in lines]


def text_of(lines: Iterable[str], depth: int = 1) -> str:
    """Return lines, indented by some levels, as text."""
    return "\n".join(indented(lines, depth))


class Names:
    """Generates unique WGSL identifiers."""

    def __init__(self) -> None:
        self._taken = set(_WORDS.split()) | helper_names()
        self._around = set(_MAIN_WORDS.split())
        self._around |= {f"{word}{n}" for word in _NUMBERED for n in range(16)}
        self._count = 0

    def new(self, wish: str) -> str:
        """Return ``wish`` if it is valid and free, else a similar identifier."""
        plain = re.sub(r"[^0-9A-Za-z_]", "", wish).strip("_")
        if not plain or plain[0].isdigit():
            plain = "v" + plain
        name, n = plain, 1
        while name in self._taken or name in self._around:
            n += 1
            name = f"{plain}_{n}"
        self._taken.add(name)
        return name

    def inner(self) -> Names:
        """Return names for the kernel's function, where the words used outside it are free."""
        names = Names()
        names._taken, names._around = set(self._taken), set()
        return names

    def number(self) -> str:
        """Return the next of t1, t2, ..."""
        self._count += 1
        while f"t{self._count}" in self._taken:
            self._count += 1
        return f"t{self._count}"


def param_member(param: Param, prefix: str) -> tuple[str, str]:
    """Return a name for a parameter in the uniform block, and its type there."""
    component = "" if param.component is None else f"_{param.component}"
    kind = "u32" if param.type == "bool" else WGSL_TYPE[param.type]
    return f"{prefix}_{param.name}{component}", kind


def literal(number: int | float, type_: str, helpers: set[str]) -> str:
    """Return a number of an IR type as WGSL text with exactly the same value."""
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "s32":
        return "i32(-2147483648)" if number == -(1 << 31) else f"{int(number)}i"
    if type_ == "u32":
        return f"{int(number)}u"
    if type_ == "s64":
        if number == -(1 << 63):
            return "(-9223372036854775807li - 1li)"
        return f"{int(number)}li"
    with np.errstate(over="ignore"):
        value = np.float32(number) if type_ == "f32" else np.float64(number)
    if not math.isfinite(value):
        helpers.add(f"bits_{type_}")
        if type_ == "f32":
            return f"bits_f32(0x{struct.unpack('<I', value.tobytes())[0]:08x}u)"
        return f"bits_f64(0x{struct.unpack('<Q', value.tobytes())[0]:016x}lu)"
    return f"{value!s}{'f' if type_ == 'f32' else 'lf'}"
