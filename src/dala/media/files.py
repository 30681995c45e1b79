"""Picture files: read with Pillow, written as PNG or with Pillow, and shown."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from dala.errors import DeviceUnavailable, MissingPackage, ParameterError
from dala.png import encode_png
from dala.typing import NDArray, ParamValue, PathLike

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.media.frame import Frame

#: Formats without alpha.
_OPAQUE = (".jpg", ".jpeg", ".bmp", ".ppm")
#: Pillow modes of numbers without a known scale.
NUMBERS = ("I", "F")


def _pillow(call: str) -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise MissingPackage(
            f"{call}: Pillow is not installed. Run pip install 'dala[media]'."
        ) from None
    return Image


def _path(path: PathLike, call: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ParameterError.invalid(call, "path", "a str or Path", type(path))
    return Path(path)


def load(path: PathLike, max_pixels: int) -> PillowImage:
    """Read a picture file as a Pillow image, rotated as its EXIF orientation says."""
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
                    f"Frame.open: {path} has numbers of unknown scale (mode {image.mode!r}). Save "
                    "it with 8 or 16 bits, or give an f32 array of 0 to 1."
                )
            upright: PillowImage = ImageOps.exif_transpose(image)
            return upright
    except image_module.DecompressionBombError as error:
        raise ParameterError(
            f"Frame.open: Pillow refuses {path} ({error}). If you trust the file, raise "
            "PIL.Image.MAX_IMAGE_PIXELS and max_pixels."
        ) from None
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"Frame.open: {path} cannot be read as a picture ({error}).") from None


def store(path: PathLike, pixels: NDArray, options: Mapping[str, ParamValue | bytes]) -> None:
    """Write pixels of u8 to a file, which is renamed into place when it is complete."""
    target = _path(path, "Frame.save")
    kind = target.suffix.lower()
    if not kind:
        raise ParameterError(
            f"Frame.save: path must have a suffix such as '.png', got {target.name!r}."
        )
    own = kind == ".png" and not options
    image_module = None if own else _pillow("Frame.save")
    if image_module is not None and kind not in image_module.registered_extensions():
        raise ParameterError(
            f"Frame.save: Pillow cannot write {kind!r} files. Use '.png' or '.jpg'."
        )
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


def _save(
    image: PillowImage, file: BinaryIO, format: str, options: Mapping[str, ParamValue | bytes]
) -> None:
    try:
        image.save(file, format=format, **options)
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise ParameterError(
            f"Frame.save: Pillow cannot write this picture as {format} ({error}). Use '.png', or "
            "leave out the options."
        ) from None


def show(frame: Frame) -> None:
    """Show a frame below the cell in a notebook, else in the system's viewer."""
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
            "Frame.show: there is no viewer for pictures. Save the frame, "
            "frame.save('frame.png'), and run dala view frame.png --show browser."
        )
