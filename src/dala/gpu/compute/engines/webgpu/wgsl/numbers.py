"""Write WGSL that reads buffers of any dtype as numbers to compute with, one or four at a time.

A *unit* is one number, or four neighbors as a vec4. The types to compute with are f32, f64, i32,
u32 and i64; bytes are u32. The shaders have a uniform block ``p`` with a member ``zero``, which is
0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE

#: The WGSL type of a buffer's numbers by dtype; bytes are stored four to a word.
STORED: Final = {**WGSL_TYPE, "u8": "u32"}
#: Bytes of each WGSL type.
SIZE: Final = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u32": 4}


def vector(kind: str, width: int) -> str:
    """Return the type of a unit."""
    return kind if width == 1 else f"vec4<{kind}>"


def bound(number: int, name: str, kind: str, *, write: bool = False) -> str:
    """Return the declaration of a buffer."""
    access = "read_write" if write else "read"
    return f"@group(0) @binding({number}) var<storage, {access}> {name}: array<{kind}>;\n"


def converted(x: str, stored: str, kind: str, width: int) -> str:
    """Return the expression that converts a unit to another type."""
    if stored == kind:
        return x
    if (stored, kind) == ("i32", "u32"):
        return f"bitcast<{vector(kind, width)}>({x})"
    if (stored, kind) == ("u32", "i64"):
        return f"i64(u64({x}))"  # i64(u32) extends the sign on some compilers
    return f"{vector(kind, width)}({x})"


def reading(number: int, name: str, dtype: str, kind: str, width: int) -> str:
    """Return the declaration of a buffer and ``fetch_<name>(i)``, which reads its unit ``i``."""
    stored = STORED[dtype]
    unit = vector(kind, width)
    if dtype != "u8":
        text, element = f"{name}[i]", vector(stored, width)
    elif width == 1:
        text, element = f"(({name}[i >> 2u] >> ((i & 3u) * 8u)) & 255u)", "u32"
    else:
        shifts = "vec4<u32>(0u, 8u, 16u, 24u)"
        text, element = f"((vec4<u32>({name}[i]) >> {shifts}) & vec4<u32>(255u))", "u32"
    value = converted(text, stored, kind, width)
    return (
        bound(number, name, element)
        + f"fn fetch_{name}(i: u32) -> {unit} {{\n    return {value};\n}}\n"
    )


def each(function: str, unit: str, width: int, *names: str) -> str:
    """Return an expression that applies a function to each number of a unit."""
    if width == 1:
        return f"{function}({', '.join(names)})"
    parts = (f"{function}({', '.join(f'{n}.{lane}' for n in names)})" for lane in "xyzw")
    return f"{unit}({', '.join(parts)})"


def combining(name: str, kind: str, operation: str, width: int) -> str:
    """Return ``<name>(a, b)``, the "sum", "max" or "min" of two units; NaN propagates."""
    unit = vector(kind, width)
    if operation == "sum":
        value = "a + b"
    elif kind in ("f32", "f64"):
        value = each(f"{operation}_{kind}", unit, width, "a", "b")
    elif kind == "i64":
        value = f"select(a, b, {'a < b' if operation == 'max' else 'b < a'})"
    else:
        value = f"{operation}(a, b)"
    return f"fn {name}(a: {unit}, b: {unit}) -> {unit} {{\n    return {value};\n}}\n"


def folding(name: str, combine: str, kind: str, width: int) -> str:
    """Return ``<name>(a)``, which combines the numbers of a unit."""
    unit = vector(kind, width)
    value = "a" if width == 1 else f"{combine}({combine}(a.x, a.y), {combine}(a.z, a.w))"
    return f"fn {name}(a: {unit}) -> {kind} {{\n    return {value};\n}}\n"


def neutral(kind: str, operation: str) -> str:
    """Return the neutral element; infinities are computed at run time, to avoid folding."""
    if operation == "sum":
        return f"{kind}(0)"
    if kind in ("f32", "f64"):
        bits = "0xff800000u" if operation == "max" else "0x7f800000u"
        return f"{kind}(bitcast<f32>({bits} ^ p.zero))"
    least = {"u32": "0u", "i32": "i32(-2147483648)", "i64": "(-9223372036854775807li - 1li)"}
    most = {"u32": "4294967295u", "i32": "2147483647i", "i64": "9223372036854775807li"}
    return (least if operation == "max" else most)[kind]


def declared(names: Sequence[str], *parts: str) -> str:
    """Return the uniform block (u32 numbers, ``zero`` last) and the other parts that are not ""."""
    fields = "".join(f"    {n}: u32,\n" for n in (*names, "zero"))
    return "\n".join(filter(None, (f"struct Block {{\n{fields}}}\n", *parts)))
