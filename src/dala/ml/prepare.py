"""Conversion of pictures to input tensors, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.errors import DalaError, ParameterError, ShapeError, UnknownModel, did_you_mean
from dala.gpu.compute import Buffer, from_array
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.kernels.resize import Preprocess, placed
from dala.media.frame import PLANAR, Frame
from dala.media.images import SourceImage, read
from dala.typing import ImageLike, NDArray, Params

if TYPE_CHECKING:
    from dala.ml.model import Model
    from dala.ml.results import Prediction


def preprocess(
    image: ImageLike,
    size: tuple[int, int] = (224, 224),
    *,
    model: str | Model[Prediction] | None = None,
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
    """Convert a picture to an f32 input tensor: resize, normalize and lay out in one pass.

    ``model="mobilenet_v2"`` gives exactly what ``predict`` feeds that model for the picture; a
    model of regions, such as "facemesh", takes the whole picture for a region. The plain defaults
    are no model's: the whole picture stretched to 224 x 224, with ImageNet's mean
    and standard deviation, NCHW; "mobilenet_v2" itself takes the center of the picture. Bilinear
    with antialiasing is Pillow's filter without intermediate rounding, within 1/255 of it.

    Args:
        image: an array, Frame, Pillow image or Buffer, bytes with ``width`` and ``height``,
            or the bytes of a picture file.
        size: (width, height) of the tensor.
        model: one of ``available_models()``, or a loaded model. It decides the other parameters,
            from ``size`` to ``antialias``: leave them out.
        normalize: "imagenet" (or True), "unit" (0 to 1), "signed" (-1 to 1), or "raw" (or False; 0
            to 255).
        mean: overrides the mean of ``normalize``, for values from 0 to 1.
        std: overrides the standard deviation.
        layout: "nchw", shape (1, 3, height, width), or "nhwc", (1, height, width, 3).
        fit: "stretch", "pad" (the whole picture, centered, with ``pad`` around it; also
            "letterbox"), "cover" (the center; also "crop") or "contain" (the whole picture; the
            tensor may be smaller than ``size``).
        pad: the color around a padded picture, 0 to 1.
        keep: with "cover", the fraction of the largest crop to keep.
        order: "rgb" or "bgr".
        method: "bilinear", "nearest", "bicubic", "lanczos" or "area".
        antialias: whether the filter is widened when downscaling.
        width: the width, for bytes.
        height: the height, for bytes.
        out: a Buffer to write to.
        device: the device; by default the picture's own, or the current one.

    >>> tensor = preprocess(np.full((8, 8, 3), 255, np.uint8), normalize="unit", device="cpu")
    >>> tensor.shape, round(float(tensor.numpy().max()), 5)
    ((1, 3, 224, 224), 1.0)
    """
    given = (size, normalize, mean, std, layout, fit, pad, keep, order, method, antialias)
    named = dict(zip(_DEFAULTS, given, strict=True))
    params: Params = {name: value for name, value in named.items() if value is not None}
    form = None
    if model is not None:
        _check_left_out(named)
        params, form = _of_model(model)
    source = on_device(image, device, "preprocess", width, height)
    if form is None:
        return prepared(source, params, out, "preprocess")
    made = prepared(source, params, None, "preprocess").numpy()
    array = as_input(made, form[0], str(params["layout"]), form[1])
    if out is None:
        return from_array(array, device=device)
    out.write(array)
    return out


#: The parameters of ``preprocess`` that a model decides, size first, and their defaults.
_DEFAULTS: Final = {
    name: parameter.default
    for name, parameter in signature(preprocess).parameters.items()
    if name not in ("image", "model", "width", "height", "out", "device")
}


def _check_left_out(named: Params) -> None:
    """Raise ParameterError if a parameter was given that the model decides."""
    for name, value in named.items():
        default = _DEFAULTS[name]
        if type(value) is not type(default) or value != default:
            raise ParameterError(
                f"preprocess: with model= the model decides {name}, got {value!r}. Leave one of "
                "them out.",
                argument=name,
            )


#: The channels and dtype of a model's input.
Form: TypeAlias = "tuple[int, type[np.generic] | None]"


def _of_model(model: str | Model[Prediction]) -> tuple[Params, Form | None]:
    """Return the parameters of a model, and the form of its input if that is not f32 RGB."""
    from dala.ml.model import Model
    from dala.ml.models import NAMES, find_model

    if isinstance(model, Model):
        params, port = model.preprocess, model.ports[0]
        if not params:
            expected = "a model that takes pictures"
            raise ParameterError.invalid("preprocess", "model", expected, model.name)
        channels = port.shape[1 if params["layout"] == "nchw" else 3] or 3
        plain = channels == 3 and port.dtype is np.float32
        return params, None if plain else (channels, port.dtype)
    spec = find_model(model) if isinstance(model, str) else None
    if spec is None:
        expected = f"one of {', '.join(NAMES)}, or a loaded model"
        advice = did_you_mean(model, NAMES) if isinstance(model, str) else ""
        raise UnknownModel.invalid("preprocess", "model", expected, model, advice)
    return {**spec.prepare, "size": spec.size, "layout": spec.layout}, None


#: BT.601 luma weights, for models with gray input.
LUMA: Final = np.array([0.299, 0.587, 0.114], np.float32)


def as_input(array: NDArray, channels: int, layout: str, dtype: type[np.generic] | None) -> NDArray:
    """Return a prepared tensor with a model's channels, 3 or 1, and dtype."""
    if channels == 1:
        axis = 1 if layout == "nchw" else 3
        array = np.expand_dims(np.tensordot(array, LUMA, (axis, 0)), axis)
    if np.dtype(dtype).kind in "ui":
        limits = np.iinfo(np.dtype(dtype).name)
        array = np.rint(np.clip(array, limits.min, limits.max))
    return array.astype(dtype, copy=False)


