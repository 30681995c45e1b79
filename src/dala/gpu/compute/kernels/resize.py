"""Resizing, and preprocessing for models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.sampling.byte_taps import byte_taps
from dala.gpu.compute.engines.sampling.coordinates import stored_fill
from dala.gpu.compute.engines.sampling.taps import METHODS as METHODS
from dala.gpu.compute.engines.sampling.taps import task_axes
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import (
    CheckedParams,
    CheckedValues,
    Parameter,
    rows_first,
    size_parameter,
)
from dala.typing import NDArray, Params

#: Mean and standard deviation of each normalization, where 1.0 is white.
NORMALIZE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0,) * 3, (1.0,) * 3),
    "signed": ((0.5,) * 3, (0.5,) * 3),
    "raw": ((0.0,) * 3, (1 / 255,) * 3),
}


#: Ways to fit a picture to a size; the last two are other names of "pad" and "cover".
FITS = ("stretch", "contain", "cover", "pad", "letterbox", "crop")
_SAME_FIT = {"letterbox": "pad", "crop": "cover"}


class _Resampling(Operation):
    """Base class of operations that resample a picture."""

    takes = ("image",)
    dtypes = ("f32", "u8")

    def _fitted(
        self, inputs: Inputs, values: OperationValues, size: tuple[int, int], fit: str
    ) -> OperationValues:
        """Return how a picture is resampled to a size."""
        source = self.want_image(inputs, empty=False)[:2]
        full, offset = placed(source, size, fit, values.get("keep", 1.0), self.name)
        named = {name: values[name] for name in ("method", "antialias")}
        return {**named, "full": full, "offset": offset, "size": size}

    def _resampled(self, task: Task, image: NDArray) -> NDArray:
        """Return the part of the output that the picture covers, (height, width, channels).

        For u8 to u8 the sums are integers, else f64.
        """
        image = image.reshape(*image.shape[:2], -1)
        y, x = (axis.taps(task["method"], task["antialias"]) for axis in task_axes(task))
        if task.output.dtype == "u8":
            return byte_taps(y, x).apply(image)
        return y.apply(x.apply(image.astype(np.float64), 1), 0)


@picture_filter(
    "Geometry",
    keeps_alpha=False,
    resizes=True,
    sides=True,
    needs=("size",),
    example="size=(640, 360)",
)
class Resize(_Resampling):
    """Resize a picture.

    Output pixel o of n is centered at (o + 0.5) * source / n - 0.5 in the input. With antialiasing
    the filter is widened when downscaling, taps beyond the border are dropped and the rest
    renormalized, and bicubic has a = -0.5. Without, the filter keeps its width, reads beyond the
    border are clamped, and a = -0.75. All channels, including alpha, are resized the same way.

    Bytes are resized in integers: weights of 14 to 20 bits that add up to a power of two, columns
    first, rounded once to 6 or 7 bits of fraction, then rows, rounded once more.

    Args:
        size (pixels): (width, height) of the result. One of them may be None: it then follows from
            the picture's aspect.
        method: "nearest", "bilinear", "bicubic", "lanczos" (three lobes) or "area" (weighted by
            coverage).
        antialias: widen the filter when downscaling.
        fit: with both numbers: "stretch" to them; "contain" (keep the aspect, at most that size);
            "cover" (keep the aspect, crop what is over; also "crop"); "pad" (as contain, centered,
            with ``fill`` around; also "letterbox").
        fill: a color by name, or r, g, b, a of 0 to 1, around a padded picture.
    """

    title = "resize"
    options: ClassVar[tuple[Parameter, ...]] = (
        size_parameter(),
        Parameter("method", "choice", "bilinear", choices=METHODS),
        Parameter("antialias", "bool", True),
        Parameter("fit", "choice", "stretch", choices=FITS),
        Parameter("fill", "floats", (0.0,) * 4, size=4, spread=True, low=-1e6, high=1e6),
    )

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor | None:
        image = inputs[0]
        source = self.want_image(inputs, empty=False)[:2]
        size = self._size(inputs, values)
        if size is not None and values.get("fit") == "contain":
            size = placed(source, size, "contain", 1.0, self.name)[0]
        return None if size is None else Tensor((*size, *image.shape[2:]), image.dtype)

    def _size(self, inputs: Inputs, values: OperationValues) -> tuple[int, int] | None:
        size: tuple[int, int] | None = values["size"]
        return None if size is None else rows_first(size)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        image = inputs[0]
        wanted = self.result(inputs, values)
        if wanted is None:
            if len(output.shape) != len(image.shape) or output.shape[2:] != image.shape[2:]:
                channels = "".join(f", {n}" for n in image.shape[2:])
                raise self.wrong_shape(
                    "output", f"of shape (height, width{channels})", output.shape
                )
            wanted = Tensor(output.shape, image.dtype)
        self.want(output, wanted)
        size = (output.shape[0], output.shape[1])
        fit = values.get("fit", "stretch")
        if fit == "contain" and values.get("size") is None:
            fit = "pad"  # the output's size is given
        fitted = self._fitted(inputs, values, size, "stretch" if fit == "contain" else fit)
        return fitted | {"fill": stored_fill(values.get("fill", (0.0,) * 4), image.dtype)}

    def define(self, task: Task, image: NDArray) -> NDArray:
        channels = image.shape[2] if image.ndim == 3 else 1
        found = np.empty((*task["size"], channels))
        found[...] = task["fill"][:channels]
        (top, bottom), (left, right) = (axis.window for axis in task_axes(task))
        found[top:bottom, left:right] = self._resampled(task, image)
        return found.reshape(task.output.shape)


@picture_filter("Geometry", keeps_alpha=False, resizes=True, needs=("scale",), example="scale=2.0")
class BicubicScale(Resize):
    """Scale a picture by a factor with the bicubic filter.

    ``resize`` with method "bicubic" to the size times ``scale``, rounded.

    Args:
        scale: the factor.
        antialias: as in ``resize``.
    """

    title = "bicubic_scale"
    code = "resize"
    options = (
        Parameter("scale", "float", low=1e-4, high=1e4),
        Parameter("antialias", "bool", True),
    )

    def _size(self, inputs: Inputs, values: OperationValues) -> tuple[int, int] | None:
        scale = values["scale"]
        if scale is None:
            return None
        height, width = (max(1, math.floor(n * scale + 0.5)) for n in inputs[0].shape[:2])
        return height, width

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        return super().fit(inputs, output, {**values, "method": "bicubic"})


@picture_filter(
    "Conversions", kind="conversion", keeps_alpha=False, resizes=True, example="size=(224, 224)"
)
class Preprocess(_Resampling):
    """Convert a picture to the f32 input tensor of a model.

    The picture is resized and normalized: values of 0 to 1 (u8 / 255, f32 as stored) become
    (v - mean) / std. Alpha is dropped; gray is repeated in all three channels. The result has shape
    (1, 3, height, width) or (1, height, width, 3).

    Args:
        size (pixels): (width, height) of the result; (224, 224) by default.
        normalize: a mean and std by name: "imagenet" (or True), "unit" (0 to 1), "signed" (-1 to 1)
            or "raw" (or False; 0 to 255).
        mean: replaces the mean, one number or r, g, b.
        std: replaces the standard deviation.
        layout: "nchw" or "nhwc".
        fit: as in ``resize``: "stretch", "contain" (the tensor may be smaller than ``size``),
            "cover" (also "crop") or "pad" (also "letterbox").
        pad: r, g, b of 0 to 1 around a padded picture.
        keep: the share of the largest centered part that "cover" keeps.
        order: the order of the channels, "rgb" or "bgr".
        method: as in ``resize``.
        antialias: as in ``resize``.
    """

    title = "preprocess"
    options = (
        size_parameter(),
        Parameter("normalize", "choice", "imagenet", choices=tuple(NORMALIZE)),
        Parameter("mean", "floats", size=3, spread=True, low=-1e6, high=1e6),
        Parameter("std", "floats", size=3, spread=True, low=1e-6, high=1e6),
        Parameter("layout", "choice", "nchw", choices=("nchw", "nhwc")),
        Parameter("fit", "choice", "stretch", choices=FITS),
        Parameter("pad", "floats", (114 / 255,) * 3, size=3, spread=True, low=-1e6, high=1e6),
        Parameter("keep", "float", 1.0, low=0.01, high=1.0),
        Parameter("order", "choice", "rgb", choices=("rgb", "bgr")),
        Parameter("method", "choice", "bilinear", choices=METHODS),
        Parameter("antialias", "bool", True),
    )

    def settle(self, params: Params) -> CheckedParams:
        """Check parameters once for many calls."""
        return CheckedParams(self.name, self.options, _named(params))

    def make(self, image: Buffer, params: Params, out: Buffer | None = None) -> Buffer:
        """Run the operation like a call, with parameters that may be checked already."""
        made = self.new_output([image], params) if out is None else out
        self.run([image], made, params)
        return made

    def check_params(self, params: Params) -> CheckedValues:
        """Return all parameters with checked values; ``normalize`` may be True or False."""
        return super().check_params(_named(params))

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        source = self.want_image(inputs, empty=False)[:2]
        width, height = values["size"] or (224, 224)
        if values["fit"] == "contain":
            height, width = placed(source, (height, width), "contain", 1.0)[0]
        nchw = values["layout"] == "nchw"
        return Tensor((1, 3, height, width) if nchw else (1, height, width, 3), "f32")

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        size = self._output_size(inputs, output, values)
        mean, std = NORMALIZE[values["normalize"]]
        mean, std = values["mean"] or mean, values["std"] or std
        unit = 255.0 if inputs[0].dtype == "u8" else 1.0
        channels = (0, 1, 2) if len(inputs[0].shape) == 3 and inputs[0].shape[2] > 1 else (0, 0, 0)
        turn = (2, 1, 0) if values["order"] == "bgr" else (0, 1, 2)
        return self._fitted(inputs, values, size, values["fit"]) | {
            "layout": values["layout"],
            "channels": tuple(channels[c] for c in turn),
            "gain": tuple(1.0 / (unit * std[c]) for c in turn),
            "bias": tuple(-mean[c] / std[c] for c in turn),
            "pad": tuple((values["pad"][c] - mean[c]) / std[c] for c in turn),
        }

    def _output_size(
        self, inputs: Inputs, output: Tensor, values: OperationValues
    ) -> tuple[int, int]:
        wanted = self.result(inputs, values).shape
        shape = output.shape[1:] if len(output.shape) == 4 else output.shape
        height, width = (1, 2) if values["layout"] == "nchw" else (0, 1)
        if values["size"] is None and len(shape) == 3:
            size = shape[height], shape[width]
            shown = "(1, 3, height, width)" if height else "(1, height, width, 3)"
        else:
            size = wanted[1 + height], wanted[1 + width]
            shown = str(wanted)
        fitting = (3, *size) if height else (*size, 3)
        if shape != fitting or (len(output.shape) == 4 and output.shape[0] != 1):
            raise self.wrong_shape(
                "output", f"of shape {shown}, with or without the 1", output.shape
            )
        if output.dtype != "f32":
            raise self.wrong_dtype("output", "of dtype 'f32'", output.dtype)
        return size

    def define(self, task: Task, image: NDArray) -> NDArray:
        found = np.empty((*task["size"], 3))
        found[...] = task["pad"]
        (top, bottom), (left, right) = (axis.window for axis in task_axes(task))
        made = self._resampled(task, image)[..., list(task["channels"])]
        found[top:bottom, left:right] = made * task["gain"] + task["bias"]
        if task["layout"] == "nchw":
            found = found.transpose(2, 0, 1)
        return found.reshape(task.output.shape)


def _named(params: Params) -> Params:
    if type(params) is CheckedParams:
        return params
    if isinstance(params, Mapping) and isinstance(params.get("normalize"), (bool, np.bool_)):
        return {**params, "normalize": "imagenet" if params["normalize"] else "raw"}
    return params


def placed(
    source: tuple[int, int], size: tuple[int, int], fit: str, keep: float, call: str = "preprocess"
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the size of the whole resized picture, and its offset in the output.

    With "contain", the output has the size of the whole picture.

    >>> placed((30, 40), (20, 20), "pad", 1.0), placed((30, 40), (20, 20), "contain", 1.0)
    (((15, 20), (2, 0)), ((15, 20), (0, 0)))
    """
    fit = _SAME_FIT.get(fit, fit)
    if fit == "stretch" or 0 in size:
        return size, (0, 0)
    ratios = [n / s for n, s in zip(size, source, strict=True)]
    if fit in ("pad", "contain"):
        scale = min(ratios)
        full = [max(1, min(n, round(s * scale))) for n, s in zip(size, source, strict=True)]
        # With an odd number of padding rows, the smaller half is above.
        offset = [(n - f) // 2 for n, f in zip(size, full, strict=True)]
        if fit == "contain":
            offset = [0, 0]
    else:
        scale = max(ratios) / keep
        # Truncate, as is usual for models, but never below the output's size.
        full = [max(n, math.floor(s * scale + 1e-6)) for n, s in zip(size, source, strict=True)]
        offset = [-round((f - n) / 2) for n, f in zip(size, full, strict=True)]
    if max(full) > 1 << 24:
        raise ParameterError(
            f"{call}: fit='cover' would enlarge the image of {source} to {tuple(full)} before "
            f"it is cropped to {size}. Use 'stretch' or 'pad' for so long a picture.",
            call=call,
            argument="fit",
        )
    return (full[0], full[1]), (offset[0], offset[1])
