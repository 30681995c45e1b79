"""What may stand in a scene file: one table, by which files are checked and the schema is made."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from dala.errors import did_you_mean
from dala.gpu.compute.composite import BLENDS
from dala.media.filters.plans import names
from dala.media.scene.animation.easing import EASINGS, easing
from dala.media.scene.clock import frame_rate
from dala.media.scene.file.values import (
    Above,
    Color,
    ColorText,
    Either,
    Field,
    Kind,
    Many,
    Null,
    Number,
    Object,
    Row,
    Schema,
    Text,
    Tried,
    Truth,
    Word,
    join,
    shown,
    unprefixed,
)
from dala.media.scene.nodes.effect import EffectNode, Parameter, parameters
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.image import SHAPES, ImageNode, OverlayNode
from dala.media.scene.nodes.node import FITS, Node
from dala.media.scene.nodes.properties import PLACES
from dala.media.scene.nodes.text import SubtitlesNode, TextNode
from dala.media.scene.nodes.video import SceneNode, VideoNode
from dala.media.text.style import ALIGNMENTS, DIRECTIONS, OVERFLOWS, WEIGHTS

#: The version of the format that is written, and the newest that is read.
VERSION: Final = 1
CLASSES: Final[dict[str, type[Node]]] = {
    "video": VideoNode, "image": ImageNode, "overlay": OverlayNode, "text": TextNode,
    "subtitles": SubtitlesNode, "effect": EffectNode, "group": GroupNode, "scene": SceneNode,
}  # fmt: skip
TYPES: Final = (*CLASSES, "animation")
LAYOUTS: Final = ("side_by_side", "stack", "grid")

_NUMBER = Number()
_LENGTH = Number(0.0)
_MAYBE = Either(_LENGTH, Null())
_PAIR = Row("[x, y]", _NUMBER, _NUMBER)
_PLACE = Either(_PAIR, Word(PLACES))
_SIZE = Row("[width, height]", _MAYBE, _MAYBE)
_BOX = Row("[left, top, width, height]", _NUMBER, _NUMBER, _LENGTH, _LENGTH)
_FILE = Text("the path of a file", least=1)
_RATE = Either(Number(0.001, 1000.0), Tried("a rate such as '30000/1001'", (), frame_rate))


class _Easing(Either):
    """How a way is gone."""

    def schema(self) -> Schema:
        """What $defs has of it."""
        return {"$ref": "#/$defs/easing"}


_EASING = _Easing(
    Tried("an easing such as 'ease-out'", EASINGS, easing),
    Many(Either(Text(), _NUMBER), "a list such as ['steps', 4]", least=1),
)
_FONT = Text("a family, or the path of a font", least=1)

#: What each property of nodes may be, and what it is about.
_PROPERTIES: Final[dict[str, Field]] = {
    "x": Field(_NUMBER, "Where the anchor lies across, in pixels."),
    "y": Field(_NUMBER, "Where the anchor lies down, in pixels."),
    "width": Field(_MAYBE, "Of the box; left out, it follows from the content."),
    "height": Field(_MAYBE, "Of the box; left out, it follows from the content."),
    "position": Field(_PLACE, "[x, y], or a corner, an edge or the middle by name."),
    "size": Field(_SIZE, "[width, height] of the box."),
    "anchor": Field(
        Either(Row("[across, down]", Number(-1000, 1000), Number(-1000, 1000)), Word(PLACES)),
        "The point of the box that lies at the position: shares of its size, or a name.",
    ),
    "scale": Field(Number(0.0, 10_000.0), "About the anchor."),
    "rotation": Field(_NUMBER, "Degrees, clockwise, about the anchor."),
    "opacity": Field(Number(0.0, 1.0), "1 is opaque."),
    "z_index": Field(_NUMBER, "Higher ones are drawn later; of equal ones, later ones."),
    "visible": Field(Truth(), "False: not drawn."),
    "fit": Field(Word(FITS), "How content of another shape lies in the box."),
    "crop": Field(
        Either(Row("[left, top, width, height]", _LENGTH, _LENGTH, Above(), Above()), Null()),
        "What is shown of the content: [left, top, width, height] in its pixels.",
    ),
    "blend": Field(Word(BLENDS), "How it is mixed with what is below."),
    "radius": Field(_LENGTH, "Of round corners."),
    "corner_radius": Field(_LENGTH, "Of round corners."),
    "border_width": Field(_LENGTH, "Of a border inside the box."),
    "border_color": Field(Color(), "Of the border."),
    "border": Field(Row("[width, color]", _LENGTH, Color()), "[width, color]."),
    "shadow": Field(
        Either(
            Row("[dx, dy, blur, color]", _NUMBER, _NUMBER, Number(0, 400), Color(), least=3),
            Truth(), Null(),
        ),
        "[dx, dy, blur, color], or true for a plain one.",
    ),
    "color": Field(Either(Color(), Null()), "Of the shape or the letters."),
    "shape": Field(Word(SHAPES), "Of an overlay without a picture."),
    "text": Field(Text(), "The words.", needed=True),
}  # fmt: skip

#: Properties of text that other nodes do not have, or have otherwise.
_STYLE: Final[dict[str, Field]] = {
    "font": Field(
        Either(_FONT, Many(_FONT, "a list of fonts", least=1), Null()),
        "A family, a .ttf or .otf file, or a list of them.",
    ),
    "size": Field(Number(1, 1000), "Of the font, in pixels."),
    "width": Field(Either(Number(1, 16384), Null()), "Lines are wrapped to it."),
    "height": Field(Either(Number(1, 16384), Null()), "Lines beyond it are cut."),
    "weight": Field(Either(Number(1, 1000), Word(WEIGHTS)), "A name or 1 to 1000."),
    "italic": Field(Truth(), "Slanted letters."),
    "color": Field(Color(), "Of the letters."),
    "align": Field(Word(ALIGNMENTS), "Of lines in their box."),
    "line_height": Field(Number(0.1, 20), "Distance of baselines, in sizes."),
    "outline_width": Field(Number(0, 200), "How far the outline reaches beyond the letters."),
    "outline_color": Field(Color(), "Of the outline."),
    "shadow": Field(
        Either(
            Row(
                "[dx, dy, blur, color]", Number(-1000, 1000), Number(-1000, 1000), Number(0, 100),
                Color(), least=3,
            ),
            Truth(), Null(),
        ),
        "[dx, dy, blur, color] of the letters, or true for a plain one.",
    ),
    "background": Field(Either(Color(), Null()), "Behind the text."),
    "padding": Field(
        Either(Number(0, 4096), Many(Number(0, 4096), "a list of 2 or 4 numbers", least=1)),
        "Between the background's edge and the text: one number, [horizontal, vertical] or "
        "[left, top, right, bottom].",
    ),
    "radius": Field(Number(0, 16384), "Of the background's corners."),
    "letter_spacing": Field(Number(-1000, 1000), "Between letters, in pixels."),
    "direction": Field(Word(DIRECTIONS), "In which the text runs."),
    "overflow": Field(Word(OVERFLOWS), "What becomes of lines that do not fit."),
}  # fmt: skip

_MARGIN = {"margin": Field(_NUMBER, "From the edges, where the position is a name.")}
_PIP = {
    "pip": Field(Truth(), "A picture in a picture: top right, 200 x 150, 20 from the edges."),
    "pip_position": Field(_PLACE, "Where it lies instead."),
    "pip_size": Field(_SIZE, "How large it is instead."),
}
_END = Word(("freeze", "hide"))
_OWN: Final[dict[str, dict[str, Field]]] = {
    "video": {
        "source": Field(
            Either(_FILE, Number(0, 1000, whole=True)),
            "A file, beside this one where its path is relative; a URL; a camera's number.",
            needed=True,
        ),
        **_PIP,
        "fps": Field(_RATE, "Of pictures that have no time of their own."),
        "offset": Field(_NUMBER, "Seconds of the scene at which it begins."),
        "speed": Field(Above(), "Seconds of the video in a second of the scene."),
        "loop": Field(Truth(), "Begin again at the end."),
        "end": Field(_END, "What shows after the end."),
        "stall": Field(_END, "What shows while a picture does not come."),
    },
    "image": {"source": Field(_FILE, "A picture file.", needed=True), **_PIP},
    "overlay": {"source": Field(_FILE, "A picture file; or leave it out and give a color.")},
    "text": {},
    "subtitles": {
        "source": Field(_FILE, "An SRT or WebVTT file, or the text of one.", needed=True),
        "offset": Field(_NUMBER, "Seconds of the scene at which they begin."),
    },
    "effect": {
        "filter": Field(Text("a filter's name", least=1), "Which filter.", needed=True),
        "input": Field(Text("the id of a node", least=1), "Left out: all that is below."),
        "params": Field(Object("the parameters", {}), "Of the filter."),
    },
    "group": {
        "canvas": Field(
            Row("[width, height]", Number(1, 16384), Number(1, 16384)), "Size of its inside."
        ),
        "nodes": Field(Kind(), "What is in it."),
    },
    "scene": {"scene": Field(Kind(), "What is in it.")},
}
_VALUE = Either(
    _NUMBER,
    Truth(),
    ColorText(),
    Many(Either(_NUMBER, Truth(), Color(), Null()), "a list", least=1),
)
_MOVES: Final[dict[str, Field]] = {
    "node": Field(Text("the id of a node", least=1), "Whose property.", needed=True),
    "property": Field(Text("a property's name", least=1), "Which one.", needed=True),
    "from": Field(_VALUE, "The value at first; left out, the one it has."),
    "to": Field(_VALUE, "The value at last."),
    "duration": Field(_LENGTH, "Seconds of one run."),
    "easing": Field(_EASING, "How the way is gone."),
    "keyframes": Field(
        Many(
            Row(
                "[seconds, value] or [seconds, value, easing]", _LENGTH, _VALUE,
                Either(_EASING, Null()), least=2,
            ),
            "a list of [seconds, value]", least=1,
        ),
        "[seconds, value] or [seconds, value, easing] in order, instead of from and to.",
    ),
    "delay": Field(_LENGTH, "Seconds before the first run."),
    "repeat": Field(Number(-1, whole=True), "How often it runs again; -1 for ever."),
    "yoyo": Field(Truth(), "Every second run goes backwards."),
    "start": Field(_NUMBER, "The scene's time that the delay counts from."),
}  # fmt: skip
_LAYOUT: Final[dict[str, Field]] = {
    "type": Field(Word(LAYOUTS), "How nodes are laid out.", needed=True),
    "nodes": Field(
        Either(
            Many(Text("the id of a node", least=1), "a list of ids", least=1),
            Number(1, 10_000, whole=True),
        ),
        "Ids in order; for a grid also how many cells.",
        needed=True,
    ),
    "gap": Field(_LENGTH, "Pixels between boxes."),
    "columns": Field(Number(1, 10_000, whole=True), "Of a grid."),
    "area": Field(_BOX, "[left, top, width, height]; left out, the whole scene."),
    "fit": Field(Word(FITS), "Given to the nodes."),
}


def _fields(type: str) -> dict[str, Field]:
    """The keys of a node of a type: its own, and its properties."""
    made = {"type": Field(Word((type,)), needed=True), "id": Field(Text("an id", least=1))}
    styled = issubclass(CLASSES[type], TextNode)
    for name in CLASSES[type].PROPERTIES:
        if name != "text" or type == "text":
            made[name] = _STYLE[name] if styled and name in _STYLE else _PROPERTIES[name]
    return made | _MARGIN | _OWN[type]


class Nodes(Kind):
    """A list of nodes, each by its type."""

    words = "a list of nodes"

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """Every node."""
        if not isinstance(value, list):
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")
            return
        for i, item in enumerate(value):
            self._node(item, f"{at}[{i}]", told)

    def _node(self, item: Any, at: str, told: list[str]) -> None:
        if not isinstance(item, dict):
            told.append(f"{at}: a node is an object with a type, {shown(item)} came.")
            return
        type = item.get("type")
        if type not in TYPES:
            hint = did_you_mean(type, TYPES) if isinstance(type, str) else ""
            listed = ", ".join(map(repr, TYPES))
            came = f"{shown(type)} came" if "type" in item else "none came"
            told.append(f"{at}.type: one of {listed} is expected, {came}. {hint}".rstrip())
            return
        node_kinds()[type].check(item, at, told)
        if type == "effect" and isinstance(item.get("filter"), str):
            check_effect(item, at, told)

    def schema(self) -> Schema:
        """A list of what $defs calls a node."""
        return {"type": "array", "items": {"$ref": "#/$defs/node"}}


@cache
def node_kinds() -> dict[str, Object]:
    """What a node of each type is."""
    kinds = {type: Object(f"a node of type {type!r}", _fields(type)) for type in CLASSES}
    kinds["group"].fields["nodes"] = Field(Nodes(), "What is in it.")
    kinds["scene"].fields["scene"] = Field(_Inside(), "As in a file of its own.", needed=True)
    kinds["effect"].fields["params"] = Field(_Params(), "Of the filter.")
    own = {"type": Field(Word(("animation",)), needed=True)}
    return kinds | {"animation": Object("an animation", own | _MOVES)}


class _Inside(Kind):
    """A scene inside a scene."""

    words = "a scene"

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """All that is in it."""
        inside_kind().check(value, at, told)

    def schema(self) -> Schema:
        """What $defs calls the inside of a scene."""
        return {"$ref": "#/$defs/inside"}


@cache
def scene_kind() -> Object:
    """What a whole file is."""
    fields = inside_kind().fields
    version = Field(fields["dala"].kind, fields["dala"].about, needed=True)
    return Object("a scene", fields | {"dala": version})


@cache
def inside_kind() -> Object:
    """What a scene is, in a file of its own or inside another."""
    side = Number(1, 16384, whole=True)
    return Object("a scene", {
        "$schema": Field(Text(), "Where the schema of this format is, for editors."),
        "dala": Field(Number(1, VERSION, whole=True), "Version of the format."),
        "width": Field(side, "Of the picture.", needed=True),
        "height": Field(side, "Of the picture.", needed=True),
        "fps": Field(_RATE, "Frames a second: 30, 29.97 or '30000/1001'."),
        "background": Field(Color(), "Below everything; 'transparent' keeps alpha."),
        "blend_space": Field(Word(("srgb", "linear")), "In which colours are mixed."),
        "duration": Field(Either(Above(), Null()), "Seconds that are rendered."),
        "nodes": Field(Nodes(), "Back to front.", needed=True),
        "animations": Field(
            Many(Object("an animation", _MOVES), "a list of animations"), "What moves."
        ),
        "layouts": Field(
            Many(Object("a layout", _LAYOUT), "a list of layouts"), "Nodes laid out as one."
        ),
    })  # fmt: skip


# effects ----------------------------------------------------------------------------------------
class _Params(Object):
    """The parameters of a filter; which there are, the filter says."""

    def __init__(self) -> None:
        super().__init__("the parameters", {})

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """An object; see :func:`check_effect` for the rest."""
        if not isinstance(value, dict):
            told.append(f"{at}: an object of parameters is expected, {shown(value)} came.")

    def schema(self) -> Schema:
        """Any object."""
        return {"type": "object"}


def filter_kind(filter: str) -> Object:
    """What the parameters of a filter are.

    Raises:
        UnknownKernel: there is no such filter.
    """
    known = parameters(filter)
    fields = {name: Field(_param(known[name])) for name in known}
    return Object(f"the parameters of {filter!r}", fields)


def _param(known: Parameter) -> Kind:
    default = known.default
    if isinstance(default, bool):
        return Truth()
    if isinstance(default, str):
        return Text()
    if isinstance(default, int):
        return _NUMBER
    if isinstance(default, float):
        return Either(_NUMBER, Many(_NUMBER, "a list of numbers"))
    if isinstance(default, tuple):
        return Either(Many(_NUMBER, "a list of numbers"), Text())
    return Kind()


def check_effect(item: dict[str, Any], at: str, told: list[str]) -> None:
    """The filter there must be, its parameters, and nothing twice."""
    try:
        kind = filter_kind(item["filter"])
    except (ValueError, KeyError) as error:
        told.append(f"{at}.filter: {unprefixed(error)}")
        return
    params = item.get("params", {})
    if isinstance(params, dict):
        kind.check(params, f"{at}.params", told)
    for name in kind.fields:
        if name in item and name in _PROPERTIES:
            told[:] = [line for line in told if not line.startswith(f"{join(at, name)}: ")]
            told.append(
                f"{join(at, name)}: it is a parameter of {item['filter']!r}. Write it into params."
            )


# schema -----------------------------------------------------------------------------------------
def schema() -> Schema:
    """The JSON Schema (draft 2020-12) of scene files."""
    definitions: Schema = {
        "color": Color.definition(),
        "inside": inside_kind().schema(),
        "easing": Either(*_EASING.kinds).schema(),
        "node": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": list(TYPES)}},
            "allOf": [
                {
                    "if": {"properties": {"type": {"const": type}}},
                    "then": {"$ref": f"#/$defs/{type}"},
                }
                for type in TYPES
            ],
        },
    }
    definitions |= {type: kind.schema() for type, kind in node_kinds().items()}
    definitions["effect"]["properties"]["filter"] |= {
        "anyOf": [{"enum": names()}, {"type": "string"}]
    }
    definitions["effect"]["allOf"] = [
        {
            "if": {"properties": {"filter": {"const": name}}},
            "then": {"properties": {"params": filter_kind(name).schema()}},
        }
        for name in names()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scene of dala",
        **scene_kind().schema(),
        "$defs": definitions,
    }
