"""Frames: a picture on a device, with its time and its colour."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np

from dala.errors import DtypeError, ParameterError, ShapeError, did_you_mean
from dala.gpu.compute import Buffer, from_array
from dala.resources import Closing

FORMATS: Final = ("rgba", "rgb", "gray", "nv12", "i420")
PLANAR: Final = ("nv12", "i420")
#: What each word about colour may be.
COLOR: Final[Mapping[str, tuple[str, ...]]] = {
    "range": ("limited", "full"),
    "matrix": ("bt601", "bt709", "bt2020"),
    "primaries": ("bt601", "bt709", "bt2020", "p3"),
    "transfer": ("srgb", "bt709", "pq", "hlg", "linear"),
    "siting": ("left", "center"),
}
#: Where no time base is given: MPEG's, in which the usual frame rates are whole numbers.
TIME_BASE: Final = Fraction(1, 90000)
#: Pixels of a file that is opened, at most, unless told.
MAX_PIXELS: Final = 1 << 27


class Frame(Closing):
    """A picture on a device, when it is shown, and what its numbers mean.

    ``pixels`` is a Buffer: (height, width, 4), (height, width, 3) or (height, width) of u8 or f32
    for "rgba", "rgb" and "gray", (height * 3 / 2, width) of u8 for "nv12" and "i420". Nothing is
    converted unless asked for with :meth:`to`.

    Args:
        pixels: the Buffer, kept, not copied.
        format: one of the five; told from the shape where left out.
        pts: when it is shown, in units of ``time_base``; None where it is not known.
        time_base: seconds in a unit, exact.
        range: "limited" or "full"; left out, that of the format: video is limited, RGB full.
        matrix: "bt601", "bt709" or "bt2020", how luma is made; left out, "bt709" from 1280 pixels
            across or 577 down on, else "bt601".
        primaries: of which colours; carried along.
        transfer: how light is stored; carried along.
        siting: where samples of chroma lie among their four pixels: "left" (MPEG-2, H.264) or
            "center" (JPEG, MPEG-1); used by conversions, as the matrix is.

    >>> f = Frame.from_array(np.zeros((2, 4, 3), np.uint8), pts=3, time_base="1/25", device="cpu")
    >>> f
    <Frame rgb 4x2 u8 at 3/25 s on cpu>
    """

    __slots__ = (
        "format", "height", "matrix", "pixels", "primaries", "pts", "range", "siting", "time_base",
        "transfer", "width",
    )  # fmt: skip

    def __init__(
        self,
        pixels: Buffer,
        *,
        format: str | None = None,
        pts: int | None = None,
        time_base: Fraction | str | int = TIME_BASE,
        range: str | None = None,
        matrix: str | None = None,
        primaries: str = "bt709",
        transfer: str = "srgb",
        siting: str = "left",
    ) -> None:
        if not isinstance(pixels, Buffer):
            raise DtypeError(
                f"Frame: pixels must be a Buffer, {type(pixels).__name__} came. "
                "Frame.from_array takes arrays."
            )
        self.format, self.width, self.height = _layout(pixels, format)
        self.pixels = pixels
        self.pts = _pts(pts)
        self.time_base = _base(time_base)
        if range is None:
            range = "limited" if self.format in PLANAR else "full"
        elif range == "limited" and self.format not in PLANAR:
            raise ParameterError(
                f"Frame: {self.format} frames are of full range, range='limited' came. Give the "
                "planes of the video ('nv12', 'i420') and convert them: frame.to('rgb')."
            )
        if matrix is None:
            matrix = "bt709" if self.width >= 1280 or self.height > 576 else "bt601"
        self.range = _word("range", range)
        self.matrix = _word("matrix", matrix)
        self.primaries = _word("primaries", primaries)
        self.transfer = _word("transfer", transfer)
        self.siting = _word("siting", siting)

    @classmethod
    def _of(cls, pixels: Buffer, width: int, height: int, pts: int, time_base: Fraction) -> Self:
        """As ``Frame(pixels, format="rgba", ...)``, for whoever knows that all of it is right."""
        made = cls.__new__(cls)
        made.format, made.width, made.height = "rgba", width, height
        made.pixels, made.pts, made.time_base = pixels, pts, time_base
        made.range, made.primaries, made.transfer, made.siting = "full", "bt709", "srgb", "left"
        made.matrix = "bt709" if width >= 1280 or height > 576 else "bt601"
        return made

    # making -----------------------------------------------------------------------------------
    @classmethod
    def from_array(cls, array: Any, *, device: str | None = None, **facts: Any) -> Self:
        """A frame holding a copy of an array or a Pillow image; ``facts`` as for ``Frame``."""
        return cls(from_array(pixels_of(array, "Frame.from_array"), device=device), **facts)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        device: str | None = None,
        max_pixels: int = MAX_PIXELS,
        **facts: Any,
    ) -> Self:
        """A picture file as a frame, read by Pillow, turned upright as its EXIF says.

        Palettes and CMYK become RGB(A), 16-bit gray becomes f32.

        Raises:
            FileNotFoundError: there is no such file.
            ParameterError: it is no picture, a damaged one, or one of more than ``max_pixels``.
        """
        from dala.media.files import load

        found = pixels_of(load(path, max_pixels), "Frame.open")
        return cls(from_array(found, device=device), **facts)

    def like(self, pixels: Buffer) -> Frame:
        """Other pixels (RGB or gray) with this frame's time and colour."""
        return Frame(
            pixels,
            pts=self.pts,
            time_base=self.time_base,
            matrix=self.matrix,
            primaries=self.primaries,
            transfer=self.transfer,
            siting=self.siting,
        )

    # facts ------------------------------------------------------------------------------------
    @property
    def time(self) -> Fraction | None:
        """When it is shown, in seconds, exactly."""
        return None if self.pts is None else self.pts * self.time_base

    @property
    def device(self) -> str:
        """Id of the device the pixels are on."""
        return self.pixels.device

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the pixels."""
        return self.pixels.shape

    @property
    def dtype(self) -> str:
        """The dtype of the pixels: "u8" or "f32"."""
        return self.pixels.dtype

    def __repr__(self) -> str:
        time = "" if self.time is None else f" at {self.time} s"
        closed = " closed" if self.pixels.freed else ""
        size = f"{self.width}x{self.height}"
        return f"<Frame {self.format} {size} {self.dtype}{time} on {self.device}{closed}>"

    # conversion -------------------------------------------------------------------------------
    def to(
        self,
        format: str | None = None,
        *,
        device: str | None = None,
        matrix: str | None = None,
        range: str | None = None,
        siting: str | None = None,
    ) -> Frame:
        """The frame in another format or on another device; itself where nothing changes.

        ``matrix``, ``range`` and ``siting`` are those of the new frame where that is video; where
        left out, the frame's own, and "limited". RGB becomes gray by BT.601 luma, as ``grayscale``.
        """
        from dala.media.formats import convert

        wanted = self.format if format is None else _format(format)
        if wanted not in PLANAR and (matrix, range, siting) != (None, None, None):
            raise ParameterError(
                f"Frame.to: matrix, range and siting are for 'nv12' and 'i420', {wanted!r} is "
                "wanted. What the frame itself is made with, it knows: frame.matrix, frame.range."
            )
        pixels = self.pixels if device is None else self.pixels.to(device)
        own = self.range if self.format in PLANAR else "limited"
        matrix = self.matrix if matrix is None else _word("matrix", matrix)
        range = own if range is None else _word("range", range)
        siting = self.siting if siting is None else _word("siting", siting)
        made, coding = convert(pixels, self, wanted, (matrix, range, siting))
        if made is self.pixels:
            return self
        return Frame(
            made,
            format=wanted,
            pts=self.pts,
            time_base=self.time_base,
            range=coding[1] if wanted in PLANAR else "full",
            matrix=coding[0],
            primaries=self.primaries,
            transfer=self.transfer,
            siting=coding[2],
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """The pixels as an array: their own memory where the host can see it, else a copy."""
        return self.pixels.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.pixels.__array__(dtype, copy)

    # showing ----------------------------------------------------------------------------------
    def picture(self) -> np.ndarray[Any, Any]:
        """What one sees, as an array of u8: gray, RGB or RGBA."""
        from dala.media.formats import visible

        return visible(self).numpy()

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes a picture file, of the kind its name ends with; whole, or not at all.

        PNG needs nothing else; other kinds are written by Pillow, which ``options`` go to, such as
        ``quality=90``.
        """
        from dala.media.files import store

        store(path, self.picture(), options)

    def show(self) -> None:
        """Shows the frame: in a notebook below the cell, elsewhere in the system's viewer."""
        from dala.media.files import show

        show(self)

    def _repr_png_(self) -> bytes:
        from dala.png import encode_png

        return encode_png(self.picture())

    # end --------------------------------------------------------------------------------------
    def close(self) -> None:
        """Frees the pixels. Closing twice is fine."""
        self.pixels.free()


