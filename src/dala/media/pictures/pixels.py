"""Pictures of any kind as arrays of u8, for textures, sources and scenes."""

from __future__ import annotations

import os
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from dala.errors import DtypeError, ShapeError
from dala.gpu.compute import Buffer
from dala.media.frame import MAX_PIXELS, Frame
from dala.notices import notify
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from PIL.ImageCms import ImageCmsTransform

#: Pillow modes of numbers that have no scale by themselves.
NUMBERS: Final = ("I", "F")
#: Formats whose mode "I" is gray from 0 to 65535.
_SCALED: Final = ("PNG", "PPM")
#: The largest value of a gray PNG file, by what Pillow calls its pixels.
_GRAY: Final = {"L": 255, "L;4": 15, "L;2": 3}
#: Modes with an alpha channel, and the color mode that holds the same values.
WITH_ALPHA: Final = {"LA": "RGBA", "La": "RGBA", "PA": "RGBA", "RGBa": "RGBA", "RGBA": "RGBA"}


def scaled(image: PillowImage, name: str) -> NDArray:
    """Return an image of numbers (I;16, I or F) as f32, with white at 1.

    I;16 and I count as x / 65535, as Pillow stores 16-bit gray in both; F counts as 0 to 1, as
    float arrays do. If the numbers look otherwise, a notice says so.

    >>> from PIL import Image
    >>> scaled(Image.new("I", (1, 1), 65535), "example").tolist()
    [[1.0]]
    """
    numbers = np.asarray(image)
    most = float(np.nanmax(numbers)) if numbers.size and not np.isnan(numbers).all() else 0.0
    if image.mode == "F":
        if most > 2.0:
            notify(
                f"{name}: an image of mode 'F' counts as 0 to 1, and it has values up to {most:g}. "
                "Divide it by its white first."
            )
        return np.ascontiguousarray(numbers, np.float32)
    if image.mode == "I" and (most > 65535 or 0 < most <= 255):
        notify(
            f"{name}: an image of mode 'I' counts as 0 to 65535, and its largest value is "
            f"{most:g}. Convert it to 'L' or 'I;16' first if it has another scale."
        )
    return (numbers / np.float64(65535)).astype(np.float32)


def is_scaled(image: PillowImage) -> bool:
    """Return whether mode "I" of an image is 16-bit gray: so Pillow reads 16-bit PGM."""
    return image.mode == "I" and image.format in _SCALED


def normalized(image: PillowImage) -> PillowImage:
    """Return an image as L, RGB, RGBA or I;16, with the color key as alpha.

    >>> from PIL import Image
    >>> gray = Image.new("L", (2, 1), 7)
    >>> gray.info["transparency"] = 7
    >>> normalized(gray).getpixel((0, 0))
    (7, 7, 7, 0)
    """
    mode = image.mode
    if mode.startswith("I;16"):
        return _with_key(image) if "transparency" in image.info else image
    if mode == "La":
        image = image.convert("LA")
    if mode in WITH_ALPHA:
        return image if mode == "RGBA" else image.convert("RGBA")
    if mode == "P":
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    if mode in ("1", "L", "RGB"):
        if "transparency" in image.info:
            return _with_key(image)
        return image.convert("L") if mode == "1" else image
    return image.convert("RGB")


