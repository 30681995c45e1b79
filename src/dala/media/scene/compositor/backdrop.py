"""Backdrop effects: the filtered region replaces the backdrop under the node.

Over an opaque backdrop, drawing the filtered region on top is enough. Over a translucent one the
backdrop would show through a second time, so both are mixed by the effect's shape and opacity, and
the result replaces the backdrop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.composite import FILL, NEAREST, PICTURE, Rect
from dala.media.kernels import kernel_from_text
from dala.media.scene.boxes import PlacedBox
from dala.media.scene.compositor.damage import common
from dala.media.scene.compositor.display_list import DisplayItem, record
from dala.media.scene.compositor.framebuffers import DrawSurface
from dala.media.scene.compositor.geometry import whole_of
from dala.media.scene.compositor.pictures import LivePicture

if TYPE_CHECKING:
    from dala.media.scene.compositor.drawing import NodeDrawer

_MIXED = kernel_from_text("""
def replaced(backdrop: Pixel, made: Pixel, mask: Pixel):
    below = backdrop.a * (1.0 - mask.r)
    above = made.a * mask.r
    alpha = below + above
    rgb = (backdrop.rgb * below + made.rgb * above) / alpha if alpha > 0.0 else made.rgb
    return rgba(rgb, alpha)
""")


def replaces_backdrop(item: DisplayItem, rects: list[Rect]) -> bool:
    """Return True if an effect over a translucent backdrop touches the rectangles."""
    over = item.below[-1].property_values["blend"] == "over"
    return over and bool(item.draws) and bool(_inside(item, rects))


def is_outdated(item: DisplayItem) -> bool:
    """Return True if the mixed picture does not have the effect's current shape and opacity."""
    return bool(item.work.get("appearance") != _appearance(item))


def mix(drawer: NodeDrawer, item: DisplayItem, backdrop: Buffer, made: Buffer) -> None:
    """Mix the backdrop with the filtered region by the effect's shape and opacity."""
    x0, y0, x1, y1 = item.work["region"]
    width, height = x1 - x0, y1 - y0
    values = item.below[-1].property_values
    if made.shape[:2] != (height, width):
        source = item.work["filter"].picture
        made = drawer.copied(item, "stretched", source, (width, height), whole_of(source))
    left, top, w, h = item.below[-1].box
    box = PlacedBox.flat(w, h, (0.0,) * 4, left - x0, top - y0)
    appearance = {"opacity": values["opacity"], "radius": values["corner_radius"]}
    mask = drawer.surface_for(item, "mask", width, height)
    shape = record(FILL, box, mask.rect, color=(255, 255, 255, 255), **appearance)
    mask.draw_once(shape, shape, (0, 0, 0, 255))
    mixed = allocate(backdrop.engine, (height, width, 4), "u8", zero=False, call="Scene")
    _MIXED.run([backdrop, made, mask.buffer], mixed)
    item.work.setdefault("mixed", LivePicture(drawer.compositor)).show(mixed)
    item.work["appearance"] = _appearance(item)


def draw_mixed(surface: DrawSurface, item: DisplayItem, rects: list[Rect]) -> None:
    """Replace the backdrop by the mixed picture, inside the rectangles."""
    x0, y0, x1, y1 = region = item.work["region"]
    width, height = x1 - x0, y1 - y0
    place = PlacedBox.flat(width, height, None, x0, y0)
    draw = record(PICTURE, place, region, NEAREST, picture=item.work["mixed"].picture)
    surface.draw(draw, _inside(item, rects), (0, 0, 0, 0))


def _appearance(item: DisplayItem) -> tuple[object, ...]:
    node = item.below[-1]
    values = node.property_values
    return node.box, values["opacity"], values["corner_radius"], values["blend"]


def _inside(item: DisplayItem, rects: list[Rect]) -> list[Rect]:
    """Return the parts of the rectangles inside the effect's box."""
    region: Rect | None = item.work.get("region")
    if region is None:
        return []
    parts = [common(rect, region) for rect in rects]
    return [p for p in parts if p[0] < p[2] and p[1] < p[3]]
