"""Levels of instructions, which decide how sums are rounded; how a common level is chosen.

Floats may differ in their last bits between processors: one with fused operations rounds once where
others round twice. Sums have one order at every level, so levels with fused operations compute the
same.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from typing import Final

from dala.errors import ParameterError

X86: Final = ("x86_64", "amd64")
_AVX2: Final = ("sse4.1", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
_AVX512: Final = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
#: The levels that can be chosen, highest first: LLVM's name, and the features that code is for.
LEVELS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "avx512": ("x86-64-v4", _AVX512),
    "avx2": ("x86-64-v3", _AVX2),
    "sse": ("x86-64", ()),
}


def level_of(features: Mapping[str, bool]) -> str:
    """Return the level of a processor with some features; "" where there are none to choose from.

    >>> level_of({"avx": True, "avx2": True, "fma": True}) if is_x86() else "avx2"
    'avx2'
    """
    if not is_x86():
        return ""
    if features.get("avx512f"):
        return "avx512" if features.get("avx512bw") and features.get("fma") else "avx512f"
    fused = bool(features.get("fma"))
    if features.get("avx2"):
        return "avx2" if fused else "avx2 without fma"
    if features.get("avx"):
        return "avx with fma" if fused else "avx"
    return "sse"


def is_x86() -> bool:
    """Return whether this is a processor with levels."""
    return platform.machine().lower() in X86


def chosen_level(features: Mapping[str, bool]) -> str:
    """Return the level that DALA_CPU asks for; "" to use all that the processor has.

    Args:
        features: those of this processor.

    Raises:
        ParameterError: there is no such level, or this processor has less.
    """
    wanted = os.environ.get("DALA_CPU", "").strip().lower()
    if not wanted:
        return ""
    there = [
        name for name, (_, needed) in LEVELS.items() if is_x86() and all(map(features.get, needed))
    ]
    if wanted not in there:
        raise ParameterError.invalid(
            "cpu", "DALA_CPU", " or ".join(there) or "unset on this processor", wanted
        )
    return wanted


def level() -> str:
    """Return the level that kernels of this process are compiled for.

    >>> level() in ("", *LEVELS) or "avx" in level()
    True
    """
    features = host_features()
    return chosen_level(features) or level_of(features)


@cache
def host_features() -> Mapping[str, bool]:
    """Return the features of this processor, by LLVM's names; none where they are unknown."""
    import llvmlite.binding as llvm

    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:
        return {}
