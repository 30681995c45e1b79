"""One number in, one number out, at every position. Inputs broadcast as in NumPy.

Integers wrap around; u8 is computed wider and saturates when stored.
"""

from __future__ import annotations

from dala.gpu.compute.lang.markers import IntOrFloat

__all__ = [
    "elementwise_add",
    "elementwise_div",
    "elementwise_mul",
    "elementwise_sub",
    "relu",
    "scalar_mul",
    "sigmoid",
    "tanh",
]


def elementwise_add(a, b):
    """a + b"""
    return a + b


def elementwise_sub(a, b):
    """a - b"""
    return a - b


def elementwise_mul(a, b):
    """a * b"""
    return a * b


def elementwise_div(a, b):
    """a / b; floor division for integers, where dividing by zero gives 0"""
    return div(a, b)


def scalar_mul(x, *, scalar: IntOrFloat):
    """x * scalar; for integers exact with a whole scalar, else rounded and saturated"""
    return like(x, x * scalar)


def relu(x, *, slope=0.0):
    """x where it is above zero, else slope * x"""
    # Without a slope it is zero below, for -inf too; x <= 0 is False for NaN, which passes.
    below = like(x, x * slope) if slope != 0 else like(x, 0)
    return below if x <= 0 else x


def sigmoid(x):
    """1 / (1 + exp(-x))"""
    return 1.0 / (1.0 + exp(-float(x)))  # as a float first: -x of a u32 would wrap


def tanh(x):
    """hyperbolic tangent"""
    return tanh(x)  # the language's function, not this kernel
