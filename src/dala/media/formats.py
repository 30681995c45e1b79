"""Conversions between the formats of frames, by kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get as find_kernel
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.frame import Frame

CALL = "Frame.to"
#: Matrix, range and siting of planes.
Coding: TypeAlias = tuple[str, str, str]
_CODING = ("format", "matrix", "range", "siting")
_CHANNELS = {"rgba": (4,), "rgb": (3,), "gray": ()}


SAME = kernel_from_text("def same(px: Pixel): return rgba(px.rgb, px.a)")

#: From nv12 to i420: interleaved Cb and Cr to a plane each.
_SPLIT = kernel_from_text("""
def split(a: Array, *, height: int):
    y, x = position()
    width = a.shape[1]
    half = (height // 2) * (width // 2)
    k = (y - height) * width + x
    j = k * 2 if k < half else (k - half) * 2 + 1
    return a[y, x] if y < height else a[height + j // width, j % width]
""")

#: From i420 to nv12.
_INTERLEAVE = kernel_from_text("""
def interleave(a: Array, *, height: int):
    y, x = position()
    width = a.shape[1]
    half = (height // 2) * (width // 2)
    k = (y - height) * width + x
    j = k // 2 + (half if k % 2 == 1 else 0)
    return a[y, x] if y < height else a[height + j // width, j % width]
""")


def _new(like: Buffer, shape: tuple[int, ...], dtype: str) -> Buffer:
    return allocate(like.engine, shape, dtype, zero=False, call=CALL)


def convert(pixels: Buffer, frame: Frame, wanted: str, coding: Coding) -> tuple[Buffer, Coding]:
    """Return the pixels of a frame in another format, and their coding."""
    planar = ("nv12", "i420")
    size = (frame.height, frame.width)
    own = (frame.matrix, frame.range, frame.siting)
    full = (frame.matrix, "full", frame.siting)
    if wanted in planar and frame.format in planar:
        if coding == own:
            return _rearranged(pixels, frame, wanted), coding
        pixels = _from_planes(pixels, frame, "rgb")
    elif wanted == frame.format:
        return pixels, own
    elif frame.format in planar:
        made = _from_planes(pixels, frame, "rgba" if wanted == "rgba" else "rgb")
        return (_gray(made, size) if wanted == "gray" else made), full
    if wanted in planar:
        if len(pixels.shape) == 2:
            pixels = plain(pixels, (*size, 3))
        made = _new(pixels, (frame.height * 3 // 2, frame.width), "u8")
        params = dict(zip(_CODING, (wanted, *coding), strict=True))
        find_kernel("rgb_to_yuv").run([pixels], made, params)
        return made, coding
    if wanted == "gray":
        return _gray(pixels, size), full
    return plain(pixels, size + _CHANNELS[wanted]), full


def visible(frame: Frame) -> Buffer:
    """Return a frame as gray, RGB or RGBA of u8."""
    shown = frame.to("rgb") if frame.format in ("nv12", "i420") else to_sdr(frame)
    if shown.dtype == "u8":
        return shown.pixels
    return plain(shown.pixels, shown.shape, "u8")


def sixteen_bits(frame: Frame) -> NDArray:
    """Return a frame as an array of u16: gray, RGB or RGBA."""
    shown = frame.to("rgb") if frame.format in ("nv12", "i420") else to_sdr(frame, "f32")
    pixels = shown.numpy()
    if shown.dtype == "u8":
        return pixels.astype(np.uint16) * np.uint16(257)
    made: NDArray = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * 65535).astype(np.uint16)
    return made


def to_sdr(frame: Frame, dtype: str = "u8") -> Frame:
    """Return a frame of HDR tone-mapped to SDR; other frames as they are."""
    if frame.hdr is None or frame.dtype != "f32" or len(frame.shape) != 3:
        return frame
    made = _new(frame.pixels, frame.shape, dtype)
    find_kernel("display_to_sdr").run([frame.pixels], made, {"peak": frame.hdr.peak})
    sdr = frame.like(made)
    sdr.matrix = sdr.primaries = sdr.transfer = "bt709"
    sdr.hdr = sdr.tags = None
    return sdr


def plain(pixels: Buffer, shape: tuple[int, ...], dtype: str | None = None) -> Buffer:
    """Return pixels in another shape or dtype, with the same values."""
    made = _new(pixels, shape, dtype or pixels.dtype)
    SAME.run([pixels], made)
    return made


def _gray(pixels: Buffer, size: tuple[int, int]) -> Buffer:
    made = _new(pixels, size, pixels.dtype)
    find_kernel("grayscale").run([pixels], made)
    return made


def _from_planes(pixels: Buffer, frame: Frame, wanted: str) -> Buffer:
    made = _new(pixels, (frame.height, frame.width, *_CHANNELS[wanted]), "u8")
    params = {name: getattr(frame, name) for name in _CODING}
    find_kernel("yuv_to_rgb").run([pixels], made, params)
    return made


def _rearranged(pixels: Buffer, frame: Frame, wanted: str) -> Buffer:
    if wanted == frame.format:
        return pixels
    made = _new(pixels, pixels.shape, "u8")
    (_SPLIT if wanted == "i420" else _INTERLEAVE).run([pixels], made, {"height": frame.height})
    return made
