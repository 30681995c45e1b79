"""Early creation of the native compiler."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.jit import jit


def prepare() -> None:
    """Create the compiler before threads start: a fork meanwhile would break the child."""
    jit()
