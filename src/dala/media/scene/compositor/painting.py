"""Paint a display list onto a surface: the damaged rectangles, and backdrop effects in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dala.gpu.compute.composite import NEAREST, Rect
from dala.media.scene.compositor.backdrop import draw_mixed, is_outdated, mix, replaces_backdrop
from dala.media.scene.compositor.damage import area, crossed, disjoint, meet
from dala.media.scene.compositor.display_list import DisplayItem, DisplayList
from dala.media.scene.compositor.framebuffers import Color, DrawSurface
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.compositor.base_layer import BaseLayer
    from dala.media.scene.compositor.drawing import NodeDrawer


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
            layer.repicture(item, filtering.version)
            layer.changes.append((item.start, region))
    return due


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
