"""Where things lie: boxes of nodes, content fitted into them, corners, and whole layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dala.errors import ParameterError
from dala.media.scene.nodes.properties import PLACES, number, one_of

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Content, Node

#: Left, top, width, height.
Box = tuple[float, float, float, float]

#: A picture in a picture where nothing is said.
PIP_PLACE: Final = "top-right"
PIP_SIZE: Final = (200.0, 150.0)
PIP_MARGIN: Final = 20.0


class Placed(NamedTuple):
    """Content as it lies: the drawn box around its middle, and which texels it shows."""

    cx: float
    cy: float
    hw: float
    hh: float
    cos: float
    sin: float
    #: Left, top, right, bottom of what is shown, in texels.
    crop: tuple[float, float, float, float]


def box(node: Node, width: float, height: float) -> Box:
    """The node's box before rotation, of content of this size."""
    values = node._values
    w, h = node.sides(width, height)
    across, down = values["anchor"]
    return values["x"] - across * w, values["y"] - down * h, w, h


def sides(values: dict[str, Any], width: float, height: float) -> tuple[float, float]:
    """Width and height of a box; what is left out follows from the content's shape."""
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


def placed(node: Node, content: Content) -> Placed | None:
    """Content fitted into the node's box and turned; None where nothing is left to see."""
    values = node._values
    width, height = content.width, content.height
    w, h = node.sides(width, height)
    u0, v0, u1, v1 = 0.0, 0.0, float(width), float(height)
    if (crop := values.get("crop")) is not None:
        u0, v0 = min(crop[0], u1), min(crop[1], v1)
        u1, v1 = min(u0 + crop[2], u1), min(v0 + crop[3], v1)
    cw, ch = u1 - u0, v1 - v0
    if min(w, h, cw, ch) <= 0:
        return None
    inner_w, inner_h = w, h
    fit = values.get("fit", "fill")
    if fit != "fill":
        scale = values.get("scale", 1.0) if fit == "none" else _factor(fit, w, h, cw, ch)
        inner_w, inner_h = min(w, cw * scale), min(h, ch * scale)
        u_half, v_half = inner_w / scale / 2, inner_h / scale / 2
        u_mid, v_mid = (u0 + u1) / 2, (v0 + v1) / 2
        u0, u1, v0, v1 = u_mid - u_half, u_mid + u_half, v_mid - v_half, v_mid + v_half
    across, down = values["anchor"]
    dx, dy = w * (0.5 - across), h * (0.5 - down)
    x, y, turn = values["x"], values["y"], values.get("rotation", 0.0)
    cos, sin = 1.0, 0.0
    if turn:
        cos, sin = turned(turn)
        dx, dy = dx * cos - dy * sin, dx * sin + dy * cos
    return Placed(x + dx, y + dy, inner_w / 2, inner_h / 2, cos, sin, (u0, v0, u1, v1))


def turned(degrees: float) -> tuple[float, float]:
    """Cosine and sine; exact at right angles, so that edges stay on pixels."""
    quarters, rest = divmod(degrees, 90.0)
    if rest == 0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(quarters) % 4]
    angle = math.radians(degrees)
    return math.cos(angle), math.sin(angle)


def _factor(fit: str, w: float, h: float, cw: float, ch: float) -> float:
    return min(w / cw, h / ch) if fit == "contain" else max(w / cw, h / ch)


# places -----------------------------------------------------------------------------------------
def named_place(node: Node, name: str, call: str) -> tuple[float, float]:
    """Where the anchor lies when the box is in a corner, at an edge or in the middle."""
    across, down = PLACES[one_of(PLACES)(name, call)]
    room_w, room_h = room(node)
    w, h = node.sides(*node.natural())
    left = whole((room_w - w) * across + node.margin * (1 - 2 * across))
    top = whole((room_h - h) * down + node.margin * (1 - 2 * down))
    anchor = node._values["anchor"]
    return left + anchor[0] * w, top + anchor[1] * h


def room(node: Node) -> tuple[float, float]:
    """Width and height of what the node lies in: its group, or the scene."""
    if node.parent is None or node.parent.parent is None:
        return float(node.scene.width), float(node.scene.height)
    return node.parent.canvas


def pip(given: dict[str, Any], call: str) -> dict[str, Any]:
    """Properties of a node that is a picture in a picture: pip, pip_position, pip_size, margin."""
    wanted = given.pop("pip", None)
    place, size = given.pop("pip_position", None), given.pop("pip_size", None)
    if wanted is None:
        wanted = place is not None or size is not None
    if not isinstance(wanted, bool):
        raise ParameterError(f"{call}: pip is True or False, {wanted!r} came.")
    if not wanted:
        if place is not None or size is not None:
            raise ParameterError(
                f"{call}: pip_position and pip_size are for a picture in a picture, pip=False "
                "came. Leave it out, or use position and size."
            )
        return given
    if place is not None and given.get("position") is not None:
        raise ParameterError(f"{call}: give position or pip_position, not both.")
    if size is not None and given.get("size") is not None:
        raise ParameterError(f"{call}: give size or pip_size, not both.")
    given.setdefault("margin", PIP_MARGIN)
    if size is not None or not {"size", "width", "height"} & given.keys():
        given["size"] = PIP_SIZE if size is None else size
    if place is not None or not {"position", "x", "y"} & given.keys():
        given["position"] = PIP_PLACE if place is None else place
    return given


# layouts ----------------------------------------------------------------------------------------
def cells(count: int, columns: int, area: Box, gap: float) -> list[Box]:
    """Boxes of equal size in rows from the top left; a last row that is not full is centred.

    Their edges lie on whole pixels, so that neighbours without a gap leave no seam; for that, some
    are a pixel larger than others where the room cannot be divided.
    """
    left, top, width, height = area
    rows = -(-count // columns)
    w = (width - gap * (columns - 1)) / columns
    h = (height - gap * (rows - 1)) / rows
    if w < 1 or h < 1:
        raise ParameterError(
            f"layout: {columns} x {rows} boxes with gaps of {gap:g} do not fit into "
            f"{width:g} x {height:g}. Make the gap smaller."
        )
    found: list[Box] = []
    for i in range(count):
        row, column = divmod(i, columns)
        missing = columns - min(columns, count - row * columns)
        shift = missing * (w + gap) / 2
        x, y = left + shift + column * (w + gap), top + row * (h + gap)
        x0, y0 = whole(x), whole(y)
        found.append((x0, y0, whole(x + w) - x0, whole(y + h) - y0))
    return found


def whole(x: float) -> float:
    """The nearest whole number, halves up."""
    return float(math.floor(x + 0.5))


def columns_for(count: int) -> int:
    """How many columns make a grid about as many cells across as down."""
    return math.ceil(math.sqrt(count))


def arrange(
    nodes: Sequence[Node], count: int, columns: int, area: Box, gap: Any, fit: str | None, call: str
) -> list[Box]:
    """Lays nodes into equal cells; gives the cells' boxes."""
    space = number(0.0)(gap, f"{call}: gap")
    found = cells(count, columns, area, space)
    for node, cell in zip(nodes, found, strict=False):
        if fit is not None:
            node.set("fit", fit)
        node.place(*cell)
    return found
