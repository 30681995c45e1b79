"""Kernels without inputs: generated pictures."""

from __future__ import annotations

from dala.gpu.compute.language import *
from dala.gpu.compute.language import abs

__all__ = ["generate_gradient"]


def generate_gradient(
    *,
    from_color: vec3 = (0.0, 0.0, 0.0),  # type: ignore[assignment]
    to_color: vec3 = (1.0, 1.0, 1.0),  # type: ignore[assignment]
    angle: float = 0.0,
) -> Pixel:
    """Fill the output with a linear gradient between two colors.

    Args:
        from_color: r, g, b of 0 to 1 at the start.
        to_color: r, g, b of 0 to 1 at the end.
        angle (radians): 0 runs from left to right; clockwise.

    >>> from dala.gpu.compute import buffer_zeros, run_kernel
    >>> out = buffer_zeros((1, 4, 3), "u8")
    >>> run_kernel("generate_gradient", [], out, {"to_color": (1.0, 0.5, 0.0)})
    >>> out.numpy()[0].tolist()
    [[32, 16, 0], [96, 48, 0], [159, 80, 0], [223, 112, 0]]
    """
    y, x = position()
    height, width = shape()
    across = (x + 0.5) / width - 0.5
    down = (y + 0.5) / height - 0.5
    reach = abs(cos(angle)) + abs(sin(angle))
    t = clamp((across * cos(angle) + down * sin(angle)) / reach + 0.5, 0.0, 1.0)
    return rgba(mix(from_color, to_color, t), 1.0)
