"""Paint a display list onto a surface: the damaged rectangles, and backdrop effects in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.composite import FILL, NEAREST, PICTURE, Picture, Rect
from dala.media.kernels import kernel_from_text
from dala.media.scene.boxes import PlacedBox
from dala.media.scene.compositor.damage import area, common, crossed, disjoint, meet
from dala.media.scene.compositor.display_list import DisplayItem, DisplayList, record
from dala.media.scene.compositor.framebuffers import Color, DrawSurface
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes.node import Content
from dala.media.scene.nodes.property_types import Values
from dala.trace.recorder import traced
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.compositor.base_layer import BaseLayer
    from dala.media.scene.compositor.drawing import NodeDrawer


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
        radius: float = values.get("radius", 0.0)
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


def due_effects(layer: DisplayList, clear: bool) -> list[DisplayItem]:
    """Return the backdrop effects to run again, lowest first, and mark them as changed.

    Those are the ones whose parameters, box or backdrop changed. ``clear`` says that the
    background is not opaque.
    """
    due: list[DisplayItem] = []
    for item in layer.effects:
        region: Rect | None = item.work.get("region")
        if region is None or not item.draws:
            continue
        filtering = item.work["filter"]
        moved = filtering.key != item.work["revision"]
        moved = moved or crossed(layer.before, layer.keys, item.start)
        moved = moved or (clear and is_outdated(item))
        if moved or any(n < item.start and meet(rect, region) for n, rect in layer.changes):
            due.append(item)
            filtering.version += 1
            item.draws[0].version = filtering.version
            layer.changes += [(item.start, item.draws[0].rect), (item.start, region)]
    return due


@traced("compose", "paint")
def paint(
    drawer: NodeDrawer,
    layer: DisplayList,
    surface: DrawSurface,
    due: list[DisplayItem],
    background: Color,
    base: BaseLayer | None = None,
) -> int:
    """Paint the damaged rectangles of a surface; return the number of pixels drawn.

    Args:
        drawer: makes intermediate surfaces and runs filters.
        layer: the display list, refreshed.
        surface: the target, with its damage.
        due: the effects to run again.
        background: the color below everything.
        base: the cached lowest draws, if any.
    """
    rects = disjoint(surface.dirty, layer.rect, coarse=surface.coarse)
    ground: Color | None = background
    start, clear = 0, background[3] < 255
    for item in (layer.effects if clear else due) if rects else ():
        instead = clear and replaces_backdrop(item, rects)
        if not instead and item not in due:
            continue
        surface.draw(_draws(layer, start, item.start, base), rects, ground)
        ground, start = None, item.start
        if item in due:
            _filter(drawer, surface, item, instead)
        if instead:
            draw_mixed(surface, item, rects)
            start += 1
    if rects and (start < len(layer.draws) or ground is not None):
        surface.draw(_draws(layer, start, len(layer.draws), base), rects, ground)
    surface.dirty = []
    return sum(map(area, rects))


def _draws(layer: DisplayList, start: int, end: int, base: BaseLayer | None) -> NDArray:
    if start == 0 and base is not None and 0 < base.count <= end:
        return np.concatenate([base.draw(), layer.array[base.count : end]])
    return layer.array if (start, end) == (0, len(layer.draws)) else layer.array[start:end]


def _filter(drawer: NodeDrawer, surface: DrawSurface, item: DisplayItem, instead: bool) -> None:
    """Filter the backdrop inside an effect's box; the result is the effect's picture."""
    x0, y0, x1, y1 = region = item.work["region"]
    source, filtering = surface.buffer, item.work["filter"]
    if region != surface.rect:
        crop = (float(x0), float(y0), float(x1), float(y1))
        source = drawer.copied(item, "stage", surface.picture, (x1 - x0, y1 - y0), crop, NEAREST)
    opaque = item.layer.owner is None and item.node.scene.background[3] == 255
    made = filtering.run(source, [(e.filter, e.params) for e in item.below], opaque)
    filtering.picture.update(made)
    if instead:
        mix(drawer, item, source, made)
    filtering.key = item.work["revision"]
    drawer.filtered += 1
