"""Drawing a layer onto a surface: only where it changed, effects on what is below in their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dala.gpu.compute.composite import DRAW, NEAREST, PICTURE, Rect
from dala.media.scene.boxes import Placed
from dala.media.scene.compositor.backdrop import mix, put, replaces, unmixed
from dala.media.scene.compositor.canvas import Color, Surface
from dala.media.scene.compositor.damage import apart, area, crossed, meet
from dala.media.scene.compositor.display import Item, Layer, record

if TYPE_CHECKING:
    from dala.media.scene.compositor.base import Base
    from dala.media.scene.compositor.drawing import Drawer


def due_effects(layer: Layer, clear: bool) -> list[Item]:
    """Effects whose parameters, box or ground changed, lowest first; what they show will too."""
    due: list[Item] = []
    for item in layer.effects:
        region: Rect | None = item.work.get("region")
        if region is None or not item.draws:
            continue
        filtering = item.work["filter"]
        moved = filtering.key != item.work["revision"]
        moved = moved or crossed(layer.before, layer.keys, item.start)
        moved = moved or (clear and unmixed(item))
        if moved or any(n < item.start and meet(rect, region) for n, rect in layer.changes):
            due.append(item)
            filtering.version += 1
            layer.repicture(item, filtering.version)
            layer.changes.append((item.start, region))
    return due


def paint(
    drawer: Drawer,
    layer: Layer,
    surface: Surface,
    due: list[Item],
    background: Color,
    base: Base | None = None,
) -> int:
    """Brings a surface to what the layer shows now; gives how many pixels were drawn again.

    Args:
        drawer: whose pictures and filters are used.
        layer: what is shown, refreshed.
        surface: what is drawn on, where it is dirty.
        due: effects that have to be made again.
        background: what lies below everything.
        base: the lowest draws, if they are kept as a picture.
    """
    rects = apart(surface.dirty, layer.rect, coarse=surface.coarse)
    if rects and layer.effects:
        _compose(drawer, layer, surface, rects, due, background, base)
    elif rects:
        surface.draw(_draws(layer, 0, len(layer.draws), base), rects, background)
    surface.dirty = []
    return sum(map(area, rects))


def _compose(
    drawer: Drawer,
    layer: Layer,
    surface: Surface,
    rects: list[Rect],
    due: list[Item],
    background: Color | None,
    base: Base | None,
) -> None:
    start = 0
    clear = background is not None and background[3] < 255
    for item in layer.effects if clear else due:
        instead = clear and replaces(item, rects)
        if not instead and item not in due:
            continue
        surface.draw(_draws(layer, start, item.start, base), rects, background)
        background, start = None, item.start
        if item in due:
            _filter(drawer, surface, item, instead)
        if instead:
            put(surface, item, rects)
            start += 1
    if start < len(layer.draws) or background is not None:
        surface.draw(_draws(layer, start, len(layer.draws), base), rects, background)


def _draws(layer: Layer, start: int, end: int, base: Base | None) -> np.ndarray[Any, Any]:
    if start == 0 and base is not None and 0 < base.count <= end:
        return np.concatenate([base.draw(), layer.array[base.count : end]])
    return layer.array if (start, end) == (0, len(layer.draws)) else layer.array[start:end]


def _filter(drawer: Drawer, surface: Surface, item: Item, instead: bool) -> None:
    """What has been drawn so far inside an effect's box, through its filters, as its picture."""
    x0, y0, x1, y1 = region = item.work["region"]
    source = surface.buffer
    if region != (0, 0, surface.width, surface.height):
        part = drawer._surface(item, "stage", x1 - x0, y1 - y0)
        width, height = x1 - x0, y1 - y0
        crop = (float(x0), float(y0), float(x1), float(y1))
        place = Placed(width / 2, height / 2, width / 2, height / 2, 1.0, 0.0, crop)
        draw = record(PICTURE, place, (0, 0, width, height), picture=surface.picture, flags=NEAREST)
        part.draw(np.frombuffer(draw, DRAW), None, (0, 0, 0, 0))
        source = part.buffer
    filtering = item.work["filter"]
    opaque = item.layer.owner is None and item.node.scene._background[3] == 255
    made = filtering.run(source, [(e.filter, e.params) for e in item.below], opaque)
    item.work["filtered"].update(made)
    if instead:
        mix(drawer, item, source, made)
    filtering.result = made
    filtering.key = item.work["revision"]
    drawer.filtered += 1
