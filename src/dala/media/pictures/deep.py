"""Pictures of sixteen bits per channel, which Pillow reads and writes with eight: through PyAV."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np

from dala.typing import NDArray, PathLike

#: An object of PyAV, which has no types.
AvObject: TypeAlias = Any

#: FFmpeg reads these files alone, and nothing that they name.
_OPTIONS: Final = {
    "format_whitelist": "png_pipe,tiff_pipe,ppm_pipe,pgm_pipe,pam_pipe,pfm_pipe,j2k_pipe,apng",
    "protocol_whitelist": "file",
}
#: FFmpeg's formats of sixteen bits, by number of channels.
_LAYOUTS: Final = {1: "gray16le", 2: "ya16le", 3: "rgb48le", 4: "rgba64le"}


def read_deep(source: PathLike | BinaryIO) -> NDArray | None:
    """Return a picture as u16: gray, RGB or RGBA; None if it has eight bits or cannot be read.

    Fewer than sixteen bits are scaled to sixteen.
    """
    try:
        import av
    except ImportError:
        return None
    given: AvObject = source
    if not hasattr(source, "read"):
        given = f"file:{source}"
    try:
        with av.open(given, container_options=_OPTIONS) as container:
            if not container.streams.video:
                return None
            frame = next(container.decode(video=0), None)
            return None if frame is None else _values(frame)
    except (av.FFmpegError, OSError, ValueError, StopIteration):
        return None


def _values(frame: AvObject) -> NDArray | None:
    form = frame.format
    bits = max(c.bits for c in form.components)
    count = len(form.components)
    if not 8 < bits <= 16 or form.has_palette or count not in _LAYOUTS:
        return None
    wanted = _LAYOUTS[count]
    if form.name not in (wanted, wanted.replace("le", "be")):
        if not form.is_rgb and count != 1:  # YCbCr would need a matrix
            return None
        frame = frame.reformat(format=wanted)
    order = "<u2" if frame.format.name.endswith("le") else ">u2"
    plane = frame.planes[0]
    rows = np.frombuffer(plane, order).reshape(frame.height, plane.line_size // 2)
    pixels = rows[:, : frame.width * count].reshape(frame.height, frame.width, count)
    values = pixels.astype(np.uint16)
    if count == 2:
        from dala.media.pictures.pixels import rgba

        return rgba(values[..., 0], values[..., 1])
    return values[..., 0] if count == 1 else values


def encode_tiff(pixels: NDArray) -> bytes:
    """Return RGB or RGBA of u16 as the bytes of a TIFF file, compressed without loss."""
    import av

    height, width, count = pixels.shape
    context: AvObject = av.CodecContext.create("tiff", "w")
    context.width, context.height = width, height
    context.pix_fmt = _LAYOUTS[count]
    context.time_base = Fraction(1)
    context.options = {"compression_algo": "deflate"}
    frame = av.VideoFrame(width, height, _LAYOUTS[count])
    plane = frame.planes[0]
    rows = np.zeros((height, plane.line_size // 2), "<u2")
    rows[:, : width * count] = pixels.reshape(height, width * count)
    plane.update(rows)
    frame.pts = 0
    out = io.BytesIO()
    for packet in [*context.encode(frame), *context.encode(None)]:
        out.write(bytes(packet))
    return out.getvalue()


def upright(pixels: NDArray, orientation: int) -> NDArray:
    """Return pixels rotated and mirrored as the EXIF orientation (1 to 8) says.

    >>> upright(np.array([[1, 2]]), 6).tolist()
    [[1], [2]]
    """
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)
