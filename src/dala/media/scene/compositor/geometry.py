"""Geometry of the parts of a node: corners, borders, margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dala.gpu.compute.composite import Picture, Rect
from dala.media.scene.boxes import PlacedBox
from dala.media.scene.nodes.node import Content
from dala.media.scene.nodes.property_types import Values

if TYPE_CHECKING:
    from dala.media.scene.compositor.display_list import DisplayItem


class Figure(NamedTuple):
    """The content of a display item in its place."""

    item: DisplayItem
    #: The properties of the node.
    values: Values
    content: Content
    place: PlacedBox

    @property
    def radius(self) -> float:
        """The radius of its corners; 0 if the picture already has them."""
        values = self.values
        if self.content.finished or "text" in values:
            return 0.0
        if values.get("shape") in ("pill", "circle"):
            return min(self.place.hw, self.place.hh)
        radius: float = values["radius"]
        return radius


def edges_inside(place: PlacedBox, clip: Rect) -> tuple[bool, bool, bool, bool]:
    """Return for each edge of a box whether it is inside a rectangle; True if it is rotated."""
    if place.cos != 1.0:
        return True, True, True, True
    return (
        place.cx - place.hw > clip[0], place.cy - place.hh > clip[1],
        place.cx + place.hw < clip[2], place.cy + place.hh < clip[3],
    )  # fmt: skip


def inset_box(place: PlacedBox, radius: float, by: float) -> tuple[PlacedBox, float]:
    """Return a slightly smaller box: content must not show at the soft outer edge of a border."""
    hw, hh = place.hw - by, place.hh - by
    if hw <= 0 or hh <= 0:
        return place, radius
    u0, v0, u1, v1 = place.crop
    du, dv = (u1 - u0) / place.hw / 2 * by, (v1 - v0) / place.hh / 2 * by
    crop = (u0 + du, v0 + dv, u1 - du, v1 - dv)
    return place._replace(hw=hw, hh=hh, crop=crop), max(0.0, min(radius, hw, hh) - by)


def with_margin(place: PlacedBox, content: Content) -> PlacedBox:
    """Return the box of the whole picture, with its margin (such as the shadow of a text)."""
    left, top, right, bottom = content.margin
    across, down = 2 * place.hw / content.width, 2 * place.hh / content.height
    dx, dy = (right - left) / 2 * across, (bottom - top) / 2 * down
    return place._replace(
        cx=place.cx + dx * place.cos - dy * place.sin,
        cy=place.cy + dx * place.sin + dy * place.cos,
        hw=(left + content.width + right) / 2 * across,
        hh=(top + content.height + bottom) / 2 * down,
    )


def whole_of(picture: Picture | None) -> tuple[float, float, float, float]:
    """Return all texels of a picture, as the crop of a box."""
    assert picture is not None
    return 0.0, 0.0, float(picture.width), float(picture.height)
