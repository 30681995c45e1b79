"""Text nodes, and subtitles."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from dala.errors import DalaError, ParameterError
from dala.media.scene.boxes import container_size
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import JsonChoice, JsonNumber, ListOf, OneOf
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import REQUIRED, Argument, Property
from dala.media.scene.nodes.times import PLAY_ARGUMENTS
from dala.media.sources.seconds import to_fraction
from dala.media.text.style import ALIGNMENTS, DIRECTIONS, OVERFLOWS, WEIGHTS, TextStyle
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media.sources.seconds import Moment
    from dala.media.subtitles import Cue
    from dala.media.text.fonts.faces import FontName

_SIDE = t.NumberType(1.0, 16384.0, optional=True)
_WEIGHT = t.PropertyType(OneOf(JsonNumber(1, 1000), JsonChoice(WEIGHTS)), "str | int")
_NUMBER = JsonNumber(0, 4096)
_PADDING = t.PropertyType(
    OneOf(_NUMBER, ListOf(_NUMBER, "a list of 2 or 4 numbers", shortest=1)),
    "float | Sequence[float]",
    animatable=True,
)


@cache
def _style_names() -> tuple[str, ...]:
    """Return the properties that are fields of TextStyle, which checks them together.

    ``blend`` is another thing: the blend mode of the node, and the blend space of the style.
    """
    return tuple(
        f.name for f in fields(TextStyle) if f.name in TextNode.PROPERTIES and f.name != "blend"
    )


class TextNode(Node):
    """Text. ``size`` is that of the font; ``width`` and ``height`` are the box to wrap it to.

    The properties are those of all nodes and the fields of ``TextStyle``.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     title = scene.add_text("Hi", size=16, color="gold", outline_width=1)
    ...     title.color
    (255, 215, 0, 255)
    """

    type = "text"
    WITHOUT = ("fit", "crop", "border", "border_width", "border_color")
    POSITIONAL = ("text",)
    __slots__ = ("_content", "_key", "_live", "_place")

    text = Property("", t.StringType(), "The text.", required=True, animatable=True)
    font = Property(None, t.FontType(), "A font family, a .ttf or .otf file, or a list of them.")
    size = Property(32.0, t.NumberType(1.0, 1000.0), "Size of the font.", unit="pixels")
    width = Property(None, _SIDE, "Width to wrap lines to.", unit="pixels")
    wrap = Property(
        True, t.BooleanType(), "Whether lines are wrapped to the width; if not, it only aligns.",
        animatable=False,
    )  # fmt: skip
    height = Property(None, _SIDE, "Height of the box; further lines are cut.", unit="pixels")
    weight = Property("regular", _WEIGHT, "A name such as 'bold', or 1 to 1000.")
    italic = Property(False, t.BooleanType(), "Whether letters are slanted.", animatable=False)
    color = Property((255, 255, 255, 255), t.ColorType(), "Color of the letters.")
    align = Property(
        "left", t.ChoiceType(ALIGNMENTS), "Alignment of lines in their box.", animatable=True
    )
    line_height = Property(
        1.2, t.NumberType(0.1, 20.0), "Distance of baselines, as a factor of the size."
    )
    outline_width = Property(
        0.0, t.NumberType(0.0, 200.0), "Width of the outline around the letters.", unit="pixels"
    )
    outline_color = Property((0, 0, 0, 255), t.ColorType(), "Color of the outline.")
    shadow = Property(
        None, t.ShadowType(1000.0, 100.0),
        "(dx, dy, blur, color) of the letters' shadow, or True for a default one.",
    )  # fmt: skip
    background = Property(None, t.ColorType(optional=True), "Color behind the text.")
    padding = Property(
        0.0, _PADDING,
        "Space between the edge of the background and the text: one number, "
        "(horizontal, vertical) or (left, top, right, bottom).", unit="pixels",
    )  # fmt: skip
    radius = Property(
        0.0, t.NumberType(0.0, 16384.0), "Radius of the background's corners.", unit="pixels"
    )
    letter_spacing = Property(
        0.0, t.NumberType(-1000.0, 1000.0), "Extra space between letters.", unit="pixels"
    )
    direction = Property("auto", t.ChoiceType(DIRECTIONS), "Direction of the text.")
    overflow = Property("clip", t.ChoiceType(OVERFLOWS), "What happens to lines that do not fit.")

    def prepare(self, given: t.Values) -> None:
        """Make the picture."""
        self._live = LivePicture(self.scene._compositor)
        self._key: tuple[object, ...] | None = None
        self._content: Content | None = None
        #: The name of its position, where it stays while the text changes.
        self._place: str | None = None

    def _position(self, place: t.Value, call: str) -> dict[str, float]:
        self._place = place if isinstance(place, str) else None
        return super()._position(place, call)

    def update(self, **properties: t.Value) -> None:
        """Set several properties: all of them, or none if one is refused."""
        super().update(**properties)
        if properties.keys() & {"x", "y"}:
            self._place = None
        elif self._place is not None and properties.keys() & {"text", "scale", *_style_names()}:
            super().update(position=self._place)

    def move_to(self, x: float, y: float) -> None:
        """Set the position. The same as ``set("position", (x, y))``, and quicker."""
        self._place = None
        super().move_to(x, y)

    def _checked(self, given: t.Values, call: str) -> t.Values:
        made = super()._checked(given, call)
        if made.keys() & set(_style_names()):
            self._style(self.property_values | made, call)
        if made.get("font") is not None:
            _check_font(made["font"], call)
        return made

    def set(self, name: str, value: t.Value) -> None:
        """Set a property, checked; the next frame shows it."""
        self.update(**{name: value})

    def _style(self, values: t.Values, call: str) -> TextStyle:
        given = {name: values[name] for name in _style_names()}
        try:
            return TextStyle(**given, blend=self.scene.blend_space)
        except ParameterError as error:
            raise error.within(call) from None

    def _shown_values(self) -> t.Values:
        """Return the properties that the text is shown with."""
        return self.property_values

    def content(self) -> Content | None:
        """Return the text as a picture, which is made again only when the text changed."""
        from dala.media.text.text import set_text

        values = self._shown_values()
        key = (values["text"], *(values[name] for name in _style_names()))
        if key == self._key:
            return self._content
        self._key, self._content = key, None
        if not values["text"].strip():
            return None
        made = set_text(values["text"], self._style(values, self.id))
        room, animator = container_size(self)[0], self.scene.animator
        wide = values["width"] is None and made.box[0] * values["scale"] > room
        moves = any(animator.animates(self, name) for name in ("x", "scale", "text"))
        if wide and not moves and " " in values["text"]:
            notify(
                f"add_text: the text {values['text'][:40]!r} is cut: it is {made.box[0]:g} pixels "
                f"wide, and has {room:g}. Set width, to wrap it, or a smaller size."
            )
        if made.width and made.height:
            self._live.show(made.pixels, opaque=False)
            left, top = -made.offset[0], -made.offset[1]
            width, height = made.box
            margin = (left, top, made.width - width - left, made.height - height - top)
            self._content = Content(
                width, height, self._live.picture, self._live.version, margin=margin
            )
        return self._content

    def box_size(self, width: float, height: float) -> tuple[float, float]:
        """Return the text's own size, scaled; width and height only wrap it."""
        scale = self.property_values["scale"]
        return width * scale, height * scale


