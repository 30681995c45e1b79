"""Nodes that show a still picture, or a plain shape."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dala.errors import ParameterError
from dala.gpu.color import NAMED
from dala.media.scene.boxes import room
from dala.media.scene.compositor.pictures import Shown, is_opaque, still
from dala.media.scene.nodes import properties as p
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import Property
from dala.media.texture import Texture

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene

SHAPES: Final = ("rect", "pill", "circle")


class ImageNode(Node):
    """A picture: an array, a Frame, a Pillow image, a file, a Texture or the key of one.

    Arrays are copied. A file, or a texture, is kept once in ``scene.textures`` however often it is
    shown.
    """

    type = "image"
    #: What a name could have been besides.
    _ELSE: ClassVar[str] = ""
    __slots__ = ("_shown", "texture")

    def __init__(self, scene: Scene, parent: GroupNode, image: Any, given: dict[str, Any]) -> None:
        self.texture: Texture | None = None
        self._shown: Shown | None = None
        if image is not None:
            self._take(scene, image)
        try:
            super().__init__(scene, parent, given)
        except BaseException:
            self.release()
            raise

    def show(self, image: Any) -> None:
        """Shows another picture."""
        self._take(self.scene, image)
        self._changed()

    def _take(self, scene: Scene, image: Any) -> None:
        call = f"add_{self.type}"
        texture = None
        if isinstance(image, str | os.PathLike):
            texture = self._named(scene, image)
        elif isinstance(image, Texture):
            texture = image
        elif not hasattr(image, "shape") and image.__hash__ is not None and image in scene.textures:
            texture = scene.textures.get(image)
        if texture is not None:
            texture.retain()
            self.release()
            self.texture, self._shown = texture, scene._shown_of(texture)
            return
        pixels, opaque = still(image, call)
        shown = Shown(scene._compositor)
        shown.show(pixels, opaque=opaque)
        self.release()
        self._shown = shown

    def _named(self, scene: Scene, image: Any) -> Any:
        """What a text or path names: a texture of the scene, or a file."""
        if image in scene.textures:
            return scene.textures.get(image)
        path = os.fspath(image)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"add_{self.type}: there is no texture and no file {path!r}{self._ELSE}. Load it "
                "first: scene.textures.load(key, picture)."
            )
        return scene.textures.load(path, path)

    def content(self) -> Content | None:
        """The picture."""
        shown = self._shown
        if shown is None:
            return None
        if self.texture is not None and shown.seen != self.texture.version:
            shown.show(self.texture.array, opaque=is_opaque(self.texture.array))
            shown.seen = self.texture.version
        picture = shown.picture
        assert picture is not None
        return Content(picture.width, picture.height, picture, shown.version, opaque=shown.opaque)

    def release(self) -> None:
        """Lets go of the texture."""
        if self.texture is not None:
            self.texture.release()
        self.texture = self._shown = None


class OverlayNode(ImageNode):
    """A picture over others, or a plain shape: a rectangle, a pill, a circle, of a colour.

    A shape without a size fills its scene or group; a circle has the largest that fits.
    """

    type = "overlay"
    _ELSE = ", and no colour of that name either"
    __slots__ = ()

    color = Property(None, p.optional_color)
    shape = Property("rect", p.one_of(SHAPES))

    def __init__(self, scene: Scene, parent: GroupNode, image: Any, given: dict[str, Any]) -> None:
        if isinstance(image, tuple | list) or (isinstance(image, str) and _is_color(image)):
            if given.get("color") is not None:
                raise ParameterError("add_overlay: give one colour, not two.")
            given["color"], image = image, None
        if image is None and given.get("color") is None:
            raise ParameterError(
                "add_overlay: it needs a picture or a colour, such as add_overlay(color='red')."
            )
        super().__init__(scene, parent, image, given)

    def content(self) -> Content | None:
        """The picture, or the colour over the whole room."""
        if self._shown is not None:
            return super().content()
        color = self._values["color"]
        if color is None:
            return None
        width, height = room(self)
        if self._values["shape"] == "circle":
            width = height = min(width, height)
        return Content(width, height, color=color, opaque=color[3] == 255)


def _is_color(text: str) -> bool:
    return text.startswith("#") or text.strip().lower().replace(" ", "") in NAMED
