"""Color of decoded frames: their planes as bytes, and their range, matrix, primaries, transfer.

FFmpeg uses the code points of ITU-T H.273. What holds for files without tags is written in one
table, :data:`PIXEL_RULES`; the matrix is BT.709 from 577 lines or 1280 columns on, BT.601 below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from dala.gpu.compute import Buffer, from_array, from_dlpack, run_kernel
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get
from dala.gpu.compute.params import PixelSize
from dala.media.images import host_memory
from dala.media.kernels import kernel_from_text
from dala.media.video.decoding.nvdec import (
    is_on_gpu,
    joined,
    layout_of,
    narrowed,
    planes_on_gpu,
    stacked,
)
from dala.media.video.source import DecodedFrame
from dala.typing import NDArray

#: H.273 code points. Where several have one name, the first is the one written to files.
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


@dataclass(frozen=True)
class PixelRule:
    """The rule by which the pixel formats of one family are read."""

    #: "rgb", "gray" or "yuv".
    kind: str
    #: The range of a file that has no tag; always that of RGB.
    range: str


#: The rule of every pixel format of FFmpeg: the first pattern that matches its name counts. Bits
#: per sample and alpha follow from the format itself: samples of more than 8 bits are rounded,
#: alpha is full range and straight, and formats without alpha are opaque.
PIXEL_RULES: Final[tuple[tuple[str, PixelRule], ...]] = (
    # RGB in any order, packed or planar, Bayer patterns, palettes, XYZ of digital cinema.
    (r".*rgb.*|.*bgr.*|gbr.*|bayer_.*|pal8|xyz.*", PixelRule("rgb", "full")),
    # Gray (Y800, FFV1, scientific cameras), gray with alpha, one bit per pixel.
    (r"gray.*|ya\d.*|yaf.*|mono[bw]", PixelRule("gray", "full")),
    # The planes of JPEG.
    (r"yuvj.*", PixelRule("yuv", "full")),
    # All other YCbCr, with and without alpha: planar, semi-planar, packed.
    (r".*", PixelRule("yuv", "limited")),
)


@cache
def pixel_rule(name: str) -> PixelRule:
    """Return the rule of a pixel format of FFmpeg.

    >>> pixel_rule("gray10le").range, pixel_rule("yuv420p").range, pixel_rule("gbrap").kind
    ('full', 'limited', 'rgb')
    """
    return next(rule for pattern, rule in PIXEL_RULES if re.fullmatch(pattern, name))


@dataclass(frozen=True)
class ColorInfo:
    """The color identity of a frame."""

    range: str = "limited"
    matrix: str = "bt709"
    primaries: str = "bt709"
    transfer: str = "bt709"
    siting: str = "left"
    #: Code points of primaries and transfer, as the file has them; None after a conversion.
    tags: tuple[int, int] | None = None


@dataclass(frozen=True)
class DecodedPlanes:
    """The planes of a frame as u8: "i420" (3 planes), "nv12" (2), "yuv444", "gray", "rgba" (1).

    4:2:0 planes are padded to even sizes; ``height`` and ``width`` are those of the frame.
    ``alpha`` is a plane of that size, or None for opaque frames and for "rgba", which has its own.
    """

    format: str
    arrays: tuple[NDArray | Buffer, ...]
    height: int
    width: int
    alpha: NDArray | None = None


def code_point(table: dict[int, str], name: str) -> int:
    """Return the H.273 code point of a name, or 2 (unspecified) for an unknown one."""
    return next((key for key, value in table.items() if value == name), 2)


def written_tags(
    primaries: str, transfer: str, matrix: str, tags: tuple[int, int] | None
) -> tuple[int, int]:
    """Return the code points of primaries and transfer for a file.

    Those that the frame's own file had, also ones without a name here, unless the frame has been
    converted to other colors since.

    >>> written_tags("bt601", "bt709", "bt601", (5, 4)), written_tags("bt709", "pq", "bt709", None)
    ((5, 4), (1, 16))
    """
    first, second = tags or (-1, -1)
    if tags is None or PRIMARIES.get(first, matrix) != primaries:
        first = code_point(PRIMARIES, primaries)
    if tags is None or TRANSFERS.get(second, "bt709") != transfer:
        second = code_point(TRANSFERS, transfer)
    return first or 2, second or 2  # 0 is reserved


def color_info(frame: DecodedFrame, codec: str, matrix: str | None, range: str | None) -> ColorInfo:
    """Return the color of a decoded frame; ``matrix`` and ``range`` override its tags."""
    guess = "bt709" if frame.height > 576 or frame.width >= 1280 else "bt601"
    if matrix is None:
        matrix = MATRICES.get(int(frame.colorspace), guess)
    rule = pixel_rule(layout_of(frame).name)
    if rule.kind == "rgb":
        range = rule.range
    elif range is None:
        range = RANGES.get(int(frame.color_range), rule.range)
    primaries = PRIMARIES.get(int(frame.color_primaries), matrix)
    transfer = TRANSFERS.get(int(frame.color_trc), "bt709")
    siting = "center" if codec in ("mjpeg", "mpeg1video", "ljpeg") else "left"
    tags = int(frame.color_primaries), int(frame.color_trc)
    return ColorInfo(range, matrix, primaries, transfer, siting, tags)


_KNOWN_MATRICES: Final = frozenset((*MATRICES, 2))  # 2 is "unspecified"
_WITH_ALPHA = kernel_from_text("""
def with_alpha(px: Pixel, mask: Pixel):
    return rgba(px.rgb, mask.r)