def color_key(image: PillowImage) -> int | tuple[int, ...] | bytes:
    """Return the key of an image, in the values that its pixels have once it is loaded.

    PNG stores sixteen bits of it. Of a file with fewer, its specification has decoders use the low
    ones and mask the others; Pillow keeps them all, and scales gray of two and four bits but not
    its key. Only an image that is not loaded yet knows its bits.

    >>> from PIL import Image
    >>> gray = Image.new("L", (2, 1), 7)
    >>> gray.info["transparency"] = 7
    >>> color_key(gray)
    7
    """
    key: int | tuple[int, ...] | bytes = image.info["transparency"]
    tiles = getattr(image, "tile", None)
    if image.format != "PNG" or not tiles:
        return key
    if isinstance(key, tuple) and tiles[0][3] == "RGB":
        return tuple(value & 255 for value in key)
    most = _GRAY.get(tiles[0][3])
    return key if most is None or not isinstance(key, int) else (key & most) * (255 // most)


def _with_key(image: PillowImage) -> PillowImage:
    """Return RGBA in which the pixels of the key color are transparent."""
    from PIL import Image

    key = color_key(image)
    if image.mode.startswith("I;16"):
        gray = np.asarray(image)
        values, opaque = (gray / 257 + 0.5).astype(np.uint8), gray != key
    else:
        plain = image.convert("L") if image.mode == "1" else image
        values = np.asarray(plain)
        if image.mode == "1" and key == 1:
            key = 255
        if isinstance(key, bytes):  # one alpha value per level, as palettes have
            table = np.full(256, 255, np.uint8)
            table[: len(key)] = np.frombuffer(key[:256], np.uint8)
            return Image.fromarray(rgba(values, table[values] if values.ndim == 2 else None))
        same = values == np.asarray(key, np.int64)
        opaque = ~(same if values.ndim == 2 else same.all(-1))
    return Image.fromarray(rgba(values, opaque * np.uint8(255)))


def rgba(values: NDArray, alpha: NDArray | None) -> NDArray:
    """Return gray or RGB as RGBA; without alpha it is opaque.

    >>> rgba(np.array([[7]], np.uint8), np.array([[9]], np.uint8)).tolist()
    [[[7, 7, 7, 9]]]
    """
    top = np.iinfo(values.dtype).max if values.dtype.kind == "u" else 1
    made = np.empty((*values.shape[:2], 4), values.dtype)
    planes = values if values.ndim == 3 else values[..., None]
    for k in range(3):  # NumPy copies three channels into four at once ten times slower
        made[..., k] = planes[..., min(k, planes.shape[2] - 1)]
    made[..., 3] = top if alpha is None else alpha
    return made


def as_bytes(values: NDArray) -> NDArray:
    """Return samples as u8: floats are 0 to 1, halves are rounded up, and NaN is 0.

    >>> as_bytes(np.array([0.3, 1.5, np.nan], np.float32)).tolist()
    [77, 255, 0]
    """
    if values.dtype == np.uint8:
        return values
    made: NDArray = (np.clip(np.nan_to_num(values), 0, 1) * 255 + 0.5).astype(np.uint8)
    return made


def over(pixels: NDArray, background: tuple[int, int, int]) -> NDArray:
    """Return RGBA of u8 or u16 laid over a color, as RGB.

    >>> half = np.array([[[255, 0, 0, 128]]], np.uint8)
    >>> over(half, (255, 255, 255)).tolist()
    [[[255, 127, 127]]]
    """
    top = int(np.iinfo(pixels.dtype).max)
    alpha = pixels[..., 3:].astype(np.uint64)
    below = np.array(background, np.uint64) * np.uint64(top // 255)
    mixed = pixels[..., :3] * alpha + below * (np.uint64(top) - alpha)
    made: NDArray = ((mixed + np.uint64(top // 2)) // np.uint64(top)).astype(pixels.dtype)
    return made


Pixels: TypeAlias = npt.NDArray[np.uint8]

_U8: Final = np.dtype(np.uint8)


def is_rgb_bytes(picture: object) -> TypeGuard[Pixels]:
    """Return whether a picture is an RGB or RGBA array of u8, as most video frames are."""
    if type(picture) is not np.ndarray or picture.dtype is not _U8:
        return False
    shape = picture.shape
    return len(shape) == 3 and shape[2] in (3, 4) and picture.size > 0


def to_u8(picture: ImageLike, call: str) -> Pixels:
    """Return an array or a Pillow image as (height, width[, 3 or 4]) of u8; floats are 0 to 1.

    The result shares memory with the picture if nothing is converted.
    """
    if is_rgb_bytes(picture):
        return picture
    from dala.media.images import check_array, from_pillow, is_pillow

    if isinstance(picture, np.ndarray):
        array = check_array(picture, call)
    elif is_pillow(picture):
        array = from_pillow(picture, call)
    elif hasattr(picture, "__array__") and not isinstance(picture, str | bytes):
        array = check_array(np.asarray(picture), call)
    else:
        raise DtypeError(
            f"{call}: a picture must be an array, a Pillow image or a Frame, got "
            f"{type(picture).__name__}.",
        )
    if 0 in array.shape:
        raise ShapeError(f"{call}: a picture must have pixels, got shape {array.shape}.")
    if array.dtype == np.uint8:
        return array
    made: Pixels = np.rint(np.clip(np.nan_to_num(array), 0.0, 1.0) * 255.0).astype(np.uint8)
    return made


def to_rgba(picture: ImageLike | PathLike, call: str) -> Pixels:
    """Return a copy of a picture of any kind, or a file, as (height, width, 4) of u8."""
    if isinstance(picture, str | os.PathLike):
        from dala.media.files import load

        picture = load(picture, MAX_PIXELS)
    elif isinstance(picture, Frame):
        planar = picture.format in ("nv12", "i420")
        picture = (picture.to("rgba") if planar else picture).pixels.numpy()
    elif isinstance(picture, Buffer):
        picture = picture.numpy()
    found = to_u8(picture, call)
    return rgba(found, found[..., 3] if found.ndim == 3 and found.shape[2] == 4 else None)


#: The color space of a profile that fits each mode.
_SPACES: Final = {
    "RGB": "RGB", "RGBA": "RGB", "RGBX": "RGB", "L": "GRAY", "LA": "GRAY", "CMYK": "CMYK",
    "LAB": "LAB",
}  # fmt: skip
#: Larger profiles are ignored: real ones have at most a few megabytes.
_MAX_BYTES: Final = 16 << 20
#: A profile whose colors differ by at most this from sRGB is sRGB.
_SAME: Final = 2


def fits(profile: bytes, mode: str) -> bool:
    """Return whether a profile describes pictures of a mode: one of gray does not fit RGB."""
    return _space(profile) == _SPACES.get(mode, "")


def to_srgb(image: PillowImage, profile: bytes) -> tuple[PillowImage, str]:
    """Return an image in sRGB, and why the profile was not used ("" if it was, or is sRGB).

    Args:
        image: of any mode; palettes must have been converted.
        profile: the bytes of the profile.
    """
    if len(profile) > _MAX_BYTES:
        return image, f"its ICC profile has {len(profile):,} bytes and is ignored"
    space = _space(profile)
    if not space:
        return image, "its ICC profile is damaged and ignored"
    mode = image.mode
    if _SPACES.get(mode) != space:
        return image, f"its ICC profile is for {space}, the picture is {mode}: it is ignored"
    from PIL import Image, ImageCms

    alpha = image.getchannel("A") if mode in ("RGBA", "LA") else None
    plain = image.convert(mode[:-1]) if alpha is not None else image
    try:
        transform = _transform(profile, "RGB" if mode == "RGBX" else plain.mode)
        if transform is None:
            return image, ""
        if mode == "RGBX":
            plain = plain.convert("RGB")
        made = ImageCms.applyTransform(plain, transform)
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError) as error:
        return image, f"its ICC profile cannot be used ({error}) and is ignored"
    if made is None:
        return image, "its ICC profile cannot be used and is ignored"
    if space == "GRAY":  # gray stays neutral in sRGB, so one channel says all
        made = made.getchannel("G")
    if alpha is not None:
        made = Image.merge("RGBA" if made.mode == "RGB" else "LA", [*made.split(), alpha])
    made.info = {k: v for k, v in image.info.items() if k != "icc_profile"}
    made.format = image.format
    return made, ""


def is_srgb(profile: bytes, mode: str) -> bool:
    """Return whether a profile gives the colors of sRGB."""
    from PIL import ImageCms

    try:
        return _transform(profile, mode) is None
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return False


@lru_cache(maxsize=64)
def _space(profile: bytes) -> str:
    """Return the color space of a profile ("RGB", "GRAY", "CMYK"); "" if it is damaged."""
    from PIL import ImageCms

    try:
        opened = ImageCms.ImageCmsProfile(BytesIO(profile))
        return str(opened.profile.xcolor_space).strip().upper()
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError):
        return ""


@lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> ImageCmsTransform | None:
    """Return the transform of a profile to sRGB; None if it is sRGB already."""
    from PIL import ImageChops, ImageCms

    source = ImageCms.ImageCmsProfile(BytesIO(profile))
    intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
    if mode == "CMYK":  # the gamut of print is mapped as the profile's maker meant it
        intent = ImageCms.Intent.PERCEPTUAL
    transform = ImageCms.buildTransform(
        source, ImageCms.createProfile("sRGB"), mode, "RGB", intent,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )  # fmt: skip
    if mode in ("RGB", "L"):
        probe = _probe(mode)
        wanted = probe.convert("RGB")
        made = ImageCms.applyTransform(probe, transform)
        if made is not None:
            worst = ImageChops.difference(made, wanted).getextrema()
            if max(high for _, high in worst) <= _SAME:  # type: ignore[misc]
                return None
    return transform


def _probe(mode: str) -> PillowImage:
    """Return an image with colors from all over a mode."""
    from PIL import Image

    if mode == "L":
        return Image.frombytes("L", (256, 1), bytes(range(256)))
    levels = [0, 16, 48, 96, 128, 160, 208, 240, 255]
    data = bytes(c for r in levels for g in levels for b in levels for c in (r, g, b))
    return Image.frombytes("RGB", (729, 1), data)
