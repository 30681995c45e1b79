"""Declarations of node classes: properties, and arguments of the builder methods.

A node class declares each :class:`Property` once. The builder method of the class (its signature
and docstring), attribute access, checks, animation, scene files and their schema follow from it.
"""

from __future__ import annotations

import builtins
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, overload

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
