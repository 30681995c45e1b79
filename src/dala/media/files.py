"""Picture files: opened by Pillow, written by ourselves (PNG) or by Pillow, and shown."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.errors import DeviceUnavailable, MissingPackage, ParameterError
from dala.png import encode_png

if TYPE_CHECKING:
    from dala.media.frame import Frame

#: File types that hold no alpha.
_OPAQUE = (".jpg", ".jpeg", ".bmp", ".ppm")
#: Pillow's modes whose numbers are no colours.
NUMBERS = ("I", "F")


def _pillow(call: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingPackage(
            f"{call}: this needs Pillow, which is not installed: pip install 'dala[media]'."
        ) from None
    return Image


def _path(path: Any, call: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"{call}: path is a text or a Path, {type(path).__name__} came.")
    return Path(path)


def load(path: str | os.PathLike[str], max_pixels: int) -> Any:
    """A picture file as a Pillow image, loaded and upright."""
    path = _path(path, "Frame.open")
    image_module = _pillow("Frame.open")
    from PIL import ImageOps

    try:
        with image_module.open(path) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise ParameterError(
                    f"Frame.open: {path} has {width} x {height} pixels, more than "
                    f"max_pixels={max_pixels:,}. Raise it if you trust the file."
                )
            if image.mode in NUMBERS:
                raise ParameterError(
                    f"Frame.open: {path} holds numbers of no known scale (mode {image.mode!r}), "
                    "no colours. Save it as 8 or 16 bits, or give an array of f32 from 0 to 1."
                )
            return ImageOps.exif_transpose(image)
    except image_module.DecompressionBombError as error:
        raise ParameterError(
            f"Frame.open: {path} is refused by Pillow ({error}). If you trust the "
            "file, raise PIL.Image.MAX_IMAGE_PIXELS and max_pixels."
        ) from None
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"Frame.open: {path} cannot be read as a picture ({error}).") from None


def store(
    path: str | os.PathLike[str], pixels: np.ndarray[Any, Any], options: dict[str, Any]
) -> None:
    """Writes pixels of u8 to a file, which appears under its name when it is whole."""
    target = _path(path, "Frame.save")
    kind = target.suffix.lower()
    if not kind:
        raise ParameterError(
            f"Frame.save: the name {target.name!r} does not say what kind of file; add '.png'."
        )
    own = kind == ".png" and not options
    image_module = None if own else _pillow("Frame.save")
    if image_module is not None and kind not in image_module.registered_extensions():
        raise ParameterError(f"Frame.save: Pillow writes no {kind!r} files. Use '.png' or '.jpg'.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Frame.save: there is no folder '{target.parent}'. Make it first.")
    part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with part.open("wb") as file:
            if image_module is None:
                file.write(encode_png(pixels))
            else:
                if kind in _OPAQUE and pixels.ndim == 3:
                    pixels = np.ascontiguousarray(pixels[..., :3])
                format = image_module.registered_extensions()[kind]
                _save(image_module.fromarray(pixels), file, format, options)
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _save(image: Any, file: Any, format: str, options: dict[str, Any]) -> None:
    try:
        image.save(file, format=format, **options)
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise ParameterError(
            f"Frame.save: Pillow cannot write this as {format} ({error}). Use '.png', or leave "
            "out options."
        ) from None


def show(frame: Frame) -> None:
    """In a notebook below the cell, elsewhere in the system's viewer."""
    with contextlib.suppress(ImportError, NameError):
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            display(frame)
            return
    image = _pillow("Frame.show").fromarray(frame.picture())
    from PIL import ImageShow

    if not ImageShow.show(image):
        raise DeviceUnavailable(
            "Frame.show: this system has no viewer for pictures. Write a file, "
            "frame.save('frame.png'), and look at that: dala view frame.png --show browser."
        )
