"""The format of scene files: the keys that each part may have, derived from the declarations.

Loading checks a file against these types, and :func:`schema` prints them as JSON Schema.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, ClassVar, Final

from dala.budget import check_deadline
from dala.extras import pip_install
from dala.media.filters.declarations import filter_names
from dala.media.filters.sizes import takes_size, turned
from dala.media.scene.file.cost import walk
from dala.media.scene.file.follows import FOLLOW
from dala.media.scene.nodes import builtin as builtin
from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes.effect import params_object
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.paints import JSON_GRADIENT
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.media.scene.nodes.video import RATE
from dala.media.scene.options import DuckOptions, LayoutOptions, LevelOptions, fields_of
from dala.media.sources.easing import EASINGS, easing

#: The version of the format that is written, and the newest that is read.
VERSION: Final = 2


def check_version(data: j.JsonValue, problems: list[str]) -> None:
    """Report a file of a version that is newer than this one."""
    version = data.get("dala") if isinstance(data, dict) else None
    if isinstance(version, int | float) and version > VERSION:
        problems.append(
            f"dala: this is version {version:g} of the format, and {VERSION} is the newest that "
            f"this version of Dala reads. Update it: {pip_install(upgrade=True)}"
        )


def newest(data: Any) -> Any:
    """Return the contents of a scene file as the newest version has them; its own unchanged.

    The contents need not be checked before.

    >>> effect = {"type": "effect", "filter": "crop", "params": {"size": [90, 160]}}
    >>> newest({"dala": 1, "nodes": [effect]})["nodes"][0]["params"]
    {'size': [160, 90]}
    """
    if not isinstance(data, dict) or data.get("dala") != 1:
        return data
    made = copy.deepcopy(data)
    _turn_sizes(made)
    made["dala"] = VERSION
    return made


def _turn_sizes(scene: j.JsonItem) -> None:
    """Turn the sizes of a scene's effects round, and of those in scenes inside it."""
    sized, animations = set(), _dicts(scene.get("animations"))
    for _, item in walk(scene):
        kind, filter = item.get("type"), item.get("filter")
        if kind == "effect" and isinstance(filter, str) and takes_size(filter):
            sized.add(str(item.get("id")))
            if isinstance(params := item.get("params"), dict) and "size" in params:
                params["size"] = turned(params["size"])
        elif kind == "animation":
            animations.append(item)
        elif kind == "scene" and isinstance(inner := item.get("scene"), dict):
            _turn_sizes(inner)
    for item in animations:
        if item.get("property") == "size" and str(item.get("node")) in sized:
            _turn_animation(item)


def _turn_animation(item: j.JsonItem) -> None:
    for name in ("from", "to"):
        if name in item:
            item[name] = turned(item[name])
    frames: Any = item.get("keyframes")
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, list) and len(frame) > 1:
            frame[1] = turned(frame[1])


def _dicts(value: j.JsonValue) -> list[j.JsonItem]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def copied(value: j.JsonValue, made: dict[int, j.JsonValue]) -> j.JsonValue:
    """Return a copy of the lists and objects of a value; repeated objects stay one."""
    if not isinstance(value, dict | list):
        return copy.copy(value)
    if id(value) in made:
        return made[id(value)]
    check_deadline("load_scene")
    if isinstance(value, list):
        items: list[j.JsonValue] = []
        made[id(value)] = items
        for each in value:
            items.append(copied(each, made))  # half as many frames of the stack
        return items
    found: dict[str, j.JsonValue] = {}
    made[id(value)] = found
    for key, each in value.items():
        found[key] = copied(each, made)
    return found


LAYOUTS: Final = ("side_by_side", "stack", "grid")

_NUMBER = j.JsonNumber()
_LENGTH = j.JsonNumber(0.0)
_ID = j.JsonString("the id of a node", shortest=1)


class _EasingType(j.OneOf):
    """An easing, by name or as a list."""

    def schema(self) -> j.Schema:
        """Return a reference to the definition of easings."""
        return {"$ref": "#/$defs/easing"}


