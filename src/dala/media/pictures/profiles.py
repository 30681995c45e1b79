"""ICC profiles: pictures in other color spaces become sRGB, through Little CMS in Pillow."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from PIL.ImageCms import ImageCmsTransform

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
