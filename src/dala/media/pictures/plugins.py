"""Pillow's readers of picture files within limits, and pictures of more than eight bits."""

from __future__ import annotations

import io
import re
import struct
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import numpy as np

from dala.budget import check_deadline
from dala.errors import ParameterError
from dala.typing import NDArray, PathLike

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage


#: Pillow's names of the formats that are read. All are decoded from the bytes of the file alone,
#: in this process. BLP and ICNS hold pictures of other formats, of any size, and are not read.
FORMATS: Final = frozenset((
    "AVIF", "BMP", "CUR", "DCX", "DDS", "DIB", "FLI", "FTEX", "GBR", "GIF", "ICO", "IM", "IMT",
    "JPEG", "JPEG2000", "MCIDAS", "MPO", "MSP", "PCD", "PCX", "PIXAR", "PNG", "PPM", "PSD", "QOI",
    "SGI", "SPIDER", "SUN", "TGA", "TIFF", "WEBP", "XBM", "XPM", "XVTHUMB",
))  # fmt: skip

#: Pixels of a BMP with runs at most. Pillow fills its lines byte by byte, in Python: a few hundred
#: bytes would take a minute.
MAX_RUN_PIXELS: Final = 1 << 22

#: Scans of a JPEG at most, each of which goes over all pixels, and comments of a PPM in letters,
#: each of which moves the bytes behind it.
MAX_SCANS: Final = 100
MAX_COMMENTS: Final = 1000
#: Pixels of a picture in an icon at most. Pillow decodes it before it tells how large it is.
MAX_ICON_PIXELS: Final = 1 << 21

#: What begins a segment of a JPEG, rather than being a part of a scan.
_SEGMENT: Final = re.compile(rb"\xff+([^\x00\x01\xd0-\xd8\xff])")
_ICON: Final = b"\0\0\1\0"
_POSTSCRIPT: Final = (b"%!PS", b"\xc5\xd0\xd3\xc6")


class CheckedBytes(io.BytesIO):
    """The bytes of a file for a decoder; each of its reads looks at the deadline."""

    def __init__(self, data: bytes, call: str) -> None:
        super().__init__(data)
        self._call = call

    def read(self, size: int | None = -1) -> bytes:
        """Return bytes, unless the time of ``dala.limits`` has ended."""
        check_deadline(self._call)
        return super().read(size)


def check_work(image: PillowImage, source: Path | io.BytesIO, name: str) -> None:
    """Refuse a picture whose few bytes would take a decoder minutes."""
    width, height = image.size
    decoders = {tile[0] for tile in getattr(image, "tile", ())}
    problem = ""
    if "bmp_rle" in decoders and width * height > MAX_RUN_PIXELS:
        problem = (
            f"a compressed BMP of {width} x {height} pixels, more than {MAX_RUN_PIXELS:,}. Save it "
            "without compression, or as a PNG"
        )
    if "ppm_plain" in decoders and _data(source).count(b"#") > MAX_COMMENTS:
        problem = f"a PPM with more than {MAX_COMMENTS:,} comments"
    if "jpeg" in decoders and _scans(_data(source)) > MAX_SCANS:
        problem = f"a JPEG of more than {MAX_SCANS} scans"
    if problem:
        raise ParameterError(f"Frame.open: {name} is {problem}.")


def _data(source: Path | io.BytesIO) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source.getvalue()


def _scans(data: bytes) -> int:
    """Return the scans of the first picture of a JPEG; at most one too many.

    >>> _scans(b"\\xff\\xd8" + b"\\xff\\xda\\0\\x02\\x61\\xff\\0\\x62" * 3 + b"\\xff\\xd9")
    3
    """
    count, found = 0, _SEGMENT.search(data)
    while found is not None and found[1] != b"\xd9" and count <= MAX_SCANS:
        check_deadline("Frame.open")
        count += found[1] == b"\xda"
        at = found.end()
        found = _SEGMENT.search(data, at + int.from_bytes(data[at : at + 2], "big"))
    return count


def _check_icon(source: Path | io.BytesIO) -> None:
    """Refuse an icon with a large picture."""
    data = _data(source)
    for n in range(int.from_bytes(data[4:6], "little")):
        at = int.from_bytes(data[18 + 16 * n : 22 + 16 * n], "little")
        inner = data[at : at + 24]
        if inner.startswith(b"\x89PNG"):
            width, height = struct.unpack(">II", inner[16:].ljust(8, b"\0"))
        else:
            width, height = map(abs, struct.unpack("<ii", inner[4:12].ljust(8, b"\0")))
        if width * height > MAX_ICON_PIXELS:
            raise ParameterError(
                f"Frame.open: a picture in an icon has {width} x {height} pixels, more than "
                f"{MAX_ICON_PIXELS:,}."
            )


def open_image(source: Path | io.BytesIO) -> PillowImage:
    """Open a picture with a decoder of ``FORMATS``, as ``PIL.Image.open`` does.

    Raises:
        PIL.UnidentifiedImageError: none of them reads it, or it is a pipe.

    >>> import io
    >>> from dala.png import encode_png
    >>> import numpy as np
    >>> open_image(io.BytesIO(encode_png(np.zeros((2, 3), np.uint8)))).size
    (3, 2)
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(source, Path) and source.is_fifo():
        raise UnidentifiedImageError(
            "it is a pipe. Open it and give the file object, which is read to its end"
        )
    if (head := _head(source)) == _ICON:
        _check_icon(source)
    Image.preinit()  # the usual formats; the others take longer to import
    usual = _listed()
    try:
        return Image.open(source, formats=usual)
    except UnidentifiedImageError:
        Image.init()
        others = [name for name in _listed() if name not in usual]
        if head.startswith(_POSTSCRIPT):
            raise UnidentifiedImageError(
                "it is PostScript, a program, which is not run. Convert it to PNG first"
            ) from None
        if not others:
            raise
        return Image.open(source, formats=others)


def _listed() -> list[str]:
    """Return the registered formats that may be used, in Pillow's order."""
    from PIL import Image

    def is_own(name: str) -> bool:
        module = str(getattr(Image.OPEN[name][0], "__module__", "PIL"))
        return module != "PIL" and not module.startswith("PIL.")

    return [n for n in Image.ID if n in FORMATS or (n in Image.OPEN and is_own(n))]


def _head(source: Path | io.BytesIO) -> bytes:
    if isinstance(source, io.BytesIO):
        source.seek(0)
        return source.read(4)
    with source.open("rb") as file:
        return file.read(4)


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
