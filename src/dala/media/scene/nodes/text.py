"""Nodes of text, and subtitles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dala.errors import DalaError, ParameterError
from dala.media.scene.compositor.pictures import Shown
from dala.media.scene.nodes import properties as p
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import Property

if TYPE_CHECKING:
    from dala.media.moment import Moment
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene

#: Properties that are fields of TextStyle, which checks them.
STYLE: Final = (
    "font", "size", "weight", "italic", "color", "align", "width", "height", "line_height",
    "outline_width", "outline_color", "shadow", "background", "padding", "radius",
    "letter_spacing", "direction", "overflow",
)  # fmt: skip


def _words(value: Any, call: str) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{call} is a str, {type(value).__name__} came. Write str(value).")
    return value


def _any(value: Any, call: str) -> Any:
    return tuple(value) if isinstance(value, list) else value


class TextNode(Node):
    """Text. ``size`` is that of the font; ``width`` and ``height`` are the box it is wrapped to.

    The properties are those of ``TextStyle`` besides those of all nodes.
    """

    type = "text"
    WITHOUT = ("fit", "crop", "border", "border_width", "border_color")
    __slots__ = ("_content", "_key", "_shown")

    text = Property("", _words)
    font = Property(None, _any)
    size = Property(32.0, p.number(1.0, 1000.0))
    weight = Property("regular", _any)
    italic = Property(False, p.truth)
    color = Property((255, 255, 255, 255), p.color)
    align = Property("left", _any)
    line_height = Property(1.2, p.number(0.1, 20.0))
    outline_width = Property(0.0, p.number(0.0, 200.0))
    outline_color = Property((0, 0, 0, 255), p.color)
    background = Property(None, p.optional_color)
    padding = Property(0.0, _any)
    letter_spacing = Property(0.0, p.number(-1000.0, 1000.0))
    direction = Property("auto", _any)
    overflow = Property("clip", _any)

    def __init__(self, scene: Scene, parent: GroupNode, text: Any, given: dict[str, Any]) -> None:
        self._shown = Shown(scene._compositor)
        self._key: Any = None
        self._content: Content | None = None
        super().__init__(scene, parent, {"text": text, **given})

    def _checked(self, given: dict[str, Any], call: str) -> dict[str, Any]:
        made = super()._checked(given, call)
        if made.keys() & set(STYLE):
            self._style(self._values | made, call)
        if made.get("font") is not None:
            _check_font(made["font"], call)
        return made

    def set(self, name: str, value: Any) -> None:
        """Changes a property, checked; the next frame shows it."""
        self.update(**{name: value})

    def _style(self, values: dict[str, Any], call: str) -> Any:
        from dala.media.text.text import TextStyle

        linear = self.scene._blend_space == "linear"
        try:
            return TextStyle(
                **{name: values[name] for name in STYLE}, blend="linear" if linear else "srgb"
            )
        except ParameterError as error:
            raise type(error)(f"{call}: {error}") from None

    def content(self) -> Content | None:
        """The text set into a picture; set again only when something about it changed."""
        from dala.media.text.text import set_text

        key = (self._values["text"], *(self._values[name] for name in STYLE))
        if key == self._key:
            return self._content
        self._key, self._content = key, None
        if not self._values["text"].strip():
            return None
        made = set_text(self._values["text"], self._style(self._values, self.id))
        if made.width and made.height:
            self._shown.show(made.pixels, opaque=False)
            left, top = -made.offset[0], -made.offset[1]
            width, height = made.box
            margin = (left, top, made.width - width - left, made.height - height - top)
            self._content = Content(
                width, height, self._shown.picture, self._shown.version, margin=margin
            )
        return self._content

    def sides(self, width: float, height: float) -> tuple[float, float]:
        """The text's own box: its width and height are what it was wrapped to."""
        scale = self._values["scale"]
        return width * scale, height * scale

    def place(self, left: float, top: float, width: float, height: float) -> None:
        """Wraps the text to a box that lies there."""
        across, down = self.anchor
        self.update(width=width, height=height, scale=1.0)
        self.update(position=(left + across * width, top + down * height))


def _check_font(font: Any, call: str) -> None:
    """Whether there is such a font is seen now, not when it is drawn."""
    from dala.media.text.fonts.faces import find

    for one in font if isinstance(font, tuple) else (font,):
        try:
            find(one)
        except DalaError as error:
            raise ParameterError(f"{call}: {error}") from None


class SubtitlesNode(TextNode):
    """Subtitles: the text of the cues that are on at the scene's time."""

    type = "subtitles"
    __slots__ = ("cues", "offset")

    def __init__(
        self, scene: Scene, parent: GroupNode, cues: list[Any], offset: float, given: dict[str, Any]
    ) -> None:
        self.cues = cues
        #: Seconds of the scene at which the subtitles begin.
        self.offset = offset
        super().__init__(scene, parent, "", given)

    def advance(self, moment: Moment) -> None:
        """Shows the cues of a time."""
        at = moment.seconds - self.offset
        shown = "\n".join(cue.text for cue in self.cues if cue.start <= at < cue.end)
        if shown != self._values["text"]:
            self.set("text", shown)