def pixels_of(data: Any, call: str) -> Any:
    """What is handed in as a picture, checked to be one, or planes of one."""
    from dala.media.images import check_array, from_pillow

    if isinstance(data, Buffer):
        return data
    if hasattr(data, "mode") and hasattr(data, "getbands"):
        return from_pillow(data, call)
    array = np.asarray(data)
    if array.dtype.kind in "OUSV":
        raise DtypeError(
            f"{call}: a picture is an array, a Pillow image or a Buffer; {type(data).__name__} "
            "came. Open a file by Frame.open(path)."
        )
    return check_array(array, call)


def _layout(pixels: Buffer, format: str | None) -> tuple[str, int, int]:
    """Format, width and height of pixels that fit together."""
    shape = pixels.shape
    pixels.storage("Frame")
    channels = {2: 1, 3: shape[-1] if shape else 0}.get(len(shape), 0)
    told = {1: "gray", 3: "rgb", 4: "rgba"}.get(channels)
    wanted = told if format is None else _format(format)
    dtypes = ("u8",) if wanted in PLANAR else ("u8", "f32")
    if pixels.dtype not in dtypes:
        raise DtypeError(f"Frame: {wanted} pixels are {' or '.join(dtypes)}, {pixels.dtype} came.")
    if wanted in PLANAR and len(shape) == 2:
        if shape[0] % 3 or shape[1] % 2 or not pixels.size:
            raise ShapeError(
                f"Frame: {wanted} has shape (height * 3 / 2, width), both even; {shape} came."
            )
        return wanted or "", shape[1], shape[0] // 3 * 2
    if told is None or wanted != told:
        raise ShapeError(
            f"Frame: format {wanted or format!r} does not fit pixels of shape {shape}. 'rgba' is "
            "(height, width, 4), 'rgb' (height, width, 3), 'gray' (height, width), 'nv12' and "
            "'i420' (height * 3 / 2, width)."
        )
    return told, shape[1], shape[0]


