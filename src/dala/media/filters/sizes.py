"""Arguments of filters besides the picture: sizes, numbers, and inputs of custom kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from dala import memory
from dala.arguments import Integer, Quantity
from dala.errors import DtypeError, ParameterError
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernels.filter import FilterSpec
from dala.gpu.compute.params import PixelSize
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared
from dala.media.images import Shape, second
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from dala.media.filters.plans import FilterValue, Values


#: What may stand for the size of a filter with ``sides``.
SIDES: Final = ("width", "height", "scale")
SCALE: Final = Quantity(1e-4, 1e4)


def settle_size(spec: FilterSpec, given: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Replace the arguments that stand for a size of a filter by the whole size."""
    if spec.sides:
        _take_sides(spec.name, given, shape)
    if spec.resizes and "size" in given:
        given["size"] = keep_aspect(given["size"], shape)


def keep_aspect(size: object, shape: tuple[int, ...]) -> object:
    """Return a size (width, height) with None replaced so that a picture keeps its aspect.

    >>> keep_aspect((64, None), (30, 40)), keep_aspect((None, 60), (30, 40)), keep_aspect(3, (1, 1))
    ((64, 48), (80, 60), 3)
    """
    match size:
        case (int(width), None) if width > 0 and width is not True:
            return PixelSize(width, max(1, round(width * shape[0] / shape[1])))
        case (None, int(height)) if height > 0 and height is not True:
            return PixelSize(max(1, round(height * shape[1] / shape[0])), height)
    return size


def _take_sides(call: str, given: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Replace ``width``, ``height`` and ``scale`` by the ``size`` that they stand for."""
    sides = {name: given.pop(name) for name in SIDES if name in given}
    if not sides:
        return
    if "size" in given or ("scale" in sides and len(sides) > 1):
        names = ", ".join(f"{name}=" for name in ("size", *sides) if name in given | sides)
        raise ParameterError(
            f"{call}: give size=(width, height), or width= and height=, or scale=, got {names}. "
            "Only bytes need their own width and height besides.",
            argument="size",
        )
    if "scale" in sides:
        scale = SCALE.check(call, "scale", sides["scale"])
        width, height = (max(1, math.floor(n * scale + 0.5)) for n in shape[1::-1])
        given["size"] = PixelSize(width, height)
    else:
        side = Integer(1, 1 << 20)
        checked = {name: side.check(call, name, value) for name, value in sides.items()}
        given["size"] = PixelSize.of(checked.get(name) for name in SIDES[:2])


# sizes in files -----------------------------------------------------------------------------------
def takes_size(filter: str) -> bool:
    """Return whether a filter has a ``size`` of a width and a height.

    >>> takes_size("resize"), takes_size("grain")
    (True, False)
    """
    spec = declared().get(filter)
    return spec is not None and any(p.type == "size" for p in spec.parameters)


def turned(size: Any) -> Any:
    """Return a size of an older file, [height, width], as [width, height]."""
    return size[::-1] if isinstance(size, list) and len(size) == 2 else size


def with_size(filter: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters from a file with the size, if there is one, as one that says its order.

    >>> with_size("crop", {"size": [160, 90]})["size"].width
    160
    """
    size = params.get("size")
    if isinstance(size, list | tuple) and len(size) == 2 and takes_size(filter):
        return {**params, "size": PixelSize.of(size)}
    return dict(params)


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
