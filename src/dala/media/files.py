"""Picture files: read with Pillow, written as PNG or with Pillow, and shown."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from dala import memory
from dala.arguments import Integer, Selection, Text, checked_path, refuse_folder, refuse_url
from dala.arguments.paths import missing_file
from dala.budget import check_deadline, checked, deadline
from dala.errors import CommandTimeout, LimitExceeded, ParameterError
from dala.extras import needing
from dala.media.parts import PartFile
from dala.media.pictures import svg
from dala.media.pictures.options import COLORS
from dala.media.pictures.pixels import NUMBERS, color_key, is_scaled, normalized, over, rgba, scaled
from dala.media.pictures.plugins import CheckedBytes, check_work, open_image
from dala.notices import notify
from dala.png import encode_png
from dala.typing import ColorLike, NDArray, ParamValue, PathLike, PictureSource

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage


#: Bytes of memory for each pixel that is decoded: as stored, and as RGBA.
DECODED_BYTES: Final = 8
#: Bytes of an array that are copied at a time.
_PART: Final = 1 << 22
#: Formats without alpha.
_OPAQUE: Final = ("JPEG", "MPO", "BMP", "PPM", "PCX", "EPS", "PDF", "DIB")
#: Formats that can have sixteen bits.
_DEEP: Final = ("PNG", "TIFF")
#: Formats with several moving pictures; those of other formats are pages or views.
_MOVING: Final = ("GIF", "PNG", "WEBP", "AVIF")


#: Pillow's mode for each shape of pixels after height and width.
_DEPTH: Final = Selection(None, "float", "stored", expected="None or 'float' or 'stored'")
_SIDE: Final = Integer(1, svg.MAX_SIDE)
MODES: Final[Mapping[tuple[int, ...], str]] = {(): "L", (3,): "RGB", (4,): "RGBA"}


@dataclass(frozen=True, slots=True)
class PictureFile:
    """The first picture of a file, as pixels."""

    #: u8, or f32 from 0 to 1: gray, RGB or RGBA.
    pixels: NDArray
    #: Bits per channel in the file: 8 or 16.
    bits: int
    #: How many pictures the file has.
    count: int
    #: The ICC profile, if the values were not converted to sRGB.
    profile: bytes | None


@dataclass(slots=True)
class _Decoded:
    """An upright image with facts of its file."""

    image: PillowImage
    source: Path | io.BytesIO
    name: str
    count: int
    orientation: int
    bits: int


def _pillow(call: str) -> ModuleType:
    with needing(call, "media", "Pillow"):
        from PIL import Image
    return Image


def _opened(source: PictureSource, call: str) -> tuple[Path | io.BytesIO, str]:
    """Return a path or the bytes of a file, and its name for messages."""
    if isinstance(source, str | os.PathLike):
        refuse_url(call, "path", source)
        refuse_folder(call, Path(source))
        if not os.path.exists(source):
            raise missing_file(source, call)
        return Path(source), str(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return io.BytesIO(source), f"the picture ({len(source):,} bytes)"
    data = source.read() if callable(getattr(source, "read", None)) else None
    if not isinstance(data, bytes | bytearray):
        expected = "a path, the bytes of a file or a file opened in binary mode"
        raise ParameterError.invalid(call, "path", expected, type(source))
    name = getattr(source, "name", None)
    return io.BytesIO(data), name if isinstance(name, str) else f"the picture ({len(data):,} bytes)"


def load(path: PictureSource, max_pixels: int, *, color: str = "srgb") -> PillowImage:
    """Read the first picture of a file as a Pillow image of mode L, RGB, RGBA or I;16.

    It is rotated as its EXIF orientation says, a color key becomes alpha, and colors are converted
    to sRGB unless ``color`` is "raw".
    """
    found = _decode(path, max_pixels, color)
    image = found.image
    from PIL import Image

    if image.mode in NUMBERS:
        if is_scaled(image):
            return Image.fromarray(np.asarray(image).astype(np.uint16))
        levels = np.clip(np.nan_to_num(scaled(image, found.name)), 0, 1) * 65535
        return Image.fromarray(np.rint(levels).astype(np.uint16))
    if image.mode == "RGB" and found.bits > 8 and "transparency" in image.info:
        deep = _deep(found)  # Pillow compares the 16-bit key with eight bits
        if deep is not None:
            return Image.fromarray((deep / 257 + 0.5).astype(np.uint8))
    return _normalized(found)


def read_picture(
    path: PictureSource,
    max_pixels: int,
    *,
    color: str = "srgb",
    depth: str | None = None,
    size: tuple[int | None, int | None] = (None, None),
) -> PictureFile:
    """Read the first picture of a file as pixels; see :meth:`dala.media.Frame.open`."""
    COLORS.check("Frame.open", "color", color)
    _DEPTH.check("Frame.open", "depth", depth)
    for name, side in zip(("width", "height"), size, strict=True):
        _SIDE.check_optional("Frame.open", name, side)
    found = _decode(path, max_pixels, color, size)
    image, profile = found.image, None
    if color == "raw":
        profile = image.info.get("icc_profile")
    pixels = _sixteen(found) if depth is not None or image.mode[0] in "IF" else None
    bits = 8 if pixels is None else 16
    if pixels is None and found.bits > 8 and "transparency" in image.info:
        deep = _deep(found)
        pixels = None if deep is None else (deep / 257 + 0.5).astype(np.uint8)
    if pixels is None:
        pixels = np.asarray(_normalized(found))
        check_deadline("Frame.open")
        if depth == "float":
            pixels = pixels / np.float32(255)
    return PictureFile(pixels, bits, found.count, profile)


def _sixteen(found: _Decoded) -> NDArray | None:
    """Return a picture of more than eight bits as f32; None if it has eight."""
    image = found.image
    if image.mode in NUMBERS and not is_scaled(image):
        return scaled(image, f"Frame.open: {found.name}")
    if image.mode[0] == "I":
        top = 65535 if found.bits >= 16 else (1 << found.bits) - 1  # 12 bits in TIFF
        gray = np.asarray(image).astype(np.float32) / np.float32(top)
        key = image.info.get("transparency")
        if isinstance(key, int):
            return rgba(gray, np.asarray(image) != key)
        return gray
    deep = _deep(found) if found.bits > 8 else None
    if deep is None:
        return None
    if (profile := image.info.get("icc_profile")) is not None and image.mode in ("RGB", "RGBA"):
        from dala.media.pictures.pixels import fits, is_srgb

        if fits(profile, "RGB") and not is_srgb(profile, "RGB"):
            notify(f"Frame.open: {found.name}: its ICC profile is not applied to 16 bits.")
    return deep.astype(np.float32) / np.float32(65535)


def _deep(found: _Decoded) -> NDArray | None:
    from dala.media.pictures.plugins import read_deep, upright

    if isinstance(found.source, io.BytesIO):
        found.source.seek(0)
    pixels = read_deep(found.source)
    if pixels is None:
        return None
    pixels = upright(pixels, found.orientation)
    width, height = found.image.size
    return pixels if pixels.shape[:2] == (height, width) else None


def _decode(
    path: PictureSource,
    max_pixels: int,
    color: str,
    size: tuple[int | None, int | None] = (None, None),
) -> _Decoded:
    """Return the decoded first picture of a file, in sRGB unless color is "raw"."""
    source, name = _opened(path, "Frame.open")
    image_module = _pillow("Frame.open")
    if svg.is_svg(source):
        source = io.BytesIO(svg.SvgDocument(source, name).png(*size, max_pixels))
    elif size != (None, None):
        raise ParameterError(
            f"Frame.open: {name} is not an SVG, which width and height are for. Resize the frame: "
            "Frame.open(path).resize(width)."
        )
    stream: Path | io.BytesIO = source
    if deadline() is not None and (isinstance(source, io.BytesIO) or source.is_file()):
        data = source.getvalue() if isinstance(source, io.BytesIO) else source.read_bytes()
        stream = CheckedBytes(data, "Frame.open")
    try:
        with open_image(stream) as image:
            width, height = image.size
            if not width or not height:
                raise ParameterError(f"Frame.open: {name} has no pixels ({width} x {height}).")
            if width * height > max_pixels:
                raise ParameterError(
                    f"Frame.open: {name} has {width} x {height} pixels, more than "
                    f"max_pixels={max_pixels:,}. Raise it if you trust the file."
                )
            memory.check(DECODED_BYTES * width * height, f"Frame.open({name!r})")
            check_work(image, stream, name)
            bits, count = _bits(image), _count(image)
            format = image.format
            if "transparency" in image.info:
                image.info["transparency"] = color_key(image)
            _load(image)
            check_deadline("Frame.open")
            made, orientation = _upright(image, name)
            made.format = format
            check_deadline("Frame.open")
            if color == "srgb":
                made = _in_srgb(made, name, bits)
    except image_module.DecompressionBombError as error:
        raise ParameterError(
            f"Frame.open: Pillow refuses {name} ({error}). If you trust the file, raise "
            "PIL.Image.MAX_IMAGE_PIXELS and max_pixels."
        ) from None
    except (
        FileNotFoundError, IsADirectoryError, PermissionError, MemoryError, ParameterError,
        CommandTimeout,
    ):  # fmt: skip
        raise
    except Exception as error:  # decoders raise nearly anything for damaged files
        check_deadline("Frame.open")
        raise _unreadable(name, error) from None
    if count > 1 and format in _MOVING:
        notify(f"Frame.open: {name} has {count} pictures; this is the first. video.open reads all.")
    return _Decoded(made, source, name, count, orientation, bits)


def _load(image: PillowImage) -> None:
    """Decode a picture; decoders that read it in parts look at the deadline before each."""
    read: Callable[[int], bytes] | None = getattr(image, "load_read", None)
    if read is not None and deadline() is not None:

        def checked_read(size: int) -> bytes:
            check_deadline("Frame.open")
            return read(size)

        image.load_read = checked_read  # type: ignore[attr-defined]
    image.load()


def _unreadable(name: str, error: Exception) -> ParameterError:
    # Pillow names the object that it read from, with its address.
    text = re.sub(r" *<\S+ object at 0x[0-9a-f]+>", "", str(error)) or type(error).__name__
    moves = Path(name).suffix.lower() in (".mp4", ".mov", ".mkv", ".webm", ".avi")
    hint = " Open a video with dala.media.video.open." if moves else ""
    return ParameterError(f"Frame.open: {name} cannot be read as a picture ({text}).{hint}")


def _normalized(found: _Decoded) -> PillowImage:
    """Return the picture in one of the usual modes."""
    try:
        return normalized(found.image)
    except (MemoryError, ParameterError):
        raise
    except Exception as error:
        raise _unreadable(found.name, error) from None


def _bits(image: PillowImage) -> int:
    """Return the bits per channel of an opened file that is not decoded yet."""
    if image.format == "PNG":
        return 16 if ";16" in str(getattr(image, "tile", "")) else 8
    if image.format == "TIFF":
        depths = getattr(image, "tag_v2", {}).get(258, (8,))
        return max(depths) if isinstance(depths, tuple) else int(depths)
    unknown = image.mode[0] == "I" or image.format in ("PPM", "JPEG2000")
    return 16 if unknown else 8  # of PPM and JPEG 2000 only decoding tells


def _count(image: PillowImage) -> int:
    try:
        return max(1, int(getattr(image, "n_frames", 1)))
    except CommandTimeout:
        raise
    except Exception:  # the first picture may be fine though the others are not
        return 1


def _upright(image: PillowImage, name: str) -> tuple[PillowImage, int]:
    from PIL import ImageOps

    try:
        orientation = int(image.getexif().get(0x0112, 1))
        turned: PillowImage | None = ImageOps.exif_transpose(image)
    except Exception as error:  # EXIF is a TIFF file of its own, often damaged
        notify(f"Frame.open: {name}: its EXIF data cannot be read ({error}) and is ignored.")
        return image.copy(), 1
    if turned is None:
        return image.copy(), 1
    return turned, orientation if 1 <= orientation <= 8 else 1


def _in_srgb(image: PillowImage, name: str, bits: int) -> PillowImage:
    profile = image.info.get("icc_profile")
    if image.mode in ("P", "PA"):
        image = normalized(image)
    if not profile or image.mode[0] in "IF":
        if image.mode == "CMYK":
            notify(f"Frame.open: {name} is CMYK without a profile; its colors are approximate.")
        return image
    from dala.media.pictures.pixels import to_srgb

    key = "transparency" in image.info
    made, problem = to_srgb(normalized(image) if key and bits == 8 else image, profile)
    if problem:
        notify(f"Frame.open: {name}: {problem}.")
    return made


# writing ----------------------------------------------------------------------------------------
def load_array(path: PathLike) -> NDArray:
    """Read an array that ``numpy.save`` wrote. Nothing in the file is executed.

    A header that claims more than the file holds costs nothing, and a file without blocks on the
    disk no more than the limits of memory.

    Raises:
        ParameterError: why it cannot be read, for the caller's message.
        MemoryLimitExceeded: it is larger than the limits allow.
    """
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(found, np.ndarray):
            memory.check(found.nbytes, "numpy.load")
            made = np.empty(found.shape or 1, found.dtype)
            for at in checked(range(0, made.nbytes, _PART), "numpy.load"):
                first, end = (n * len(made) // made.nbytes for n in (at, at + _PART))
                made[first:end] = found[first:end] if found.ndim else found
            return made.reshape(found.shape)
        found.close()
        problem = "it holds several arrays"
    except (LimitExceeded, CommandTimeout):
        raise
    except OSError as error:
        problem = error.strerror or "it is damaged"
    except Exception as error:  # NumPy's parser of headers raises nearly anything
        problem = f"it is damaged, or another kind of file ({type(error).__name__})"
    raise ParameterError(f"cannot be read by numpy.load: {problem}")


def store(
    path: PathLike | BinaryIO,
    pixels: NDArray,
    options: Mapping[str, ParamValue | bytes],
    *,
    format: str | None = None,
    background: ColorLike | None = None,
) -> None:
    """Write pixels of u8 or u16 to a file, which is renamed into place when it is complete.

    Formats without alpha get the picture over the background; over white, with a notice, if it is
    None.
    """
    stream = None if isinstance(path, str | os.PathLike) else path
    expected = "a path or a file opened in binary mode"
    if stream is None:
        target = checked_path("Frame.save", "path", path)  # type: ignore[arg-type]
        refuse_folder("Frame.save", target)
        name, suffix = target.name, target.suffix
    else:
        if not callable(getattr(stream, "write", None)):
            raise ParameterError.invalid("Frame.save", "path", expected, type(stream))
        name = str(getattr(stream, "name", None))
        suffix = Path(name).suffix if isinstance(getattr(stream, "name", None), str) else ""
        if format is None and not suffix:
            raise ParameterError("Frame.save: a file object needs a format, such as format='png'.")
    Text("the name of a format").check_optional("Frame.save", "format", format)
    kind = _format(suffix if format is None else f".{format.lstrip('.')}", name)
    if stream is None:
        if not target.parent.is_dir():
            raise FileNotFoundError(
                f"Frame.save: there is no folder '{target.parent}'. Make it first."
            )
        with PartFile(target) as part:
            with part.path.open("wb") as file:
                _encode(file, pixels, kind, options, background, str(target))
            part.complete()
        return
    made = io.BytesIO()  # complete before anything is written; some formats seek
    _encode(made, pixels, kind, options, background, "the file")
    try:
        stream.write(made.getvalue())
    except TypeError:
        raise ParameterError.invalid("Frame.save", "path", expected, type(stream)) from None


def _format(suffix: str, name: str) -> str:
    """Return Pillow's name for the format of a suffix."""
    kind = suffix.lower()
    if len(kind) < 2:
        raise ParameterError(f"Frame.save: path must have a suffix such as '.png', got {name!r}.")
    if kind == ".png":
        return "PNG"
    image_module = _pillow("Frame.save")
    found = image_module.registered_extensions().get(kind)
    if found is None or found not in image_module.SAVE:
        raise ParameterError(
            f"Frame.save: Pillow cannot write {kind!r} files. Use '.png' or '.jpg'."
        )
    return str(found)


