"""Values and places of a function that is translated, and the text of LLVM constants."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from dala.gpu.compute.engines.webgpu.cuda.types import WgslScalar, WgslType


@dataclass(frozen=True, slots=True)
class WgslValue:
    """A result: its type, its LLVM text, and its number if that is known."""

    kind: WgslType
    text: str
    number: int | float | None = None


@dataclass(frozen=True, slots=True)
class WgslPlace:
    """Memory: the type of its content, its address, and LLVM's type of the address."""

    kind: WgslType
    address: str
    pointer: str = "ptr"
    #: The number of elements of a buffer's array, as LLVM text.
    length: str = ""


def constant(kind: WgslScalar, number: int | float) -> WgslValue:
    """Return a number of a type.

    >>> constant(WgslScalar("f32"), 0.5).text, constant(WgslScalar("i32"), -3).text
    ('0x3fe0000000000000', '-3')
    """
    if kind.name == "f16":
        return WgslValue(kind, f"0xH{np.float16(number).view(np.uint16):04X}", float(number))
    if kind.floating and not kind.abstract:
        exact = float(np.float32(number)) if kind.name == "f32" else float(number)
        return WgslValue(kind, "0x" + struct.pack(">d", exact).hex(), exact)
    if kind.name == "bool":
        return WgslValue(kind, "true" if number else "false", number)
    if kind.abstract:
        return WgslValue(kind, "", number)
    bits, whole = kind.bits, int(number)
    whole &= (1 << bits) - 1
    if kind.signed and whole >> (bits - 1):
        whole -= 1 << bits
    return WgslValue(kind, str(whole), whole)


def literal(token: str) -> WgslValue:
    """Return the value of a number in a text.

    >>> literal("0xffu").number, literal("1.5f").kind.name, literal("3").kind.name
    (255, 'f32', 'int')
    """
    names = {"li": "i64", "lu": "u64", "lf": "f64", "i": "i32", "u": "u32", "f": "f32", "h": "f16"}
    hexadecimal = token[:2] in ("0x", "0X")
    for suffix, name in names.items():
        if token.endswith(suffix) and not (hexadecimal and suffix == "f"):
            digits = token[: -len(suffix)]
            kind = WgslScalar(name)
            return constant(kind, float(digits) if kind.floating else int(digits, 0))
    if hexadecimal or token.isdecimal():
        return WgslValue(WgslScalar("int"), "", int(token, 0))
    return WgslValue(WgslScalar("float"), "", float(token))
