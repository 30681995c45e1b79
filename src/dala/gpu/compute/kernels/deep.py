"""Conversions between RGB and the planes of video with more than eight bits per sample.

Samples of 9 to 16 bits are stored as two bytes each, low byte first, as in decoders and encoders.
HDR samples (HLG, PQ) are also converted to display values and back; the formulas are in
:mod:`dala.gpu.compute.kernels.hdr`.
"""

from __future__ import annotations

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.sampling.light import HLG_PEAK
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.kernels import deep_text, hdr, yuv
from dala.gpu.compute.kernels.deep_text import LAYOUTS
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter

MATRICES = (*yuv.WEIGHTS, "rgb")
_BITS = Parameter("bits", "int", 10, 8, 16)
_MATRIX = Parameter("matrix", "choice", "bt709", choices=MATRICES)
_RANGE = Parameter("range", "choice", "limited", choices=("limited", "full"))
_SITING = Parameter("siting", "choice", "left", choices=("left", "center", "topleft"))


def levels(bits: int, limited: bool) -> tuple[float, float, float, float]:
    """Return the black level, luma range, chroma zero and chroma range, as code values."""
    if limited:
        unit = float(1 << (bits - 8))
        return 16.0 * unit, 219.0 * unit, 128.0 * unit, 224.0 * unit
    top = float((1 << bits) - 1)
    return 0.0, top, float(1 << (bits - 1)), top


