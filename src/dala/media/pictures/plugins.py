"""The decoders of Pillow that are used.

A decoder is chosen by what a file contains, not by its name. Some of Pillow's start another
program (EPS runs Ghostscript), hand the file to the operating system (WMF), open a file inside the
file with any decoder (IPTC), unpack without a limit (FITS), or call functions that a program
registered (BUFR, GRIB, HDF5). None of these is used, whatever the file is called. Decoders that a
program registers itself (``pillow_heif.register_heif_opener()``) are its own choice and are used.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.budget import check_deadline
from dala.errors import ParameterError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

#: Pillow's names of the formats that are read. All are decoded from the bytes of the file alone,
#: in this process.
FORMATS: Final = frozenset((
    "AVIF", "BLP", "BMP", "CUR", "DCX", "DDS", "DIB", "FLI", "FTEX", "GBR", "GIF", "ICNS",
    "ICO", "IM", "IMT", "JPEG", "JPEG2000", "MCIDAS", "MPO", "MSP", "PCD", "PCX", "PIXAR",
    "PNG", "PPM", "PSD", "QOI", "SGI", "SPIDER", "SUN", "TGA", "TIFF", "WEBP", "XBM", "XPM",
    "XVTHUMB",
))  # fmt: skip

#: Pixels of a BMP with runs at most. Pillow fills its lines byte by byte, in Python: a few hundred
#: bytes would take a minute.
MAX_RUN_PIXELS: Final = 1 << 22

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


def check_runs(image: PillowImage, name: str) -> None:
    """Refuse a large BMP with runs."""
    width, height = image.size
    tiles = getattr(image, "tile", ())
    if any(tile[0] == "bmp_rle" for tile in tiles) and width * height > MAX_RUN_PIXELS:
        raise ParameterError(
            f"Frame.open: {name} is a compressed BMP of {width} x {height} pixels, more than "
            f"{MAX_RUN_PIXELS:,}. Save it without compression, or as a PNG."
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
    Image.preinit()  # the usual formats; the others take longer to import
    usual = _listed()
    try:
        return Image.open(source, formats=usual)
    except UnidentifiedImageError:
        Image.init()
        others = [name for name in _listed() if name not in usual]
        if _head(source).startswith(_POSTSCRIPT):
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
