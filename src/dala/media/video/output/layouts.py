"""The pixel formats that frames are encoded in, and the conversion of frames to them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute import Buffer, from_array
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get
from dala.media.formats import plain
from dala.media.frame import PLANAR, Frame
from dala.media.hdr import Hdr, MasteringDisplay
from dala.media.images import host_memory
from dala.media.video.output.nvenc import gpu_picture
from dala.media.video.source import DecodedFrame, av, ffmpeg_errors
from dala.notices import notify
from dala.typing import NDArray, Params


def i420_planes(pixels: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return views of Y, Cb and Cr of an "i420" array of shape (height * 3 / 2, width)."""
    height, width = pixels.shape[0] // 3 * 2, pixels.shape[1]
    return split_planes(pixels.reshape(-1), (height, width), (height // 2, width // 2))


def split_planes(
    flat: NDArray, size: tuple[int, int], small: tuple[int, int]
) -> tuple[NDArray, NDArray, NDArray]:
    """Return views of Y, Cb and Cr that follow each other, from their (height, width)."""
    luma, chroma = math.prod(size), math.prod(small)
    u, v = flat[luma : luma + 2 * chroma].reshape(2, *small)
    return flat[:luma].reshape(size), u, v


def picture_of(planes: Sequence[NDArray], pixel_format: str) -> DecodedFrame:
    """Return a picture of PyAV over planes, one for each component, of shape (rows, columns).

    The planes are u8, or u16 for more than eight bits. Their memory is borrowed: it must not change
    while the picture is in use. It is copied where PyAV cannot borrow it: read-only arrays, rows
    that are not contiguous, and odd sizes with subsampled chroma.
    """
    height, width = planes[0].shape
    whole = "444" in pixel_format or not (height % 2 or width % 2)
    if whole and all(p.flags.writeable and p.strides[1] == p.itemsize for p in planes):
        return av.VideoFrame.from_dlpack(tuple(planes), pixel_format, width, height)
    picture = av.VideoFrame(width, height, pixel_format)
    for plane, target in zip(planes, picture.planes, strict=True):
        row = target.line_size // plane.itemsize
        into = np.frombuffer(target, plane.dtype, count=row * plane.shape[0])
        np.copyto(into.reshape(plane.shape[0], row)[:, : plane.shape[1]], plane)
    return picture


#: FFmpeg's names of the layouts of more than eight bits that are written.
DEEP_LAYOUTS: Final = (
    "yuv420p10le", "yuv422p10le", "yuv444p10le", "yuv420p12le", "yuv422p12le", "yuv444p12le",
    "yuv420p16le", "yuv422p16le", "yuv444p16le", "gbrp10le", "gbrp12le", "gbrp16le",
)  # fmt: skip
_NAME: Final = re.compile(r"(?:yuv(420|422|444)p|gbrp)(\d\d)le")
#: The layout of HDR that every player of it takes.
HDR_LAYOUT: Final = "yuv420p10le"
#: The option of an encoder that holds metadata, and its keys for display and light levels.
_HDR_PARAMS: Final = {
    "libx265": ("x265-params", "master-display", "max-cll"),
    "libx264": ("x264-params", "mastering-display", "cll"),
    "libsvtav1": ("svtav1-params", "mastering-display", "content-light"),
}


def deep_codec(container: str) -> str:
    """Return the default codec of a container for HDR and for more than eight bits.

    >>> deep_codec("mp4"), deep_codec("webm")
    ('hevc', 'av1')
    """
    return "av1" if container == "webm" else "hevc"


def takes_layout(encoder: str, pixel_format: str) -> bool:
    """Return whether an encoder of FFmpeg takes a pixel format."""
    return any(f.name == pixel_format for f in av.Codec(encoder, "w").video_formats or ())


def deep_picture(
    frame: Frame, pixel_format: str, *, matrix: str, range: str, hdr: Hdr | None
) -> DecodedFrame:
    """Return a frame as a picture of PyAV in one of ``DEEP_LAYOUTS``.

    With ``hdr``, frames are display values (SDR white is 1.0) and are coded by its transfer.
    """
    found = _NAME.fullmatch(pixel_format)
    assert found is not None, pixel_format
    layout = found[1] or "444"
    if frame.format not in ("rgb", "rgba"):
        frame = frame.to("rgb")
    pixels = frame.pixels if hdr is None else _coded(frame, hdr)
    params: Params = {
        "bits": int(found[2]),
        "matrix": matrix if found[1] else "rgb",
        "range": range if found[1] else "full",
        "layout": layout,
    }
    kernel = get("rgb_to_yuv16")
    words = kernel.new_output([pixels], params)
    kernel.run([pixels], words, params)
    if pixels is not frame.pixels:
        pixels.free()
    flat = words.numpy().view("<u2")
    if not flat.flags.writeable:
        flat = flat.copy()
    height, width = frame.height, frame.width
    small = -(-height // (2 if layout == "420" else 1)), -(-width // (1 if layout == "444" else 2))
    return picture_of(split_planes(flat, (height, width), small), pixel_format)


def _coded(frame: Frame, hdr: Hdr) -> Buffer:
    """Return display values as values of HLG or PQ."""
    own = frame.dtype == "f32"
    pixels = frame.pixels if own else plain(frame.pixels, frame.shape, "f32")
    primaries = "bt2020" if frame.primaries == "bt2020" else "bt709"
    made: Buffer = get("display_to_hdr")(pixels, transfer=hdr.transfer, primaries=primaries)
    if not own:
        pixels.free()
    return made


# metadata -------------------------------------------------------------------------------------
def hdr_options(encoder: str, hdr: Hdr, options: dict[str, str]) -> dict[str, str] | None:
    """Return an encoder's options with the metadata of HDR; None if it cannot store them.

    >>> hdr_options("libx265", Hdr("pq", max_cll=800, max_fall=100), {"x265-params": "aq-mode=2"})
    {'x265-params': 'aq-mode=2:hdr10=1:repeat-headers=1:max-cll=800,100'}
    """
    display, light = hdr.mastering, (hdr.max_cll, hdr.max_fall)
    if encoder not in _HDR_PARAMS:
        return None if display or any(light) else options
    name, mastering, levels = _HDR_PARAMS[encoder]
    parts = [options.get(name, "")]
    if encoder == "libx265" and hdr.transfer == "pq":
        parts += ["hdr10=1", "repeat-headers=1"]
    if display:
        parts.append(f"{mastering}={_shown(display, in_steps=encoder != 'libsvtav1')}")
    if any(light):
        parts.append(f"{levels}={light[0]},{light[1]}")
    return {**options, name: ":".join(filter(None, parts))} if any(parts) else options


def _shown(display: MasteringDisplay, in_steps: bool) -> str:
    """Return a mastering display in the integer steps of HEVC, or as numbers."""
    names = {"G": display.green, "B": display.blue, "R": display.red, "WP": display.white}
    light = display.max_luminance, display.min_luminance
    if in_steps:
        points = [f"{n}({round(x * 50000)},{round(y * 50000)})" for n, (x, y) in names.items()]
        return f"{''.join(points)}L({round(light[0] * 10000)},{round(light[1] * 10000)})"
    points = [f"{name}({x:.5f},{y:.5f})" for name, (x, y) in names.items()]
    return f"{''.join(points)}L({light[0]:.4f},{light[1]:.4f})"


_CALL: Final = "video.write"
#: Names of FFmpeg, in order of preference for frames without alpha.
LAYOUTS: Final = (
    "yuv420p", "nv12", "yuvj420p", "yuv444p10le", "yuv444p", "rgb24", "yuva420p",
    "yuva444p10le", "rgba", "bgra", *(name for name in DEEP_LAYOUTS if name != "yuv444p10le"),
)  # fmt: skip
#: Those with 2x2 pixels per chroma sample.
_SUBSAMPLED: Final = (
    "yuv420p", "nv12", "yuvj420p", "yuva420p",
    *(name for name in DEEP_LAYOUTS if name.startswith(("yuv420", "yuv422"))),
)  # fmt: skip
#: Those that hold alpha, for each encoder that keeps it.
ALPHA_LAYOUTS: Final = {
    "prores_ks": "yuva444p10le",
    "libvpx-vp9": "yuva420p",
    "ffv1": "bgra",
    "png": "rgba",
}
#: The layout of ProRes 422, which editors expect; 4444 is for alpha, or asked for.
PRORES: Final = "yuv422p10le"
#: Encoders that store odd sizes with 4:2:0 chroma; the others get one more row or column.
_ODD_SIZES: Final = (
    "libvpx-vp9", "libvpx", "libsvtav1", "libaom-av1", "mpeg4", "mpeg2video", "mjpeg", "ffv1",
    "rawvideo",
)  # fmt: skip


def has_alpha(pixel_format: str) -> bool:
    """Return whether a pixel format that is written holds alpha.

    >>> has_alpha("yuva420p"), has_alpha("rgb24")
    (True, False)
    """
    return pixel_format in ALPHA_LAYOUTS.values()


@ffmpeg_errors(f"{_CALL}: the choice of a pixel format failed")
def choose_layout(encoder: str, pixel_format: str | None, alpha: bool) -> str:
    """Return the pixel format for an encoder of FFmpeg.

    Raises:
        ParameterError: the encoder does not take the format, or holds no alpha.
    """
    takes = [f.name for f in av.Codec(encoder, "w").video_formats or ()] or list(LAYOUTS)
    known = [name for name in LAYOUTS if name in takes]
    if alpha and pixel_format is None:
        pixel_format = ALPHA_LAYOUTS.get(encoder)
        if pixel_format is None:
            raise ParameterError(
                f"{_CALL}: {encoder!r} holds no alpha. Use codec 'prores' or 'png' (.mov), 'vp9' "
                "(.webm, .mkv) or 'ffv1' (.mkv)."
            )
    if pixel_format is None:
        plain = [name for name in known if not has_alpha(name)]
        if not plain:
            raise ParameterError(
                f"{_CALL}: {encoder!r} takes none of the pixel formats that Dala writes "
                f"({', '.join(LAYOUTS)}); it takes {', '.join(takes)}. Choose another codec."
            )
        return PRORES if PRORES in plain and encoder == "prores_ks" else plain[0]
    if not isinstance(pixel_format, str) or pixel_format not in known:
        raise ParameterError.invalid(
            _CALL, "pixel_format", f"one of {', '.join(known)} for {encoder!r}", pixel_format
        )
    if alpha and not has_alpha(pixel_format):
        raise ParameterError.invalid(
            _CALL, "pixel_format", "one with alpha, because alpha is True", pixel_format
        )
    return pixel_format


def deep_layout(codec: str | None, out: str, bits: int) -> tuple[str, str | None]:
    """Return the codec and the pixel format that keep more than eight bits of SDR.

    Args:
        codec: the codec that was asked for; None for one that holds them.
        out: the file, whose suffix names the container.
        bits: those of the source.
    """
    from dala.media.video.encode import find_encoder

    codec = codec or deep_codec(Path(out).suffix.lower().lstrip("."))
    encoder, _ = find_encoder(codec)
    for depth in (16, 12, 10):
        layout = f"yuv420p{depth}le"
        if takes_layout(encoder, layout) and (bits >= depth or depth == 10):
            return codec, layout
    notify(f"{out}: {codec} has 8 bits, so {bits} bits are rounded. --codec hevc keeps them.")
    return codec, None


def stored_size(encoder: str, pixel_format: str, size: tuple[int, int]) -> tuple[int, int]:
    """Return the width and height that are encoded: even where the encoder needs that.

    >>> stored_size("libx264", "yuv420p", (15, 16)), stored_size("libvpx-vp9", "yuv420p", (15, 16))
    ((16, 16), (15, 16))
    """
    if pixel_format not in _SUBSAMPLED:
        return size
    if encoder in _ODD_SIZES and pixel_format != "nv12":
        return size
    return size[0] + size[0] % 2, size[1] + size[1] % 2


@ffmpeg_errors(f"{_CALL}: the conversion of a frame failed")
def encoded_picture(
    frame: Frame,
    pixel_format: str,
    size: tuple[int, int],
    *,
    matrix: str,
    range: str,
    copy: bool,
    hdr: Hdr | None = None,
    gpu: str = "",
) -> DecodedFrame:
    """Return a frame as a picture of PyAV.

    Args:
        frame: any frame.
        pixel_format: one of ``LAYOUTS``.
        size: width and height to encode; a larger one repeats the last row or column.
        matrix: of the result.
        range: of the result.
        copy: copy the frame's own memory; False borrows it where possible.
        hdr: how to code HDR; None for SDR.
        gpu: the device in whose memory the encoder takes "nv12"; "" for the host's.
    """
    if pixel_format == PRORES and range == "limited" and frame.format in PLANAR:
        flat = frame.to("i420", matrix=matrix, range=range).numpy()
        luma, *chroma = i420_planes(flat)
        return picture_of((luma.astype(np.uint16) << 2, *map(_doubled, chroma)), PRORES)
    if pixel_format in DEEP_LAYOUTS:
        whole = frame if size == (frame.width, frame.height) else _padded(frame)
        return deep_picture(whole, pixel_format, matrix=matrix, range=range, hdr=hdr)
    if pixel_format in ("rgb24", "rgba", "bgra"):
        return av.VideoFrame.from_numpy_buffer(_packed(frame, pixel_format), pixel_format)
    if pixel_format not in _SUBSAMPLED:
        planes = _full_chroma(frame, pixel_format, matrix, range)
        return picture_of(planes, pixel_format)
    layout = "nv12" if pixel_format == "nv12" else "i420"
    even = _padded(frame) if frame.width % 2 or frame.height % 2 else frame
    made = even.to(layout, matrix=matrix, range=range)
    if gpu:
        return gpu_picture(made, gpu, copy=copy and made.pixels is frame.pixels)
    pixels = made.numpy()
    if made.pixels is frame.pixels and copy:  # the caller may change it
        pixels = pixels.copy()
    found: tuple[NDArray, ...] = pixels[: made.height], pixels[made.height :]
    if layout == "i420":
        found = i420_planes(pixels)
    if size != (made.width, made.height):
        found = found[0][: size[1], : size[0]], *found[1:]
    if pixel_format == "yuva420p":
        found = *found, _alpha(frame, 255)
    return picture_of(found, pixel_format)


def _doubled(chroma: NDArray) -> NDArray:
    """Return a plane of 4:2:0 as ten bits with twice the rows: linear interpolation, exact."""
    rows = np.pad(chroma, ((1, 1), (0, 0)), mode="edge").astype(np.uint16)
    made = np.empty((2 * chroma.shape[0], chroma.shape[1]), np.uint16)
    near = rows[1:-1] * np.uint16(3)
    np.add(near, rows[:-2], out=made[0::2])
    np.add(near, rows[2:], out=made[1::2])
    return made


def is_translucent(frame: Frame) -> bool:
    """Return whether some pixel of a frame is not opaque."""
    if frame.format != "rgba":
        return False
    pixels = frame.pixels if host_memory(frame.pixels) is None else frame.numpy()
    return bool(pixels[..., 3].min() < (255 if frame.dtype == "u8" else 1.0))


def _alpha(frame: Frame, top: int) -> NDArray:
    """Return the alpha plane with ``top`` for opaque: u8, or u16 above 255."""
    kind = np.uint8 if top == 255 else np.uint16
    if frame.format != "rgba":
        return np.full((frame.height, frame.width), top, kind)
    alpha = frame.numpy()[..., 3]
    if frame.dtype == "u8" and top == 255:
        return np.ascontiguousarray(alpha)
    share = np.asarray(alpha, np.float32) / np.float32(255 if frame.dtype == "u8" else 1)
    return np.asarray(np.floor(share.clip(0, 1) * top + np.float32(0.5)), kind)


def _packed(frame: Frame, pixel_format: str) -> NDArray:
    """Return the bytes of a frame in the order of a packed format."""
    wanted = "rgb" if pixel_format == "rgb24" else "rgba"
    pixels = frame.to(wanted).picture()
    if pixel_format == "bgra":
        pixels = pixels[..., [2, 1, 0, 3]]
    return np.array(pixels, order="C")


def _full_chroma(frame: Frame, pixel_format: str, matrix: str, range: str) -> tuple[NDArray, ...]:
    """Return planes with chroma for every pixel, of 8 or 10 bits."""
    deep = pixel_format.endswith("10le")
    rgb = frame.to("rgb") if frame.format in (*PLANAR, "gray") else frame
    shape = (frame.height, frame.width, 3)
    made = allocate(rgb.pixels.engine, shape, "f32" if deep else "u8", zero=False, call=_CALL)
    coding = {"format": "yuv444", "matrix": matrix, "range": range}
    get("rgb_to_yuv").run([rgb.pixels], made, coding)
    array = made.numpy()
    if deep:
        array = _ten_bits(array, range)
    planes = tuple(np.ascontiguousarray(array[..., i]) for i in (0, 1, 2))
    made.free()
    return (*planes, _alpha(frame, 1023)) if has_alpha(pixel_format) else planes


def _ten_bits(yuv: NDArray, range: str) -> NDArray:
    """Return values with 1.0 for 255 as codes of ten bits.

    Limited range is the 8-bit scale with a longer fraction; full range ends at all ones.
    """
    if range == "limited":
        codes = yuv * np.float32(255 * 4)
    else:
        middle = np.array([0, 128 / 255, 128 / 255], np.float32)
        codes = (yuv - middle) * np.float32(1023) + np.array([0, 512, 512], np.float32)
    return np.asarray(np.floor(codes + np.float32(0.5)).clip(0, 1023), np.uint16)


def _padded(frame: Frame) -> Frame:
    """Return a frame with even sizes: the last row or column once more."""
    array = frame.numpy()
    edges = [(0, frame.height % 2), (0, frame.width % 2)] + [(0, 0)] * (array.ndim - 2)
    return frame.like(from_array(np.pad(array, edges, mode="edge"), device=frame.device))
