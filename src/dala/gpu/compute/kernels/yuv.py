"""Between RGB and the luma and chroma that video is made of.

With the weights Kr and Kb of a matrix and Kg = 1 - Kr - Kb: ``Y = Kr r + Kg g + Kb b``,
``Cb = (b - Y) / (2 - 2 Kb)``, ``Cr = (r - Y) / (2 - 2 Kr)``. Stored on the scale of a byte, limited
range is ``16 + 219 Y`` and ``128 + 224 C``, full range ``255 Y`` and ``128 + 255 C``; f32 is the
same divided by 255.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernels import yuv_text
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.operation import Operation
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
    """Of numbers where 1.0 is 255: luma's black, luma's length, chroma's length."""
    return (16 / 255, 219 / 255, 224 / 255) if limited else (0.0, 1.0, 1.0)


MIDDLE = 128 / 255


def decoding(matrix: str, limited: bool) -> tuple[float, ...]:
    """black, gain, middle and the shares of Cr in r, of Cb and Cr in g, of Cb in b."""
    kr, kb = WEIGHTS[matrix]
    kg = 1.0 - kr - kb
    black, luma, chroma = scales(limited)
    to_r, to_b = 2.0 * (1.0 - kr) / chroma, 2.0 * (1.0 - kb) / chroma
    return black, 1.0 / luma, MIDDLE, to_r, -to_b * kb / kg, -to_r * kr / kg, to_b


def encoding(matrix: str, limited: bool) -> tuple[float, ...]:
    """black, middle and the shares of r, g and b in Y, in Cb and in Cr."""
    kr, kb = WEIGHTS[matrix]
    weights = np.array([kr, 1.0 - kr - kb, kb])
    black, luma, chroma = scales(limited)
    blue = (np.array([0.0, 0.0, 1.0]) - weights) * (chroma / 2.0 / (1.0 - kb))
    red = (np.array([1.0, 0.0, 0.0]) - weights) * (chroma / 2.0 / (1.0 - kr))
    return black, MIDDLE, *(weights * luma).tolist(), *blue.tolist(), *red.tolist()


