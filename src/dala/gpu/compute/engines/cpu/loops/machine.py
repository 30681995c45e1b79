"""Properties of the CPU that row code depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The vector size and the intrinsics for row functions; "" for those that the CPU lacks."""

    #: Bytes of a vector; LLVM splits vectors that are wider than the CPU's own.
    vector: int
    #: Looks up 64 bytes in a table of 128.
    lookup: str = ""
    #: Products of signed 16-bit numbers, added in pairs.
    pair_product: str = ""
    #: Products of unsigned and signed bytes, added in pairs.
    byte_product: str = ""
    #: Pack 32-bit numbers to signed 16 bits, and 16-bit numbers to bytes, in groups of 16 bytes.
    to_words: str = ""
    to_bytes: str = ""
    #: Looks up bytes in a table of 16, where their highest bit is 0.
    shuffle: str = ""
    #: Half the sum of two 16-bit numbers and one.
    average: str = ""

    @staticmethod
    def of(features: Mapping[str, bool]) -> Machine:
        """Return the best choice for the features that a CPU has."""
        if features.get("avx512f") and features.get("avx512bw"):
            lookup = "x86.avx512.vpermi2var.qi.512" if features.get("avx512vbmi") else ""
            return Machine(64, *_names("x86.avx512.{}.512", "pmaddw.d", "pmaddubs.w", lookup))
        if features.get("avx2") and not features.get("avx512f"):
            return Machine(32, *_names("x86.avx2.{}", "pmadd.wd", "pmadd.ub.sw", ""))
        return Machine(64 if features.get("avx512f") else 32)


def _names(form: str, pairs: str, bytes_: str, lookup: str) -> tuple[str, ...]:
    """Return the intrinsics of a level, in the order of the fields."""
    others = pairs, bytes_, "packssdw", "packuswb", "pshuf.b", "pavg.w"
    return lookup, *(form.format(name) for name in others)
