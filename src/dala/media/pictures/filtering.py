"""Filters over picture files: read, filtered, stored with what the format can hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO

import numpy as np

from dala.media.files import MODES, read_picture, store
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter
from dala.media.notices import notify
from dala.media.pictures.profiles import fits
from dala.typing import PathLike, PictureSource

#: The default quality of JPEG and WebP.
QUALITY: Final = 92
#: Formats with 16 bits.
_DEEP: Final = (".png", ".tif", ".tiff")
_LOSSY: Final = (".jpg", ".jpeg", ".webp", ".avif")


def filter_picture(
    pipeline: FramePipeline,
    filters: Sequence[Filter],
    source: PictureSource,
    target: PathLike | BinaryIO,
    suffix: str,
    *,
    max_pixels: int,
    quality: int | None = None,
    color: str = "srgb",
    background: str = "white",
) -> tuple[int, int]:
    """Filter a picture file and store the result; return its width and height.

    Args:
        pipeline: runs the filters.
        filters: as of ``FramePipeline``.
        source: a path, a file object or bytes.
        target: a path, or a file object to write to.
        suffix: of the result, which names its format; 16 bits are kept where it can hold them.
        max_pixels: the most pixels of a source.
        quality: of JPEG, WebP and AVIF.
        color: "srgb" converts pictures with an ICC profile, "raw" keeps their values.
        background: below transparent pixels in formats without alpha.

    Example::

        with FramePipeline(1 << 20, 1 << 20) as pipeline:
            filter_picture(pipeline, ["invert"], "in.jpg", "out.png", ".png", max_pixels=1 << 27)
    """
    kind = suffix.lower()
    found = read_picture(source, max_pixels, color=color, depth="stored" if kind in _DEEP else None)
    pixels = np.asarray(pipeline.process(found.pixels, filters))
    options: dict[str, int | bytes] = {}
    if kind in _LOSSY:
        options["quality"] = quality or QUALITY
    if found.profile and fits(found.profile, MODES[pixels.shape[2:]]):
        options["icc_profile"] = found.profile
    if pixels.dtype == np.float32:
        top, dtype = (65535, np.uint16) if found.bits > 8 and kind in _DEEP else (255, np.uint8)
        pixels = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * top).astype(dtype)
    format = None if isinstance(target, str | Path) else kind.lstrip(".")
    store(target, pixels, options, format=format, background=background)
    height, width = pixels.shape[:2]
    return width, height


@contextmanager
def large_pictures() -> Iterator[None]:
    """Disable Pillow's limit of pixels, where ``max_pixels`` is checked instead.

    Pillow's warnings about odd files become notices.
    """
    try:
        from PIL import Image
    except ImportError:
        yield  # an error is raised when the first picture is opened
        return
    before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    with warnings.catch_warnings():
        plain = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if "PIL" in Path(filename).parts:
                notify(f"Pillow: {message}")
            else:
                plain(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before
