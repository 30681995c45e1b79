"""The compiler of the executor, for those who have to have it before they start threads."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.jit import jit


def prepare() -> None:
    """Imports and makes it: a fork in the middle of that would leave the child with half of it."""
    jit()
