"""Frames: pictures on a device, with their time and color coding."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, TypedDict, Unpack

from dala.arguments import Integer, Selection
from dala.errors import DtypeError, ParameterError, ShapeError
from dala.extras import needing
from dala.gpu.compute import Buffer, from_array
from dala.gpu.compute.dtypes import DtypeLike
from dala.media.pictures.filter_advice import FilterAdvice
from dala.resources import Closing
from dala.trace.recorder import tracer
from dala.typing import ColorLike, NDArray, ParamValue, PathLike, PictureSource

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.media.hdr import Hdr

FORMATS: Final = ("rgba", "rgb", "gray", "nv12", "i420")
PLANAR: Final = ("nv12", "i420")
#: The values of each color attribute.
COLOR: Final = {
    "range": Selection("limited", "full"),
    "matrix": Selection("bt601", "bt709", "bt2020"),
    "primaries": Selection("bt601", "bt709", "bt2020", "p3"),
    "transfer": Selection("srgb", "bt709", "pq", "hlg", "linear"),
    "siting": Selection("left", "center"),
}
_FORMAT: Final = Selection(*FORMATS)
_PTS: Final = Integer(-(1 << 63), words="an int or None")
#: The default: that of MPEG, in which the usual frame rates are integers.
TIME_BASE: Final = Fraction(1, 90000)
#: The default limit of pixels of a file that is opened.
MAX_PIXELS: Final = 1 << 27


class FrameFacts(TypedDict, total=False):
    """The format, time and color coding of a frame, as ``Frame`` takes them."""

    format: str | None
    pts: int | None
    time_base: Fraction | str | int
    duration: int | None
    range: str | None
    matrix: str | None
    primaries: str
    transfer: str
    siting: str
    hdr: Hdr | None
    tags: tuple[int, int] | None


_FACTS: Final = tuple(FrameFacts.__annotations__)


class Frame(FilterAdvice, Closing):
    """A picture on a device, with its presentation time and its color coding.

    ``pixels`` is a Buffer: (height, width, 4), (height, width, 3) or (height, width) of u8 or f32
    for "rgba", "rgb" and "gray", (height * 3 / 2, width) of u8 for "nv12" and "i420". Frames are
    converted only by :meth:`to`.

    Args:
        pixels: the Buffer; it is not copied.
        format: "rgba", "rgb", "gray", "nv12" or "i420"; by default from the shape.
        pts: the presentation time in units of ``time_base``; None if unknown.
        time_base: the unit in seconds, exact.
        duration: how long the frame is shown, in units of ``time_base``; None if unknown.
        range: "limited" or "full"; by default limited for "nv12" and "i420", else full.
        matrix: "bt601", "bt709" or "bt2020"; by default "bt709" from a width of 1280 or a height of
            577, else "bt601".
        primaries: "bt601", "bt709", "bt2020" or "p3"; recorded, not used.
        transfer: "srgb", "bt709", "pq", "hlg" or "linear"; recorded, not used.
        siting: position of 4:2:0 chroma: "left" (MPEG-2, H.264) or "center" (JPEG, MPEG-1); used by
            conversions, as the matrix is.
        hdr: how the video codes high dynamic range, for frames of HDR: f32 with SDR white at 1.0.
        tags: code points of H.273 for primaries and transfer as a video has them, which a video
            that is written from the frame gets; None if there is no such video.

    >>> import numpy as np
    >>> f = Frame.from_array(np.zeros((2, 4, 3), np.uint8), pts=3, time_base="1/25", device="cpu")
    >>> f
    <Frame rgb 4x2 u8 at 3/25 s on cpu>
    """

    __slots__ = (
        "duration", "format", "hdr", "height", "matrix", "pictures", "pixels", "primaries", "pts",
        "range", "siting", "tags", "time_base", "trace_id", "transfer", "width",
    )  # fmt: skip

    def __init__(
        self,
        pixels: Buffer,
        *,
        format: str | None = None,
        pts: int | None = None,
        time_base: Fraction | str | int = TIME_BASE,
        duration: int | None = None,
        range: str | None = None,
        matrix: str | None = None,
        primaries: str = "bt709",
        transfer: str = "srgb",
        siting: str = "left",
        hdr: Hdr | None = None,
        tags: tuple[int, int] | None = None,
    ) -> None:
        if not isinstance(pixels, Buffer):
            raise DtypeError.invalid(
                "Frame", "pixels", "a Buffer", type(pixels), "Frame.from_array takes arrays."
            )
        self.format, self.width, self.height = _layout(pixels, format)
        self.pixels = pixels
        self.pts = _pts(pts)
        self.duration = _pts(duration, "duration")
        #: How many pictures the file has that the frame was opened from; 1 for other frames.
        self.pictures = 1
        self.time_base = _base(time_base)
        if range is None:
            range = "limited" if self.format in PLANAR else "full"
        elif range == "limited" and self.format not in PLANAR:
            raise ParameterError.invalid(
                "Frame",
                "range",
                f"'full' for {self.format} frames",
                range,
                "Give the planes of the video ('nv12', 'i420') and convert them: frame.to('rgb').",
            )
        if matrix is None:
            matrix = "bt709" if self.width >= 1280 or self.height > 576 else "bt601"
        self.range = _color_attribute("range", range)
        self.matrix = _color_attribute("matrix", matrix)
        self.primaries = _color_attribute("primaries", primaries)
        self.transfer = _color_attribute("transfer", transfer)
        self.siting = _color_attribute("siting", siting)
        self.hdr, self.tags = hdr, tags
        self.trace_id = tracer.frame if tracer.on else None

    # constructors -------------------------------------------------------------------------------
    @classmethod
    def from_array(
        cls,
        array: NDArray | PillowImage | Buffer,
        *,
        device: str | None = None,
        **facts: Unpack[FrameFacts],
    ) -> Self:
        """Return a frame with a copy of an array or a Pillow image.

        Args:
            array: the pixels, or the planes of "nv12" and "i420".
            device: the device; the current one by default.
            **facts: format, time and color, as for ``Frame``.

        >>> import numpy as np
        >>> Frame.from_array(np.zeros((2, 4), np.uint8), device="cpu").format
        'gray'
        """
        from dala.media.images import check_pixels

        return cls(from_array(check_pixels(array, "Frame.from_array"), device=device), **facts)

    @classmethod
    def open(
        cls,
        path: PictureSource,
        *,
        device: str | None = None,
        max_pixels: int = MAX_PIXELS,
        depth: str | None = None,
        color: str = "srgb",
        width: int | None = None,
        height: int | None = None,
        **facts: Unpack[FrameFacts],
    ) -> Self:
        """Read the first picture of a file with Pillow, rotated as its EXIF orientation says.

        Palettes, CMYK and other modes become gray, RGB or RGBA; a color key becomes alpha; 16-bit
        gray becomes f32. ``frame.pictures`` is the number of pictures in the file. An SVG is drawn
        by resvg, in a size of choice; one that names another file or an address is refused.

        Args:
            path: the file: its path, its bytes, or an open binary file.
            device: the device; the current one by default.
            max_pixels: larger pictures are refused before they are decoded.
            depth: "float" for f32 pixels, which keep 16 bits per channel; "stored" for f32 only if
                the file has more than 8; by default 16-bit RGB and RGBA are read with 8.
            color: "srgb" converts a picture with another ICC profile to sRGB; "raw" keeps the
                stored values.
            width: of an SVG, the width to draw it at; with height, the box to fit it into.
            height: of an SVG, the height to draw it at.
            **facts: format, time and color, as for ``Frame``.

        Raises:
            FileMissing: there is no such file.
            ParameterError: the file is not a picture, damaged, or larger than ``max_pixels``.

        Example::

            Frame.open("photo.jpg")
            Frame.open(response.content)
            Frame.open("logo.svg", width=400)
        """
        from dala.media.files import read_picture
        from dala.media.images import check_pixels

        found = read_picture(path, max_pixels, color=color, depth=depth, size=(width, height))
        made = cls(from_array(check_pixels(found.pixels, "Frame.open"), device=device), **facts)
        made.pictures = found.count
        return made

    def like(self, pixels: Buffer) -> Frame:
        """Return a frame of other pixels (RGB or gray) with this frame's time and color coding."""
        return Frame(pixels, **self._facts(format=None, range=None))

    @property
    def time(self) -> Fraction | None:
        """The presentation time in seconds, exact; None if unknown."""
        return None if self.pts is None else self.pts * self.time_base

    @property
    def device(self) -> str:
        """The id of the device that holds the pixels."""
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

    # conversion ---------------------------------------------------------------------------------
    def to(
        self,
        format: str | None = None,
        *,
        device: str | None = None,
        matrix: str | None = None,
        range: str | None = None,
        siting: str | None = None,
    ) -> Frame:
        """Return the frame in another format or on another device; itself if nothing changes.

        RGB becomes gray by BT.601 luma, as with ``grayscale``.

        Args:
            format: the new format.
            device: the new device.
            matrix: of "nv12" and "i420"; the frame's own by default.
            range: of "nv12" and "i420"; that of the planes, or "limited", by default.
            siting: of "nv12" and "i420"; the frame's own by default.
        """
        from dala.media.formats import convert

        wanted = self.format if format is None else _format(format)
        if wanted not in PLANAR and any(x is not None for x in (matrix, range, siting)):
            expected = "'nv12' or 'i420' with matrix, range or siting"
            raise ParameterError.invalid(
                "Frame.to", "format", expected, wanted,
                "The frame's own coding is used: frame.matrix, frame.range, frame.siting.",
            )  # fmt: skip
        pixels = self.pixels if device is None else self.pixels.to(device)
        own = self.range if self.format in PLANAR else "limited"
        matrix = self.matrix if matrix is None else _color_attribute("matrix", matrix)
        range = own if range is None else _color_attribute("range", range)
        siting = self.siting if siting is None else _color_attribute("siting", siting)
        made, coding = convert(pixels, self, wanted, (matrix, range, siting))
        if made is self.pixels:
            return self
        planar = wanted in PLANAR
        facts = self._facts(
            format=wanted, matrix=coding[0], range=coding[1] if planar else "full",
            siting=coding[2], hdr=None if planar else self.hdr,
        )  # fmt: skip
        return Frame(made, **facts)

    def numpy(self) -> NDArray:
        """Return the pixels as an array: their own memory where the host can access it."""
        return self.pixels.numpy()

    def __array__(self, dtype: DtypeLike | None = None, copy: bool | None = None) -> NDArray:
        return self.pixels.__array__(dtype, copy)

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The pixels for ``PIL.Image.fromarray`` and others that read arrays this way."""
        if self.format in PLANAR:
            raise AttributeError(
                f"Frame: the planes of a video ({self.format}) are not one picture. Convert them "
                "first: frame.to('rgb')."
            )
        array = self.numpy()
        return {**array.__array_interface__, "strides": array.strides, "data": array}

    def resize(
        self,
        width: int | None = None,
        height: int | None = None,
        **params: ParamValue,
    ) -> Frame:
        """Return the frame in another size, with its time and color, by ``dala.media.gpu.resize``.

        Args:
            width: the width; with height alone the aspect is kept.
            height: the height; with width alone the aspect is kept.
            **params: ``scale``, ``size``, ``method``, ``antialias``, ``fit`` and ``fill``.

        >>> import numpy as np
        >>> frame = Frame.from_array(np.zeros((40, 60, 3), np.uint8), pts=3, device="cpu")
        >>> frame.resize(30, 20), frame.resize(width=30).height, frame.resize(scale=0.5).width
        (<Frame rgb 30x20 u8 at 1/30000 s on cpu>, 20, 30)
        """
        from dala.media.gpu import resize

        source = self.to("rgb") if self.format in PLANAR else self
        given: dict[str, Any] = dict(params)
        for name, side in (("width", width), ("height", height)):
            if side is not None:
                given[name] = Integer(1, 1 << 20).check("Frame.resize", name, side)
        made: Frame = resize(source, **given)
        return made

    def tobytes(self) -> bytes:
        """Return a copy of the pixels as bytes, little-endian, row by row."""
        return self.pixels.read()

    # display ------------------------------------------------------------------------------------
    def picture(self) -> NDArray:
        """Return the frame as an array of u8: gray, RGB or RGBA."""
        from dala.media.formats import visible

        return visible(self).numpy()

    def to_pil(self) -> PillowImage:
        """Return the frame as a Pillow image of mode L, RGB or RGBA, a copy.

        >>> import numpy as np
        >>> Frame.from_array(np.zeros((2, 4, 3), np.uint8), device="cpu").to_pil().size
        (4, 2)
        """
        with needing("Frame.to_pil", "media", "Pillow"):
            from PIL import Image

        return Image.fromarray(self.picture()).copy()

    def save(
        self,
        path: PathLike | BinaryIO,
        *,
        format: str | None = None,
        depth: int = 8,
        background: ColorLike | None = None,
        **options: ParamValue,
    ) -> None:
        """Write a picture file. The file is renamed into place when it is complete.

        Args:
            path: the file, or an open binary file. PNG needs no other package; Pillow writes the
                rest.
            format: such as "png" or "jpeg"; by default the suffix of the path.
            depth: bits per channel: 8, or 16 for PNG and TIFF.
            background: the color below transparent pixels where a format has no alpha: white.
            **options: for Pillow, such as ``quality=90``.

        Raises:
            ParameterError: the format is unknown, or cannot hold the picture.
        """
        from dala.media.files import store
        from dala.media.formats import sixteen_bits

        Selection(8, 16, expected="8 or 16").check("Frame.save", "depth", depth)
        pixels = self.picture() if depth == 8 else sixteen_bits(self)
        store(path, pixels, options, format=format, background=background)

    def show(self, where: str | None = None) -> None:
        """Show the frame: below the cell in a notebook, else in a window or a browser.

        A script waits until the viewer is closed. Without a display the frame is printed to the
        terminal, or else written to a file, and standard error says so.

        Args:
            where: "window", "browser", "notebook" or "terminal"; by default what is there.
        """
        from dala.media.pictures.viewer import show

        show(self, where)

    def _repr_png_(self) -> bytes | None:
        from dala.notebook import picture_png

        return None if self.pixels.freed else picture_png(self.picture())

    # copies -------------------------------------------------------------------------------------
    def __copy__(self) -> Frame:
        return self._with(copy.copy(self.pixels))

    def __deepcopy__(self, memo: dict[int, object]) -> Frame:
        return self._with(copy.deepcopy(self.pixels, memo))

    def _with(self, pixels: Buffer) -> Frame:
        return _restored(pixels, self._facts(), self.pictures)

    def _facts(self, **changes: Unpack[FrameFacts]) -> FrameFacts:
        return {**{name: getattr(self, name) for name in _FACTS}, **changes}  # type: ignore[typeddict-item]

    def __reduce__(self) -> tuple[Callable[..., Frame], tuple[Buffer, FrameFacts, int]]:
        return _restored, (self.pixels, self._facts(), self.pictures)

    # closing ------------------------------------------------------------------------------------
    def close(self) -> None:
        """Free the pixels. Closing twice has no effect."""
        self.pixels.free()


def _restored(pixels: Buffer, facts: FrameFacts, pictures: int) -> Frame:
    """Return a frame from the state that :meth:`Frame.__reduce__` keeps."""
    made = Frame(pixels, **facts)
    made.pictures = pictures
    return made


def _layout(pixels: Buffer, format: str | None) -> tuple[str, int, int]:
    """Return format, width and height; raise if the format does not fit the pixels."""
    shape = pixels.shape
    pixels.storage("Frame")
    channels = {2: 1, 3: shape[-1] if shape else 0}.get(len(shape), 0)
    found = {1: "gray", 3: "rgb", 4: "rgba"}.get(channels)
    wanted = found if format is None else _format(format)
    dtypes = ("u8",) if wanted in PLANAR else ("u8", "f32")
    if pixels.dtype not in dtypes:
        expected = f"of dtype {' or '.join(dtypes)} for {wanted!r}"
        raise DtypeError.invalid("Frame", "pixels", expected, pixels.dtype)
    if wanted in PLANAR and len(shape) == 2:
        if shape[0] % 3 or shape[1] % 2 or not pixels.size:
            expected = f"of shape (height * 3 / 2, width), both even, for {wanted!r}"
            raise ShapeError.invalid("Frame", "pixels", expected, shape)
        return wanted or "", shape[1], shape[0] // 3 * 2
    if found is None or wanted != found:
        raise ShapeError(
            f"Frame: the format {wanted or format!r} does not fit pixels of shape {shape}. "
            "'rgba' is (height, width, 4), 'rgb' (height, width, 3), 'gray' (height, width), "
            "'nv12' and 'i420' (height * 3 / 2, width)."
        )
    return found, shape[1], shape[0]


def _format(format: object) -> str:
    return str(_FORMAT.check("Frame", "format", format))


def _color_attribute(name: str, value: object) -> str:
    return str(COLOR[name].check("Frame", name, value))


def _pts(pts: int | None, name: str = "pts") -> int | None:
    return pts if pts is None or type(pts) is int else _PTS.check("Frame", name, pts)


def _base(time_base: Fraction | str | int) -> Fraction:
    if type(time_base) is Fraction and time_base.numerator > 0:
        return time_base
    try:
        if isinstance(time_base, float | bool):
            raise TypeError
        base = Fraction(time_base)
    except (TypeError, ValueError, ZeroDivisionError):
        base = Fraction(0)
    if base <= 0:
        raise ParameterError.invalid(
            "Frame", "time_base", "a fraction above 0, such as Fraction(1, 25) or '1/25'", time_base
        )
    return base
