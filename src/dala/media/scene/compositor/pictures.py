"""The pictures of nodes, kept on the device that draws the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from dala import memory
from dala.errors import DtypeError, ShapeError
from dala.gpu.compute import Buffer
from dala.gpu.compute.composite import Compositor, Picture
from dala.media.frame import PLANAR, Frame
from dala.media.images import check_array
from dala.media.pictures.pixels import as_bytes, is_rgb_bytes
from dala.media.scene.nodes.node import Content
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

#: A picture that nodes show.
PictureSource: TypeAlias = Frame | Buffer | NDArray


@dataclass(eq=False, repr=False, slots=True, weakref_slot=True)
class LivePicture:
    """A picture whose pixels, and size, change from time to time."""

    compositor: Compositor
    picture: Picture | None = None
    opaque: bool = False
    #: Changes with the pixels.
    version: int = 0
    #: For the caller: which version of its source the picture holds.
    seen: int | None = None

    def show(self, source: PictureSource, *, opaque: bool | None = None) -> None:
        """Show a Frame, an array or a Buffer.

        ``opaque`` says whether all its pixels are; None if that is not known.
        """
        picture, solid = self.picture, False
        if picture is None or type(source) is not np.ndarray or not picture.update_fast(source):
            pixels, solid = _pixels(source, self.compositor.device)
            if picture is None or (picture.height, picture.width) != pixels.shape[:2]:
                picture = self.picture = self.compositor.picture(pixels)
            else:
                picture.update(pixels)
        self.opaque = picture.opaque or (solid if opaque is None else opaque)
        self.version += 1

    def content(self) -> Content | None:
        """Return the picture as the content of a node; None if there is none yet."""
        picture = self.picture
        if picture is None:
            return None
        return Content(picture.width, picture.height, picture, self.version, opaque=self.opaque)

    def close(self) -> None:
        """Free the picture."""
        if self.picture is not None:
            self.picture.close()


def _pixels(source: PictureSource, device: str) -> tuple[NDArray | Buffer, bool]:
    """Return u8 pixels of (height, width[, 3 or 4]), and whether they are known to be opaque."""
    if is_rgb_bytes(source) or isinstance(source, Buffer):
        return source, False
    if isinstance(source, Frame):
        if source.format in PLANAR:
            return source.to("rgba", device=device).pixels, True
        if source.dtype == "u8":
            return source.pixels, False
        from dala.media.formats import visible

        return visible(source), False
    return as_bytes(check_array(np.asarray(source), "Scene")), False


def copy_image(image: object, call: str) -> tuple[NDArray, bool]:
    """Return a copy of an image of any kind as a u8 array, and whether it is opaque."""
    if isinstance(image, Frame):
        source = np.asarray(image.picture())
    elif isinstance(image, Buffer):
        source = image.numpy()
    elif hasattr(image, "mode") and hasattr(image, "getbands"):
        from dala.media.images import from_pillow

        source = from_pillow(cast("PillowImage", image), call)
    elif isinstance(image, np.ndarray):
        source = image
    else:
        expected = "an array, a Frame, a Pillow image, a path, a Texture or the key of one"
        raise DtypeError.invalid(call, "image", expected, image)
    array = check_array(source, call)
    if 0 in array.shape:
        raise ShapeError.invalid(call, "image", "a picture with pixels", array)
    array = as_bytes(array)
    if array is source:
        memory.check_copy(array.nbytes, call)
        array = np.array(array)
    return array, is_opaque(array)


def is_opaque(array: NDArray) -> bool:
    """Return True if every pixel is opaque."""
    return array.ndim == 2 or array.shape[2] == 3 or bool((array[..., 3] == 255).all())
