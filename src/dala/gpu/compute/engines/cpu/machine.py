"""Properties of the CPU that generated code depends on."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.cpu.level import is_x86

_OTHERS: Final = ("packuswb", "pshuf.b", "pavg.w")


@dataclass(frozen=True, slots=True)
class Machine:
    """The vector size, and the intrinsics; "" for missing ones."""

    #: Bytes of a vector of row functions; LLVM splits vectors that are wider than the CPU's own.
    vector: int = 32
    #: Numbers of 16 bits in the vectors that the intrinsics take.
    lanes: int = 0
    #: True where non-temporal stores exist (x86).
    streams: bool = False
    #: Looks up 64 bytes in a table of 128.
    lookup: str = ""
    #: Function attributes, such as the vector width to use.
    attributes: str = ""
    #: The instruction of waiting loops, as LLVM IR.
    pause: str = ""
    #: Products of signed 16-bit numbers, added in pairs.
    pairs: str = ""
    #: Packs two vectors of 32-bit numbers to signed 16 bits, in groups of 16 bytes.
    to_words: str = ""
    #: Rounded products of signed 16-bit fractions.
    q15: str = ""
    #: Products of unsigned and signed bytes, added in pairs.
    byte_pairs: str = ""
    #: Packs two vectors of 16-bit numbers to bytes, in groups of 16 bytes.
    to_bytes: str = ""
    #: Looks up bytes in a table of 16, where their highest bit is 0.
    shuffle: str = ""
    #: Half the sum of two 16-bit numbers and one.
    average: str = ""

    @property
    def pair_product(self) -> str:
        """The intrinsic ``pairs``, if it takes the vectors of row functions."""
        return self.pairs if 2 * self.lanes == self.vector else ""

    @staticmethod
    def of(features: Mapping[str, bool]) -> Machine:
        """Return the properties of a CPU of this kind that has some features."""
        if platform.machine().lower() in ("arm64", "aarch64"):
            # "yield" does nothing on most of them; a barrier takes about as long as x86's pause.
            return Machine(pause="call void @llvm.aarch64.isb(i32 15)")
        if not is_x86():
            return Machine()
        wide, lookup = features.get("avx512f", False), ""
        form, lanes = "x86.sse2.{}", 8
        names = ["pmadd.wd", "packssdw.128", *[""] * 5]
        if wide and features.get("avx512bw"):
            form, lanes = "x86.avx512.{}.512", 32
            names = ["pmaddw.d", "packssdw", "pmul.hr.sw", "pmaddubs.w", *_OTHERS]
            lookup = "x86.avx512.vpermi2var.qi.512" if features.get("avx512vbmi") else ""
        elif features.get("avx2") and not wide:
            form, lanes = "x86.avx2.{}", 16
            names = ["pmadd.wd", "packssdw", "pmul.hr.sw", "pmadd.ub.sw", *_OTHERS]
        found = [form.format(name) if name else "" for name in names]
        attributes = '"prefer-vector-width"="512" ' if wide else ""
        pause = "call void @llvm.x86.sse2.pause()"
        return Machine(64 if wide else 32, lanes, True, lookup, attributes, pause, *found)
