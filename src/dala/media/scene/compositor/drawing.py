"""Make the draws of nodes: shadow, content and border, with effects and groups."""

from __future__ import annotations

import math
import struct
from math import ceil, floor
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute.composite import (
    DRAW,
    FILL,
    LINEAR,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    Compositor,
    Picture,
    Rect,
)
from dala.media.filters.plans import plan
from dala.media.scene.boxes import PlacedBox, place_content
from dala.media.scene.compositor.display_list import (
    BLEND,
    DisplayItem,
    DisplayList,
    Draw,
    MovableDraw,
    bounds,
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
from dala.media.scene.compositor.geometry import (
    box_of_picture,
    corner_radius,
    edges_inside,
    inset_box,
    surface_rect,
)
from dala.media.scene.compositor.painting import due_effects, paint
from dala.media.scene.nodes.node import Content
from dala.media.scene.nodes.timeline import TimelineNode

if TYPE_CHECKING:
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.nodes.property_types import Values

_WHITE: Final = (255, 255, 255, 255)
_CLEAR: Final = (0, 0, 0, 0)
_EVERYWHERE: Final[Rect] = (-(1 << 24), -(1 << 24), 1 << 24, 1 << 24)
#: Write the part of a record from its flags on: flags, picture, bounds, center.
_write_position: Final = struct.Struct("<2i4i2f").pack_into


class NodeDrawer:
    """Makes the draws of the items of a scene."""

    def __init__(self, compositor: Compositor, linear: bool) -> None:
        self.compositor = compositor
        self.flags = LINEAR if linear else 0
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
        content = node.content() if item.inner is None else self._group(item)
        if content is None:
            return []
        place = place_content(node, content)
        if place is None:
            return []
        if item.dx or item.dy:
            place = place._replace(cx=place.cx + item.dx, cy=place.cy + item.dy)
        if content.picture is not None and any(content.margin):
            place = box_of_picture(place, content)
        effects = [e for e in node.effects if e.present and e.property_values["visible"]]
        if effects:
            content, place = self._filtered(item, content, place, effects)
        blend = BLEND[values["blend"]]
        shadow = values.get("shadow") is not None and "text" not in values
        opacity = values["opacity"]
        if (blend or opacity < 1.0) and (shadow or values.get("border_width")):
            return self._isolated(item, content, place, opacity, blend)
        found = self._parts(item, content, place, item.clip, opacity, blend)
        if not shadow and not content.finished and _is_content(found):
            flags = found[0].record[8] if found else 0
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
            flags |= NEAREST
        _write_position(draw.record, 8, flags, movable.number, x0, y0, x1, y1, x, y)
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
    def _parts(
        self,
        item: DisplayItem,
        content: Content,
        place: PlacedBox,
        clip: Rect,
        opacity: float,
        blend: int,
    ) -> list[Draw]:
        values = item.node.property_values
        found: list[Draw] = []
        shadow = None if "text" in values else values["shadow"]
        if shadow is not None:
            radius = corner_radius(values, content, place)
            draw = self._shadow(item, content, place, clip, radius, shadow, opacity)
            found += [] if draw is None else [draw]
        rect = bounds(place, clip)
        if rect is not None:
            found += self._content_and_border(values, content, place, rect, opacity, blend)
        return found

    def _content_and_border(
        self,
        values: Values,
        content: Content,
        place: PlacedBox,
        rect: Rect,
        opacity: float,
        blend: int,
    ) -> list[Draw]:
        """Return the draws of content and border."""
        found: list[Draw] = []
        radius = corner_radius(values, content, place)
        width, color = values.get("border_width", 0.0), values.get("border_color", _CLEAR)
        if content.finished:
            width = 0.0
        under = place, radius
        if width > 1 and color[3] == 255:
            under = inset_box(place, radius, min(1.0, width - 1.0))
        found.append(self._content(content, under[0], rect, blend, opacity, under[1]))
        if width > 0:
            ring = record(RING, place, rect, self.flags, blend, opacity, radius, width, color)
            found.append(Draw("border", ring))
        return found

    def _content(
        self,
        content: Content,
        place: PlacedBox,
        rect: Rect,
        blend: int = 0,
        opacity: float = 1.0,
        radius: float = 0.0,
    ) -> Draw:
        picture = content.picture
        flags = self.flags
        if picture is None:
            made = record(FILL, place, rect, flags, blend, opacity, radius, 0.0, content.color)
            return Draw("content", made)
        if content.opaque:
            flags |= OPAQUE
        if texels_fit(place) and (place.cx - place.hw) % 1 == 0 and (place.cy - place.hh) % 1 == 0:
            flags |= NEAREST
        made = record(PICTURE, place, rect, flags, blend, opacity, radius, picture=picture)
        return Draw("content", made, content.version)

    def _shadow(
        self,
        item: DisplayItem,
        content: Content,
        place: PlacedBox,
        clip: Rect,
        radius: float,
        shadow: tuple[float, float, float, tuple[int, int, int, int]],
        opacity: float,
    ) -> Draw | None:
        dx, dy, blur, color = shadow
        sigma = blur / 2
        moved = place._replace(cx=place.cx + dx, cy=place.cy + dy)
        if content.picture is None or content.opaque:
            rect = bounds(moved, clip, 3 * sigma)
            if content.picture is None:
                opacity = opacity * content.color[3] / 255
            made = rect and record(
                SHADOW, moved, rect, width=sigma, radius=radius, color=color, flags=self.flags,
                opacity=opacity,
            )  # fmt: skip
            return Draw("shadow", made) if made else None
        picture, version = content.picture, content.version
        if sigma > 0:
            surface, filtering = self._blurred_shape(item, content, place, radius, sigma)
            assert filtering.result is not None
            picture, version = item.work["shadow-picture"], filtering.version
            half_w, half_h = surface.width / 2, surface.height / 2
            whole = (0.0, 0.0, float(surface.width), float(surface.height))
            moved = moved._replace(hw=half_w, hh=half_h, crop=whole)
            radius = 0.0
        rect = bounds(moved, clip)
        if rect is None:
            return None
        made = record(
            TINT, moved, rect, picture=picture, radius=radius, color=color, flags=self.flags,
            opacity=opacity,
        )  # fmt: skip
        return Draw("shadow", made, version)

    def _blurred_shape(
        self, item: DisplayItem, content: Content, place: PlacedBox, radius: float, sigma: float
    ) -> tuple[DrawSurface, ItemFilters]:
        """Return the blurred shape of content with alpha, cached until it changes."""
        margin = math.ceil(3 * sigma) + 1
        width = math.ceil(2 * place.hw) + 2 * margin
        height = math.ceil(2 * place.hh) + 2 * margin
        surface = self.surface_for(item, "shadow", width, height)
        filtering = self._filtering(item, "shadow-filter")
        assert content.picture is not None
        flat = place._replace(cx=width / 2, cy=height / 2, cos=1.0, sin=0.0)
        draw = record(TINT, flat, surface_rect(surface), picture=content.picture,
                      color=_WHITE, radius=radius)  # fmt: skip
        key = (draw, content.version, sigma)
        if filtering.key != key:
            surface.draw(np.frombuffer(draw, DRAW), None, (0, 0, 0, 255))
            blur = ("gaussian_blur", {"sigma": sigma})
            filtering.result = filtering.run(surface.buffer, [blur, RED_TO_ALPHA], True)
            filtering.key = key
            filtering.version += 1
            self.filtered += 1
            self.set_picture(item, "shadow-picture", filtering.result)
        return surface, filtering

    def _isolated(
        self, item: DisplayItem, content: Content, place: PlacedBox, opacity: float, blend: int
    ) -> list[Draw]:
        """Draw shadow, content and border into one picture, which fades or blends as a whole."""
        parts = self._parts(item, content, place, _EVERYWHERE, 1.0, 0)
        array = np.frombuffer(b"".join(d.record for d in parts), DRAW).copy()
        region = (
            int(array["x0"].min()), int(array["y0"].min()),
            int(array["x1"].max()), int(array["y1"].max()),
        )  # fmt: skip
        clip = item.clip
        if (region[2] - region[0]) * (region[3] - region[1]) > 4 * clip[2] * clip[3]:
            region = (
                max(region[0], clip[0]), max(region[1], clip[1]),
                min(region[2], clip[2]), min(region[3], clip[3]),
            )  # fmt: skip
        width, height = region[2] - region[0], region[3] - region[1]
        if width <= 0 or height <= 0:
            return []
        array["x0"] -= region[0]
        array["x1"] -= region[0]
        array["y0"] -= region[1]
        array["y1"] -= region[1]
        array["cx"] -= region[0]
        array["cy"] -= region[1]
        surface = self.surface_for(item, "isolated", width, height)
        key = (array.tobytes(), *(d.version for d in parts))
        if surface.key != key:
            surface.draw(array, None, _CLEAR)
            surface.key = key
            self.passes += 1
        whole = (0.0, 0.0, float(width), float(height))
        flat = PlacedBox(
            region[0] + width / 2, region[1] + height / 2, width / 2, height / 2, 1.0, 0.0, whole
        )
        rect = bounds(flat, clip)
        if rect is None:
            return []
        flags = self.flags | NEAREST
        made = record(PICTURE, flat, rect, picture=surface.picture, flags=flags,
                      blend=blend, opacity=opacity)  # fmt: skip
        return [Draw("isolated", made, surface.version)]

    # groups and effects -------------------------------------------------------------------------
    def _group(self, item: DisplayItem) -> Content:
        """Return the picture of a group, after painting its damage."""
        assert item.inner is not None
        surface = self._layer(item, item.inner, "group")
        if item.second is not None and isinstance(item.node, TimelineNode):
            second = self._layer(item, item.second, "second")
            surface = self._mixed(item, item.node, surface, second)
        return Content(surface.width, surface.height, surface.picture, surface.version)

    def _layer(self, item: DisplayItem, inner: DisplayList, name: str) -> DrawSurface:
        surface = self.surface_for(item, name, inner.width, inner.height)
        inner.refresh(self)
        due = due_effects(inner, clear=True)
        surface.add_damage([rect for _, rect in inner.changes])
        if paint(self, inner, surface, due, _CLEAR):
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

    def _filtered(
        self, item: DisplayItem, content: Content, place: PlacedBox, effects: list[EffectNode]
    ) -> tuple[Content, PlacedBox]:
        """Return a node's content after its effects, before rotation, and its box.

        Blurs extend beyond the box (with corners and border) unless the content is an opaque
        picture, but not beyond the visible area, where they would only fade out.
        """
        width = min(LARGEST, max(1, math.ceil(2 * place.hw - 1e-4)))
        height = min(LARGEST, max(1, math.ceil(2 * place.hh - 1e-4)))
        left = top = right = bottom = 0
        if content.picture is None or not content.opaque:
            margin = min(extent_of(effects), (LARGEST - max(width, height)) // 2)
            left, top, right, bottom = (margin * side for side in edges_inside(place, item.clip))
        spread = left + top + right + bottom > 0
        stage = self.surface_for(item, "stage", left + width + right, top + height + bottom)
        flat = place._replace(
            cx=left + width / 2, cy=top + height / 2, hw=width / 2, hh=height / 2, cos=1.0, sin=0.0
        )
        if spread:
            rect = left, top, left + width, top + height
            draws = self._content_and_border(item.node.property_values, content, flat, rect, 1.0, 0)
        else:
            draws = [self._content(content, flat, surface_rect(stage))]
        records = b"".join(draw.record for draw in draws)
        key = (records, draws[0].version)
        if stage.key != key:
            stage.draw(np.frombuffer(records, DRAW), None, _CLEAR)
            stage.key = key
        opaque = content.opaque and not spread
        filtering = self._filtering(item, "filter")
        wanted = (
            stage.version, *((e.serial, e.revision, e.property_values["opacity"]) for e in effects)
        )  # fmt: skip
        if filtering.key != wanted:
            filtering.result = filtering.chain(stage.buffer, effects, opaque)
            filtering.key = wanted
            filtering.version += 1
            self.filtered += 1
            self.set_picture(item, "filtered", filtering.result)
        picture: Picture = item.work["filtered"]
        whole = (0.0, 0.0, float(picture.width), float(picture.height))
        opaque = opaque and keep_alpha(e.filter for e in effects)
        made = Content(
            stage.width, stage.height, picture, filtering.version, opaque=opaque, finished=spread
        )
        if spread:
            across, down = place.hw / width, place.hh / height
            dx, dy = (right - left) * across, (bottom - top) * down
            place = place._replace(
                cx=place.cx + dx * place.cos - dy * place.sin,
                cy=place.cy + dx * place.sin + dy * place.cos,
                hw=stage.width * across,
                hh=stage.height * down,
            )
        return made, place._replace(crop=whole)

    def _below(self, item: DisplayItem) -> list[Draw]:
        """Return the draws of a backdrop effect; painting fills its picture."""
        node = item.below[-1]
        values = node.property_values
        left, top, w, h = node.box
        if w <= 0 or h <= 0 or values["opacity"] == 0:
            item.work["region"] = None
            return []
        place = PlacedBox(left + w / 2, top + h / 2, w / 2, h / 2, 1.0, 0.0, (0.0, 0.0, w, h))
        rect = bounds(place, item.clip)
        item.work["region"] = rect
        if rect is None:
            return []
        shape = (rect[3] - rect[1], rect[2] - rect[0], 4)
        filters = [(e.filter, e.params) for e in item.below]
        made = plan(filters, shape, "u8", "Scene.render")[-1].shape
        filtering = self._filtering(item, "filter")
        item.work["revision"] = tuple((e.serial, e.revision) for e in item.below), rect
        if filtering.key != item.work["revision"]:
            filtering.version += 1
        picture: Picture | None = item.work.get("filtered")
        if picture is None or (picture.height, picture.width) != made[:2]:
            blank = np.zeros((made[0], made[1], 4), np.uint8)
            picture = item.work["filtered"] = self.compositor.picture(blank)
            filtering.key = None
        across, down = made[1] / shape[1], made[0] / shape[0]
        u0, v0 = (left - rect[0]) * across, (top - rect[1]) * down
        place = place._replace(crop=(u0, v0, u0 + w * across, v0 + h * down))
        look = BLEND[values["blend"]], values["opacity"], values["corner_radius"]
        content = Content(w, h, picture, filtering.version)
        found = [self._content(content, place, rect, *look)]
        if values["border_width"] > 0:
            border = values["border_width"], values["border_color"]
            ring = record(RING, place, rect, self.flags, *look, *border)
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

    def _filtering(self, item: DisplayItem, name: str) -> ItemFilters:
        found: ItemFilters | None = item.work.get(name)
        if found is None:
            found = item.work[name] = ItemFilters(self.compositor.device)
        return found

    def set_picture(self, item: DisplayItem, name: str, pixels: Buffer) -> None:
        """Keep the result of a filter as a picture of an item under a name."""
        found: Picture | None = item.work.get(name)
        if found is not None and (found.height, found.width) == tuple(pixels.shape[:2]):
            found.update(pixels)
            return
        item.work[name] = self.compositor.picture(pixels)


def _is_content(draws: list[Draw]) -> bool:
    """Return True if the draws are the content alone, or none."""
    return [draw.part for draw in draws] in ([], ["content"])
