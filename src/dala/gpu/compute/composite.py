"""Compositing on any device: pictures kept there, drawn onto a buffer in one go.

What scenes stand on. ``Compositor.picture`` keeps a picture, ``Compositor.compose`` draws an array
of ``DRAW`` records (see ``engines/composing.py`` for what each field means) back to front.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from dala import resources
from dala.errors import DeviceMismatch, DtypeError, FreedError, ShapeError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.engines.compositing import (
    BLENDS,
    DRAW,
    FILL,
    LINEAR,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    Composer,
    Rect,
)
from dala.resources import Closing

__all__ = [
    "BLENDS", "DRAW", "FILL", "LINEAR", "NEAREST", "OPAQUE", "PICTURE", "RING", "SHADOW", "TINT",
    "Compositor", "Picture", "Rect",
]  # fmt: skip


_U8: Final = np.dtype(np.uint8)
#: Around work on engines that begin it at once anyway.
_APART: Final = nullcontext()


class Picture(Closing):
    """A picture that a compositor keeps. ``number`` stands in the field "picture" of draws."""

    __slots__ = (
        "__weakref__",
        "_closed",
        "_end",
        "_kept",
        "_like",
        "compositor",
        "height",
        "number",
        "opaque",
        "width",
    )

    def __init__(self, compositor: Compositor, width: int, height: int) -> None:
        self.compositor = compositor
        self.width = width
        self.height = height
        #: True where no pixel can let anything through: pictures without alpha.
        self.opaque = False
        self._kept: Any = None
        #: The shape of the array it shows, in colour; None where it shows something else.
        self._like: tuple[int, ...] | None = None
        self._closed = False
        composer = compositor.composer
        self.number = composer.picture(width, height)
        resources.track("picture", compositor.device, self.nbytes)
        self._end = weakref.finalize(
            self, _drop, composer, self.number, compositor.device, self.nbytes
        )
        self._end.atexit = False

    @property
    def nbytes(self) -> int:
        """Bytes of its pixels as RGBA."""
        return self.width * self.height * 4

    def update(self, source: Any) -> None:
        """Gives it other pixels of the same size: (height, width[, 3 or 4]) of u8.

        An array or a Buffer. What is given is read at each drawing, not copied, where the device
        can see it: leave it alone until the next update.
        """
        if self._closed:
            raise FreedError("Picture.update: the picture was closed. Make a new one.")
        shape = source.shape
        channels = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
        if channels not in (1, 3, 4) or shape[0] != self.height or shape[1] != self.width:
            raise ShapeError(
                f"Picture.update: ({self.height}, {self.width}[, 3 or 4]) is expected, "
                f"{tuple(shape)} came. Make a new picture for another size."
            )
        composer, self._like = self.compositor.composer, None
        if isinstance(source, Buffer):
            if source.dtype != "u8":
                raise DtypeError(f"Picture.update: u8 is expected, {source.dtype} came.")
            if source.engine is self.compositor.engine:
                composer.put(self.number, source.storage("Picture.update"), channels)
                self._kept = source
            else:
                self._kept = source.numpy()
                composer.put(self.number, self._kept, channels)
        else:
            if source.dtype is not _U8 and source.dtype != _U8:
                raise DtypeError(f"Picture.update: uint8 is expected, {source.dtype} came.")
            self._kept = np.ascontiguousarray(source)
            composer.put(self.number, self._kept, channels)
            self._like = shape if channels > 1 else None
        self.opaque = channels != 4

    def again(self, source: Any) -> bool:
        """As :meth:`update` for an array like the last, as most frames of a video are.

        False where it is not like that, or nothing of the kind: then nothing was done.
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
        """Forgets the picture. Closing twice is fine."""
        self._closed = True
        self._end()
        self._kept = None

    def __repr__(self) -> str:
        return f"<Picture {self.width}x{self.height} on {self.compositor.device}>"


class Compositor(Closing):
    """Keeps pictures on a device and draws them onto buffers. One user at a time.

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
        self._gathers = type(self.engine).batched is not Engine.batched

    @property
    def device(self) -> str:
        """Id of the device."""
        return self.engine.id

    @property
    def nbytes(self) -> int:
        """Bytes held on the device besides what was given to pictures and is kept."""
        return self.composer.nbytes

    def picture(self, source: Any) -> Picture:
        """A picture of an array or Buffer, (height, width[, 3 or 4]) of u8."""
        shape = tuple(getattr(source, "shape", ()))
        if len(shape) not in (2, 3) or 0 in shape:
            raise ShapeError(
                f"Compositor.picture: (height, width[, 3 or 4]) of u8 is expected, {shape} came."
            )
        made = Picture(self, shape[1], shape[0])
        try:
            made.update(source)
        except BaseException:
            made.close()
            raise
        return made

    def compose(
        self,
        target: Buffer,
        draws: np.ndarray[Any, Any],
        rects: Sequence[Rect] | None = None,
        *,
        background: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Draws onto the target, back to front, inside the rectangles (all of it if left out).

        Args:
            target: (height, width, 4) of u8 on this device.
            draws: records of ``DRAW``.
            rects: where, (left, top, right, bottom) each; they must not overlap.
            background: what the rectangles are filled with first; None keeps what is there.
        """
        if target.engine is not self.engine:
            raise DeviceMismatch(
                f"Compositor.compose: the target is on {target.device}, the compositor on "
                f"{self.device}. Make the target there."
            )
        shape = target.shape
        if len(shape) != 3 or shape[2] != 4 or target.dtype != "u8":
            raise ShapeError(
                f"Compositor.compose: the target is (height, width, 4) of u8, {target.dtype} "
                f"{target.shape} came."
            )
        if draws.dtype is not DRAW and draws.dtype != DRAW:
            raise DtypeError("Compositor.compose: draws are records of DRAW.")
        height, width, _ = shape
        if rects is None:
            rects = [(0, 0, width, height)]
        for x0, y0, x1, y1 in rects:
            if x0 < 0 or y0 < 0 or x1 > width or y1 > height or x0 >= x1 or y0 >= y1:
                rects = _inside(rects, width, height)
                break
        storage = target.storage("Compositor.compose")
        self.composer.compose(storage, width, height, draws, rects, background)

    def together(self) -> AbstractContextManager[None]:
        """Work begun inside a ``with`` block of this goes to the device at once."""
        return self.engine.batched() if self._gathers else _APART

    def close(self) -> None:
        """Gives everything back. Closing twice is fine."""
        self.composer.close()


def _inside(rects: Sequence[Rect], width: int, height: int) -> list[Rect]:
    """What lies in a picture of rectangles."""
    cut = [(max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)) for x0, y0, x1, y1 in rects]
    return [r for r in cut if r[0] < r[2] and r[1] < r[3]]


def _drop(composer: Composer, number: int, device: str, nbytes: int) -> None:
    composer.drop(number)
    resources.untrack("picture", device, nbytes)