def _format(format: object) -> str:
    if format not in FORMATS:
        hint = did_you_mean(str(format), FORMATS)
        listed = ", ".join(map(repr, FORMATS))
        raise ParameterError(f"Frame: format is one of {listed}; {format!r} came. {hint}".rstrip())
    return str(format)


def _word(name: str, value: object) -> str:
    if value not in COLOR[name]:
        listed = ", ".join(map(repr, COLOR[name]))
        raise ParameterError(f"Frame: {name} is one of {listed}; {value!r} came.")
    return str(value)


def _pts(pts: Any) -> int | None:
    if pts is None or type(pts) is int:
        return pts
    try:
        if isinstance(pts, bool):
            raise TypeError
        return operator.index(pts)
    except TypeError:
        raise ParameterError(
            f"Frame: pts must be a whole number of units of time_base, {pts!r} came."
        ) from None


def _base(time_base: Any) -> Fraction:
    if type(time_base) is Fraction and time_base.numerator > 0:
        return time_base
    try:
        if isinstance(time_base, float | bool):
            raise TypeError
        base = Fraction(time_base)
    except (TypeError, ValueError, ZeroDivisionError):
        base = Fraction(0)
    if base <= 0:
        raise ParameterError(
            f"Frame: time_base must be an exact fraction above 0, such as Fraction(1, 25) or "
            f"'1/25'; {time_base!r} came."
        )
    return base
