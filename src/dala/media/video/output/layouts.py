"""The pixel formats that frames are encoded in, and the conversion of frames to them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute import from_array
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get
from dala.media.frame import PLANAR, Frame
from dala.media.hdr import Hdr
from dala.media.video.output.deep import (
    DEEP_LAYOUTS,
    deep_codec,
    deep_picture,
    takes_layout,
)
from dala.media.video.output.planes import i420_planes, nv12_planes, picture_of
from dala.media.video.source import DecodedFrame, av, ffmpeg_errors
from dala.notices import notify
from dala.typing import NDArray

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
        return plain[0]
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
    """
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
    pixels = made.numpy()
    if made.pixels is frame.pixels and copy:  # the caller may change it
        pixels = pixels.copy()
    found: tuple[NDArray, ...] = nv12_planes(pixels) if layout == "nv12" else i420_planes(pixels)
    if size != (made.width, made.height):
        found = found[0][: size[1], : size[0]], *found[1:]
    if pixel_format == "yuva420p":
        found = *found, _alpha(frame, 255)
    return picture_of(found, pixel_format)


def is_translucent(frame: Frame) -> bool:
    """Return whether some pixel of a frame is not opaque."""
    if frame.format != "rgba":
        return False
    return bool(frame.numpy()[..., 3].min() < (255 if frame.dtype == "u8" else 1.0))


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
