"""Image nodes, and overlays: images or plain shapes."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

from dala.arguments.paths import near_files
from dala.errors import FileMissing, ParameterError, describe
from dala.media.scene.boxes import container_size
from dala.media.scene.compositor.pictures import LivePicture, copy_image, is_opaque
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import JsonString
from dala.media.scene.nodes.node import Content, Node, NotNamed
from dala.media.scene.nodes.properties import PIP_ARGUMENTS, Argument, Property, apply_pip
from dala.media.texture import Texture

if TYPE_CHECKING:
    from dala.typing import ImageLike, PathLike

#: What image nodes show; a hashable value is the key of a texture.
ImageSource: TypeAlias = "ImageLike | PathLike | Texture | Hashable"
SHAPES: Final = ("rect", "pill", "circle")


class ImageNode(Node):
    """An image: an array, a Frame, a Pillow image, a file, a Texture or the key of one.

    Arrays are copied. A file or a texture is kept once in ``scene.textures``, however many nodes
    show it.

    >>> import dala
    >>> import numpy as np
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     image = scene.add_image(np.full((8, 8, 3), 200, np.uint8), position="top-right")
    ...     image.position
    (56.0, 0.0)
    """

    type = "image"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "image": Argument(t.PathType("ImageSource"), "An image file.", key="source", required=True),
        "image_id": Argument(
            t.PropertyType(JsonString(), "Hashable"),
            "Key of a texture in ``scene.textures``, instead of ``image``.",
            key="",
        ),
        **PIP_ARGUMENTS,
    }
    POSITIONAL = ("image",)
    #: End of the error about a name that is neither a texture nor a file.
    _NOR: ClassVar[str] = ""
    __slots__ = ("_live", "texture")

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        image, image_id = given.pop("image", None), given.pop("image_id", None)
        if image is not None and image_id is not None:
            raise ParameterError(f"add_{self.type}: give image or image_id, not both.")
        image = image_id if image is None else image
        self.texture: Texture | None = None
        self._live: LivePicture | None = None
        apply_pip(given, f"add_{self.type}", (self.scene.width, self.scene.height))
        if image is not None or type(self) is ImageNode:
            self._use(image)

    @property
    def has_image(self) -> bool:
        """True if the node shows an image, rather than a shape."""
        return self._live is not None

    def saved_arguments(self) -> t.Values:
        """Return the file that the image was loaded from."""
        if self._live is None:
            return {}
        key = None if self.texture is None else self.texture.key
        if isinstance(key, str | os.PathLike) and os.path.isfile(key):
            return {"source": os.fspath(key)}
        return {"source": NotNamed("an array")}

    def show(self, image: ImageSource) -> None:
        """Show another image."""
        self._use(image)
        self.changed()

    def _use(self, image: ImageSource) -> None:
        scene, texture = self.scene, None
        if isinstance(image, str | os.PathLike):
            texture = self._named(image)
        elif isinstance(image, Texture):
            texture = image
        elif (
            not hasattr(image, "shape") and isinstance(image, Hashable) and image in scene.textures
        ):
            texture = scene.textures.get(image)
        if texture is not None:
            texture.retain()
            self.release()
            self.texture, self._live = texture, scene._picture_of(texture)
            return
        pixels, opaque = copy_image(image, f"add_{self.type}")
        live = LivePicture(scene._compositor)
        live.show(pixels, opaque=opaque)
        self.release()
        self._live = live

    def _named(self, image: PathLike) -> Texture:
        """Return the texture that a string or path names: one of the scene's, or a file's."""
        textures = self.scene.textures
        key = cast("Hashable", image)  # paths can be hashed, but their protocol does not say so
        if key in textures and (found := textures.get(key)) is not None:
            return found
        path = os.fspath(image)
        if not os.path.exists(path):
            name = describe(path)  # a URL by mistake may have secrets
            advice = near_files(path) or (
                "Load a texture first: scene.textures.load(key, picture)."
            )
            raise FileMissing(
                f"add_{self.type}: there is no texture and no file {name}{self._NOR}. {advice}"
            )
        return textures.load(path, path)

    def content(self) -> Content | None:
        """Return the image."""
        live = self._live
        if live is None:
            return None
        if self.texture is not None and live.seen != self.texture.version:
            live.show(self.texture.array, opaque=is_opaque(self.texture.array))
            live.seen = self.texture.version
        return live.content()

    def release(self) -> None:
        """Release the texture."""
        if self.texture is not None:
            self.texture.release()
        self.texture = self._live = None


class OverlayNode(ImageNode):
    """An image on top of others, or a plain shape: a rectangle, a pill or a circle of a color.

    A shape without a size fills its scene or group; a circle is as large as fits.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     scene.add_overlay(color="red", shape="circle").box
    (0.0, 0.0, 36.0, 36.0)
    """

    type = "overlay"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "image": Argument(
            t.PathType("ImageSource | Sequence[int]", optional=True),
            "An image file; leave it out and give a color for a shape.",
            key="source",
        ),
    }
    _NOR = ", and no color of that name"
    __slots__ = ()

    color = Property(None, t.ColorType(optional=True), "Color of the shape.")
    shape = Property("rect", t.ChoiceType(SHAPES), "Shape of an overlay without an image.")

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        image = given.get("image")
        if isinstance(image, tuple | list) or (isinstance(image, str) and t.is_color_name(image)):
            if given.get("color") is not None:
                raise ParameterError("add_overlay: give one color, not two.")
            given["color"] = given.pop("image")
            image = None
        if image is None and given.get("image_id") is None and given.get("color") is None:
            raise ParameterError(
                "add_overlay: an image or a color is required, such as add_overlay(color='red')."
            )
        super().prepare(given)

    def content(self) -> Content | None:
        """Return the image, or the color with the size of the container."""
        if self.has_image:
            return super().content()
        color = self.property_values["color"]
        if color is None:
            return None
        width, height = container_size(self)
        if self.property_values["shape"] == "circle":
            width = height = min(width, height)
        return Content(width, height, color=color, opaque=color[3] == 255)
