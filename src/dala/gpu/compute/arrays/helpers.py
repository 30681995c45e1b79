"""Kernels that the kernels of expressions call."""

from __future__ import annotations

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


def _declared(name: str, text: str) -> KernelDecl:
    return declare(sources.from_text(text, name), lookup=lambda free: None)


HELPERS: Final = {"int_power": _declared("int_power", _INT_POWER)}
