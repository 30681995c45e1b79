"""Make the draws of nodes: shadow, content and border, with effects and groups."""

from __future__ import annotations

import math
import struct
from functools import reduce
from math import ceil, floor
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute import composite as c
from dala.gpu.compute.composite import Compositor, Picture, Rect
from dala.media.filters.plans import plan
from dala.media.scene.boxes import Box, PlacedBox
from dala.media.scene.compositor import painting
from dala.media.scene.compositor.damage import area, common, union
from dala.media.scene.compositor.display_list import (
    BLEND,
    DisplayItem,
    DisplayList,
    Draw,
    MovableDraw,
    bounds,
    on_grid,
    record,
    texels_fit,
)
from dala.media.scene.compositor.filtering import (
    LARGEST,
    RED_TO_ALPHA,
    ItemFilters,
    extent_of,
    keep_alpha,
)
from dala.media.scene.compositor.framebuffers import DrawSurface
from dala.media.scene.compositor.painting import Figure
from dala.media.scene.nodes.node import Content
from dala.media.scene.nodes.timeline import TimelineNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from dala.media.scene.nodes.effect import EffectNode

#: Blend mode and opacity.
Look: TypeAlias = tuple[int, float]

_SOLID: Final[Look] = (0, 1.0)
_WHITE: Final = (255, 255, 255, 255)
_CLEAR: Final = (0, 0, 0, 0)
_EVERYWHERE: Final[Rect] = (-(1 << 24), -(1 << 24), 1 << 24, 1 << 24)
#: Write the part of a record from its flags on: flags, picture, bounds, center.
_write_position: Final = struct.Struct("<2i4i2f").pack_into


