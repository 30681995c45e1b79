"""From FFmpeg's pictures to planes of bytes, and what their colours mean.

FFmpeg numbers colours as ITU-T H.273 does. What a file leaves open is taken as players take it:
the matrix is BT.709 from 577 lines or 1280 columns on and BT.601 below, the range is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dala.gpu.compute import Buffer, buffer_zeros, from_array, from_dlpack, run_kernel
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get
from dala.media.images import shared

#: H.273's numbers; the first of each name is the one that is written.
MATRICES = {1: "bt709", 6: "bt601", 5: "bt601", 4: "bt601", 9: "bt2020", 10: "bt2020"}
PRIMARIES = {1: "bt709", 6: "bt601", 5: "bt601", 7: "bt601", 9: "bt2020", 12: "p3", 11: "p3"}
TRANSFERS = {
    1: "bt709",
    6: "bt709",
    14: "bt709",
    15: "bt709",
    13: "srgb",
    8: "linear",
    16: "pq",
    18: "hlg",
}
RANGES = {1: "limited", 2: "full"}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Colours:
    """What the numbers of a picture mean."""

    range: str = "limited"
    matrix: str = "bt709"
    primaries: str = "bt709"
    transfer: str = "bt709"
    siting: str = "left"


@dataclass(frozen=True)
class Planes:
    """A picture as bytes: "i420" (3 planes), "nv12" (2), "yuv444", "gray" or "rgba" (1 each).

    4:2:0 planes are padded to even sizes; ``height`` and ``width`` are those of the picture.
    """

    format: str
    arrays: tuple[Array, ...]
    height: int
    width: int


def number(table: dict[int, str], name: str) -> int:
    """H.273's number of a name; 2, which says nothing, for a name it does not have."""
    return next((key for key, value in table.items() if value == name), 2)


def colours_of(frame: Any, codec: str, matrix: str | None, range: str | None) -> Colours:
    """The colours of a decoded frame; ``matrix`` and ``range`` overrule what it says."""
    guess = "bt709" if frame.height > 576 or frame.width >= 1280 else "bt601"
    if matrix is None:
        matrix = MATRICES.get(int(frame.colorspace), guess)
    if range is None:
        jpeg = frame.format.name.startswith("yuvj")
        range = RANGES.get(int(frame.color_range), "full" if jpeg else "limited")
    primaries = PRIMARIES.get(int(frame.color_primaries), matrix)
    transfer = TRANSFERS.get(int(frame.color_trc), "bt709")
    siting = "center" if codec in ("mjpeg", "mpeg1video", "ljpeg") else "left"
    return Colours(range, matrix, primaries, transfer, siting)