@cache
def kernel() -> Preprocess:
    """Return the kernel "preprocess"."""
    found = get_kernel("preprocess")
    assert isinstance(found, Preprocess)
    return found


def prepared(source: Buffer, params: Params, out: Buffer | None, call: str) -> Buffer:
    """Run the kernel "preprocess" on a picture; errors name ``call``."""
    try:
        return kernel().make(source, params, out)
    except DalaError as error:
        raise error.within(call) from error


def on_device(
    image: ImageLike,
    device: str | None,
    call: str,
    width: int | None = None,
    height: int | None = None,
) -> Buffer:
    """Return a picture on a device; raise ShapeError if it is empty."""
    picture = read_rgb(image, call, width, height)
    if 0 in picture.shape:
        raise ShapeError(f"{call}: the picture is empty, its shape is {picture.shape}.")
    return picture.buffer(device)


def read_rgb(
    image: ImageLike, call: str, width: int | None = None, height: int | None = None
) -> SourceImage:
    """Check a picture of any kind; a frame in the planes of a video becomes RGB.

    Bytes without a size are a file, such as a PNG.
    """
    if isinstance(image, bytes | bytearray | memoryview) and width is None and height is None:
        image = _decoded(bytes(image), call)
    if isinstance(image, Frame) and image.format in PLANAR:
        image = image.to("rgb")
    return read(image, width, height, call)


def _decoded(data: bytes, call: str) -> Frame:
    try:
        return Frame.open(data)
    except ParameterError as error:
        raise ParameterError(
            f"{call}: bytes need width and height, or must be a picture file, got {len(data):,} "
            f"bytes. {error}",
            argument="width",
            expected="the width and height of the picture",
        ) from error


def host_pixels(picture: SourceImage) -> NDArray:
    """Return the pixels of a picture in host memory."""
    pixels = picture.pixels
    return pixels.numpy() if isinstance(pixels, Buffer) else pixels


@dataclass(frozen=True)
class Placement:
    """The placement of a picture in a model's input: ``source * scale + offset``.

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
        """Return the placement by the kernel "preprocess"; ``size`` is (height, width)."""
        full, corner = placed((height, width), size, fit, keep)
        return cls(
            (width, height),
            (full[1] / width, full[0] / height),
            (corner[1], corner[0]),
            (size[1], size[0]),
        )

    def back(self, points: npt.ArrayLike) -> NDArray:
        """Convert points (..., 2) from the input to the picture."""
        return (np.asarray(points, np.float64) - self.offset) / self.scale

    def boxes(self, boxes: npt.ArrayLike) -> NDArray:
        """Convert boxes (..., 4), x1 y1 x2 y2, from the input to the picture, clipped to it."""
        found = self.back(np.asarray(boxes, np.float64).reshape(-1, 2, 2))
        return np.clip(found, 0, self.source).reshape(-1, 4)

    @property
    def window(self) -> tuple[int, int, int, int]:
        """The left, top, right and bottom of the picture in the input."""
        left, top = (max(0, round(o)) for o in self.offset)
        right, bottom = (
            min(n, round(o + s * k))
            for n, o, s, k in zip(self.size, self.offset, self.source, self.scale, strict=True)
        )
        return left, top, right, bottom
