"""The nodes of scenes and their properties, as the page gets them."""

from __future__ import annotations

import inspect
from typing import Final

from dala.errors import ParameterError
from dala.media.scene.nodes import builtin as builtin
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.properties import REQUIRED, Argument, PairProperty, Property
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.studio.catalogue.parameters import Json, JsonObject, bounds, plain, title_of

#: Properties that every node has in its list of nodes, and not among its controls.
_HIDDEN: Final = ("id",)
#: Properties that are pairs of others, such as ``size``; their parts are listed instead.
_NUMBERS: Final = {"position": "point"}


def nodes() -> list[JsonObject]:
    """Return every type of node that a scene file may have.

    >>> "text" in [row["type"] for row in nodes()]
    True
    """
    made: list[JsonObject] = []
    for name, cls in NODE_TYPES.items():
        params: list[Json] = []
        for key, argument in cls.ARGUMENTS.items():
            if argument.key != "":
                params.append(_argument(argument.key or key, argument))
        params += [
            _property(key, item)
            for key, item in cls.PROPERTIES.items()
            if item.saved and key not in _HIDDEN
        ]
        made.append({
            "type": name,
            "title": title_of(name),
            "doc": inspect.cleandoc(cls.__doc__ or "").partition("\n")[0],
            "holds": cls.HOLDS,
            "params": params,
        })  # fmt: skip
    return made


def _argument(name: str, argument: Argument) -> JsonObject:
    default = None if argument.default is REQUIRED else argument.default
    made = _typed(name, argument.type, default, "")
    return made | {"doc": argument.description, "required": argument.required, "fixed": True}


def _property(name: str, item: Property) -> JsonObject:
    made = _typed(name, item.type, item.default, item.unit or "")
    if item.unit:
        made["unit"] = item.unit
    if isinstance(item, PairProperty):
        made["parts"] = list(item.names)
    made |= {"doc": item.description, "required": item.required}
    made["animatable"] = bool(item.animatable)
    return made


def _typed(name: str, kind: t.PropertyType, default: object, unit: str) -> JsonObject:
    made: JsonObject = {"name": name, "type": "any", "default": _dumped(kind, default)}
    match kind:
        case t.NumberType():
            limits = bounds(default, kind.low, kind.high, whole=False, unit=unit)
            made |= {"type": "number", **limits}
        case t.BooleanType():
            made["type"] = "bool"
        case t.ChoiceType():
            made |= {"type": "choice", "choices": list(kind.choices)}
        case t.ColorType():
            made |= {"type": "color", "alpha": True}
        case t.StringType():
            made["type"] = "text"
        case t.PathType():
            made["type"] = "picture" if name in ("image", "picture") else "path"
        case t.PlaceType():
            made["type"] = "point"
        case t.PairType():
            made |= {"type": "numbers", "size": 2}
    return made


def _dumped(kind: t.PropertyType, default: object) -> Json:
    try:
        return plain(kind.dump(default))
    except (ParameterError, TypeError, AttributeError, ValueError):
        return None