# planes ---------------------------------------------------------------------------------------
def planes_of(frame: Any, colours: Colours) -> Planes:
    """The picture of a decoded frame as bytes; the memory is the frame's own where it can be."""
    form, size = frame.format, (frame.height, frame.width)
    name, parts = form.name, form.components
    if form.is_rgb or form.has_palette:
        return Planes("rgba", (frame.reformat(format="rgba").to_ndarray(),), *size)
    bits, full = parts[0].bits, colours.range == "full"
    if name in ("nv12", "p010le", "p012le", "p016le"):
        rows, columns = (size[0] + 1) // 2, (size[1] + 1) // 2
        both = _plane(frame, 0, *size, bits), _plane(frame, 1, rows, columns * 2, bits)
        if bits > 8:  # p010 has its ten bits on top of sixteen
            both = both[0] >> (16 - bits), both[1] >> (16 - bits)
        luma, pairs = (_reduced(a, bits, full, i == 1) for i, a in enumerate(both))
        return Planes("nv12", (_even(luma), pairs), *size)
    if len(parts) == 1 and name.startswith("gray") and not name.endswith(("be", "f32le", "f16le")):
        return Planes("gray", (_reduced(_plane(frame, 0, *size, bits), bits, full, False),), *size)
    plain = name.startswith(("yuv4", "yuvj4")) and len(parts) == 3 and not name.endswith("be")
    shares = (form.chroma_width(64), form.chroma_height(64)) if plain else (0, 0)
    if shares not in ((32, 32), (32, 64), (64, 64)):
        said = 2 if full else 1
        frame = frame.reformat(format="yuv444p", src_color_range=said, dst_color_range=said)
        bits, shares = 8, (64, 64)
    small = -(-size[0] * shares[1] // 64), -(-size[1] * shares[0] // 64)
    luma = _reduced(_plane(frame, 0, *size, bits), bits, full, False)
    u, v = (_reduced(_plane(frame, i, *small, bits), bits, full, True) for i in (1, 2))
    if shares == (32, 32):
        return Planes("i420", (_even(luma), u, v), *size)
    if shares == (32, 64):
        u, v = _wider(u, size[1]), _wider(v, size[1])
    return Planes("yuv444", (np.stack([luma, u, v], axis=-1),), *size)


def _plane(frame: Any, index: int, height: int, width: int, bits: int) -> Array:
    plane = frame.planes[index]
    kind = np.dtype("u1" if bits <= 8 else "<u2")
    row = plane.line_size // kind.itemsize
    flat = np.frombuffer(plane, kind, count=row * height)
    return flat.reshape(height, row)[:, :width]


def _reduced(a: Array, bits: int, full: bool, chroma: bool) -> Array:
    """Numbers of more than eight bits as bytes, rounded to the nearest.

    Limited range is the same scale with more digits after the point; full range ends at all ones.
    """
    if bits <= 8:
        return a
    return _table(bits, full, chroma)[a]


@cache
def _table(bits: int, full: bool, chroma: bool) -> Array:
    count = 1 << bits
    codes = np.arange(1 << 16, dtype=np.float64).clip(max=count - 1)
    if full:
        middle = (128.0, count / 2.0) if chroma else (0.0, 0.0)
        codes = (codes - middle[1]) * (255.0 / (count - 1)) + middle[0]
    else:
        codes /= count >> 8
    return np.floor(codes + 0.5).clip(0, 255).astype(np.uint8)


def _even(a: Array) -> Array:
    odd = a.shape[0] % 2, a.shape[1] % 2
    return np.pad(a, ((0, odd[0]), (0, odd[1])), mode="edge") if any(odd) else a


def _wider(c: Array, width: int) -> Array:
    """Chroma of 4:2:2 for each column: at the even ones as it is, halfway at those between."""
    after = np.concatenate([c[:, 1:], c[:, -1:]], axis=1)
    made = np.empty((c.shape[0], 2 * c.shape[1]), np.uint8)
    made[:, 0::2] = c
    made[:, 1::2] = (c.astype(np.uint16) + after + 1) >> 1
    return made[:, :width]


# on a device ----------------------------------------------------------------------------------
def _lent(a: Array, device: str | None) -> Buffer:
    """A buffer for reading: over the array's own memory where the device can."""
    return from_dlpack(a, device=device) if a.flags.c_contiguous else from_array(a, device=device)


def to_rgba(planes: Planes, colours: Colours, device: str | None) -> Buffer:
    """The picture as (height, width, 4) bytes on a device."""
    if planes.format == "rgba":
        return from_array(planes.arrays[0], device=device)
    arrays, form = planes.arrays, planes.format
    if form == "gray":
        middle = np.full_like(arrays[0], 128)
        arrays, form = (np.stack([arrays[0], middle, middle], axis=-1),), "yuv444"
    lent = [_lent(a, device) for a in arrays]
    shape = (*arrays[0].shape[:2], 4)
    made = allocate(lent[0].engine, shape, "u8", zero=False, call="video")
    named = {"matrix": colours.matrix, "range": colours.range, "format": form}
    run_kernel("yuv_to_rgb", lent, made, {**named, "siting": colours.siting})
    for buffer in lent:
        buffer.free()
    if shape[:2] == (planes.height, planes.width):
        return made
    cut = from_array(made.numpy()[: planes.height, : planes.width], device=device)
    made.free()
    return cut


def lent(planes: Planes, device: str | None) -> tuple[Buffer, ...] | None:
    """4:2:0 over the decoder's own memory; None where it is not, or where rows lie apart."""
    if planes.format not in ("nv12", "i420") or planes.height % 2 or planes.width % 2:
        return None
    if not all(a.flags.c_contiguous for a in planes.arrays):
        return None
    return tuple(from_dlpack(a, device=device) for a in planes.arrays)


def to_planes(planes: Planes, device: str | None) -> Buffer | None:
    """4:2:0 as (height * 3 / 2, width) bytes, planes one after another; None where it is not."""
    if planes.format not in ("nv12", "i420") or planes.height % 2 or planes.width % 2:
        return None
    with buffer_zeros(1, "u8", device=device) as probe:
        engine = probe.engine
    size = (planes.height * 3 // 2, planes.width)
    made = allocate(engine, size, "u8", zero=False, call="video")
    target = shared(made)
    flat = np.empty(size, np.uint8) if target is None else target
    into, at = flat.reshape(-1), 0
    for a in planes.arrays:
        np.copyto(into[at : at + a.size].reshape(a.shape), a)
        at += a.size
    if target is None:
        made.write(flat)
    return made


def turned(picture: Buffer, degrees: int) -> Buffer:
    """The picture turned to the right by 90, 180 or 270 degrees; frees the one it was given."""
    height, width = picture.shape[:2]
    size = (height, width) if degrees == 180 else (width, height)
    # where output pixel (x, y) lies in the source
    matrix = {
        90: (0, 1, 0, -1, 0, height - 1),
        180: (-1, 0, width - 1, 0, -1, height - 1),
        270: (0, -1, width - 1, 1, 0, 0),
    }[degrees]
    made: Buffer = get("warp_affine")(picture, matrix=matrix, size=size, method="nearest")
    picture.free()
    return made


def squared(picture: Buffer, aspect: Any) -> Buffer:
    """The picture with its width stretched by the pixels' aspect; frees the one it was given."""
    height, width = picture.shape[:2]
    made: Buffer = get("resize")(picture, size=(height, max(1, round(width * aspect))))
    picture.free()
    return made
