"""Pictures that are drawn on: surfaces inside a scene, and the framebuffers it hands out.

A framebuffer is drawn on again only when its Frame and all arrays over it are gone. Each knows
where it does not show the scene as it is, so that only that is drawn; for that, what is handed out
can only be read.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.composite import Compositor, Picture, Rect

Color = tuple[int, int, int, int]

#: Holders of a framebuffer that are looked through for such as let go, where it is lent again.
_MANY: Final = 64
#: Rectangles that a surface keeps in mind; one with more is drawn anew as a whole.
_MOST: Final = 1024


class Surface:
    """A buffer of (height, width, 4) that is drawn on and then read as a picture."""

    def __init__(self, compositor: Compositor, width: int, height: int) -> None:
        self.compositor = compositor
        self.width = width
        self.height = height
        #: Whether rectangles that are many and large are better drawn as one.
        self.coarse = compositor.engine.gpu
        self.buffer = allocate(compositor.engine, (height, width, 4), "u8", zero=True, call="Scene")
        self._picture: Picture | None = None
        #: What it shows, for whoever draws on it.
        self.key: Any = None
        #: Where it does not show its layer as it is.
        self.dirty: list[Rect] = [(0, 0, width, height)]
        #: Changes with its pixels.
        self.version = 0
        self._shown = -1

    @property
    def picture(self) -> Picture:
        """It, as a picture to draw with, up to date."""
        if self._picture is None:
            self._picture = self.compositor.picture(self.buffer)
        elif self._shown != self.version:
            self._picture.update(self.buffer)
        self._shown = self.version
        return self._picture

    def miss(self, rects: list[Rect]) -> None:
        """Its layer looks different there."""
        self.dirty += rects
        if len(self.dirty) > _MOST:
            self.dirty = [(0, 0, self.width, self.height)]

    def draw(
        self, draws: np.ndarray[Any, Any], rects: list[Rect] | None, background: Color | None
    ) -> None:
        """Draws on it: inside the rectangles, which lie in it and do not overlap, or everywhere."""
        width, height = self.width, self.height
        where = [(0, 0, width, height)] if rects is None else rects
        storage = self.buffer.storage("Scene.render")
        self.compositor.composer.compose(storage, width, height, draws, where, background)
        self.version += 1

    def close(self) -> None:
        """Frees it."""
        if self._picture is not None:
            self._picture.close()
        self.buffer.free()


class Lent(Buffer):
    """A framebuffer in a user's hands.

    Freeing it gives the memory back to the scene, or to the device once the scene is closed. On
    devices whose memory the host sees, all arrays over it hold its ``root``.
    """

    __slots__ = ("_owner", "root")

    def __init__(self, owner: Buffer, root: np.ndarray[Any, Any] | None) -> None:
        # Not by Buffer.__init__, which counts it: that was done once, for its owner.
        self.engine, self.shape, self.dtype = owner.engine, owner.shape, owner.dtype
        self.nbytes, self.readonly, self.transient = owner.nbytes, True, False
        self._storage, self._key = owner._storage, owner._key
        self._owner: Buffer | None = owner
        self.root = root

    def read_binary(self) -> memoryview:
        """The bytes: the framebuffer's own memory where shared, else a copy."""
        self.storage("read_binary")
        return super().read_binary() if self.root is None else self.root.data

    def free(self) -> None:
        """Gives the memory back. Freeing twice is fine."""
        self._storage, self._key, self._owner, self.root = None, None, None, None

    def __del__(self) -> None:
        """The memory is its owner's: nothing has to be given back."""


class Canvas:
    """A framebuffer: a buffer, what it shows, and who holds it."""

    def __init__(self, compositor: Compositor, width: int, height: int) -> None:
        self.surface = Surface(compositor, width, height)
        host = compositor.engine.host_view(self.surface.buffer.storage("Scene"))
        self._host = None if host is None else host.toreadonly().cast("B")
        self._holders: list[weakref.ref[Any]] = []

    @property
    def free(self) -> bool:
        """True when nobody holds it or an array over it."""
        holders = self._holders
        while holders:
            holder = holders[-1]()
            if holder is not None and not _gone(holder):
                return False
            holders.pop()
        return True

    def lend(self) -> Buffer:
        """The pixels for a user; until the last hold on them is gone, the canvas is not free."""
        root = None if self._host is None else np.asarray(self._host)
        if len(self._holders) >= _MANY:
            self._holders = [h for h in self._holders if not _gone(h())]
        lent = Lent(self.surface.buffer, root)
        self._holders.append(weakref.ref(lent if root is None else root))
        return lent

    def close(self) -> None:
        """Frees it, unless somebody still holds it: then it is freed when they let go."""
        if self.free:
            self.surface.close()
        elif self.surface._picture is not None:
            self.surface._picture.close()


def _gone(holder: Any) -> bool:
    return holder is None or (isinstance(holder, Lent) and holder.freed)


class Pool:
    """The framebuffers of a scene: as many as are held at once, usually two."""

    def __init__(self, compositor: Compositor, width: int, height: int) -> None:
        self._compositor = compositor
        self.width = width
        self.height = height
        self.canvases: list[Canvas] = []
        #: The one that shows the last frame.
        self.front: Canvas | None = None

    @property
    def full(self) -> bool:
        """True when all are held, so that the next frame needs one more."""
        return not any(canvas.free for canvas in self.canvases)

    def take(self) -> Canvas:
        """One to draw on: that which was drawn last of those that nobody holds."""
        for canvas in reversed(self.canvases):
            if canvas.free:
                self.canvases.remove(canvas)
                break
        else:
            canvas = Canvas(self._compositor, self.width, self.height)
        self.canvases.append(canvas)
        self.front = canvas
        return canvas

    def miss(self, rects: list[Rect]) -> None:
        """The scene looks different there."""
        for canvas in self.canvases:
            canvas.surface.miss(rects)

    def trim(self, keep: int = 3) -> None:
        """Frees what is no longer needed after somebody held many frames."""
        spare = [c for c in self.canvases if c is not self.front and c.free]
        for canvas in spare[: max(0, len(self.canvases) - keep)]:
            self.canvases.remove(canvas)
            canvas.close()

    def close(self) -> None:
        """Frees all; frames in users' hands stay."""
        for canvas in self.canvases:
            canvas.close()
        self.canvases, self.front = [], None
