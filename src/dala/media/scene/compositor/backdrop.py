"""Effects on what lets light through: what a filter made takes the place of what it was made from.

Over something opaque, drawing it on top is the same. Elsewhere what is below would shine through
once more, so the two are mixed by the effect's box and opacity, and put where the ground was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.composite import DRAW, FILL, NEAREST, PICTURE, Rect
from dala.media.kernels import kernel_from_text
from dala.media.scene.boxes import Placed
from dala.media.scene.compositor.canvas import Surface
from dala.media.scene.compositor.display import Item, record

if TYPE_CHECKING:
    from dala.media.scene.compositor.drawing import Drawer

_MIXED = kernel_from_text("""
def replaced(ground: Pixel, made: Pixel, mask: Pixel):
    keep = ground.a * (1.0 - mask.r)
    come = made.a * mask.r
    alpha = keep + come
    return rgba((ground.rgb * keep + made.rgb * come) / alpha if alpha > 0.0 else made.rgb, alpha)
""")


def replaces(item: Item, rects: list[Rect]) -> bool:
    """True where an effect, on ground that is not opaque, is to be put inside the rectangles."""
    over = item.below[-1]._values["blend"] == "over"
    return over and bool(item.draws) and bool(_inside(item, rects))


def unmixed(item: Item) -> bool:
    """True where the picture below is not of the effect as it is now."""
    return bool(item.work.get("look") != _look(item))


def mix(drawer: Drawer, item: Item, ground: Buffer, made: Buffer) -> None:
    """Keeps what an effect leaves of the ground and what it made of it, as one picture."""
    x0, y0, x1, y1 = item.work["region"]
    width, height = x1 - x0, y1 - y0
    values = item.below[-1]._values
    if made.shape[:2] != (height, width):
        stretched = drawer._surface(item, "stretched", width, height)
        source = item.work["filtered"]
        whole = (0.0, 0.0, float(source.width), float(source.height))
        draw = record(PICTURE, _whole(width, height, whole), (0, 0, width, height), picture=source)
        stretched.draw(np.frombuffer(draw, DRAW), None, (0, 0, 0, 0))
        made = stretched.buffer
    left, top, w, h = item.below[-1].box
    box = Placed(left + w / 2 - x0, top + h / 2 - y0, w / 2, h / 2, 1.0, 0.0, (0.0,) * 4)
    look = {"opacity": values["opacity"], "radius": values["corner_radius"]}
    shape = record(FILL, box, (0, 0, width, height), color=(255, 255, 255, 255), **look)
    mask = drawer._surface(item, "mask", width, height)
    if mask.key != shape:
        mask.draw(np.frombuffer(shape, DRAW), None, (0, 0, 0, 255))
        mask.key = shape
    mixed = allocate(ground.engine, (height, width, 4), "u8", zero=False, call="Scene")
    _MIXED.run([ground, made, mask.buffer], mixed)
    drawer._show(item, "mixed", mixed)
    item.work["look"] = _look(item)


def put(surface: Surface, item: Item, rects: list[Rect]) -> None:
    """Puts that picture where the ground was, inside the rectangles."""
    x0, y0, x1, y1 = region = item.work["region"]
    width, height = x1 - x0, y1 - y0
    whole = (0.0, 0.0, float(width), float(height))
    place = _whole(width, height, whole)._replace(cx=x0 + width / 2, cy=y0 + height / 2)
    draw = record(PICTURE, place, region, picture=item.work["mixed"], flags=NEAREST)
    surface.draw(np.frombuffer(draw, DRAW), _inside(item, rects), (0, 0, 0, 0))


def _look(item: Item) -> tuple[object, ...]:
    node = item.below[-1]
    values = node._values
    return node.box, values["opacity"], values["corner_radius"], values["blend"]


def _whole(width: int, height: int, crop: tuple[float, float, float, float]) -> Placed:
    return Placed(width / 2, height / 2, width / 2, height / 2, 1.0, 0.0, crop)


def _inside(item: Item, rects: list[Rect]) -> list[Rect]:
    """The parts of the rectangles that lie in the effect's box."""
    region: Rect | None = item.work.get("region")
    if region is None:
        return []
    parts = [
        (max(a[0], region[0]), max(a[1], region[1]), min(a[2], region[2]), min(a[3], region[3]))
        for a in rects
    ]
    return [p for p in parts if p[0] < p[2] and p[1] < p[3]]
