"""Where nodes are on the picture: boxes, and the node under a point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.scene import Scene

Point = tuple[float, float]


@dataclass(frozen=True)
class Spot:
    """A map from the coordinates of a group's content to those of the scene: p -> m p + t."""

    xx: float = 1.0
    xy: float = 0.0
    yx: float = 0.0
    yy: float = 1.0
    tx: float = 0.0
    ty: float = 0.0

    def out(self, x: float, y: float) -> Point:
        """Return a point in scene coordinates."""
        return self.xx * x + self.xy * y + self.tx, self.yx * x + self.yy * y + self.ty

    def back(self, dx: float, dy: float) -> Point:
        """Return a distance of the scene in the group's coordinates."""
        size = self.xx * self.yy - self.xy * self.yx
        if abs(size) < 1e-12:
            return 0.0, 0.0
        return (self.yy * dx - self.xy * dy) / size, (self.xx * dy - self.yx * dx) / size

    def inside(self, x: float, y: float) -> Point:
        """Return a point of the scene in the group's coordinates."""
        return self.back(x - self.tx, y - self.ty)


def _inner(node: Node, outer: Spot) -> Spot:
    """Return the map of a node's content, whose coordinates start at its top left."""
    left, top, width, height = node.box
    natural = node.natural()
    sx = width / natural[0] if natural[0] else 1.0
    sy = height / natural[1] if natural[1] else 1.0
    values = node.property_values
    angle = math.radians(values.get("rotation", 0.0))
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = values.get("x", left), values.get("y", top)
    # Scale, move the box to its place, rotate about the anchor.
    ox, oy = left - x, top - y
    tx, ty = x + cos * ox - sin * oy, y + sin * ox + cos * oy
    xx, xy, yx, yy = cos * sx, -sin * sy, sin * sx, cos * sy
    ax, ay = outer.out(tx, ty)
    return Spot(
        outer.xx * xx + outer.xy * yx,
        outer.xx * xy + outer.xy * yy,
        outer.yx * xx + outer.yy * yx,
        outer.yx * xy + outer.yy * yy,
        ax,
        ay,
    )


def spot_of(node: Node) -> Spot:
    """Return the map from the coordinates that a node's position is in to those of the scene."""
    chain: list[Node] = []
    parent = node.parent
    while parent is not None and parent.parent is not None:
        chain.append(parent)
        parent = parent.parent
    spot = Spot()
    for group in reversed(chain):
        spot = _inner(group, spot)
    return spot


def corners(node: Node) -> list[Point]:
    """Return the corners of a node's box in scene coordinates, clockwise from the top left."""
    spot = _inner(node, spot_of(node))
    width, height = _size(node)
    return [spot.out(x, y) for x, y in ((0, 0), (width, 0), (width, height), (0, height))]


def _size(node: Node) -> Point:
    """Return the size of a node's content; that of its box if it has none of its own."""
    width, height = node.natural()
    return (width, height) if width and height else node.box[2:]


def bounds(points: Sequence[Point]) -> tuple[float, float, float, float]:
    """Return the rectangle around points: left, top, width, height.

    >>> bounds([(1, 2), (4, 6)])
    (1, 2, 3, 4)
    """
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)


def hit(scene: Scene, x: float, y: float) -> Node | None:
    """Return the topmost node under a point of the scene; nodes of groups count, not groups."""
    return _hit(scene.container().ordered(), x, y, Spot())


def _hit(nodes: Sequence[Node], x: float, y: float, spot: Spot) -> Node | None:
    for node in reversed(nodes):
        values = node.property_values
        shown = node.present and values.get("visible", True) and values.get("opacity", 1.0) > 0
        if not node.DRAWN or isinstance(node, EffectNode) or not shown:
            continue
        inner = _inner(node, spot)
        u, v = inner.inside(x, y)
        width, height = _size(node)
        if not (0 <= u < width and 0 <= v < height):
            continue
        if isinstance(node, GroupNode):
            found = _hit(node.ordered(), x, y, inner)
            if found is not None:
                return found
            continue
        return node
    return None


def rounded(values: Sequence[float]) -> list[float | int]:
    """Return numbers with two decimals at most.

    >>> rounded((1.23456, 2.0))
    [1.23, 2]
    """
    short = [round(float(v), 2) for v in values]
    return [int(v) if v == int(v) else v for v in short]
