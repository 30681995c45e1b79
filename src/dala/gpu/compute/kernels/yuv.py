"""Conversions between RGB and YCbCr video formats.

With the weights Kr and Kb of a matrix and Kg = 1 - Kr - Kb: ``Y = Kr r + Kg g + Kb b``,
``Cb = (b - Y) / (2 - 2 Kb)``, ``Cr = (r - Y) / (2 - 2 Kr)``. Stored on the scale of a byte, limited
range is ``16 + 219 Y`` and ``128 + 224 C``, full range ``255 Y`` and ``128 + 255 C``; f32 is the
same divided by 255.

From bytes to bytes the conversions are integer, and equal on every engine. 4:4:4 has weights of 15
(decoding) or 16 fractional bits, and rounds the sum; all numbers are below 2**24, so that floats
are exact. 4:2:0 is for 16-bit vectors: bytes are multiples of 128, every product with a 15-bit
fraction is rounded (``multiplied``), and so is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernel import text_kernel
from dala.gpu.compute.kernels import yuv_text
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter

#: Kr and Kb.
WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}

_OPTIONS = (
    Parameter("matrix", "choice", "bt709", choices=tuple(WEIGHTS)),
    Parameter("range", "choice", "limited", choices=("limited", "full")),
    Parameter("format", "choice", None, choices=("yuv444", "nv12", "i420")),
    Parameter("siting", "choice", "left", choices=("left", "center")),
)


def scales(limited: bool) -> tuple[float, float, float]:
    """Return the black level, luma range and chroma range, as fractions of 255."""
    return (16 / 255, 219 / 255, 224 / 255) if limited else (0.0, 1.0, 1.0)


MIDDLE = 128 / 255


def decoding(matrix: str, limited: bool) -> tuple[float, ...]:
    """Return black level, luma gain, chroma zero, and the weights Cr->r, Cb->g, Cr->g, Cb->b."""
    kr, kb = WEIGHTS[matrix]
    kg = 1.0 - kr - kb
    black, luma, chroma = scales(limited)
    to_r, to_b = 2.0 * (1.0 - kr) / chroma, 2.0 * (1.0 - kb) / chroma
    return black, 1.0 / luma, MIDDLE, to_r, -to_b * kb / kg, -to_r * kr / kg, to_b


def encoding(matrix: str, limited: bool) -> tuple[float, ...]:
    """Return black level, chroma zero, and the weights of r, g, b in Y, Cb and Cr."""
    kr, kb = WEIGHTS[matrix]
    weights = np.array([kr, 1.0 - kr - kb, kb])
    black, luma, chroma = scales(limited)
    blue = (np.array([0.0, 0.0, 1.0]) - weights) * (chroma / 2.0 / (1.0 - kb))
    red = (np.array([1.0, 0.0, 0.0]) - weights) * (chroma / 2.0 / (1.0 - kr))
    return black, MIDDLE, *(weights * luma).tolist(), *blue.tolist(), *red.tolist()


def fraction(x: float) -> int:
    """Return a number in [-1, 1) as a 16-bit fraction."""
    return min(max(round(x * 32768.0), -32768), 32767)


def fixed_decoding(numbers: Sequence[float], planes: bool) -> tuple[int, ...]:
    """Return the integers of ``decoding``: luma gain, bias, Cr->r, Cb->g, Cr->g, Cb->b.

    RGB is relative to 128. For planes the gain is less 1, and the weights are halves, the last one
    a quarter, since it may exceed 2.
    """
    black, gain, _, rv, gu, gv, bu = numbers
    if planes:
        bias = round((0.5 - black * gain * 255.0 - 128.0) * 128.0)
        return (fraction(gain - 1.0), bias, *(fraction(k / 2.0) for k in (rv, gu, gv, bu / 2.0)))
    bias = round(((128.0 - black * 255.0) * gain - 127.5) * 32768.0)  # of luma relative to 128
    return (round(gain * 32768.0), bias, *(round(k * 32768.0) for k in (rv, gu, gv, bu)))


def fixed_encoding(numbers: Sequence[float], planes: bool) -> tuple[int, ...]:
    """Return the integers of ``encoding``: black, and the weights of r, g, b in Y, Cb and Cr."""
    black, _, *weights = numbers
    if planes:
        return (round((black * 255.0 + 0.5) * 128.0), *(fraction(k) for k in weights))
    return (round((black * 255.0 + 0.5) * 65536.0), *(round(k * 65536.0) for k in weights))


class _Video(Operation):
    """Base class of both conversions."""

    dtypes = ("f32", "u8")

    def want_even(self, height: int, width: int) -> None:
        """Raise unless height and width are even, as 4:2:0 chroma requires."""
        if height % 2 or width % 2:
            raise self.shape_error(
                f"height and width must be even for 4:2:0 chroma, got {height} by {width}. Crop or "
                "pad the picture."
            )

    def want_rgb(self, t: Tensor, size: tuple[int, int], name: str) -> None:
        """Raise unless a tensor is an RGB or RGBA image of this size."""
        if t.shape not in ((*size, 3), (*size, 4)):
            raise self.wrong_shape(name, f"of shape {(*size, 3)} or {(*size, 4)}", t.shape)
        if t.dtype not in self.dtypes:
            raise self.wrong_dtype(name, "of dtype 'u8' or 'f32'", t.dtype)


@picture_filter(
    "Conversions", kind="conversion", keeps_alpha=False, resizes=True, example="format='nv12'"
)
class YuvToRgb(_Video):
    """Convert the luma and chroma of video to RGB.

    One input: (height, width, 3) is "yuv444"; (height * 3 / 2, width), planes one after another, is
    "nv12" (Y, then interleaved Cb and Cr) or "i420" (Y, then Cb, then Cr), which ``format`` must
    name. Two inputs: Y and CbCr of NV12, the latter (height / 2, width) or
    (height / 2, width / 2, 2). Three: Y, Cb and Cr of I420. 4:2:0 is u8 with even height and width;
    yuv444 is u8 or f32. Alpha, where the output has it, is 1. Reads of chroma beyond the border are
    clamped.

    u8 is converted in integers: yuv444 with weights of 15 fractional bits and one rounding, 4:2:0
    with values of 7 fractional bits, each product by a 15-bit weight rounded, and the sum rounded.

    Args:
        matrix: "bt601", "bt709" or "bt2020".
        range: "limited" or "full".
        format: "yuv444", "nv12" or "i420"; from the inputs by default.
        siting: position of 4:2:0 chroma: "left" (MPEG-2, H.264: on the left column, between the
            rows) or "center" (JPEG, MPEG-1).
        chroma: upsampling of 4:2:0 chroma: "bilinear", or "nearest" as OpenCV and other fast
            converters do.
    """

    title = "yuv_to_rgb"
    takes = ("yuv", "u", "v")
    optional = 2
    options = (
        *_OPTIONS,
        Parameter("chroma", "choice", "bilinear", choices=("bilinear", "nearest")),
    )

    def _format(self, inputs: Inputs, given: str | None) -> str:
        if len(inputs) > 1:
            found = "nv12" if len(inputs) == 2 else "i420"
            if given not in (None, found):
                raise self.wrong_value("format", f"{found!r} with {len(inputs)} inputs", given)
            return found
        if given is not None:
            return given
        if len(inputs[0].shape) == 2:
            raise self.wrong_value("format", "'nv12' or 'i420' for planes one after another", None)
        return "yuv444"

    def _size(self, inputs: Inputs, form: str) -> tuple[int, int]:
        """Return height and width; raise if the inputs' shapes do not match."""
        first = inputs[0]
        if form == "yuv444":
            if len(first.shape) != 3 or first.shape[2] != 3:
                raise self.wrong_shape("yuv", "of shape (height, width, 3) for yuv444", first.shape)
            return first.shape[0], first.shape[1]
        for name, t in zip(self.takes, inputs, strict=False):
            if t.dtype != "u8":
                advice = "Only 'yuv444' may be 'f32'."
                raise self.wrong_dtype(name, "of dtype 'u8' for 4:2:0", t.dtype, advice)
        if len(first.shape) != 2:
            expected = f"of shape (height * 3 / 2, width) for {form}, or its planes one by one"
            raise self.wrong_shape("yuv", expected, first.shape)
        height, width = first.shape
        if len(inputs) == 1:
            if height % 3:
                raise self.wrong_shape(
                    "yuv", f"of shape (height * 3 / 2, width) for {form}", first.shape
                )
            self.want_even(height // 3 * 2, width)
            return height // 3 * 2, width
        self.want_even(height, width)
        half = height // 2, width // 2
        fitting = [half] if form == "i420" else [(half[0], width), (*half, 2)]
        for name, t in zip(self.takes[1:], inputs[1:], strict=False):
            if t.shape not in fitting:
                wanted = " or ".join(map(str, fitting))
                raise self.wrong_shape(name, f"of shape {wanted} with Y of {first.shape}", t.shape)
        return height, width

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        size = self._size(inputs, self._format(inputs, values["format"]))
        return Tensor((*size, 3), inputs[0].dtype)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        form = self._format(inputs, values["format"])
        self.want_rgb(output, self._size(inputs, form), "output")
        numbers = decoding(values["matrix"], values["range"] == "limited")
        return {
            "format": form, "siting": values["siting"], "chroma": values["chroma"],
            "numbers": numbers, "fixed": fixed_decoding(numbers, form != "yuv444"),
        }  # fmt: skip

    def lower(self, task: Task) -> Lowered:
        ranks, fixed = tuple(len(t.shape) for t in task.inputs), _of_bytes(task)
        names = "gain bias rv gu gv bu" if fixed else "black gain middle rv gu gv bu"
        given = task["fixed" if fixed else "numbers"]
        numbers: OperationValues = dict(zip(names.split(), given, strict=True))
        text = yuv_text.decode(task["format"], ranks, task["siting"], task["chroma"], fixed)
        return text_kernel(self.name, text), numbers


@picture_filter(
    "Conversions", kind="conversion", keeps_alpha=False, resizes=True, example="format='nv12'"
)
class RgbToYuv(_Video):
    """Convert RGB to the luma and chroma of video.

    The result has shape (height, width, 3) for "yuv444", or (height * 3 / 2, width) of u8, planes
    one after another, for "nv12" and "i420", which need even height and width. 4:2:0 chroma is
    averaged: with ``siting`` "left" over the columns 2x - 1, 2x and 2x + 1 with weights 1 2 1 and
    both rows, with "center" over the 2x2 square. Reads beyond the border are clamped. Alpha is
    dropped.

    u8 is converted in integers: yuv444 with weights of 16 fractional bits and one rounding, 4:2:0
    with values of 7 fractional bits, each product by a 15-bit weight rounded, and the sum rounded.

    Args:
        matrix: "bt601", "bt709" or "bt2020".
        range: "limited" or "full".
        format: "yuv444", "nv12" or "i420"; "yuv444" by default.
        siting: position of 4:2:0 chroma, "left" or "center".
    """

    title = "rgb_to_yuv"
    takes = ("rgb",)
    options = _OPTIONS

    def _size(self, inputs: Inputs, form: str) -> tuple[int, int]:
        shape = self.want_rank(inputs, 0, 3)
        self.want_rgb(inputs[0], (shape[0], shape[1]), "rgb")
        if form != "yuv444":
            self.want_even(shape[0], shape[1])
        return shape[0], shape[1]

    def _made(self, inputs: Inputs, form: str) -> Tensor:
        height, width = self._size(inputs, form)
        if form == "yuv444":
            return Tensor((height, width, 3), inputs[0].dtype)
        return Tensor((height * 3 // 2, width), "u8")

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        return self._made(inputs, values["format"] or "yuv444")

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        form = values["format"]
        if form is None:
            if len(output.shape) == 2:
                raise self.wrong_value("format", "'nv12' or 'i420' for an output of two axes", None)
            form = "yuv444"
        wanted = self._made(inputs, form)
        if form == "yuv444" and output.dtype in self.dtypes:
            wanted = Tensor(wanted.shape, output.dtype)
        self.want(output, wanted)
        numbers = encoding(values["matrix"], values["range"] == "limited")
        return {
            "format": form,
            "siting": values["siting"],
            "numbers": numbers,
            "fixed": fixed_encoding(numbers, form != "yuv444"),
        }

    def lower(self, task: Task) -> Lowered:
        form, fixed = task["format"], _of_bytes(task)
        kernel = text_kernel(self.name, yuv_text.encode(form, task["siting"], fixed))
        if fixed:
            names = ("black", *(f"{p}{c}" for p in "yuv" for c in "rgb"))
            return kernel, dict(zip(names, task["fixed"], strict=True))
        # Elements of planes are stored unscaled, so the weights are those of bytes.
        unit = 1.0 if form == "yuv444" else 255.0
        black, middle, *shares = (number * unit for number in task["numbers"])
        rows = {name: tuple(shares[at : at + 3]) for name, at in (("y", 0), ("u", 3), ("v", 6))}
        return kernel, {**rows, "black": black, "middle": middle}


# definitions ------------------------------------------------------------------------------
def _of_bytes(task: Task) -> bool:
    return task.inputs[0].dtype == "u8" and task.output.dtype == "u8"
