"""SVG nodes."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dala.arguments import checked_path
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import REQUIRED, Argument
from dala.untrusted.address import is_text

if TYPE_CHECKING:
    from dala.typing import PathLike


class SvgNode(Node):
    """An SVG file, or the text of one, drawn in the size that it is shown at.

    It is drawn again when the size changes. ``scale`` is different: the picture is drawn at the
    next power of two and scaled down, so that zooming does not draw every frame.

    >>> import dala
    >>> logo = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"></svg>'
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     scene.add_svg(logo, width=32).box
    (0.0, 0.0, 32.0, 16.0)
    """

    type = "svg"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "svg": Argument(
            t.PathType("PathLike"), "An SVG file, or the text of one.", default=REQUIRED,
            key="source",
        ),
    }  # fmt: skip
    WITHOUT = ("crop",)
    POSITIONAL = ("svg",)
    __slots__ = ("_document", "_drawn", "_live", "_source")

    def prepare(self, given: t.Values) -> None:
        """Read the document."""
        from dala.media.pictures.svg import SvgDocument

        source: PathLike = given.pop("svg", "")
        call = "add_svg"
        if isinstance(source, str) and (
            is_text(source) or source.lstrip("\ufeff \t\r").startswith("<")
        ):
            self._document = SvgDocument(source, "the SVG", call)
            self._source = source if "\n" in source else source + "\n"  # as scene files have texts
        else:
            checked_path(call, "svg", source)
            self._source = os.fspath(source)
            self._document = SvgDocument(Path(self._source), str(source), call)
        self._live = LivePicture(self.scene._compositor)
        self._drawn: tuple[float, float] | None = None

    def saved_arguments(self) -> t.Values:
        """Return the file, or the text."""
        return {"source": self._source}

    def natural(self) -> tuple[float, float]:
        """Return the size that the document asks for."""
        return self._document.size

    def box_size(self, width: float, height: float) -> tuple[float, float]:
        """Return the size of the box, which does not depend on that of the drawing."""
        return super().box_size(*self._document.size)

    def content(self) -> Content | None:
        """Return the drawing in the size of the node."""
        own, values = self._document.size, self.property_values
        width, height = self.box_size(*own)
        if not (width > 0 and height > 0):
            return None
        scale = values["scale"]
        larger = max(width / own[0], height / own[1]) / scale * 2.0 ** math.ceil(math.log2(scale))
        wanted = own if values["fit"] == "none" else (own[0] * larger, own[1] * larger)
        if wanted != self._drawn:
            self._live.show(self._document.pixels(*wanted), opaque=False)
            self._drawn = wanted
        return self._live.content()