def _check_font(font: FontName, call: str) -> None:
    """Raise an error now, not when the text is drawn, if a font is missing."""
    from dala.media.text.fonts.faces import find

    for one in font if isinstance(font, tuple) else (font,):
        try:
            find(one)
        except DalaError as error:
            raise ParameterError(f"{call}: {error}") from None


class SubtitlesNode(TextNode):
    """Subtitles from an SRT, WebVTT or ASS file, by default centered at the bottom.

    It shows the text of the cues that are active at the scene's time, in italics, bold or a color
    where the cues say so and the node's own properties do not.

    >>> import dala
    >>> cues = "WEBVTT\\n\\n00:01.000 --> 00:02.000\\nHello\\n"
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     words = scene.add_subtitles(cues)
    ...     frame = scene.render(1.5)
    ...     words.text
    'Hello'
    """

    type = "subtitles"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "subtitles": Argument(
            t.PathType("str | os.PathLike[str]"),
            "An SRT, WebVTT or ASS file, or the text of one.",
            default=REQUIRED,
            key="source",
        ),
        "offset": Argument(t.NumberType(), "Another name of ``start``, in seconds.", default=0.0),
        **PLAY_ARGUMENTS,
    }
    POSITIONAL = ("subtitles",)
    ALWAYS_SAVED = frozenset(("x", "y", "size", "align", "outline_width"))
    __slots__ = ("_look", "_offset", "cues")

    text = Property(
        "", t.StringType(), "The text of the active cues.", saved=False, animatable=False
    )

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        from dala.media.subtitles import load_subtitles

        self.cues = load_subtitles(given.pop("subtitles", None))
        offset: float = self.take(given, "offset")
        if offset and given.get("start") is not None:
            raise ParameterError(
                "add_subtitles: give start or offset, which mean the same, not both."
            )
        self._offset = offset
        width, height = container_size(self)
        given.setdefault("size", max(12.0, round(height / 18)))
        given.setdefault("align", "center")
        given.setdefault("outline_width", max(1.0, round(height / 360)))
        if not {"position", "x", "y", "anchor"} & given.keys():
            given |= {"anchor": "bottom", "position": (width / 2, height * 0.94)}
            given.setdefault("width", width * 0.9)
        #: Properties that the active cues change.
        self._look: t.Values = {}
        super().prepare(given)

    def ready(self) -> None:
        """Start at the offset."""
        if self._offset:
            self.clip = self.clip.with_times(to_fraction("offset", self._offset), self.clip.end)

    @property
    def offset(self) -> float:
        """The scene's time at which the subtitles start, in seconds."""
        return float(self.clip.begin)

    def changed(self, item: Property | None = None) -> None:
        """Mark the node as changed."""
        super().changed(item)
        if item is not None and item.name == "start":
            self._offset = 0.0

    def length(self) -> Fraction | None:
        """Return the end of the last cue."""
        return to_fraction("end", max((cue.end for cue in self.cues), default=0.0))

    def _shown_values(self) -> t.Values:
        return {**self.property_values, **self._look}

    def saved_arguments(self) -> t.Values:
        """Return the text of the cues and the offset."""
        from dala.media.subtitles import format_subtitles

        offset = {"offset": self._offset} if self._offset else {}
        return {"source": format_subtitles(self.cues), **offset, **super().saved_arguments()}

    def advance(self, moment: Moment) -> None:
        """Show the cues of a time."""
        clip = self.clip
        if clip.plain:
            at = moment.seconds - self.offset
        else:
            place = clip.place(moment.exact, self.length())
            at = -1.0 if place is None else float(place.time)
        active = [cue for cue in self.cues if cue.start <= at < cue.end]
        text, look = "\n".join(cue.text for cue in active), self._look_of(active)
        if look != self._look:
            self._look = look
            self.set("text", "")  # so that the same text is drawn again
        if text != self.property_values["text"]:
            self.set("text", text)

    def _look_of(self, cues: list[Cue]) -> t.Values:
        """Return the italics, weight and color that all cues share, where these are not set."""
        look: t.Values = {}
        if cues and all(cue.italic for cue in cues):
            look["italic"] = True
        if cues and all(cue.bold for cue in cues):
            look["weight"] = "bold"
        colors = {cue.color for cue in cues}
        if len(colors) == 1 and (color := colors.pop()):
            look["color"] = (*bytes.fromhex(color[1:]), self.property_values["color"][3])
        return {name: value for name, value in look.items() if self.as_usual(name)}