_EASING = _EasingType(
    j.ParsedString("an easing such as 'ease-out'", EASINGS, easing),
    j.ListOf(j.OneOf(j.JsonString(), _NUMBER), "a list such as ['steps', 4]", shortest=1),
)
_VALUE = j.OneOf(
    _NUMBER,
    j.JsonBoolean(),
    j.JsonString("a color, path data, or a word that the property takes"),
    JSON_GRADIENT,
    j.ListOf(j.OneOf(_NUMBER, j.JsonBoolean(), j.JsonColor(), j.JsonNull()), "a list", shortest=1),
)
_KEYFRAME = j.FixedList(
    "[seconds, value] or [seconds, value, easing]",
    _LENGTH,
    _VALUE,
    j.OneOf(_EASING, j.JsonNull()),
    shortest=2,
)
#: The level of a sound that an animation follows.
LEVEL: Final[dict[str, j.Field]] = {
    "audio": j.Field(_ID, "Id of the node that is heard.", required=True),
    **fields_of(LevelOptions),
}
ANIMATION: Final[dict[str, j.Field]] = {
    "node": j.Field(_ID, "Id of the node.", required=True),
    "property": j.Field(
        j.JsonString("a property's name", shortest=1), "Name of its property.", required=True
    ),
    "from": j.Field(_VALUE, "First value; by default the current one."),
    "to": j.Field(_VALUE, "Last value."),
    "duration": j.Field(_LENGTH, "Duration of one run, in seconds."),
    "easing": j.Field(_EASING, "Easing function."),
    "keyframes": j.Field(
        j.ListOf(_KEYFRAME, "a list of [seconds, value]", shortest=1),
        "[seconds, value] or [seconds, value, easing] in order, instead of from and to.",
    ),
    "delay": j.Field(_LENGTH, "Seconds before the first run."),
    "repeat": j.Field(j.JsonNumber(-1, integer=True), "Number of further runs; -1 for no end."),
    "yoyo": j.Field(j.JsonBoolean(), "Whether every second run goes backwards."),
    "start": j.Field(_NUMBER, "Scene time that the delay counts from, in seconds."),
    "level": j.Field(j.JsonObject("a level", LEVEL), "The level of a sound to follow, not time."),
}
DUCK: Final[dict[str, j.Field]] = {
    "music": j.Field(_ID, "Id of the node that becomes quieter.", required=True),
    "under": j.Field(
        j.OneOf(_ID, j.ListOf(_ID, "a list of ids", shortest=1)),
        "Ids of the voices.",
        required=True,
    ),
    **fields_of(DuckOptions),
}
LAYOUT: Final[dict[str, j.Field]] = {
    "type": j.Field(j.JsonChoice(LAYOUTS), "The layout.", required=True),
    "nodes": j.Field(
        j.OneOf(
            j.ListOf(_ID, "a list of ids", shortest=1),
            j.JsonNumber(1, 10_000, integer=True),
        ),
        "Ids in order; for a grid also the number of cells.",
        required=True,
    ),
    "columns": j.Field(j.JsonNumber(1, 10_000, integer=True), "Number of columns of a grid."),
    **fields_of(LayoutOptions),
}


def type_names() -> tuple[str, ...]:
    """Return the types that an entry of "nodes" may have."""
    return tuple(sorted((*NODE_TYPES, "animation")))


def node_object(type: str) -> j.JsonObject:
    """Return the keys of a node of a type, as its class declares them."""
    if type == "animation":
        own = {"type": j.Field(j.JsonChoice(("animation",)), required=True)}
        return j.JsonObject("an animation", own | ANIMATION)
    return _object_of(NODE_TYPES[type])


@lru_cache
def _object_of(cls: type[Node]) -> j.JsonObject:
    type = cls.type
    fields = {"type": j.Field(j.JsonChoice((type,)), required=True)}
    fields |= {name: p.field() for name, p in cls.PROPERTIES.items() if p.saved}
    for name, argument in cls.ARGUMENTS.items():
        if argument.key != "":
            fields[argument.key or name] = argument.field()
    if cls.EXTRA:
        fields[cls.EXTRA] = j.Field(_ParamsType(), cls.EXTRA_DESCRIPTION)
    if cls.HOLDS == "nodes":
        fields["nodes"] = j.Field(_NODES, "The nodes inside, back to front.")
    elif cls.HOLDS == "scene":
        fields["scene"] = j.Field(_InnerSceneType(), "The inner scene.", required=True)
    return j.JsonObject(f"a node of type {type!r}", fields)


