"""Filters over picture files, stored with the depth and alpha that the format can hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from dala.media.files import MODES, read_picture, store
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter
from dala.media.pictures.options import PictureOptions
from dala.media.pictures.pixels import fits
from dala.notices import notify
from dala.typing import PathLike, PictureSource

#: The default quality of JPEG and WebP.
QUALITY: Final = 92
#: Formats with 16 bits.
_DEEP: Final = (".png", ".tif", ".tiff")
#: Formats that have a quality.
LOSSY: Final = (".jpg", ".jpeg", ".webp", ".avif")


def filter_picture(
    pipeline: FramePipeline,
    filters: Sequence[Filter],
    source: PictureSource,
    target: PathLike | BinaryIO,
    suffix: str,
    options: PictureOptions,
) -> tuple[int, int]:
    """Filter a picture file and store the result; return its width and height.

    Args:
        pipeline: runs the filters.
        filters: as of ``FramePipeline``.
        source: a path, a file object or bytes.
        target: a path, or a file object to write to.
        suffix: of the result, which names its format; 16 bits are kept where it can hold them.
        options: how files are read and written.

    Example::

        with FramePipeline(1 << 20, 1 << 20) as pipeline:
            filter_picture(pipeline, ["invert"], "in.jpg", "out.png", ".png", PictureOptions())
    """
    kind = suffix.lower()
    depth = "stored" if kind in _DEEP else None
    found = read_picture(source, options.max_pixels, color=options.color, depth=depth)
    pixels = np.asarray(pipeline.process(found.pixels, filters))
    settings: dict[str, int | bytes] = {}
    if kind in LOSSY:
        settings["quality"] = options.quality or QUALITY
    if found.profile and fits(found.profile, MODES[pixels.shape[2:]]):
        settings["icc_profile"] = found.profile
    if pixels.dtype == np.float32:
        top, dtype = (65535, np.uint16) if found.bits > 8 and kind in _DEEP else (255, np.uint8)
        pixels = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * top).astype(dtype)
    format = None if isinstance(target, str | Path) else kind.lstrip(".")
    chosen = None if options.background == "white" else options.background
    store(target, pixels, settings, format=format, background=chosen)
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

        def show(message: Warning, category: type[Warning], filename: str, *more: Any) -> None:
            if "PIL" in Path(filename).parts:
                notify(f"Pillow: {message}")
            else:
                plain(message, category, filename, *more)

        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before
