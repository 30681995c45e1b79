"""Properties of nodes: how each is checked, and what has to be done again when it changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dala.errors import ColorError, ParameterError, did_you_mean
from dala.gpu.color import color_to_rgba

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node

#: Positions and sizes are within this many pixels.
FAR: Final = 1_000_000.0
#: Anchors and places by name, as shares of a box.
PLACES: Final[dict[str, tuple[float, float]]] = {
    "top-left": (0.0, 0.0), "top": (0.5, 0.0), "top-right": (1.0, 0.0),
    "left": (0.0, 0.5), "center": (0.5, 0.5), "right": (1.0, 0.5),
    "bottom-left": (0.0, 1.0), "bottom": (0.5, 1.0), "bottom-right": (1.0, 1.0),
}  # fmt: skip

#: Given a value and how its error begins ("add_image: opacity"), the value as it is kept.
Check = Callable[[Any, str], Any]


class Property:
    """One property: ``node.name`` is ``node.get("name")``, assigning to it ``node.set``."""

    __slots__ = ("check", "default", "high", "low", "moves", "name", "order")

    def __init__(
        self, default: Any, check: Check, *, order: bool = False, moves: bool = False
    ) -> None:
        self.default = default
        self.check = check
        #: Plain numbers from here to there need no check; none do where the first is the higher.
        bounds: tuple[float, float] = getattr(check, "bounds", (1.0, 0.0))
        self.low, self.high = bounds
        #: True when it decides which nodes are drawn, and after which.
        self.order = order
        #: True when nothing but the place follows from it.
        self.moves = moves
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Node | None, owner: type) -> Any:
        if node is None:
            return self
        item = node.PROPERTIES.get(self.name)
        if item is self:
            return self.read(node)
        if item is None and not node.has(self.name):
            kind = type(node).__name__
            raise AttributeError(f"{kind} has no property {self.name!r}", name=self.name)
        return node.get(self.name)

    def __set__(self, node: Node, value: Any) -> None:
        node.set(self.name, value)

    def read(self, node: Node) -> Any:
        """Its value for a node."""
        return node._values[self.name]


class Parts(Property):
    """Two properties under one name: ``position`` is ``x`` and ``y``."""

    __slots__ = ("names", "words")

    def __init__(self, first: str, second: str, *, words: str) -> None:
        super().__init__(None, lambda value, call: value)
        self.names = first, second
        self.words = words

    def read(self, node: Node) -> Any:
        """The values of its parts for a node."""
        values, (first, second) = node._values, self.names
        return values[first], values[second]

    def assign(self, node: Node, value: Any) -> None:
        """Sets its parts for a node, checked."""
        node.update(**{self.name: value})

    def split(self, value: Any, call: str) -> dict[str, Any]:
        """The single properties that a value stands for."""
        if value is None:
            return dict.fromkeys(self.names)
        items = sequence(value)
        if items is None or len(items) != len(self.names):
            raise ParameterError(f"{call} is {self.words}, {value!r} came.")
        return dict(zip(self.names, items, strict=True))


class Place(Parts):
    """A position, which most frames set for most nodes that change: a pair goes the short way."""

    __slots__ = ()

    def assign(self, node: Node, value: Any) -> None:
        """Sets x and y, checked."""
        if type(value) is tuple and len(value) == 2:
            node._move(*value)
        else:
            super().assign(node, value)

    __set__ = assign


def sequence(value: Any) -> tuple[Any, ...] | None:
    """The items of a tuple, list or array; None for anything else."""
    if isinstance(value, str | bytes | dict):
        return None
    try:
        return tuple(value)
    except TypeError:
        return None


# checks -----------------------------------------------------------------------------------------
def number(low: float = -FAR, high: float = FAR, *, optional: bool = False) -> Check:
    """A finite number within bounds; None too, where it may be left out."""

    def check(value: Any, call: str) -> float | None:
        if value is None and optional:
            return None
        try:
            found = math.nan if isinstance(value, bool | str) else float(value)
        except (TypeError, ValueError):
            found = math.nan
        if low <= found <= high:
            return found
        end = " or more" if high == FAR else f" to {high:g}"
        bounds = "" if (low, high) == (-FAR, FAR) else f" of {low:g}{end}"
        may = " or None" if optional else ""
        raise ParameterError(f"{call} is a number{bounds}{may}, {value!r} came.")

    check.bounds = low, high  # type: ignore[attr-defined]
    return check


def truth(value: Any, call: str) -> bool:
    """True or False."""
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ParameterError(f"{call} is True or False, {value!r} came.")


def one_of(words: Iterable[str]) -> Check:
    """One of some words; the nearest is offered otherwise."""
    known = tuple(words)

    def check(value: Any, call: str) -> str:
        if isinstance(value, str) and value in known:
            return value
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        listed = ", ".join(map(repr, known))
        raise ParameterError(f"{call} is one of {listed}; {value!r} came. {hint}".rstrip())

    return check


def color(value: Any, call: str) -> tuple[int, int, int, int]:
    """A colour as (r, g, b, a); numbers between whole ones, as animations make, are rounded."""
    items = sequence(value)
    if items is not None and any(isinstance(i, float) for i in items):
        value = tuple(round(i) if isinstance(i, float) and math.isfinite(i) else i for i in items)
    try:
        r, g, b, a = color_to_rgba(value)
    except ColorError as error:
        raise error.within(call) from None
    return r, g, b, a


def optional_color(value: Any, call: str) -> tuple[int, int, int, int] | None:
    """A colour, or None."""
    return None if value is None else color(value, call)


def anchor(value: Any, call: str) -> tuple[float, float]:
    """A point of a box as shares of its size, or by name."""
    if isinstance(value, str):
        return PLACES[one_of(PLACES)(value, call)]
    items = sequence(value)
    if items is None or len(items) != 2:
        raise ParameterError(
            f"{call} is a name such as 'center' or two shares of the size such as (0.5, 1), "
            f"{value!r} came."
        )
    across, down = (number(-1000.0, 1000.0)(item, call) for item in items)
    return across, down


def crop(value: Any, call: str) -> tuple[float, float, float, float] | None:
    """Left, top, width and height in pixels of the picture, or None for all of it."""
    if value is None:
        return None
    items = sequence(value)
    if items is None or len(items) != 4:
        raise ParameterError(
            f"{call} is (left, top, width, height) in pixels of the picture, {value!r} came."
        )
    left, top = (number(0.0)(item, call) for item in items[:2])
    width, height = (number(0.0)(item, call) for item in items[2:])
    if width <= 0 or height <= 0:
        raise ParameterError(f"{call} must have a width and height above 0, {value!r} came.")
    return left, top, width, height


def shadow(value: Any, call: str) -> tuple[float, float, float, tuple[int, int, int, int]] | None:
    """Across, down, blur and colour, or None; True is a plain one."""
    if value is None or value is False:
        return None
    if value is True:
        return 0.0, 4.0, 12.0, (0, 0, 0, 128)
    items = sequence(value)
    if items is None or len(items) not in (3, 4):
        raise ParameterError(
            f"{call} is (dx, dy, blur) or (dx, dy, blur, color), True or None; {value!r} came."
        )
    dx, dy = (number()(item, call) for item in items[:2])
    blur = number(0.0, 400.0)(items[2], f"{call}: blur")
    return dx, dy, blur, color(items[3] if len(items) == 4 else (0, 0, 0, 128), call)
