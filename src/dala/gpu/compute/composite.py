"""Compositing on any device: draw many pictures onto a buffer in one call.

``Compositor.picture`` uploads a picture. ``Compositor.compose`` draws an array of ``DRAW`` records
back to front; :mod:`dala.gpu.compute.engines.compositing` documents their fields. Scenes are
rendered this way.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np

from dala import memory
from dala.errors import DeviceMismatch, DtypeError, FreedError, ShapeError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.engines.compositing import (
    BLENDS,
    DRAW,
    FILL,
    GRID,
    LINEAR,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    ComposedFrame,
    Composer,
    Rect,
    on_grid,
)
from dala.resources import Closing
from dala.typing import NDArray

__all__ = [
    "BLENDS", "DRAW", "FILL", "GRID", "LINEAR", "NEAREST", "OPAQUE", "PICTURE", "RING", "SHADOW",
    "TINT", "ComposedFrame", "Compositor", "Picture", "Rect", "on_grid",
]  # fmt: skip


_U8: Final = np.dtype(np.uint8)
#: For engines that do not batch submissions.
_NO_BATCH: Final = nullcontext()


class Picture(Closing):
    """A picture of a compositor. Draws refer to its ``number`` in their field "picture"."""

    def __init__(
        self, compositor: Compositor, width: int, height: int, accounts: memory.Accounts = ()
    ) -> None:
        self.compositor = compositor
        self.width = width
        self.height = height
        #: True for pictures without alpha.
        self.opaque = False
        self._kept: NDArray | Buffer | None = None
        #: The shape of the last array if it had color channels; None for other sources.
        self._like: tuple[int, ...] | None = None
        self._closed = False
        composer, device = compositor.composer, compositor.device
        memory.reserve("picture", device, self.nbytes, "Scene", accounts)
        try:
            self.number = composer.picture(width, height)
        except BaseException:
            memory.release("picture", device, self.nbytes, accounts)
            raise
        self._end = weakref.finalize(
            self, _drop, composer, self.number, device, self.nbytes, accounts
        )
        self._end.atexit = False

    @property
    def nbytes(self) -> int:
        """The size of its pixels as RGBA, in bytes."""
        return self.width * self.height * 4

    def update(self, source: NDArray | Buffer) -> None:
        """Replace the pixels with a u8 array or buffer of the same size.

        A source that the device can read is not copied. Do not change it until the next update.
        """
        if self._closed:
            raise FreedError("Picture.update: the picture was closed. Make a new one.")
        shape = source.shape
        channels = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
        if channels not in (1, 3, 4) or shape[0] != self.height or shape[1] != self.width:
            raise ShapeError.invalid(
                "Picture.update",
                "source",
                f"of shape ({self.height}, {self.width}[, 3 or 4])",
                tuple(shape),
                "Make a new picture for another size.",
            )
        wanted, shown = ("u8", "'u8'") if isinstance(source, Buffer) else (_U8, "uint8")
        if source.dtype != wanted:
            expected, got = f"of dtype {shown}", str(source.dtype)
            raise DtypeError.invalid("Picture.update", "source", expected, got)
        self._like = None
        if not isinstance(source, Buffer):
            source = np.ascontiguousarray(source)
            self._like = shape if channels > 1 else None
        elif source.engine is not self.compositor.engine:
            source = source.numpy()
        given = source.storage("Picture.update") if isinstance(source, Buffer) else source
        self.compositor.composer.put(self.number, given, channels)
        self._kept = source
        self.opaque = channels != 4

    def update_fast(self, source: NDArray | Buffer) -> bool:
        """Replace the pixels with an array of the same layout as the last, such as a video frame.

        For any other source, do nothing and return False.
        """
        like = self._like
        if like is None or type(source) is not np.ndarray or source.shape != like:
            return False
        if source.dtype is not _U8 or self._closed or not source.flags.c_contiguous:
            return False
        self.compositor.composer.put(self.number, source, like[2])
        self._kept = source
        return True

    def close(self) -> None:
        """Release the picture. Closing twice is allowed."""
        self._closed = True
        self._end()
        self._kept = None

    def __repr__(self) -> str:
        return f"<Picture {self.width}x{self.height} on {self.compositor.device}>"


class Compositor(Closing):
    """Draws pictures onto buffers of a device. Not thread-safe.

    >>> import numpy as np
    >>> from dala.gpu.compute import buffer_zeros
    >>> with Compositor("cpu") as c:
    ...     target = buffer_zeros((2, 4, 4), "u8", device="cpu")
    ...     c.compose(target, np.zeros(0, DRAW), background=(255, 0, 0, 255))
    >>> target.numpy()[0, 0].tolist()
    [255, 0, 0, 255]
    """

    def __init__(self, device: str | None = None) -> None:
        self.engine = auto.current() if device is None else auto.get(device)
        self.composer: Composer = self.engine.composer()
        self._accounts: memory.Accounts = ()
        self._batches = type(self.engine).batched is not Engine.batched

    @property
    def accounts(self) -> memory.Accounts:
        """The memory budgets that its pictures and its own memory count against."""
        return self._accounts

    @accounts.setter
    def accounts(self, accounts: memory.Accounts) -> None:
        self._accounts = accounts
        self.composer.count_for(accounts)

    @property
    def device(self) -> str:
        """The id of the device."""
        return self.engine.id

    @property
    def nbytes(self) -> int:
        """Bytes allocated on the device, not counting the pictures' sources."""
        return self.composer.nbytes

    def picture(self, source: NDArray | Buffer) -> Picture:
        """Create a picture from a u8 array or buffer of shape (height, width[, 3 or 4])."""
        shape = tuple(getattr(source, "shape", ()))
        if len(shape) not in (2, 3) or 0 in shape:
            raise ShapeError.invalid(
                "Compositor.picture", "source", "of shape (height, width[, 3 or 4])", shape
            )
        # The pixels of a buffer count where they are, unless the device copies them.
        copied = self.engine.queued or not isinstance(source, Buffer)
        made = Picture(self, shape[1], shape[0], self.accounts if copied else ())
        try:
            made.update(source)
        except BaseException:
            made.close()
            raise
        return made

    def compose(
        self,
        target: Buffer,
        draws: NDArray,
        rects: Sequence[Rect] | None = None,
        *,
        background: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Draw onto the target, back to front, clipped to the rectangles.

        Args:
            target: (height, width, 4) of u8 on this device.
            draws: an array of ``DRAW`` records.
            rects: (left, top, right, bottom) each; they must not overlap. None draws everywhere.
            background: a color to fill the rectangles with first; None keeps the pixels.
        """
        if target.engine is not self.engine:
            raise DeviceMismatch.invalid(
                "Compositor.compose", "target", f"on {self.device!r}", target.device
            )
        shape = target.shape
        if len(shape) != 3 or shape[2] != 4 or target.dtype != "u8":
            raise ShapeError.invalid(
                "Compositor.compose", "target", "(height, width, 4) of u8", (target.dtype, shape)
            )
        if draws.dtype is not DRAW and draws.dtype != DRAW:
            raise DtypeError.invalid(
                "Compositor.compose", "draws", "of dtype DRAW", str(draws.dtype)
            )
        height, width, _ = shape
        if rects is None:
            rects = [(0, 0, width, height)]
        for x0, y0, x1, y1 in rects:
            if x0 < 0 or y0 < 0 or x1 > width or y1 > height or x0 >= x1 or y0 >= y1:
                rects = _clip(rects, width, height)
                break
        storage = target.storage_to_write("Compositor.compose")
        frame = ComposedFrame(storage, width, height, on_grid(draws), rects, background)
        self.composer.compose(frame)

    def batched(self) -> AbstractContextManager[None]:
        """Return a context manager that submits the work started inside it together."""
        return self.engine.batched() if self._batches else _NO_BATCH

    def close(self) -> None:
        """Release all pictures. Closing twice is allowed."""
        self.composer.close()


def _clip(rects: Sequence[Rect], width: int, height: int) -> list[Rect]:
    """Clip rectangles to a picture; drop those outside."""
    cut = [(max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)) for x0, y0, x1, y1 in rects]
    return [r for r in cut if r[0] < r[2] and r[1] < r[3]]


def _drop(
    composer: Composer, number: int, device: str, nbytes: int, accounts: memory.Accounts
) -> None:
    composer.drop(number)
    memory.release("picture", device, nbytes, accounts)
