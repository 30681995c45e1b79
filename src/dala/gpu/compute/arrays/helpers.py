"""Kernels that the kernels of expressions call."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.parser import declare

#: Integer powers wrap around. A negative exponent gives the power truncated to an integer.
_INT_POWER: Final = """
def int_power(x, n):
    result = like(x, 1)
    base = x
    left = n
    for i in range(64):
        if left <= 0:
            break
        if left % 2 == 1:
            result = result * base
        base = base * base
        left = left // 2
    if n < 0:
        if x * x != 1:
            result = like(x, 0)
        else:
            result = like(x, 1)
            if n % 2 != 0:
                result = x
    return result
"""


@cache
def helper(name: str) -> KernelDecl | None:
    """Return the helper with a name, or None."""
    if name != "int_power":
        return None
    return declare(sources.from_text(_INT_POWER, name), lookup=lambda free: None)
