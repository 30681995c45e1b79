"""The base layer: the lowest draws of a scene, cached as one picture while they do not change.

A node that moves above them then costs only its own rectangles, however many pictures are below.
The cache takes the memory of one frame, so there is none while the scene needs two framebuffers. It
is made only if the draws it replaces cost much more than it does.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.gpu.compute import composite as c
from dala.gpu.compute.composite import Compositor, Rect
from dala.media.scene.boxes import PlacedBox
from dala.media.scene.compositor.display_list import DisplayList, record
from dala.media.scene.compositor.framebuffers import Color, DrawSurface
from dala.typing import NDArray

#: Frames without a change after which draws count as static.
_STATIC_FRAMES: Final = 12
#: Frames between attempts to cache; the interval doubles after each attempt that did not pay.
_FIRST_INTERVAL: Final = 4
_LAST_INTERVAL: Final = 64
#: The draws must cost this many times as much as one picture.
_WORTH: Final = 4.0
#: Cost per pixel by kind of draw; scaled pictures cost more.
_COSTS: Final = {c.PICTURE: 1.0, c.RING: 2.0, c.SHADOW: 8.0, c.TINT: 2.0}
_SCALED: Final = 2.0


class BaseLayer:
    """Caches the lowest draws of a display list while they do not change."""

    def __init__(self, compositor: Compositor, background: Color, flags: int) -> None:
        self._compositor = compositor
        self._background = background
        self._flags = flags
        self._surface: DrawSurface | None = None
        self._serial = -1
        self._frame = self._next = 0
        self._wait = _FIRST_INTERVAL
        #: The last frame in which each draw changed.
        self._since: list[int] = []
        #: Number of cached draws; 0 if there is no cache.
        self.count = 0

    @property
    def made(self) -> bool:
        """True if the cache holds memory."""
        return self._surface is not None

    def note_changes(self, layer: DisplayList) -> None:
        """Record the changes since the last frame."""
        self._frame += 1
        if layer.serial != self._serial:
            self._serial = layer.serial
            self._since = [self._frame] * len(layer.draws)
            self._wait, self.count = _FIRST_INTERVAL, 0
            return
        for number, _ in layer.changes:
            if number < 0:
                self._since = [self._frame] * len(self._since)
            else:
                self._since[number] = self._frame
            if number < self.count:
                self.count = 0

    def consider(self, layer: DisplayList, rects: list[Rect]) -> None:
        """Cache the lowest draws if that pays for the damaged rectangles."""
        since, limit = self._since, self._frame - _STATIC_FRAMES
        if self.count or self._frame < self._next or not since or since[0] > limit:
            return
        self._next = self._frame + self._wait
        self._wait = min(2 * self._wait, _LAST_INTERVAL)
        end = next((i for i, changed in enumerate(since) if changed > limit), len(since))
        if layer.effects:
            end = min([end, *(e.start for e in layer.effects)])
        if end < 2 or _worth(layer.array[:end], rects) < _WORTH:
            return
        if self._surface is None:
            self._surface = DrawSurface(self._compositor, layer.width, layer.height)
        self._surface.draw(layer.array[:end], None, self._background)
        self.count, self._wait = end, _FIRST_INTERVAL

    def draw(self) -> NDArray:
        """Return the draw that replaces the cached ones."""
        surface = self._surface
        assert surface is not None
        place = PlacedBox.flat(surface.width, surface.height)
        flags = self._flags | c.NEAREST | (c.OPAQUE if self._background[3] == 255 else 0)
        made = record(c.PICTURE, place, surface.rect, flags, picture=surface.picture)
        return np.frombuffer(made, c.DRAW)

    def close(self) -> None:
        """Free the cache."""
        if self._surface is not None:
            self._surface.close()
        self._surface, self._serial, self.count = None, -1, 0


def _worth(draws: NDArray, rects: list[Rect]) -> float:
    """Return the cost of draws inside rectangles, relative to one picture over all of them."""
    cost = np.array([_COSTS.get(kind, 0.5) for kind in draws["kind"].tolist()])
    scaled = (draws["kind"] == c.PICTURE) & (draws["flags"] & c.NEAREST == 0)
    cost += scaled * (_SCALED * draws["taps_x"] * draws["taps_y"])
    total = pixels = 0.0
    for x0, y0, x1, y1 in rects:
        across = np.minimum(draws["x1"], x1) - np.maximum(draws["x0"], x0)
        down = np.minimum(draws["y1"], y1) - np.maximum(draws["y0"], y0)
        total += float((np.maximum(across, 0) * np.maximum(down, 0) * cost).sum())
        pixels += (x1 - x0) * (y1 - y0)
    return total / max(pixels, 1.0)
