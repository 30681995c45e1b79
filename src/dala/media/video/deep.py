"""Frames of HDR and of more than eight bits: their planes, their metadata, and RGB from them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dala.gpu.compute import Buffer, run_kernel
from dala.gpu.compute.buffer import allocate, relabel
from dala.media.hdr import Hdr, MasteringDisplay
from dala.media.video.color import (
    ColorInfo,
    has_alpha,
    plane_of,
    reformatted,
    with_alpha,
    wrap,
)
from dala.media.video.decoding.nvdec import is_on_gpu, on_host, planes_on_gpu
from dala.media.video.source import DecodedFrame
from dala.typing import NDArray

#: The color of frames that were tone-mapped.
SDR: Final = ColorInfo("full", "bt709", "bt709", "bt709")
#: The color of f32 frames of HDR: display values in BT.2020, with SDR white at 1.0.
WIDE: Final = ColorInfo("full", "bt2020", "bt2020", "bt709")


@dataclass(frozen=True)
class DeepPlanes:
    """The planes of a frame, each (rows, columns, 2): two bytes per sample.

    One plane is gray; two are Y, and Cb and Cr interleaved (then with four bytes); three are Y, Cb
    and Cr, or green, blue and red for the matrix "rgb". ``alpha`` is f32 from 0 to 1, or None.
    """

    arrays: tuple[NDArray | Buffer, ...]
    matrix: str
    range: str
    siting: str
    bits: int
    shift: int
    hdr: Hdr | None
    alpha: NDArray | None = None


def deep_planes(frame: DecodedFrame, colors: ColorInfo, device: str | None = None) -> DeepPlanes:
    """Return the planes of a decoded frame, over its own memory where it has 9 to 16 bits."""
    hdr = hdr_of(frame, colors)
    if is_on_gpu(frame) and frame.sw_format.components[0].bits > 8:
        bits, made = frame.sw_format.components[0].bits, planes_on_gpu(frame, device)
        if len(made) == 2:
            relabel(made[1], (made[1].shape[0], made[1].shape[1] // 2, 4))
        facts = colors.matrix, colors.range, colors.siting, bits, 16 - bits
        return DeepPlanes(made, *facts, hdr)
    frame = on_host(frame)  # of 8 bits
    bits, kind = frame.format.components[0].bits, _kind(frame.format.name)
    if kind == "":
        frame, bits, kind = _as_words(frame, colors)
    shift = 16 - bits if kind == "pairs" else 0
    arrays = [
        _words(frame, index, rows, columns, 16 if shift else bits)
        for index, (rows, columns) in enumerate(_sizes(frame, kind))
    ]
    if kind == "pairs":
        arrays[1] = arrays[1].reshape(arrays[1].shape[0], -1, 4)
    matrix, range = ("rgb", "full") if kind == "rgb" else (colors.matrix, colors.range)
    alpha: NDArray | None = None
    if has_alpha(frame):
        words = _words(frame, 3, frame.height, frame.width, bits).view("<u2")[..., 0]
        alpha = words.astype(np.float32) / np.float32((1 << bits) - 1)
    return DeepPlanes(tuple(arrays), matrix, range, colors.siting, bits, shift, hdr, alpha)


def _kind(name: str) -> str:
    """Return "planes", "pairs", "rgb" or "gray" for formats that are read as they are, else ""."""
    if name.endswith("be") or "msb" in name or "f" in name.removeprefix("yuvaf"):
        return ""
    if name in ("p010le", "p012le", "p016le", "p210le", "p410le", "p212le", "p216le", "p416le"):
        return "pairs"
    if re.match(r"yuv(a?42[02]|a?444|440)p|yuvj4[24]", name):
        return "planes"
    if name.startswith(("gbrp", "gbrap")):
        return "rgb"
    return "gray" if name.startswith("gray") else ""


def _as_words(frame: DecodedFrame, colors: ColorInfo) -> tuple[DecodedFrame, int, str]:
    """Return a frame of another layout in planes of 16 bits, by FFmpeg's scaler."""
    clear = has_alpha(frame) or frame.format.has_palette
    if frame.format.is_rgb or frame.format.has_palette:
        return frame.reformat(format="gbrap16le" if clear else "gbrp16le"), 16, "rgb"
    gray = frame.format.name.startswith(("gray", "mono"))
    name = "gray16le" if gray else "yuva444p16le" if clear else "yuv444p16le"
    made = reformatted(frame, name, colors.range == "full")
    return made, 16, "gray" if gray else "planes"


