"""Declarations of node classes: properties, and arguments of the builder methods.

A node class declares each :class:`Property` once. The builder method of the class (its signature
and docstring), attribute access, checks, animation, scene files and their schema follow from it.
"""

from __future__ import annotations

import builtins
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, overload

from dala.arguments import Flag
from dala.errors import ParameterError
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import Field
from dala.media.scene.nodes.property_types import PairType, PropertyType, Value

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

#: The default of an argument that has to be given.
REQUIRED: Final[object] = type("Required", (), {"__repr__": lambda self: "..."})()


@dataclass(eq=False, slots=True)
class Argument:
    """An argument of a builder method that is not a property: it is fixed once the node exists.

    Args:
        type: what it accepts.
        description: one sentence, for docs and the schema.
        default: the value if left out; ``REQUIRED`` if it cannot be.
        key: its name in scene files if that differs; "" if files do not have it.
        required: whether scene files need it; by default, if it has no default.
    """

    type: PropertyType
    description: str
    _: KW_ONLY
    default: Value = None
    key: str | None = None
    required: bool | None = None

    def field(self) -> Field:
        """Return the key of scene files that stands for it."""
        needed = self.default is REQUIRED if self.required is None else self.required
        return Field(self.type.json, self.description, required=needed)


@dataclass(eq=False, slots=True)
class Property:
    """A property of a node class: ``node.name`` reads it, assigning checks and sets it.

    Args:
        default: the value if left out.
        type: what it accepts.
        description: one sentence, for docs and the schema.
        unit: of its numbers, such as "pixels".
        animatable: whether ``add_animation`` takes it; by default, if the type can be interpolated.
        order: whether it decides which nodes are drawn, and in which order.
        moves: whether it changes nothing but where the node is.
        saved: whether scene files have it.
        drawn: whether pictures depend on it; False for what is only heard.
        required: whether builder methods and scene files insist on it.
    """

    default: Value
    type: PropertyType
    description: str
    _: KW_ONLY
    unit: str | None = None
    animatable: bool | None = None
    order: bool = False
    moves: bool = False
    saved: bool = True
    drawn: bool = True
    required: bool = False
    name: str = field(default="", init=False)
    low: float = field(init=False)
    high: float = field(init=False)

    def __post_init__(self) -> None:
        self.low, self.high = self.type.low, self.type.high
        if self.animatable is None:
            self.animatable = self.type.animatable

    def __set_name__(self, owner: builtins.type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, node: None, owner: builtins.type) -> Property: ...
    @overload
    def __get__(self, node: Node, owner: builtins.type) -> Value: ...
    def __get__(self, node: Node | None, owner: builtins.type) -> Value:
        if node is None:
            return self
        item = node.PROPERTIES.get(self.name)
        if item is self:
            return self.read(node)
        if item is None and not node.has(self.name):
            kind = builtins.type(node).__name__
            raise AttributeError(f"{kind} has no property {self.name!r}", name=self.name)
        return node.get(self.name)

    def __set__(self, node: Node, value: Value) -> None:
        node.set(self.name, value)

    def read(self, node: Node) -> Value:
        """Return the property's value of a node."""
        return node.property_values[self.name]

    @property
    def summary(self) -> str:
        """The description with the unit."""
        if self.unit is None:
            return self.description
        return f"{self.description.rstrip('.')}, in {self.unit}."

    def field(self) -> Field:
        """Return the key of scene files that stands for it."""
        return Field(self.type.json, self.summary, required=self.required)


class PairProperty(Property):
    """Two properties under one name: ``size`` is ``width`` and ``height``."""

    __slots__ = ("names",)

    type: PairType

    def __init__(self, first: str, second: str, type: PairType, description: str) -> None:
        super().__init__(None, type, description)
        self.names = first, second

    def read(self, node: Node) -> Value:
        """Return the values of both parts of a node."""
        values, (first, second) = node.property_values, self.names
        return values[first], values[second]

    def assign(self, node: Node, value: Value) -> None:
        """Set both parts of a node, checked."""
        node.update(**{self.name: value})


class PositionProperty(PairProperty):
    """The position of a node; a tuple of two numbers, as animations set it, skips ``update``."""

    __slots__ = ()

    def assign(self, node: Node, value: Value) -> None:
        """Set x and y, checked."""
        if type(value) is tuple and len(value) == 2:
            node.move_to(*value)
        else:
            super().assign(node, value)

    __set__ = assign


#: Defaults of a picture in picture.
PIP_POSITION: Final = "top-right"
PIP_SIZE: Final = (200.0, 150.0)
PIP_MARGIN: Final = 20.0

#: The arguments, for the builder methods of node types that can be a picture in picture.
PIP_ARGUMENTS: Final[dict[str, Argument]] = {
    "pip": Argument(
        t.BooleanType(),
        "True for a picture in picture: top right, 200x150, 20 pixels from the edges; smaller in "
        "scenes without room for it.",
    ),
    "pip_position": Argument(t.PlaceType(), "Position of the picture in picture."),
    "pip_size": Argument(t.SIZE, "(width, height) of the picture in picture."),
}


def _fitted(canvas: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """Return the default margin and size, smaller in scenes that have no room for them.

    >>> _fitted((1280, 720)), _fitted((100, 100))
    ((20.0, (200.0, 150.0)), (10.0, (80.0, 60.0)))
    """
    margin = min(PIP_MARGIN, *(side / 10 for side in canvas))
    room = ((side - 2 * margin) / wanted for side, wanted in zip(canvas, PIP_SIZE, strict=True))
    scale = min(1.0, *room)
    return margin, (PIP_SIZE[0] * scale, PIP_SIZE[1] * scale)


def apply_pip(given: t.Values, call: str, canvas: tuple[float, float]) -> None:
    """Replace the arguments of a picture in picture in those of a builder call.

    ``canvas`` is the size of the scene.

    >>> given = {"pip": True}
    >>> apply_pip(given, "add_video", (1280, 720))
    >>> given
    {'margin': 20.0, 'size': (200.0, 150.0), 'position': 'top-right'}
    """
    for name in [k for k, v in given.items() if v is None]:
        del given[name]
    enabled = given.pop("pip", None)
    position, size = given.pop("pip_position", None), given.pop("pip_size", None)
    if enabled is None:
        enabled = position is not None or size is not None
    Flag().check(call, "pip", enabled)
    if not enabled:
        if position is not None or size is not None:
            raise ParameterError(
                f"{call}: pip_position and pip_size are for a picture in picture, got pip=False. "
                "Leave pip out, or use position and size."
            )
        return
    if position is not None and given.get("position") is not None:
        raise ParameterError(f"{call}: give position or pip_position, not both.")
    if size is not None and given.get("size") is not None:
        raise ParameterError(f"{call}: give size or pip_size, not both.")
    margin, fitted = _fitted(canvas)
    given.setdefault("margin", margin)
    if size is not None or not {"size", "width", "height"} & given.keys():
        given["size"] = fitted if size is None else size
    if position is not None or not {"position", "x", "y"} & given.keys():
        given["position"] = PIP_POSITION if position is None else position
