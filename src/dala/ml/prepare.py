"""Pictures on their way into a model: taken in any form, made a tensor in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from dala.errors import DalaError, ShapeError
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.kernels.resize import Preprocess, placed
from dala.media.frame import Frame
from dala.media.images import read


def preprocess(
    image: Any,
    size: tuple[int, int] = (224, 224),
    *,
    normalize: str | bool = "imagenet",
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    layout: str = "nchw",
    fit: str = "stretch",
    pad: Sequence[float] | float = 114 / 255,
    keep: float = 1.0,
    order: str = "rgb",
    method: str = "bilinear",
    antialias: bool = True,
    width: int | None = None,
    height: int | None = None,
    out: Buffer | None = None,
    device: str | None = None,
) -> Buffer:
    """A picture as the f32 tensor a model takes: resized, normalised and laid out in one pass.

    The defaults are MobileNet's: 224 by 224, ImageNet's mean and deviation, NCHW. Bilinear with
    antialias is Pillow's, without rounding in between: within 1 of 255 of it.

    Args:
        image: an array, Frame, Pillow image or Buffer, or bytes with ``width`` and ``height``.
        size: (height, width) of the tensor.
        normalize: "imagenet" (or True), "unit" (0..1), "signed" (-1..1), "raw" (or False; 0..255).
        mean: instead of the one that ``normalize`` names, of values from 0 to 1.
        std: likewise.
        layout: "nchw", shape (1, 3, height, width), or "nhwc", (1, height, width, 3).
        fit: "stretch", "letterbox" (whole, centred, the rest ``pad``) or "crop" (the middle).
        pad: the colour beside a letterboxed picture, 0..1.
        keep: with "crop", how much of the largest part of the right shape is kept.
        order: "rgb" or "bgr".
        method: "bilinear", "nearest", "bicubic", "lanczos" or "area".
        antialias: whether the filter is stretched when the picture gets smaller.
        width: of bytes.
        height: of bytes.
        out: a Buffer to write.
        device: where to work; the current device, or the picture's own, where left out.

    >>> tensor = preprocess(np.full((8, 8, 3), 255, np.uint8), normalize="unit", device="cpu")
    >>> tensor.shape, round(float(tensor.numpy().max()), 5)
    ((1, 3, 224, 224), 1.0)
    """
    given = (normalize, mean, std, layout, fit, pad, keep, order, method, antialias)
    try:
        # In tuples of colours True would pass for the 1 that came before.
        pair = type(size) is tuple and len(size) == 2
        once = pair and tuple not in map(type, given)
        params = _settled(*size, *given) if once else _params(size, given)
    except (DalaError, TypeError):
        params = _params(size, given)  # what is wrong with them is told below
    return prepared(image, params, out, device, "preprocess", width, height)


_NAMES: Final = (
    "normalize", "mean", "std", "layout", "fit", "pad", "keep", "order", "method", "antialias"
)  # fmt: skip


def _params(size: Any, given: tuple[Any, ...]) -> Mapping[str, Any]:
    found = {"size": size, **dict(zip(_NAMES, given, strict=True))}
    return {name: value for name, value in found.items() if value is not None}


@lru_cache(maxsize=256, typed=True)
def _settled(height: int, width: int, *given: Any) -> Mapping[str, Any]:
    return kernel().settle(_params((height, width), given))


@cache
def kernel() -> Preprocess:
    """The kernel that does it."""
    found = get_kernel("preprocess")
    assert isinstance(found, Preprocess)
    return found


def prepared(
    image: Any,
    params: Mapping[str, Any],
    out: Buffer | None,
    device: str | None,
    call: str,
    width: int | None = None,
    height: int | None = None,
) -> Buffer:
    """A picture through the kernel "preprocess"; errors name the call."""
    if isinstance(image, Frame) and image.format in ("nv12", "i420"):
        image = image.to("rgb")
    picture = read(image, width, height, call)
    if 0 in picture.shape:
        raise ShapeError(f"{call}: the picture is empty, its shape is {picture.shape}.")
    source = picture.buffer(device)
    try:
        return kernel().make(source, params, out)
    except DalaError as error:
        raise error.within(call) from error


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in a model's input: ``source`` pixels times ``scale`` plus ``offset``.

    Pairs are (x, y).
    """

    source: tuple[int, int]
    scale: tuple[float, float]
    offset: tuple[float, float]
    size: tuple[int, int]

    @classmethod
    def of(
        cls, height: int, width: int, size: tuple[int, int], fit: str, keep: float = 1.0
    ) -> Placement:
        """That of a picture given to the kernel "preprocess"; ``size`` is (height, width)."""
        full, corner = placed((height, width), size, fit, keep)
        return cls(
            (width, height),
            (full[1] / width, full[0] / height),
            (corner[1], corner[0]),
            (size[1], size[0]),
        )

    def back(self, points: Any) -> Any:
        """Points (..., 2) of the input, in pixels, as points of the picture."""
        return (np.asarray(points, np.float64) - self.offset) / self.scale

    def boxes(self, boxes: Any) -> Any:
        """Boxes (..., 4), x1 y1 x2 y2, as boxes of the picture, cut to it."""
        found = self.back(np.asarray(boxes, np.float64).reshape(-1, 2, 2))
        return np.clip(found, 0, self.source).reshape(-1, 4)

    @property
    def window(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of what the picture covers of the input."""
        left, top = (max(0, round(o)) for o in self.offset)
        right, bottom = (
            min(n, round(o + s * k))
            for n, o, s, k in zip(self.size, self.offset, self.source, self.scale, strict=True)
        )
        return left, top, right, bottom
