"""Draw targets: intermediate surfaces of a scene, and the framebuffers of its frames.

A framebuffer is drawn on again only after its Frame and all arrays over it are gone. Each one
tracks its damage, the rectangles where it is out of date, so that only those are drawn. This is why
frames are read-only.
"""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import Final

import numpy as np

from dala.budget import Charging
from dala.gpu.compute import Buffer
from dala.gpu.compute import composite as c
from dala.gpu.compute.buffer import BorrowedBuffer, allocate
from dala.gpu.compute.composite import Compositor, Picture, Rect
from dala.typing import NDArray

Color = tuple[int, int, int, int]

#: References to frames are pruned when there are this many.
_MOST_REFERENCES: Final = 64
#: Framebuffers that count against the scene's memory; further ones are for frames that are kept.
_OWN_FRAMEBUFFERS: Final = 3
#: Largest number of taps per pixel in each direction.
MOST_TAPS: Final = 64
#: A surface with more damaged rectangles is drawn as a whole.
_MOST_RECTANGLES: Final = 1024


class DrawSurface:
    """A buffer of shape (height, width, 4) that is drawn on and then used as a picture."""

    def __init__(self, compositor: Compositor, width: int, height: int, reduction: int = 1) -> None:
        self.compositor = compositor
        #: How many times smaller it is than what is drawn on it.
        self.reduction = reduction
        self.width, self.height = width, height = -(-width // reduction), -(-height // reduction)
        #: The whole surface.
        self.rect: Rect = (0, 0, width, height)
        #: Whether many large rectangles are better drawn as one.
        self.coarse = compositor.engine.gpu
        self.buffer = allocate(compositor.engine, (height, width, 4), "u8", zero=True, call="Scene")
        self._picture: Picture | None = None
        #: Identifies the current contents, for the caller.
        self.key: object = None
        #: Rectangles where it is out of date.
        self.dirty: list[Rect] = [self.rect]
        #: Changes with its pixels.
        self.version = 0
        self._picture_version = -1

    @property
    def picture(self) -> Picture:
        """The surface as a picture to draw with."""
        if self._picture is None:
            self._picture = self.compositor.picture(self.buffer)
        elif self._picture_version != self.version:
            self._picture.update(self.buffer)
        self._picture_version = self.version
        return self._picture

    def add_damage(self, rects: list[Rect]) -> None:
        """Mark rectangles as out of date."""
        self.dirty += rects
        if len(self.dirty) > _MOST_RECTANGLES:
            self.dirty = [self.rect]

    def draw(
        self, draws: bytes | NDArray, rects: list[Rect] | None, background: Color | None
    ) -> None:
        """Draw records inside rectangles, which must not overlap, or everywhere."""
        array = np.frombuffer(draws, c.DRAW) if isinstance(draws, bytes) else draws
        where = [self.rect] if rects is None else rects
        if self.reduction > 1:
            array, where = reduced(array, self.reduction), [self.rect]
        storage = self.buffer.storage_to_write("Scene.render")
        self.compositor.composer.compose(
            c.ComposedFrame(storage, self.width, self.height, array, where, background)
        )
        self.version += 1

    def draw_once(self, key: object, draws: bytes | NDArray, background: Color) -> bool:
        """Draw the whole surface unless it was drawn for the same key; return True if it was."""
        if self.key == key:
            return False
        self.draw(draws, None, background)
        self.key = key
        return True

    def close_picture(self) -> None:
        """Close the picture, but keep the buffer."""
        if self._picture is not None:
            self._picture.close()

    def close(self) -> None:
        """Free the buffer."""
        self.close_picture()
        self.buffer.free()


def reduced(draws: NDArray, times: int) -> NDArray:
    """Return draws for a surface that is so many times smaller."""
    made = draws.copy()
    for name in ("cx", "cy", "hw", "hh", "radius", "width"):
        made[name] /= times
    for first, last in (("x0", "x1"), ("y0", "y1")):
        made[first] //= times
        made[last] = -(-made[last] // times)
    made["flags"] &= ~c.NEAREST
    many = times * np.maximum(made["sx"], made["sy"]) > 2
    for scale, taps in (("sx", "taps_x"), ("sy", "taps_y")):
        made[scale] *= times
        count = np.clip(np.ceil(made[scale] / 2 - 1e-6), 1, MOST_TAPS)
        made[taps] = np.where(many, count, 1)
    return c.on_grid(made)


class FrameView(BorrowedBuffer):
    """The buffer of a frame, whose memory belongs to a framebuffer.

    Freeing it returns the memory to the scene, or to the device once the scene is closed. On
    devices with host memory, all arrays over the frame keep its ``root`` alive.
    """

    __slots__ = ("root",)

    def __init__(self, owner: Buffer, root: NDArray | None) -> None:
        super().__init__(owner)
        self.root = root

    def shared_bytes(self, call: str) -> memoryview:
        """Return the bytes: the framebuffer's memory if the host sees it, else a copy."""
        self.storage(call)
        return super().shared_bytes(call) if self.root is None else self.root.data

    def free(self) -> None:
        """Return the memory to the framebuffer. Freeing twice has no effect."""
        super().free()
        self.root = None


class Framebuffer:
    """A draw surface, and the frames that were made from it."""

    def __init__(self, compositor: Compositor, width: int, height: int, reduction: int) -> None:
        self.surface = DrawSurface(compositor, width, height, reduction)
        host = compositor.engine.host_view(self.surface.buffer.storage("Scene"))
        self._host = None if host is None else host.toreadonly().cast("B")
        self._frames: list[weakref.ref[FrameView | NDArray]] = []

    @property
    def free(self) -> bool:
        """True if no frame or array over it is alive."""
        frames = self._frames
        while frames:
            frame = frames[-1]()
            if frame is not None and not _released(frame):
                return False
            frames.pop()
        return True

    def lend(self) -> Buffer:
        """Return the pixels for a new frame; the framebuffer is not free while it is alive."""
        root = None if self._host is None else np.asarray(self._host)
        if len(self._frames) >= _MOST_REFERENCES:
            self._frames = [f for f in self._frames if not _released(f())]
        lent = FrameView(self.surface.buffer, root)
        self._frames.append(weakref.ref(lent if root is None else root))
        return lent

    def close(self) -> None:
        """Free the memory, or leave that to the frames that are still alive."""
        if self.free:
            self.surface.close()
        else:
            self.surface.close_picture()


def _released(frame: FrameView | NDArray | None) -> bool:
    return frame is None or (isinstance(frame, FrameView) and frame.freed)


class FramebufferPool:
    """The framebuffers of a scene: as many as frames are alive at once, usually two."""

    def __init__(self, compositor: Compositor, width: int, height: int) -> None:
        self._compositor = compositor
        self.width = width
        self.height = height
        #: How many times smaller the framebuffers are.
        self.reduction = 1
        self.framebuffers: list[Framebuffer] = []
        #: The framebuffer of the last frame.
        self.front: Framebuffer | None = None

    @property
    def full(self) -> bool:
        """True if all are in use, so that the next frame needs another one."""
        return not any(framebuffer.free for framebuffer in self.framebuffers)

    def take(self) -> Framebuffer:
        """Return a framebuffer to draw on: the free one that was drawn last, or a new one."""
        for framebuffer in reversed(self.framebuffers):
            if framebuffer.free:
                self.framebuffers.remove(framebuffer)
                break
        else:
            framebuffer = self._new()
        self.framebuffers.append(framebuffer)
        self.front = framebuffer
        return framebuffer

    def _new(self) -> Framebuffer:
        own = len(self.framebuffers) < _OWN_FRAMEBUFFERS  # further ones: frames the caller keeps
        with nullcontext() if own else Charging((), alone=True):
            return Framebuffer(self._compositor, self.width, self.height, self.reduction)

    def add_damage(self, rects: list[Rect]) -> None:
        """Mark rectangles of all framebuffers as out of date."""
        for framebuffer in self.framebuffers:
            framebuffer.surface.add_damage(rects)

    def trim(self, keep: int = 3) -> None:
        """Free framebuffers that are no longer needed."""
        spare = [c for c in self.framebuffers if c is not self.front and c.free]
        for framebuffer in spare[: max(0, len(self.framebuffers) - keep)]:
            self.framebuffers.remove(framebuffer)
            framebuffer.close()

    def reduce(self, reduction: int) -> bool:
        """Make the framebuffers so many times smaller; return False if they are already."""
        if reduction == self.reduction:
            return False
        self.close()
        self.reduction = reduction
        return True

    def close(self) -> None:
        """Free all; frames that are alive stay valid."""
        for framebuffer in self.framebuffers:
            framebuffer.close()
        self.framebuffers, self.front = [], None