class _Video(Operation):
    """What both ways have in common."""

    dtypes = ("f32", "u8")

    def refuse_format(self, wanted: str, came: Any) -> NoReturn:
        raise ParameterError(
            f"run_kernel: parameter 'format' of kernel {self.name!r} {wanted}, {came!r} came."
        )

    def even(self, height: int, width: int) -> None:
        if height % 2 or width % 2:
            raise self.shape_error(
                f"has chroma for each 2 by 2 pixels here, so height and width must be even; "
                f"{height} by {width} came. Crop or pad the picture."
            )

    def want_rgb(self, t: Tensor, size: tuple[int, int], name: str) -> None:
        if t.shape not in ((*size, 3), (*size, 4)):
            raise self.shape_error(
                f"has {name} of shape {(*size, 3)} or {(*size, 4)} here, {t.shape} came."
            )
        if t.dtype not in self.dtypes:
            raise DtypeMismatch(
                f"run_kernel: kernel {self.name!r} has {name} of dtype 'u8' or 'f32', "
                f"{t.dtype!r} came."
            )

    def only_bytes(self, name: str, t: Tensor) -> None:
        if t.dtype != "u8":
            raise DtypeMismatch(
                f"run_kernel: kernel {self.name!r} has 4:2:0 pictures of dtype 'u8'; {name} of "
                f"{t.dtype!r} came. Only 'yuv444' may be 'f32'."
            )


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

    def _format(self, inputs: tuple[Tensor, ...], said: str | None) -> str:
        if len(inputs) > 1:
            found = "nv12" if len(inputs) == 2 else "i420"
            if said not in (None, found):
                self.refuse_format(f"is {found!r} with {len(inputs)} inputs", said)
            return found
        if said is not None:
            return said
        if len(inputs[0].shape) == 2:
            self.refuse_format("is 'nv12' or 'i420' for planes one after another", None)
        return "yuv444"

    def _size(self, inputs: tuple[Tensor, ...], form: str) -> tuple[int, int]:
        """Height and width; refuses inputs that do not fit."""
        first = inputs[0]
        if form == "yuv444":
            if len(first.shape) != 3 or first.shape[2] != 3:
                raise self.shape_error(
                    f"takes yuv444 of shape (height, width, 3), {first.shape} came."
                )
            return first.shape[0], first.shape[1]
        for name, t in zip(self.takes, inputs, strict=False):
            self.only_bytes(repr(name), t)
        if len(first.shape) != 2:
            raise self.shape_error(
                f"takes {form} of shape (height * 3 / 2, width), or its planes one by one; "
                f"{first.shape} came."
            )
        height, width = first.shape
        if len(inputs) == 1:
            if height % 3:
                raise self.shape_error(
                    f"takes {form} of shape (height * 3 / 2, width), {first.shape} came."
                )
            self.even(height // 3 * 2, width)
            return height // 3 * 2, width
        self.even(height, width)
        half = height // 2, width // 2
        fitting = [half] if form == "i420" else [(half[0], width), (*half, 2)]
        for name, t in zip(self.takes[1:], inputs[1:], strict=False):
            if t.shape not in fitting:
                wanted = " or ".join(map(str, fitting))
                raise self.shape_error(
                    f"has {name!r} of shape {wanted} with Y of {first.shape}, {t.shape} came."
                )
        return height, width

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        size = self._size(inputs, self._format(inputs, values["format"]))
        return Tensor((*size, 3), inputs[0].dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        form = self._format(inputs, values["format"])
        self.want_rgb(output, self._size(inputs, form), "an output")
        return {
            "format": form,
            "siting": values["siting"],
            "chroma": values["chroma"],
            "numbers": decoding(values["matrix"], values["range"] == "limited"),
        }

    def define(self, task: Task, *arrays: Any) -> Any:
        y, u, v = _planes(task, [a.astype(np.float64) for a in arrays])
        unit = 255.0 if task.inputs[0].dtype == "u8" else 1.0
        if task["format"] != "yuv444":
            u, v = (_upsampled(c, task["siting"], task["chroma"]) for c in (u, v))
        black, gain, middle, rv, gu, gv, bu = task["numbers"]
        luma, u, v = (y / unit - black) * gain, u / unit - middle, v / unit - middle
        made = np.stack([luma + rv * v, luma + gu * u + gv * v, luma + bu * u], axis=-1)
        if task.output.shape[2] == 4:
            made = np.concatenate([made, np.ones_like(made[..., :1])], axis=-1)
        return made * 255.0 if task.output.dtype == "u8" else made

    def lower(self, task: Task) -> tuple[Kernel, dict[str, Any]] | None:
        form, ranks = task["format"], tuple(len(t.shape) for t in task.inputs)
        names = ("black", "gain", "middle", "rv", "gu", "gv", "bu")
        numbers = dict(zip(names, task["numbers"], strict=True))
        if form == "yuv444":
            return _kernel(self.name, yuv_text.decode_pixels()), numbers
        text = yuv_text.decode_planes(form, ranks, task["siting"], task["chroma"])
        return _kernel(self.name, text), numbers


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

    Args:
        matrix: "bt601", "bt709" or "bt2020".
        range: "limited" or "full".
        format: "yuv444", "nv12" or "i420"; "yuv444" by default.
        siting: position of 4:2:0 chroma, "left" or "center".
    """

    title = "rgb_to_yuv"
    ends_chain = True
    takes = ("rgb",)
    options = _OPTIONS

    def _size(self, inputs: tuple[Tensor, ...], form: str) -> tuple[int, int]:
        shape = self.want_rank(inputs, 0, 3)
        self.want_rgb(inputs[0], (shape[0], shape[1]), "'rgb'")
        if form != "yuv444":
            self.even(shape[0], shape[1])
        return shape[0], shape[1]

    def _made(self, inputs: tuple[Tensor, ...], form: str) -> Tensor:
        height, width = self._size(inputs, form)
        if form == "yuv444":
            return Tensor((height, width, 3), inputs[0].dtype)
        return Tensor((height * 3 // 2, width), "u8")

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        return self._made(inputs, values["format"] or "yuv444")

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        form = values["format"]
        if form is None:
            if len(output.shape) == 2:
                self.refuse_format("is 'nv12' or 'i420' for an output of two axes", None)
            form = "yuv444"
        wanted = self._made(inputs, form)
        if form == "yuv444" and output.dtype in self.dtypes:
            wanted = Tensor(wanted.shape, output.dtype)
        self.want(output, wanted)
        return {
            "format": form,
            "siting": values["siting"],
            "numbers": encoding(values["matrix"], values["range"] == "limited"),
        }

    def define(self, task: Task, rgb: Any) -> Any:
        color = rgb[..., :3].astype(np.float64) / (255.0 if rgb.dtype == np.uint8 else 1.0)
        black, middle = task["numbers"][:2]
        shares = np.array(task["numbers"][2:]).reshape(3, 3)
        luma = color @ shares[0] + black
        if task["format"] != "yuv444":
            color = _downsampled(color, task["siting"])
        u, v = color @ shares[1] + middle, color @ shares[2] + middle
        if task["format"] == "yuv444":
            made = np.stack([luma, u, v], axis=-1)
        else:
            chroma = [np.stack([u, v], axis=-1)] if task["format"] == "nv12" else [u, v]
            made = np.concatenate([p.reshape(-1) for p in (luma, *chroma)])
            made = made.reshape(task.output.shape)
        return made * 255.0 if task.output.dtype == "u8" else made

    def lower(self, task: Task) -> tuple[Kernel, dict[str, Any]] | None:
        black, middle, *shares = task["numbers"]
        rows = {"y": shares[:3], "u": shares[3:6], "v": shares[6:]}
        form = task["format"]
        if form == "yuv444":
            text, unit = yuv_text.encode_pixels(), 1.0
        else:  # elements are stored as they are, so the numbers are those of bytes
            text, unit = yuv_text.encode_planes(form, task["siting"]), 255.0
        scale = unit / 255.0 if task.inputs[0].dtype == "u8" else unit
        scale = 1.0 if form == "yuv444" else scale
        values = {name: tuple(s * scale for s in row) for name, row in rows.items()}
        return _kernel(self.name, text), {**values, "black": black * unit, "middle": middle * unit}


# the definitions ------------------------------------------------------------------------------
def _planes(task: Task, arrays: list[Any]) -> tuple[Any, Any, Any]:
    """Y, Cb and Cr, the latter two small for 4:2:0."""
    height, width = task.output.shape[:2]
    half = height // 2, width // 2
    if task["format"] == "yuv444":
        return arrays[0][..., 0], arrays[0][..., 1], arrays[0][..., 2]
    if len(arrays) == 1:
        flat = arrays[0].reshape(-1)
        y, rest = flat[: height * width].reshape(height, width), flat[height * width :]
        if task["format"] == "nv12":
            pairs = rest.reshape(*half, 2)
            return y, pairs[..., 0], pairs[..., 1]
        return y, rest[: rest.size // 2].reshape(half), rest[rest.size // 2 :].reshape(half)
    if len(arrays) == 2:
        pairs = arrays[1].reshape(*half, 2)
        return arrays[0], pairs[..., 0], pairs[..., 1]
    return arrays[0], arrays[1], arrays[2]


def _between(c: Any, axis: int, centered: bool) -> Any:
    """Samples twice as many along an axis, at a quarter around each, or at each and between."""
    count = c.shape[axis]
    place = np.arange(2 * count) / 2.0 - (0.25 if centered else 0.0)
    low = np.floor(place).astype(np.int64)
    shape = [1] * c.ndim
    shape[axis] = -1
    part = (place - low).reshape(shape)
    a, b = (np.take(c, np.clip(low + k, 0, count - 1), axis=axis) for k in (0, 1))
    return a * (1.0 - part) + b * part


def _upsampled(c: Any, siting: str, chroma: str) -> Any:
    if chroma == "nearest":
        return c.repeat(2, axis=0).repeat(2, axis=1)
    return _between(_between(c, 1, siting == "center"), 0, True)


def _downsampled(color: Any, siting: str) -> Any:
    rows = (color[0::2] + color[1::2]) / 2.0
    if siting == "center":
        return (rows[:, 0::2] + rows[:, 1::2]) / 2.0
    before = np.concatenate([rows[:, :1], rows[:, 1:-1:2]], axis=1)
    return (before + 2.0 * rows[:, 0::2] + rows[:, 1::2]) / 4.0


@cache
def _kernel(name: str, text: str) -> Kernel:
    return Kernel(name, declare(sources.from_text(text, name)))


OPERATIONS = (RgbToYuv, YuvToRgb)
