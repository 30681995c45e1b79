"""Pictures from nothing: kernels with no input."""

from __future__ import annotations

__all__ = ["generate_gradient"]


def generate_gradient(*, from_color=(0.0, 0.0, 0.0), to_color=(1.0, 1.0, 1.0), angle=0.0):
    """A linear gradient between two colours; angle 0 runs left to right, in radians clockwise"""
    y, x = position()
    height, width = shape()
    across = (x + 0.5) / width - 0.5
    down = (y + 0.5) / height - 0.5
    reach = abs(cos(angle)) + abs(sin(angle))
    t = clamp((across * cos(angle) + down * sin(angle)) / reach + 0.5, 0.0, 1.0)
    return rgba(mix(from_color, to_color, t), 1.0)