""")


def unknown_matrix(frame: DecodedFrame) -> int | None:
    """Return the code point of a frame's matrix if it is a tag that has no name here."""
    code = int(frame.colorspace)
    known = code in _KNOWN_MATRICES or pixel_rule(layout_of(frame).name).kind != "yuv"
    return None if known else code


# planes ---------------------------------------------------------------------------------------
def planes_of(frame: DecodedFrame, colors: ColorInfo, device: str | None = None) -> DecodedPlanes:
    """Return the planes of a decoded frame as bytes, over the frame's own memory if possible."""
    if is_on_gpu(frame):
        return _planes_on_gpu(frame, colors.range == "full", device)
    form, size = frame.format, (frame.height, frame.width)
    kind = pixel_rule(form.name).kind
    if kind == "rgb":
        if re.fullmatch(r"(rgb|bgr)5[56]5be", form.name):  # which FFmpeg 8 reads as little-endian
            frame = frame.reformat(format=form.name[:-2] + "le")
        return DecodedPlanes("rgba", (frame.reformat(format="rgba").to_ndarray(),), *size)
    full = colors.range == "full"
    if kind == "gray":
        return _gray_planes(frame, full)
    name, bits = form.name, form.components[0].bits
    if name in ("nv12", "p010le", "p012le", "p016le"):
        rows, columns = (size[0] + 1) // 2, (size[1] + 1) // 2
        both = plane_of(frame, 0, *size, bits), plane_of(frame, 1, rows, columns * 2, bits)
        if bits > 8:  # p010 keeps its ten bits in the high bits of sixteen
            both = both[0] >> (16 - bits), both[1] >> (16 - bits)
        luma, pairs = (_to_u8(a, bits, full, i == 1) for i, a in enumerate(both))
        return DecodedPlanes("nv12", (_pad_to_even(luma), pairs), *size)
    plain = name.startswith(("yuv4", "yuvj4", "yuva4")) and not name.endswith(("be", "msble"))
    shares = (form.chroma_width(64), form.chroma_height(64)) if plain else (0, 0)
    clear = has_alpha(frame)
    if shares not in ((32, 32), (32, 64), (64, 64)):
        made = ("yuva444p" if clear else "yuv444p") + ("16le" if bits > 8 else "")
        frame = reformatted(frame, made, full)
        bits, shares = 16 if bits > 8 else 8, (64, 64)
    small = -(-size[0] * shares[1] // 64), -(-size[1] * shares[0] // 64)
    luma = _to_u8(plane_of(frame, 0, *size, bits), bits, full, False)
    u, v = (_to_u8(plane_of(frame, i, *small, bits), bits, full, True) for i in (1, 2))
    alpha = _to_u8(plane_of(frame, 3, *size, bits), bits, True, False) if clear else None
    if shares == (32, 32):
        return DecodedPlanes("i420", (_pad_to_even(luma), u, v), *size, alpha)
    if shares == (32, 64):
        u, v = _upsample_columns(u, size[1]), _upsample_columns(v, size[1])
    return DecodedPlanes("yuv444", (np.stack([luma, u, v], axis=-1),), *size, alpha)


def _planes_on_gpu(frame: DecodedFrame, full: bool, device: str | None) -> DecodedPlanes:
    bits = frame.sw_format.components[0].bits
    made, size = planes_on_gpu(frame, device), (frame.height, frame.width)
    if bits > 8:
        made = tuple(narrowed(b, bits, full, i > 0, 16 - bits) for i, b in enumerate(made))
    if len(made) == 3:
        return DecodedPlanes("yuv444", (stacked(made),), *size)
    return DecodedPlanes("nv12", made, *size)


def _gray_planes(frame: DecodedFrame, full: bool) -> DecodedPlanes:
    """Return the plane of a gray frame, and its alpha if it has some."""
    name, size = frame.format.name, (frame.height, frame.width)
    bits, clear = frame.format.components[0].bits, name.startswith("ya")
    if bits == 1:
        frame, bits = frame.reformat(format="gray"), 8
    kind = f"{'f' if 'f' in name else 'u'}{1 if bits <= 8 else 2 if bits <= 16 else 4}"
    order = ">" if name.endswith("be") else "<"
    both = plane_of(frame, 0, size[0], size[1] * (2 if clear else 1), bits, order + kind)
    if kind.startswith("f"):
        both, bits = (both.clip(0, 1) * 65535 + 0.5).astype(np.uint16), 16
    elif bits > 16:
        both, bits = both >> (bits - 16), 16
    if not clear:
        return DecodedPlanes("gray", (_to_u8(both, bits, full, False),), *size)
    luma = np.ascontiguousarray(_to_u8(both[:, 0::2], bits, full, False))
    return DecodedPlanes("gray", (luma,), *size, _to_u8(both[:, 1::2], bits, True, False))


def has_alpha(frame: DecodedFrame) -> bool:
    """Return whether the pixels of a frame have alpha."""
    return any(part.is_alpha for part in frame.format.components)


def reformatted(frame: DecodedFrame, name: str, full: bool) -> DecodedFrame:
    """Return a frame in another pixel format of the same range, by FFmpeg's scaler."""
    code = 2 if full else 1
    return frame.reformat(format=name, src_color_range=code, dst_color_range=code)


def plane_of(
    frame: DecodedFrame, index: int, height: int, width: int, bits: int, kind: str = ""
) -> NDArray:
    """Return a plane of a frame, of bytes or words or another kind, without its padding."""
    plane, dtype = frame.planes[index], np.dtype(kind or ("u1" if bits <= 8 else "<u2"))
    row = plane.line_size // dtype.itemsize
    return np.frombuffer(plane, dtype, count=row * height).reshape(height, row)[:, :width]


def _to_u8(a: NDArray, bits: int, full: bool, chroma: bool) -> NDArray:
    """Round samples of more than eight bits to bytes.

    Limited range is the 8-bit scale with a longer fraction; full range ends at all ones.
    """
    if bits <= 8:
        return a
    return _rounding_table(bits, full, chroma)[a]


@cache
def _rounding_table(bits: int, full: bool, chroma: bool) -> NDArray:
    count = 1 << bits
    codes = np.arange(1 << 16, dtype=np.float64).clip(max=count - 1)
    if full:
        middle = (128.0, count / 2.0) if chroma else (0.0, 0.0)
        codes = (codes - middle[1]) * (255.0 / (count - 1)) + middle[0]
    else:
        codes /= count >> 8
    return np.floor(codes + 0.5).clip(0, 255).astype(np.uint8)


def _pad_to_even(a: NDArray) -> NDArray:
    odd = a.shape[0] % 2, a.shape[1] % 2
    return np.pad(a, ((0, odd[0]), (0, odd[1])), mode="edge") if any(odd) else a


def _upsample_columns(c: NDArray, width: int) -> NDArray:
    """Interpolate 4:2:2 chroma to every column: even columns as stored, odd ones halfway."""
    after = np.concatenate([c[:, 1:], c[:, -1:]], axis=1)
    made = np.empty((c.shape[0], 2 * c.shape[1]), np.uint8)
    made[:, 0::2] = c
    made[:, 1::2] = (c.astype(np.uint16) + after + 1) >> 1
    return made[:, :width]


# on a device ----------------------------------------------------------------------------------
def wrap(a: NDArray | Buffer, device: str | None) -> Buffer:
    """Return an array as a buffer, without a copy where that is possible."""
    if isinstance(a, Buffer):
        return a
    return from_dlpack(a, device=device) if a.flags.c_contiguous else from_array(a, device=device)


def to_rgba(planes: DecodedPlanes, colors: ColorInfo, device: str | None) -> Buffer:
    """Convert a frame to RGBA, (height, width, 4) u8, on a device."""
    if planes.format == "rgba":
        return from_array(planes.arrays[0], device=device)
    arrays, form = planes.arrays, planes.format
    if form == "gray":
        middle = np.full_like(arrays[0], 128)
        arrays, form = (np.stack([arrays[0], middle, middle], axis=-1),), "yuv444"
    inputs = [wrap(a, device) for a in arrays]
    shape = (*arrays[0].shape[:2], 4)
    made = allocate(inputs[0].engine, shape, "u8", zero=False, call="video")
    named = {"matrix": colors.matrix, "range": colors.range, "format": form}
    run_kernel("yuv_to_rgb", inputs, made, {**named, "siting": colors.siting})
    for buffer in inputs:
        buffer.free()
    if shape[:2] != (planes.height, planes.width):
        cut: Buffer = get("crop")(made, box=(0, 0, planes.width, planes.height))
        made.free()
        made = cut
    return made if planes.alpha is None else with_alpha(made, planes.alpha, device)


def with_alpha(picture: Buffer, alpha: NDArray, device: str | None) -> Buffer:
    """Return an RGBA picture with an alpha plane of its dtype, and free the original."""
    memory = host_memory(picture)
    if memory is not None:
        memory[..., 3] = alpha
        return picture
    plane = wrap(np.ascontiguousarray(alpha), device)
    made = allocate(picture.engine, picture.shape, picture.dtype, zero=False, call="video")
    _WITH_ALPHA.run([picture, plane], made)
    plane.free()
    picture.free()
    return made


def to_planes(planes: DecodedPlanes, device: str | None) -> Buffer | None:
    """Return 4:2:0 planes as one (height * 3 / 2, width) buffer; None if not 4:2:0."""
    even = planes.height % 2 == 0 and planes.width % 2 == 0
    if planes.format not in ("nv12", "i420") or not even or planes.alpha is not None:
        return None
    held = [a for a in planes.arrays if isinstance(a, Buffer)]
    if held:
        return joined(held)
    flat = np.concatenate([a.reshape(-1) for a in planes.arrays if not isinstance(a, Buffer)])
    return from_dlpack(flat.reshape(planes.height * 3 // 2, planes.width), device=device)


def rotate(picture: Buffer, degrees: int) -> Buffer:
    """Rotate a picture clockwise by 90, 180 or 270 degrees, and free the original."""
    height, width = picture.shape[:2]
    size = PixelSize(width, height) if degrees == 180 else PixelSize(height, width)
    # Maps output pixel (x, y) to its source.
    matrix = {
        90: (0, 1, 0, -1, 0, height - 1),
        180: (-1, 0, width - 1, 0, -1, height - 1),
        270: (0, -1, width - 1, 1, 0, 0),
    }[degrees]
    made: Buffer = get("warp_affine")(picture, matrix=matrix, size=size, method="nearest")
    picture.free()
    return made


def to_square_pixels(picture: Buffer, aspect: Fraction) -> Buffer:
    """Stretch a picture's width by the aspect ratio of its pixels, and free the original."""
    height, width = picture.shape[:2]
    made: Buffer = get("resize")(picture, size=PixelSize(max(1, round(width * aspect)), height))
    picture.free()
    return made
