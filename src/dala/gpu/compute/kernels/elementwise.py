"""Elementwise kernels. Inputs broadcast as in NumPy.

Integers wrap around; u8 is computed in a wider type and saturates when stored.
"""

from __future__ import annotations

from dala.gpu.compute.language import IntOrFloat, div, exp, like

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


def elementwise_add(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Add two buffers: a + b."""
    return a + b


def elementwise_sub(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Subtract two buffers: a - b."""
    return a - b


def elementwise_mul(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Multiply two buffers: a * b."""
    return a * b


def elementwise_div(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Divide two buffers: a / b, or floor division for integers; an integer / 0 is 0."""
    return div(a, b)


def scalar_mul(x: IntOrFloat, *, scalar: IntOrFloat) -> IntOrFloat:
    """Multiply by a number: x * scalar.

    Integers are exact with an integer scalar, else rounded and saturated.
    """
    return like(x, x * scalar)


def relu(x: IntOrFloat, *, slope: float = 0.0) -> IntOrFloat:
    """Rectify: x where it is above zero, else slope * x."""
    # Without a slope, -inf gives 0 and not NaN. NaN passes, because x <= 0 is False for it.
    below = like(x, x * slope) if slope != 0 else like(x, 0)
    return below if x <= 0 else x


def sigmoid(x: IntOrFloat) -> float:
    """Compute the logistic function: 1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(-float(x)))  # convert first: -x of a u32 would wrap


def tanh(x: IntOrFloat) -> float:
    """Compute the hyperbolic tangent."""
    return tanh(x)  # the language's function, not this kernel