def _sizes(frame: DecodedFrame, kind: str) -> list[tuple[int, int]]:
    """Return rows and columns of the planes, in samples."""
    size = frame.height, frame.width
    if kind in ("gray", "rgb"):
        return [size] * (1 if kind == "gray" else 3)
    form = frame.format
    small = -(-size[0] * form.chroma_height(64) // 64), -(-size[1] * form.chroma_width(64) // 64)
    return [size, (small[0], small[1] * 2)] if kind == "pairs" else [size, small, small]


def _words(frame: DecodedFrame, index: int, height: int, width: int, bits: int) -> NDArray:
    """Return a plane as pairs of bytes, (height, width, 2); bytes are widened."""
    words = plane_of(frame, index, height, width, bits).astype("<u2", copy=False)
    return np.ascontiguousarray(words).view(np.uint8).reshape(height, width, 2)


# metadata -------------------------------------------------------------------------------------
def hdr_of(frame: DecodedFrame, colors: ColorInfo) -> Hdr | None:
    """Return how a frame codes HDR, with its metadata; None for SDR."""
    if colors.transfer not in ("hlg", "pq"):
        return None
    mastering, light = None, (0, 0)
    display = frame.side_data.get("MASTERING_DISPLAY_METADATA")
    if display is not None:
        mastering = _mastering(bytes(display))
    level = frame.side_data.get("CONTENT_LIGHT_LEVEL")
    if level is not None and level.buffer_size >= 8:
        light = struct.unpack_from("=II", bytes(level))
    return Hdr(colors.transfer, mastering, *light)


def _mastering(raw: bytes) -> MasteringDisplay | None:
    """Read FFmpeg's AVMasteringDisplayMetadata: ten fractions and two flags."""
    if len(raw) < 88:
        return None
    numbers = struct.unpack_from("=22i", raw)
    if not (numbers[20] and numbers[21]):  # without primaries, or without luminances
        return None
    values = []
    for top, bottom in zip(numbers[0:20:2], numbers[1:20:2], strict=True):
        if bottom == 0:
            return None
        values.append(float(Fraction(top, bottom)))
    points = [(values[i], values[i + 1]) for i in (0, 2, 4, 6)]
    return MasteringDisplay(points[0], points[1], points[2], points[3], values[8], values[9])


# on a device ----------------------------------------------------------------------------------
def to_rgba(planes: DeepPlanes, device: str | None, *, deep: bool) -> Buffer:
    """Convert planes to RGBA on a device: u8 and tone-mapped, or f32 with SDR white at 1.0."""
    inputs = [wrap(a, device) for a in planes.arrays]
    shape = (*planes.arrays[0].shape[:2], 4)
    made = allocate(inputs[0].engine, shape, "f32" if deep else "u8", zero=False, call="video")
    names = ("bits", "shift", "matrix", "range", "siting")
    params = {name: getattr(planes, name) for name in names}
    if (hdr := planes.hdr) is not None:
        params |= {"transfer": hdr.transfer, "light": "float" if deep else "sdr", "peak": hdr.peak}
    run_kernel("yuv16_to_rgb", inputs, made, params)
    for buffer in inputs:
        buffer.free()
    if planes.alpha is None:
        return made
    alpha = planes.alpha if deep else np.rint(planes.alpha * 255).astype(np.uint8)
    return with_alpha(made, alpha, device)