class NodeDrawer:
    """Makes the draws of the items of a scene."""

    def __init__(self, compositor: Compositor, linear: bool) -> None:
        self.compositor = compositor
        self.flags = c.LINEAR if linear else 0
        #: Intermediate pictures drawn in this frame, and filter lists run.
        self.passes = 0
        self.filtered = 0

    def draws(self, item: DisplayItem) -> list[Draw]:
        """Return the current draws of an item, back to front."""
        if item.below:
            return self._below(item)
        item.movable = None
        node = item.node
        values = node.property_values
        if values["opacity"] == 0:
            return []
        content = self._group(item) if item.inner else node.content()
        if content is None:
            return []
        place = node.placed(content)
        if place is None:
            return []
        if item.dx or item.dy:
            place = place._replace(cx=place.cx + item.dx, cy=place.cy + item.dy)
        if content.reduction > 1:
            u0, v0, u1, v1 = (at / content.reduction for at in place.crop)
            place = place._replace(crop=(u0, v0, u1, v1))
        if content.picture is not None and any(content.margin):
            place = painting.with_margin(place, content)._replace(
                crop=painting.whole_of(content.picture)
            )
        figure = Figure(item, values, content, place)
        effects = [e for e in node.effects if e.present and e.property_values["visible"]]
        if effects:
            figure = self._filtered(figure, effects)
        look = BLEND[values["blend"]], values["opacity"]
        shadow = values.get("shadow") is not None and "text" not in values
        if look != _SOLID and (shadow or values.get("border_width")):
            return self._isolated(figure, look)
        found = self._parts(figure, item.clip, look)
        alone = not found or (len(found) == 1 and found[0].part == "content")
        if alone and not shadow and not figure.content.finished:
            flags = found[0].record[8] if found else 0
            place, content = figure.place, figure.content
            item.movable = MovableDraw(flags, place, content, values["x"], values["y"])
        return found

    def move(self, item: DisplayItem) -> bool:
        """Update the draw of a node that moved, or whose picture has new pixels.

        Return False if the draws have to be made again: if more changed, or if the node enters or
        leaves the visible area. Scenes in which much moves spend their time here.
        """
        movable = item.movable
        if movable is None:
            return False
        values, live = item.node.property_values, item.repainted
        if live is not None and (
            live.picture is not movable.picture or live.opaque != movable.opaque
        ):
            return False
        x, y = values["x"] + movable.dx, values["y"] + movable.dy
        left, top, right, bottom = item.clip
        x0, y0 = floor(x - movable.hw), floor(y - movable.hh)
        x1, y1 = ceil(x + movable.hw), ceil(y + movable.hh)
        if x0 < left or y0 < top or x1 > right or y1 > bottom:
            x0, y0, x1, y1 = max(x0, left), max(y0, top), min(x1, right), min(y1, bottom)
            if x0 >= x1 or y0 >= y1:
                return not item.draws
        if not item.draws:
            return False
        draw = item.draws[0]
        old, version = draw.rect, draw.version if live is None else live.version
        if x == movable.x and y == movable.y:
            if version != draw.version:
                draw.version = version
                item.layer.changes.append((item.start, old))
            return True
        flags = movable.flags
        if movable.fits and (x - movable.hw) % 1 == 0 and (y - movable.hh) % 1 == 0:
            flags |= c.NEAREST
        center = on_grid(x), on_grid(y)
        _write_position(draw.record, 8, flags, movable.number, x0, y0, x1, y1, *center)
        movable.x, movable.y, draw.version = x, y, version
        draw.rect = now = (x0, y0, x1, y1)
        changes = item.layer.changes
        a0, b0, a1, b1 = old
        if a0 - x0 < 64 > x0 - a0 and b0 - y0 < 64 > y0 - b0:
            now = (
                x0 if x0 < a0 else a0, y0 if y0 < b0 else b0,
                x1 if x1 > a1 else a1, y1 if y1 > b1 else b1,
            )  # fmt: skip
        else:
            changes.append((item.start, old))
        changes.append((item.start, now))
        return True

    # one node ---------------------------------------------------------------------------------
    def _parts(self, figure: Figure, clip: Rect, look: Look) -> list[Draw]:
        values, rect = figure.values, bounds(figure.place, clip)
        plain = "text" in values or values["shadow"] is None
        found = [] if plain else self._shadow(figure, clip, look[1])
        return found if rect is None else found + self._content_and_border(figure, rect, look)

    def _content_and_border(self, figure: Figure, rect: Rect, look: Look) -> list[Draw]:
        """Return the draws of content and border."""
        (_, values, content, place), radius = figure, figure.radius
        width, color = values.get("border_width", 0.0), values.get("border_color", _CLEAR)
        if content.finished:
            width = 0.0
        under = place, radius
        if width > 1 and color[3] == 255:
            under = painting.inset_box(place, radius, min(1.0, width - 1.0))
        found = [self._content(content, under[0], rect, *look, under[1])]
        if width > 0:
            ring = record(c.RING, place, rect, self.flags, *look, radius, width, color)
            found.append(Draw("border", ring))
        return found

    def _content(
        self, content: Content, place: PlacedBox, rect: Rect, blend: int = 0, opacity: float = 1.0,
        radius: float = 0.0,
    ) -> Draw:  # fmt: skip
        picture, flags = content.picture, self.flags
        if picture is not None:
            if content.opaque:
                flags |= c.OPAQUE
            left, top = place.cx - place.hw, place.cy - place.hh
            if texels_fit(place) and left % 1 == 0 and top % 1 == 0:
                flags |= c.NEAREST
        made = record(
            c.FILL if picture is None else c.PICTURE, place, rect, flags, blend, opacity, radius,
            0.0, content.color, picture,
        )  # fmt: skip
        return Draw("content", made, content.version)

    def _shadow(self, figure: Figure, clip: Rect, opacity: float) -> list[Draw]:
        """Return the draw of the shadow, if it is visible."""
        (_, values, content, place), radius = figure, figure.radius
        dx, dy, blur, color = values["shadow"]
        sigma = blur / 2
        place = place._replace(cx=place.cx + dx, cy=place.cy + dy)
        kind, width, picture, version = c.SHADOW, sigma, None, 0
        if content.picture is None:
            opacity = opacity * content.color[3] / 255
        elif not content.opaque:
            kind, width, picture, version = c.TINT, 0.0, content.picture, content.version
            if sigma > 0:
                blurred = self._blurred_shape(figure, sigma)
                picture, version, radius = blurred.picture, blurred.version, 0.0
                _, _, wide, high = crop = painting.whole_of(picture)
                place = place._replace(hw=wide / 2, hh=high / 2, crop=crop)
        rect = bounds(place, clip, 3 * width)
        if rect is None:
            return []
        made = record(kind, place, rect, self.flags, 0, opacity, radius, width, color, picture)
        return [Draw("shadow", made, version)]

    def _blurred_shape(self, figure: Figure, sigma: float) -> ItemFilters:
        """Return the blurred shape of content with alpha, cached until it changes."""
        item, _, content, place = figure
        margin = math.ceil(3 * sigma) + 1
        width = math.ceil(2 * place.hw) + 2 * margin
        height = math.ceil(2 * place.hh) + 2 * margin
        surface = self.surface_for(item, "shadow", width, height)
        flat = place._replace(cx=width / 2, cy=height / 2, cos=1.0, sin=0.0)
        draw = record(c.TINT, flat, surface.rect, radius=figure.radius, color=_WHITE,
                      picture=content.picture)  # fmt: skip

        def run(filters: ItemFilters) -> Buffer:
            surface.draw(draw, None, (0, 0, 0, 255))
            blur = ("gaussian_blur", {"sigma": sigma})
            return filters.run(surface.buffer, [blur, RED_TO_ALPHA], True)

        return self._filtered_by(item, "shadow-filter", (draw, content.version, sigma), run)

    def _isolated(self, figure: Figure, look: Look) -> list[Draw]:
        """Draw shadow, content and border into one picture, which fades or blends as a whole."""
        item, clip = figure.item, figure.item.clip
        parts = self._parts(figure, _EVERYWHERE, _SOLID)
        array = np.frombuffer(b"".join(d.record for d in parts), c.DRAW).copy()
        region = reduce(union, (d.rect for d in parts))
        if area(region) > 4 * clip[2] * clip[3]:
            region = common(region, clip)
        left, top, right, bottom = region
        if left >= right or top >= bottom:
            return []
        for across, down in (("x0", "y0"), ("x1", "y1"), ("cx", "cy")):
            array[across] -= left
            array[down] -= top
        surface = self.surface_for(item, "isolated", right - left, bottom - top)
        key = (array.tobytes(), *(d.version for d in parts))
        self.passes += surface.draw_once(key, array, _CLEAR)
        flat = PlacedBox.flat(right - left, bottom - top, None, left, top)
        rect = bounds(flat, clip)
        if rect is None:
            return []
        made = record(c.PICTURE, flat, rect, self.flags | c.NEAREST, *look, picture=surface.picture)
        return [Draw("isolated", made, surface.version)]

    # groups and effects -------------------------------------------------------------------------
    def _group(self, item: DisplayItem) -> Content:
        """Return the picture of a group, after painting its damage."""
        surface, *more = [
            self._layer(item, inner, f"group-{number}") for number, inner in enumerate(item.inner)
        ]
        if more and isinstance(item.node, TimelineNode):
            surface = self._mixed(item, item.node, surface, more[0])
        return Content(surface.width, surface.height, surface.picture, surface.version)

    def _layer(self, item: DisplayItem, inner: DisplayList, name: str) -> DrawSurface:
        surface = self.surface_for(item, name, inner.width, inner.height)
        inner.refresh(self)
        due = painting.due_effects(inner, clear=True)
        surface.add_damage([rect for _, rect in inner.changes])
        if painting.paint(self, inner, surface, due, _CLEAR):
            self.passes += 1
        inner.painted()
        return surface

    def _mixed(
        self, item: DisplayItem, node: TimelineNode, first: DrawSurface, second: DrawSurface
    ) -> DrawSurface:
        """Return the picture of a transition."""
        mixing = node.mixing
        if mixing is None:
            return second
        made = self.surface_for(item, "mixed", first.width, first.height)
        key = (first.version, second.version, id(mixing.transition), mixing.progress)
        if made.key != key:
            mixing.transition.run(first.buffer, second.buffer, made.buffer, mixing.progress)
            made.key = key
            made.version += 1
            self.filtered += 1
        return made

    def _filtered(self, figure: Figure, effects: list[EffectNode]) -> Figure:
        """Return a node's content after its effects, before rotation, in its box.

        Blurs extend beyond the box (with corners and border) unless the content is an opaque
        picture, but not beyond the visible area, where they would only fade out.
        """
        item, values, content, place = figure
        width = min(LARGEST, max(1, math.ceil(2 * place.hw - 1e-4)))
        height = min(LARGEST, max(1, math.ceil(2 * place.hh - 1e-4)))
        left = top = right = bottom = 0
        if content.picture is None or not content.opaque:
            margin = min(extent_of(effects), (LARGEST - max(width, height)) // 2)
            left, top, right, bottom = (
                margin * side for side in painting.edges_inside(place, item.clip)
            )
        spread = left + top + right + bottom > 0
        stage = self.surface_for(item, "stage", left + width + right, top + height + bottom)
        flat = place._replace(
            cx=left + width / 2, cy=top + height / 2, hw=width / 2, hh=height / 2, cos=1.0, sin=0.0
        )
        if spread:
            rect = left, top, left + width, top + height
            draws = self._content_and_border(Figure(item, values, content, flat), rect, _SOLID)
            box = Content(width, height, margin=(left, top, right, bottom))
            place = painting.with_margin(place, box)
        else:
            draws = [self._content(content, flat, stage.rect)]
        records = b"".join(draw.record for draw in draws)
        stage.draw_once((records, draws[0].version), records, _CLEAR)
        opaque = content.opaque and not spread
        looks = [(e.serial, e.revision, e.property_values["opacity"]) for e in effects]
        key = stage.version, *looks
        made = self._filtered_by(
            item, "filter", key, lambda own: own.chain(stage.buffer, effects, opaque)
        )
        shown = Content(
            stage.width, stage.height, made.picture, made.version,
            opaque=opaque and keep_alpha(e.filter for e in effects), finished=spread,
        )  # fmt: skip
        return Figure(item, values, shown, place._replace(crop=painting.whole_of(made.picture)))

    def _below(self, item: DisplayItem) -> list[Draw]:
        """Return the draws of a backdrop effect; painting fills its picture."""
        node = item.below[-1]
        values = node.property_values
        left, top, w, h = node.box
        if w <= 0 or h <= 0 or values["opacity"] == 0:
            item.work["region"] = None
            return []
        place = PlacedBox.flat(w, h, None, left, top)
        rect = bounds(place, item.clip)
        item.work["region"] = rect
        if rect is None:
            return []
        shape = (rect[3] - rect[1], rect[2] - rect[0], 4)
        filters = [(e.filter, e.params) for e in item.below]
        made = plan(filters, shape, "u8", "Scene.render")[-1].shape
        filtering = self._filters(item, "filter")
        item.work["revision"] = tuple((e.serial, e.revision) for e in item.below), rect
        if filtering.key != item.work["revision"]:
            filtering.version += 1
        picture = filtering.picture
        if picture is None or (picture.height, picture.width) != made[:2]:
            filtering.show(np.zeros((made[0], made[1], 4), np.uint8))
            filtering.key = None
        across, down = made[1] / shape[1], made[0] / shape[0]
        u0, v0 = (left - rect[0]) * across, (top - rect[1]) * down
        place = place._replace(crop=(u0, v0, u0 + w * across, v0 + h * down))
        look = BLEND[values["blend"]], values["opacity"], values["corner_radius"]
        content = Content(w, h, filtering.picture, filtering.version)
        found = [self._content(content, place, rect, *look)]
        if values["border_width"] > 0:
            border = values["border_width"], values["border_color"]
            ring = record(c.RING, place, rect, self.flags, *look, *border)
            found.append(Draw("border", ring))
        return found

    # intermediate pictures ------------------------------------------------------------------------
    def surface_for(self, item: DisplayItem, name: str, width: int, height: int) -> DrawSurface:
        """Return the surface of an item under a name, of a size."""
        found: DrawSurface | None = item.work.get(name)
        if found is None or (found.width, found.height) != (width, height):
            made = DrawSurface(self.compositor, width, height)
            if found is not None:
                made.version = found.version + 1
                found.close()
            found = item.work[name] = made
        return found

    def copied(
        self, item: DisplayItem, name: str, picture: Picture, size: tuple[int, int], crop: Box,
        flags: int = 0,
    ) -> Buffer:  # fmt: skip
        """Return a part of a picture at a size, on the surface of an item under a name."""
        surface = self.surface_for(item, name, *size)
        draw = record(c.PICTURE, PlacedBox.flat(*size, crop), surface.rect, flags, picture=picture)
        surface.draw(draw, None, _CLEAR)
        return surface.buffer

    def _filters(self, item: DisplayItem, name: str) -> ItemFilters:
        found: ItemFilters | None = item.work.get(name)
        if found is None:
            found = item.work[name] = ItemFilters(self.compositor)
        found.frame = max(item.node.scene.number, 0)
        return found

    def _filtered_by(
        self, item: DisplayItem, name: str, key: object, run: Callable[[ItemFilters], Buffer]
    ) -> ItemFilters:
        """Return the filters of an item under a name, run again if the key is another one."""
        found = self._filters(item, name)
        if found.key != key:
            found.show(run(found))
            found.key = key
            self.filtered += 1
        return found
