"""Where nodes are on the picture: boxes, and the node under a point."""

from __future__ import annotations

from collections.abc import Sequence

from dala.gpu.path.numbers import matrix_of
from dala.media.scene.follow.follower import Affine
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.scene import Scene

Point = tuple[float, float]


def _inner(node: Node, outer: Affine) -> Affine:
    """Return the map of a node's content, whose coordinates start at its top left, to the scene."""
    left, top, width, height = node.box
    wide, high = node.natural()
    values = node.property_values
    x, y = values.get("x", left), values.get("y", top)
    across, down = width / wide if wide else 1.0, height / high if high else 1.0
    content = across, 0.0, 0.0, down, left - x, top - y
    angle = values.get("rotation", 0.0)
    return outer.after(Affine(*matrix_of("hit", (x, y), angle, matrix=content)))


def _outer(node: Node) -> Affine:
    """Return the map from the coordinates that a node's position is in to those of the scene."""
    found = Affine()
    for group in reversed([*node.around()]):
        found = _inner(group, found)
    return found


def _back(found: Affine) -> Affine | None:
    """Return the inverse of a map; None for one that flattens the plane."""
    area = found.a * found.d - found.b * found.c
    return found.inverse() if abs(area) > 1e-12 else None


def local(node: Node, dx: float, dy: float) -> Point:
    """Return a distance of the scene in the coordinates that a node's position is in."""
    back = _back(_outer(node))
    return (0.0, 0.0) if back is None else back.vector(dx, dy)


def corners(node: Node) -> list[Point]:
    """Return the corners of a node's box in scene coordinates, clockwise from the top left."""
    found, (width, height) = _inner(node, _outer(node)), _size(node)
    return [found.point(x, y) for x, y in ((0, 0), (width, 0), (width, height), (0, height))]


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
    return _hit(scene.container().ordered(), x, y, Affine())


def _hit(nodes: Sequence[Node], x: float, y: float, outer: Affine) -> Node | None:
    for node in reversed(nodes):
        values = node.property_values
        shown = node.present and values.get("visible", True) and values.get("opacity", 1.0) > 0
        if not node.DRAWN or isinstance(node, EffectNode) or not shown:
            continue
        inner, (width, height) = _inner(node, outer), _size(node)
        if (back := _back(inner)) is None:
            continue
        u, v = back.point(x, y)
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
