"""Properties of the CPU that row code depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The vector size and the intrinsics for row functions; "" for those that the CPU lacks."""

    #: Bytes of a vector; LLVM splits vectors that are wider than the CPU's own.
    vector: int
    #: High half of products of unsigned 16-bit numbers. LLVM does not recognize the instruction
    #: where one factor is computed outside of a loop.
    upper_product: str
    #: Looks up 64 bytes in a table of 128.
    lookup: str = ""
    #: Products of signed 16-bit numbers, added in pairs.
    pair_product: str = ""
    #: Products of unsigned and signed bytes, added in pairs.
    byte_product: str = ""
    #: Pack 32-bit numbers to signed 16 bits, and 16-bit numbers to bytes, in groups of 16 bytes.
    to_words: str = ""
    to_bytes: str = ""

    @staticmethod
    def of(features: Mapping[str, bool]) -> Machine:
        """Return the best choice for the features that a CPU has."""
        if features.get("avx512f") and features.get("avx512bw"):
            lookup = "x86.avx512.vpermi2var.qi.512" if features.get("avx512vbmi") else ""
            names = ("pmulhu.w", "pmaddw.d", "pmaddubs.w", "packssdw", "packuswb")
            upper, *others = (f"x86.avx512.{name}.512" for name in names)
            return Machine(64, upper, lookup, *others)
        if features.get("avx512f"):
            return Machine(64, "")
        if features.get("avx2"):
            names = ("pmulhu.w", "pmadd.wd", "pmadd.ub.sw", "packssdw", "packuswb")
            upper, *others = (f"x86.avx2.{name}" for name in names)
            return Machine(32, upper, "", *others)
        return Machine(32, "")
