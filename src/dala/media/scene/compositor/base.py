"""The base: the lowest draws of a scene that have not changed for some frames, as one picture.

What moves above them then costs its own rectangles, however many pictures lie below. It takes the
memory of a frame, so there is none where frames are held while the next is drawn: a scene has two
framebuffers then. And it is made only where the draws it stands for cost much more than it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dala.gpu.compute.composite import (
    DRAW,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    Compositor,
    Rect,
)
from dala.media.scene.boxes import Placed
from dala.media.scene.compositor.canvas import Color, Surface
from dala.media.scene.compositor.display import Layer, record

#: Frames without a change before draws are thought to stay.
_QUIET: Final = 12
#: It is thought about every so many frames, and less often where it did not pay.
_EVERY: Final = 4
_SELDOM: Final = 64
#: How many times the cost of a plain picture the draws below a changed pixel must have.
_WORTH: Final = 4.0
#: Cost of a pixel by kind; a picture that is not drawn pixel by pixel costs more.
_COSTS: Final = {PICTURE: 1.0, RING: 2.0, SHADOW: 8.0, TINT: 2.0}
_SCALED: Final = 2.0


class Base:
    """Keeps the lowest draws of a layer composed while they stay as they are."""

    def __init__(self, compositor: Compositor, background: Color, flags: int) -> None:
        self._compositor = compositor
        self._background = background
        self._flags = flags
        self._surface: Surface | None = None
        self._serial = -1
        self._frame = self._next = 0
        self._wait = _EVERY
        #: The frame in which each draw changed last.
        self._since: list[int] = []
        #: How many draws the picture stands for; 0 if there is none.
        self.count = 0

    @property
    def made(self) -> bool:
        """Whether it takes memory."""
        return self._surface is not None

    def see(self, layer: Layer) -> None:
        """Before a frame: what changed since the last one."""
        self._frame += 1
        if layer.serial != self._serial:
            self._serial = layer.serial
            self._since = [self._frame] * len(layer.draws)
            self._wait, self.count = _EVERY, 0
            return
        since = self._since
        for number, _ in layer.changes:
            if number < 0:
                self._since = since = [self._frame] * len(since)
                self.count = 0
            else:
                since[number] = self._frame
                if number < self.count:
                    self.count = 0

    def consider(self, layer: Layer, rects: list[Rect]) -> None:
        """Begins to keep draws where that pays for what is drawn again now."""
        since, quiet = self._since, self._frame - _QUIET
        if self.count or self._frame < self._next or not since or since[0] > quiet:
            return
        self._next = self._frame + self._wait
        self._wait = min(2 * self._wait, _SELDOM)
        end = next((i for i, changed in enumerate(since) if changed > quiet), len(since))
        if layer.effects:
            end = min([end, *(e.start for e in layer.effects)])
        if end < 2 or _worth(layer.array[:end], rects) < _WORTH:
            return
        if self._surface is None:
            self._surface = Surface(self._compositor, layer.width, layer.height)
        self._surface.draw(layer.array[:end], None, self._background)
        self.count, self._wait = end, _EVERY

    def draw(self) -> np.ndarray[Any, Any]:
        """The draw that stands for the kept ones."""
        surface = self._surface
        assert surface is not None
        width, height = surface.width, surface.height
        whole = (0.0, 0.0, float(width), float(height))
        place = Placed(width / 2, height / 2, width / 2, height / 2, 1.0, 0.0, whole)
        flags = self._flags | NEAREST | (OPAQUE if self._background[3] == 255 else 0)
        made = record(PICTURE, place, (0, 0, width, height), picture=surface.picture, flags=flags)
        return np.frombuffer(made, DRAW)

    def close(self) -> None:
        """Frees it."""
        if self._surface is not None:
            self._surface.close()
        self._surface, self._serial, self.count = None, -1, 0


def _worth(draws: np.ndarray[Any, Any], rects: list[Rect]) -> float:
    """What the draws cost inside the rectangles, a plain picture over all of them being 1."""
    cost = np.array([_COSTS.get(kind, 0.5) for kind in draws["kind"].tolist()])
    scaled = (draws["kind"] == PICTURE) & (draws["flags"] & NEAREST == 0)
    cost += scaled * (_SCALED * draws["taps_x"] * draws["taps_y"])
    total = pixels = 0.0
    for x0, y0, x1, y1 in rects:
        across = np.minimum(draws["x1"], x1) - np.maximum(draws["x0"], x0)
        down = np.minimum(draws["y1"], y1) - np.maximum(draws["y0"], y0)
        total += float((np.maximum(across, 0) * np.maximum(down, 0) * cost).sum())
        pixels += (x1 - x0) * (y1 - y0)
    return total / max(pixels, 1.0)
