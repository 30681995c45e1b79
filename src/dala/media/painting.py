"""Drawing a layer onto a surface: only where it changed, effects on what is below in their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dala.gpu.compute.composite import DRAW, NEAREST, PICTURE, Rect
from dala.media.canvas import Color, Surface
from dala.media.dirty import Change, Snapshot, apart, area, changes, crossed, meet, snapshot
from dala.media.display import Item, Layer, record
from dala.media.layout import Placed
from dala.media.replacing import mix, put, replaces, unmixed

if TYPE_CHECKING:
    from dala.media.base import Base
    from dala.media.drawing import Drawer


def paint_layer(
    drawer: Drawer,
    layer: Layer,
    surface: Surface,
    held: Snapshot | None,
    last: Snapshot | None,
    background: Color,
    base: Base | None = None,
    found: list[Change] | None = None,
) -> int:
    """Brings a surface to what the layer shows now; gives how many pixels were drawn again.

    Args:
        drawer: whose pictures and filters are used.
        layer: what is shown, refreshed.
        surface: what is drawn on.
        held: what the surface shows.
        last: what the layer was when it was painted last, on whichever surface.
        background: what lies below everything.
        base: the lowest draws, if they are kept as a picture.
    """
    due = _due(layer, last, background[3] < 255) if layer.effects else []
    for item in due:
        filtering = item.work["filter"]
        filtering.version += 1
        layer.repicture(item, filtering.version)
    whole = layer.rect
    if found is not None and any(change.rect == whole for change in found):
        rects = [whole]  # whatever else changed before that
    else:
        rects = apart([change.rect for change in changes(layer, held)], whole)
    if not rects:
        return 0
    _compose(drawer, layer, surface, rects, due, background, base)
    surface.snapshot = snapshot(layer)
    return sum(map(area, rects))


def _due(layer: Layer, last: Snapshot | None, clear: bool) -> list[Item]:
    """Effects whose parameters, box or ground changed, lowest first."""
    due: list[Item] = []
    found = changes(layer, last)
    for item in layer.effects:
        region: Rect | None = item.work.get("region")
        if region is None or not item.draws:
            continue
        filtering = item.work["filter"]
        moved = filtering.key != item.work["revision"] or crossed(layer, last, item.start)
        moved = moved or (clear and unmixed(item))
        if moved or any(c.number < item.start and meet(c.rect, region) for c in found):
            due.append(item)
            found.append(Change(item.start, region))
    return due


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