def _encode(
    file: BinaryIO,
    pixels: NDArray,
    format: str,
    options: Mapping[str, ParamValue | bytes],
    background: ColorLike | None,
    name: str,
) -> None:
    if pixels.dtype == np.uint16 and format not in _DEEP:
        if pixels.size:
            notify(f"Frame.save: {name}: {format} has 8 bits per channel here, not 16.")
        pixels = (pixels / 257 + 0.5).astype(np.uint8)
    deep = pixels.dtype == np.uint16
    if format == "PNG" and (deep or not options):
        profile = options.get("icc_profile")
        file.write(encode_png(pixels, icc_profile=profile if isinstance(profile, bytes) else None))
        return
    if deep and pixels.ndim == 3:
        from dala.media.pictures.plugins import encode_tiff

        file.write(encode_tiff(pixels))
        return
    if format in _OPAQUE and pixels.ndim == 3 and pixels.shape[2] == 4:
        pixels = _flat(pixels, background, format, name)
    image_module = _pillow("Frame.save")
    try:
        try:
            image_module.fromarray(pixels).save(file, format=format, **options)
        except OSError as error:
            opaque = pixels.ndim != 3 or pixels.shape[2] != 4
            if opaque or file.tell() or "cannot write mode" not in str(error):
                raise
            pixels = _flat(pixels, background, format, name)  # the format has no alpha
            image_module.fromarray(pixels).save(file, format=format, **options)
    except MemoryError:
        raise
    except Exception as error:  # encoders raise nearly anything for options they do not know
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: no space is left, say
        raise ParameterError(
            f"Frame.save: Pillow cannot write this picture as {format} ({error}). Use '.png', or "
            "leave out the options."
        ) from None


def _flat(pixels: NDArray, background: ColorLike | None, format: str, name: str) -> NDArray:
    """Return RGBA as RGB over the background, or over white, with a notice."""
    if (pixels[..., 3] == np.iinfo(pixels.dtype).max).all():
        return np.ascontiguousarray(pixels[..., :3])
    from dala.gpu.command import color_to_rgba

    red, green, blue = color_to_rgba("white" if background is None else background)[:3]
    if background is None:
        notify(
            f"Frame.save: {name}: {format} has no transparency; the picture is laid over white. "
            "Give background= to choose."
        )
    return over(pixels, (red, green, blue))
