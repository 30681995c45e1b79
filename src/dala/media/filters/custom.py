"""Inputs of custom kernels and programs besides the picture: further pictures, and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from dala import memory
from dala.errors import DtypeError, ParameterError
from dala.gpu.compute import Buffer
from dala.gpu.compute.runnable import Runnable
from dala.media.images import Shape, second
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from dala.media.filters.plans import FilterValue, Values


def numbers(value: object, name: str, call: str) -> NDArray | Buffer:
    """Return numbers that a filter reads as an array."""
    if isinstance(value, Buffer):
        return value
    if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
        memory.check_copy(4 * value.size, call)
    try:
        return np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise DtypeError.invalid(call, name, "an array of numbers", value) from None


def custom_inputs(
    kernel: Runnable, given: Values, shape: Shape, origin: str
) -> dict[str, NDArray | Buffer]:
    """Take the inputs of a custom kernel besides the picture, by name."""
    more = kernel.inputs[1 : len(kernel.inputs) - kernel.optional]
    missed = [n for n in more if n not in given]
    if missed:
        raise ParameterError(
            f"{origin}: {kernel.name} needs the input {missed[0]!r} besides the picture. "
            f"Give it by name: {missed[0]}=..."
        )
    return {
        n: _custom_input(kernel, n, given.pop(n), shape) for n in kernel.inputs[1:] if n in given
    }


def _custom_input(
    kernel: Runnable, name: str, value: FilterValue, shape: Shape
) -> NDArray | Buffer:
    """Return an input of a custom kernel besides the picture: a second one, or numbers."""
    if name in kernel.pictures:
        return second(cast("ImageLike", value), shape, kernel.name)
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return value
    return numbers(value, name, kernel.name)