class _NodeType(j.JsonType):
    """A node of any type."""

    expected = "an object with a type"
    form = dict
    SCHEMA: ClassVar[j.Schema] = {"$ref": "#/$defs/node"}

    def check_inside(self, value: j.JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for the node, by its type."""
        type = value.get("type")
        known = type_names()
        if type not in known:
            kind = j.JsonChoice(known)
            got = j.format_value(type) if "type" in value else "nothing"
            line = f"{at}.type: must be {kind.expected}, got {got}. {kind.hint(type)}"
            problems.append(line.rstrip())
            return
        begin = len(problems)
        node_object(type).check(value, at, problems)
        if type in NODE_TYPES and NODE_TYPES[type].EXTRA and isinstance(value.get("filter"), str):
            problems[begin:] = _check_effect(value, NODE_TYPES[type], at, problems[begin:])


_NODES: Final = j.ListOf(_NodeType(), "a list of nodes")


class _InnerSceneType(j.JsonType):
    """A scene inside a scene."""

    expected = "a scene"
    SCHEMA: ClassVar[j.Schema] = {"$ref": "#/$defs/inside"}

    def check(self, value: j.JsonValue, at: str, problems: list[str]) -> None:
        """Check the inner scene."""
        scene_object(inner=True).check(value, at, problems)


def scene_object(*, inner: bool = False) -> j.JsonObject:
    """Return the keys of a scene file, or of a scene inside another, which needs no version."""
    version = j.JsonNumber(1, VERSION, integer=True)
    side = j.JsonNumber(1, 16384, integer=True)
    return j.JsonObject("a scene", {
        "$schema": j.Field(j.JsonString(), "Location of this schema, for editors."),
        "dala": j.Field(version, "Version of the format.", required=not inner),
        "width": j.Field(side, "Width of the picture, in pixels.", required=True),
        "height": j.Field(side, "Height of the picture, in pixels.", required=True),
        "fps": j.Field(RATE, "Frames per second: 30, 29.97 or '30000/1001'."),
        "background": j.Field(j.JsonColor(), "Background color; 'transparent' keeps alpha."),
        "blend_space": j.Field(
            j.JsonChoice(("srgb", "linear")), "Color space that colors are blended in."
        ),
        "duration": j.Field(
            j.OneOf(j.PositiveNumber(), j.JsonNull()), "Duration of the video, in seconds."
        ),
        "nodes": j.Field(_NODES, "The nodes, back to front.", required=True),
        "animations": j.Field(
            j.ListOf(j.JsonObject("an animation", ANIMATION), "a list of animations"), "Animations."
        ),
        "layouts": j.Field(
            j.ListOf(j.JsonObject("a layout", LAYOUT), "a list of layouts"), "Layouts of nodes."
        ),
        "follows": j.Field(
            j.ListOf(FOLLOW, "a list of nodes that follow"), "Nodes that follow what a model finds."
        ),
        "ducks": j.Field(
            j.ListOf(j.JsonObject("a rule of ducking", DUCK), "a list of rules"),
            "Music that becomes quieter under voices.",
        ),
    })  # fmt: skip


# effects ----------------------------------------------------------------------------------------
class _ParamsType(j.JsonType):
    """The parameters of a filter; :func:`_check_effect` checks them by the filter."""

    expected = "an object of parameters"
    form = dict
    SCHEMA: ClassVar[j.Schema] = {"type": "object"}


def _check_effect(item: j.JsonItem, cls: type[Node], at: str, problems: list[str]) -> list[str]:
    """Return the mistakes of a node with those in its filter: the filter exists, its parameters
    are right, and they are not written as properties.
    """
    try:
        params_type = params_object(item["filter"])
    except (ValueError, KeyError) as error:
        return [*problems, f"{at}.filter: {j.without_call(error)}"]
    params = item.get(cls.EXTRA, {})
    if isinstance(params, dict):
        params_type.check(params, f"{at}.{cls.EXTRA}", problems)
    properties = {name for known in NODE_TYPES.values() for name in known.PROPERTIES}
    for name in params_type.fields:
        if name in item and name in properties:
            problems = [line for line in problems if not line.startswith(f"{j.join(at, name)}: ")]
            problems.append(
                f"{j.join(at, name)}: it is a parameter of {item['filter']!r}. Move it to "
                f"{cls.EXTRA}."
            )
    return problems


# schema -----------------------------------------------------------------------------------------
def schema() -> j.Schema:
    """Return the JSON Schema (draft 2020-12) of scene files.

    >>> schema()["required"]
    ['dala', 'width', 'height', 'nodes']
    """
    types = type_names()
    definitions: j.Schema = {
        "color": j.JsonColor.definition(),
        "inside": scene_object(inner=True).schema(),
        "easing": j.OneOf(*_EASING.options).schema(),
        "node": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": list(types)}},
            "allOf": [
                {
                    "if": {"properties": {"type": {"const": type}}},
                    "then": {"$ref": f"#/$defs/{type}"},
                }
                for type in types
            ],
        },
    }
    definitions |= {type: node_object(type).schema() for type in types}
    filters = filter_names()
    definitions["effect"]["properties"]["filter"] |= {
        "anyOf": [{"enum": filters}, {"type": "string"}]
    }
    definitions["effect"]["allOf"] = [
        {
            "if": {"properties": {"filter": {"const": name}}},
            "then": {"properties": {"params": params_object(name).schema()}},
        }
        for name in filters
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dala scene",
        **scene_object().schema(),
        "$defs": definitions,
    }
