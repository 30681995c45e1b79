"""Geometry of nodes: boxes, content fitted into them, named positions, and grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from dala.errors import ParameterError
from dala.media.filters.geometry import cos_sin
from dala.media.scene.nodes.property_types import Values, place_of

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Content, Node

#: Left, top, width, height.
Box = tuple[float, float, float, float]


class PlacedBox(NamedTuple):
    """Content placed in the scene: a rotated box about its center, and the texels it shows."""

    #: Center of the box.
    cx: float
    cy: float
    #: Half of its width and height.
    hw: float
    hh: float
    #: Cosine and sine of the rotation.
    cos: float
    sin: float
    #: Left, top, right, bottom of the visible part, in texels.
    crop: tuple[float, float, float, float]

    @classmethod
    def flat(
        cls, width: float, height: float, crop: tuple[float, float, float, float] | None = None,
        left: float = 0.0, top: float = 0.0,
    ) -> Self:  # fmt: skip
        """Return a box that is not rotated, of content of its size unless ``crop`` is given."""
        hw, hh = width / 2, height / 2
        whole = (0.0, 0.0, float(width), float(height))
        return cls(left + hw, top + hh, hw, hh, 1.0, 0.0, whole if crop is None else crop)


def box(node: Node, width: float, height: float) -> Box:
    """Return the node's box before rotation, for content of this size."""
    values = node.property_values
    w, h = node.box_size(width, height)
    across, down = node.anchor_point
    return values["x"] - across * w, values["y"] - down * h, w, h


def box_size(values: Values, width: float, height: float) -> tuple[float, float]:
    """Return width and height of a box; a missing one follows from the content's proportions."""
    if (crop := values.get("crop")) is not None:
        width, height = crop[2], crop[3]
    w, h, scale = values["width"], values["height"], values.get("scale", 1.0)
    if w is None and h is None:
        w, h = width, height
    elif w is None:
        w = h * width / height if height else 0.0
    elif h is None:
        h = w * height / width if width else 0.0
    return w * scale, h * scale


def place_content(node: Node, content: Content) -> PlacedBox | None:
    """Return content fitted into the node's box and rotated; None if nothing is visible."""
    values = node.property_values
    width, height = content.width, content.height
    w, h = node.box_size(width, height)
    u0, v0, u1, v1 = 0.0, 0.0, float(width), float(height)
    if (crop := values.get("crop")) is not None:
        u0, v0 = min(crop[0], u1), min(crop[1], v1)
        u1, v1 = min(u0 + crop[2], u1), min(v0 + crop[3], v1)
    cw, ch = u1 - u0, v1 - v0
    if min(w, h, cw, ch) <= 0:
        return None
    inner_w, inner_h = w, h
    fit = values.get("fit", "stretch")
    if fit not in ("stretch", "fill"):
        larger = max if fit in ("cover", "crop") else min
        scale = values.get("scale", 1.0) if fit == "none" else larger(w / cw, h / ch)
        inner_w, inner_h = min(w, cw * scale), min(h, ch * scale)
        u_half, v_half = inner_w / scale / 2, inner_h / scale / 2
        u_mid, v_mid = (u0 + u1) / 2, (v0 + v1) / 2
        u0, u1, v0, v1 = u_mid - u_half, u_mid + u_half, v_mid - v_half, v_mid + v_half
    across, down = values["anchor"]
    dx, dy = w * (0.5 - across), h * (0.5 - down)
    x, y, angle = values["x"], values["y"], values.get("rotation", 0.0)
    cos, sin = 1.0, 0.0
    if angle:
        cos, sin = cos_sin(angle)
        dx, dy = dx * cos - dy * sin, dx * sin + dy * cos
    return PlacedBox(x + dx, y + dy, inner_w / 2, inner_h / 2, cos, sin, (u0, v0, u1, v1))


def named_position(node: Node, name: str, call: str) -> tuple[float, float]:
    """Return the anchor's position for a box in a corner, at an edge or in the center."""
    across, down = place_of(call, "position", name)
    outer_w, outer_h = container_size(node)
    w, h = node.box_size(*node.natural())
    left = round_half_up((outer_w - w) * across + node.margin * (1 - 2 * across))
    top = round_half_up((outer_h - h) * down + node.margin * (1 - 2 * down))
    anchor = node.anchor_point
    return left + anchor[0] * w, top + anchor[1] * h


def container_size(node: Node) -> tuple[float, float]:
    """Return width and height of the node's group, or of the scene."""
    if node.parent is None:
        return float(node.scene.width), float(node.scene.height)
    return node.parent.canvas


def cells(count: int, columns: int, area: Sequence[float], gap: float) -> list[Box]:
    """Return boxes of equal size in rows from the top left; an incomplete last row is centered.

    Edges are on pixel boundaries, so that neighbors without a gap leave no seam. Some boxes are
    therefore a pixel larger than others if the area cannot be divided evenly.
    """
    left, top, width, height = area
    rows = -(-count // columns)
    w = (width - gap * (columns - 1)) / columns
    h = (height - gap * (rows - 1)) / rows
    if w < 1 or h < 1:
        raise ParameterError(
            f"layout: {columns} x {rows} boxes with gaps of {gap:g} do not fit into "
            f"{width:g} x {height:g}. Use a smaller gap."
        )
    found: list[Box] = []
    for i in range(count):
        row, column = divmod(i, columns)
        missing = columns - min(columns, count - row * columns)
        shift = missing * (w + gap) / 2
        # An end is the start of the next box less the gap: x + w may round to another pixel.
        x0, x1 = (left + shift + (column + n) * (w + gap) - n * gap for n in (0, 1))
        y0, y1 = (top + (row + n) * (h + gap) - n * gap for n in (0, 1))
        x0, x1, y0, y1 = map(round_half_up, (x0, x1, y0, y1))
        found.append((x0, y0, x1 - x0, y1 - y0))
    return found


def round_half_up(x: float) -> float:
    """Return the nearest integer, as a float.

    >>> round_half_up(2.5), round_half_up(-0.5)
    (3.0, 0.0)
    """
    return float(math.floor(x + 0.5))