class Yuv16ToRgb(Operation):
    """Convert planes with 9 to 16 bits per sample to RGB.

    Planes have shape (rows, columns, 2): two bytes per sample, the low one first. One input is
    gray. Two are Y, and Cb and Cr interleaved, of shape (rows, columns, 4). Three are Y, Cb and Cr;
    for the matrix "rgb" they are green, blue and red. Chroma has the size of luma, or half its
    width, height or both (rounded up), and is interpolated linearly. The result is u8 or f32, with
    three or four channels; alpha is 1.

    HDR values become display values: SDR white (203 cd/m2) is 1.0. With ``light`` "sdr" they are
    tone-mapped by the curve of BT.2390, and converted from BT.2020 to BT.709.

    Args:
        bits: bits per sample.
        shift: unused low bits of each sample; 6 for P010.
        matrix: "bt601", "bt709", "bt2020" or "rgb".
        range: "limited" or "full".
        siting: position of subsampled chroma: "left", "center" or "topleft" (BT.2020).
        transfer: "none" leaves the values as coded; "hlg" or "pq".
        light: of HDR values: "sdr", or "float" with highlights above 1.0, in BT.2020.
        peak: the brightest value of "pq" in cd/m2, for "sdr".

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> y = np.full((2, 2), 940, np.uint16).view(np.uint8).reshape(2, 2, 2)     # white, 10 bits
    >>> u = v = np.full((1, 1), 512, np.uint16).view(np.uint8).reshape(1, 1, 2)
    >>> print(get("yuv16_to_rgb")(y, u, v).round(3)[0, 0])
    [1. 1. 1. 1.]
    """

    title = "yuv16_to_rgb"
    takes = ("y", "u", "v")
    optional = 2
    dtypes = ("u8",)
    options = (
        _BITS, Parameter("shift", "int", 0, 0, 8), _MATRIX, _RANGE, _SITING,
        Parameter("transfer", "choice", "none", choices=("none", "hlg", "pq")),
        Parameter("light", "choice", "sdr", choices=("sdr", "float")),
        Parameter("peak", "float", 1000.0, 1.0, 10000.0),
    )  # fmt: skip

    def _size(self, inputs: Inputs) -> tuple[int, int]:
        """Return height and width; raise if the planes' shapes do not match."""
        y = inputs[0].shape
        if len(y) != 3 or y[2] != 2:
            raise self.wrong_shape("y", "of shape (height, width, 2)", y)
        depth = 4 if len(inputs) == 2 else 2
        sizes = [(-(-y[0] // d), -(-y[1] // a), depth) for a, d in LAYOUTS.values()]
        for name, t in zip(self.takes[1:], inputs[1:], strict=False):
            if t.shape not in sizes or t.shape != inputs[1].shape:
                wanted = " or ".join(map(str, dict.fromkeys(sizes)))
                raise self.wrong_shape(name, f"of shape {wanted}", t.shape)
        return y[0], y[1]

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        return Tensor((*self._size(inputs), 4), "f32")

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        size = self._size(inputs)
        if output.shape not in ((*size, 3), (*size, 4)):
            self.want(output, Tensor((*size, 4), output.dtype))
        if output.dtype not in ("u8", "f32"):
            raise self.wrong_dtype("output", "of dtype 'u8' or 'f32'", output.dtype)
        black, luma, middle, chroma = levels(values["bits"], values["range"] == "limited")
        rgb = values["matrix"] == "rgb" or len(inputs) == 1
        shares: tuple[float, ...] = ()
        if not rgb:
            full = yuv.decoding(values["matrix"], False)[3:]  # for chroma of range 1
            shares = tuple(share / chroma for share in full)
        peak = values["peak"] if values["transfer"] == "pq" else HLG_PEAK
        return {
            **{name: values[name] for name in ("shift", "siting", "transfer", "light")},
            "planes": "gray" if len(inputs) == 1 else "rgb" if rgb else "yuv",
            "peak": peak,
            "ratio": tuple(1 + (inputs[0].shape[i] != inputs[-1].shape[i]) for i in (1, 0)),
            "numbers": (black, 1.0 / luma, middle, *shares),
            "curve": hdr.curve_numbers(peak),
        }

    def lower(self, task: Task) -> Lowered:
        text = deep_text.decoding_text(
            task["planes"], len(task.inputs), task["ratio"], task["siting"],
            task["shift"], task["transfer"], task["light"],
        )  # fmt: skip
        names = ("black", "gain", "middle", "rv", "gu", "gv", "bu")
        values = dict(zip(names, task["numbers"], strict=False))
        if task["planes"] != "yuv":
            values.pop("middle")
        if task["transfer"] != "none" and task["light"] == "sdr":
            values.update(zip(("knee", "top", "code"), task["curve"], strict=True))
        return text_kernel(self.name, text), values


class _Display(Operation):
    """The base of conversions of display values. Alpha is kept."""

    takes = ("image",)
    dtypes = ("f32",)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self.want_color(inputs)
        return inputs[0]

    def _kernel(self, helpers: str, lines: str, params: str = "") -> Kernel:
        text = f"{helpers}\ndef {self.name}(px: Pixel{params}):\n    r, g, b = px.r, px.g, px.b\n"
        return text_kernel(self.name, f"{text}{lines}    return rgba(r, g, b, px.a)\n")


class DisplayToHdr(_Display):
    """Convert display values (SDR white is 1.0) to the coded values of HLG or PQ, in BT.2020.

    The inverse of ``yuv16_to_rgb`` with ``light`` "float". Alpha is kept.

    Args:
        transfer: "hlg" or "pq".
        primaries: of the display values: "bt2020" or "bt709".

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> image = np.ones((1, 1, 3), np.float32)              # SDR white, 203 cd/m2
    >>> print(get("display_to_hdr")(image).round(3))
    [[[0.581 0.581 0.581]]]
    """

    title = "display_to_hdr"
    options = (
        Parameter("transfer", "choice", "pq", choices=("hlg", "pq")),
        Parameter("primaries", "choice", "bt2020", choices=("bt2020", "bt709")),
    )

    def lower(self, task: Task) -> Lowered:
        return self._kernel(*hdr.encoding_text(task["transfer"], task["primaries"])), {}


class DisplayToSdr(_Display):
    """Tone-map display values of HDR (SDR white is 1.0) in BT.2020 to SDR in BT.709.

    The curve is that of BT.2390. Alpha is kept. The result is f32 or u8.

    Args:
        peak: the brightest value in cd/m2, where SDR white is 203.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> image = np.array([[[0.5], [1.0], [1.5]]], np.float32).repeat(3, axis=2)
    >>> print(get("display_to_sdr")(image)[0, :, 0].round(2))
    [0.5  0.9  0.99]
    """

    title = "display_to_sdr"
    options = (Parameter("peak", "float", 1000.0, 1.0, 10000.0),)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        wanted = self.result(inputs, values)
        self.want(output, Tensor(wanted.shape, "u8" if output.dtype == "u8" else "f32"))
        return {**values, "curve": hdr.curve_numbers(values["peak"])}

    def lower(self, task: Task) -> Lowered:
        names = ("knee", "top", "code")
        params = f", *, {', '.join(f'{name}: float' for name in names)}"
        values = dict(zip(names, task["curve"], strict=True))
        return self._kernel(*hdr.MAPPING_TEXT, params), values


class RgbToYuv16(Operation):
    """Convert RGB to planes with 9 to 16 bits per sample.

    The result is a list of u32, each of which holds two samples, the first in its low half: all of
    Y, then Cb, then Cr, row by row (a last half may be unused). For the matrix "rgb" the planes are
    green, blue and red. Subsampled chroma is averaged around its position. Alpha is dropped.

    Args:
        bits: bits per sample.
        matrix: "bt601", "bt709", "bt2020" or "rgb".
        range: "limited" or "full".
        siting: position of subsampled chroma: "left", "center" or "topleft".
        layout: "420", "422", "440" or "444", which "rgb" requires.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> rgb = np.full((2, 2, 3), 255, np.uint8)             # white
    >>> words = get("rgb_to_yuv16")(rgb)
    >>> words.view(np.uint16).tolist()                      # four of Y, then Cb and Cr
    [940, 940, 940, 940, 512, 512]
    """

    title = "rgb_to_yuv16"
    takes = ("rgb",)
    dtypes = ("f32", "u8")
    options = (
        _BITS, _MATRIX, _RANGE, _SITING,
        Parameter("layout", "choice", "420", choices=tuple(LAYOUTS)),
    )  # fmt: skip

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        height, width, _ = self.want_color(inputs)
        layout = "444" if values["matrix"] == "rgb" else values["layout"]
        rows, columns = chroma_size(height, width, layout)
        return Tensor(((height * width + 2 * rows * columns + 1) // 2,), "u32")

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        rgb = values["matrix"] == "rgb"
        black, luma, middle, chroma = levels(values["bits"], values["range"] == "limited")
        shares = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        if not rgb:
            plain = yuv.encoding(values["matrix"], False)[2:]
            shares = [list(plain[i : i + 3]) for i in (0, 3, 6)]
        scales = (luma, luma, luma) if rgb else (luma, chroma, chroma)
        return {
            "layout": "444" if rgb else values["layout"],
            "siting": values["siting"],
            "top": float((1 << values["bits"]) - 1),
            "biases": (black, black, black) if rgb else (black, middle, middle),
            "shares": tuple(
                tuple(s * k for s in row) for row, k in zip(shares, scales, strict=True)
            ),
        }

    def lower(self, task: Task) -> Lowered:
        scale = 1.0 / 255.0 if task.inputs[0].dtype == "u8" else 1.0
        text = deep_text.encoding_text(task["layout"], task["siting"], scale)
        values: OperationValues = {"top": task["top"]}
        for name, bias, share in zip("yuv", task["biases"], task["shares"], strict=True):
            values[name], values[f"{name}_bias"] = share, bias
        return text_kernel(self.name, text), values


# sizes ------------------------------------------------------------------------------------------
def chroma_size(height: int, width: int, layout: str) -> tuple[int, int]:
    """Return rows and columns of the chroma of a picture.

    >>> chroma_size(5, 8, "420")
    (3, 4)
    """
    across, down = LAYOUTS[layout]
    return -(-height // down), -(-width // across)
