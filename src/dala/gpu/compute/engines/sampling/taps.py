"""Resize filters: the source pixels of each output pixel, and their weights.

Tables are computed once on the host in f64, one for each axis. All engines share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.symbols import FUNCTIONS, SymbolicTable, apply, int_of, is_symbolic
from dala.typing import NDArray

Floats = npt.NDArray[np.float64]

#: Names of the filters, in the order of the documentation.
METHODS: Final = ("nearest", "bilinear", "bicubic", "lanczos", "area")


@dataclass(frozen=True, eq=False)
class Taps:
    """For each output position, the first source position and the weights from there on.

    All positions are inside the source; unused ones have weight 0.
    """

    first: npt.NDArray[np.int32]
    weights: Floats

    @property
    def count(self) -> int:
        """The number of taps per output position."""
        return int(self.weights.shape[1])

    @property
    def span(self) -> tuple[int, int]:
        """The range of source positions that are read."""
        return int(self.first.min()), int(self.first.max()) + self.count

    @property
    def size(self) -> int:
        """The number of words of the table."""
        return len(self.first) * (1 + self.count)

    def words(self) -> npt.NDArray[np.uint32]:
        """Return the table as 32-bit words for shaders: first position, then f32 weights."""
        weights = self.weights.astype(np.float32)
        return np.hstack([self.first[:, None].view(np.uint32), weights.view(np.uint32)])

    def apply(self, a: NDArray, axis: int) -> NDArray:
        """Return the weighted sums along an axis of an array, in f64."""
        moved = np.moveaxis(a, axis, 0)
        shape = (-1,) + (1,) * (moved.ndim - 1)
        total = np.zeros((len(self.first), *moved.shape[1:]))
        for k in range(self.count):
            total += self.weights[:, k].reshape(shape) * moved[self.first + k]
        return np.moveaxis(total, 0, axis)


@dataclass(frozen=True, eq=False)
class SymbolicTaps(Taps):
    """Taps of an axis whose extents are symbols."""

    #: Arguments of the functions that compute the table and its numbers.
    args: tuple[int, ...]

    @classmethod
    def of(cls, places: tuple[int, int, int, int], method: str, antialias: bool) -> SymbolicTaps:
        """Return the taps for the source's size, the full size, the first position, the number."""
        found = _taps(*map(int, places), method, antialias)
        args = (*places, METHODS.index(method), int(antialias))
        return cls(found.first, found.weights, args)

    @property
    def count(self) -> int:
        return int_of(apply("taps_count", super().count, *self.args))

    @property
    def span(self) -> tuple[int, int]:
        first, end = super().span
        return (
            int_of(apply("taps_first", first, *self.args)),
            int_of(apply("taps_end", end, *self.args)),
        )

    @property
    def size(self) -> int:
        return self.args[3] * (1 + self.count)


def tap_words(*tables: Taps) -> npt.NDArray[np.uint32] | SymbolicTable:
    """Return the words of several tables, one after another."""
    words = np.concatenate([t.words().reshape(-1) for t in tables])
    args = [n for t in tables if isinstance(t, SymbolicTaps) for n in t.args]
    if not args:
        return words
    total = 4 * sum(t.size for t in tables)
    return SymbolicTable.of("taps", words.tobytes(), total, *args)


@dataclass(frozen=True)
class Axis:
    """One axis of a resize: the source is scaled to ``full`` pixels and placed at ``offset``.

    The output has ``size`` pixels; parts outside it are cropped (``offset`` may be negative).
    Output positions outside ``window`` are padding.
    """

    source: int
    full: int
    offset: int
    size: int
    #: Whether the other axis is symbolic, so that this one is a part of the same table.
    traced: bool = False

    @property
    def window(self) -> tuple[int, int]:
        """The range of output positions that the source covers."""
        return max(self.offset, 0), min(self.offset + self.full, self.size)

    def taps(self, method: str, antialias: bool) -> Taps:
        """Return the table for the window's positions."""
        low, high = self.window
        places = self.source, self.full, low - self.offset, high - low
        if self.traced or is_symbolic(*places):
            return SymbolicTaps.of(places, method, antialias)
        return _taps(*places, method, antialias)


def task_axes(task: Task) -> tuple[Axis, Axis]:
    """Return the y and x axes of a resize task."""
    source, full, offset, size = task.inputs[0].shape, task["full"], task["offset"], task["size"]
    traced = is_symbolic(*source[:2], *full, *offset, *size)
    y, x = (Axis(source[i], full[i], offset[i], size[i], traced) for i in (0, 1))
    return y, x


def _linear(x: Floats) -> Floats:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _cubic(a: float) -> Callable[[Floats], Floats]:
    def weigh(x: Floats) -> Floats:
        x = np.abs(x)
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        far = (((x - 5.0) * x + 8.0) * x - 4.0) * a
        return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))

    return weigh


def _lanczos(x: Floats) -> Floats:
    return np.where(np.abs(x) < 3.0, np.sinc(x) * np.sinc(x / 3.0), 0.0)


#: The filter and its radius, by method and antialias.
_FILTERS: Final[dict[tuple[str, bool], tuple[Callable[[Floats], Floats], int]]] = {
    ("bilinear", True): (_linear, 1),
    ("bilinear", False): (_linear, 1),
    ("bicubic", True): (_cubic(-0.5), 2),
    ("bicubic", False): (_cubic(-0.75), 2),
    ("lanczos", True): (_lanczos, 3),
    ("lanczos", False): (_lanczos, 3),
}


@lru_cache(maxsize=256)
def _taps(source: int, full: int, start: int, count: int, method: str, antialias: bool) -> Taps:
    at = np.arange(start, start + count, dtype=np.int64)
    if method == "nearest":
        first = (2 * at + 1) * source // (2 * full)
        return Taps(first.astype(np.int32), np.ones((count, 1)))
    if method == "area":
        # In units of 1 / full of a source pixel, all numbers are integers.
        low, high = at * source, (at + 1) * source
        first = low // full
        index = first[:, None] + np.arange(-(-source // full) + 1)
        cover = np.minimum(high[:, None], (index + 1) * full) - np.maximum(
            low[:, None], index * full
        )
        return _packed(source, index, np.maximum(cover, 0) / source)
    weigh, reach = _FILTERS[method, antialias]
    scale = source / full
    center = (at + 0.5) * scale
    if antialias:
        stretch = max(scale, 1.0)
        first = np.floor(center - reach * stretch + 0.5).astype(np.int64)
        index = first[:, None] + np.arange(int(np.ceil(2 * reach * stretch)) + 1)
        weights = weigh((index + 0.5 - center[:, None]) / stretch)
        weights = np.where((index >= 0) & (index < source), weights, 0.0)
    else:
        first = np.floor(center - 0.5).astype(np.int64) - (reach - 1)
        index = first[:, None] + np.arange(2 * reach)
        weights = weigh(index + 0.5 - center[:, None])
    return _packed(source, index, weights / weights.sum(axis=1, keepdims=True))


def _packed(source: int, index: npt.NDArray[np.int64], weights: Floats) -> Taps:
    """Move taps beyond the border to the border pixel, and drop unused columns."""
    rows = np.arange(len(index))
    index = np.clip(index, 0, source - 1)
    weights = np.where(np.abs(weights) < 1e-12, 0.0, weights)  # rounding errors
    some = weights != 0.0
    first = index[rows, some.argmax(axis=1)]
    last = index[rows, index.shape[1] - 1 - some[:, ::-1].argmax(axis=1)]
    count = int((last - first).max()) + 1
    first = np.minimum(first, source - count)
    packed = np.zeros((len(index), count))
    where = np.clip(index - first[:, None], 0, count - 1)
    np.add.at(packed, (rows[:, None], where), weights)
    return Taps(first.astype(np.int32), packed)


def taps_of(source: int, full: int, start: int, count: int, method: int, antialias: int) -> Taps:
    """Return the table for the arguments of :class:`SymbolicTaps`."""
    return _taps(source, full, start, count, METHODS[method], bool(antialias))


def _words(*args: int) -> npt.NDArray[np.uint32]:
    each = [taps_of(*args[n : n + 6]).words().reshape(-1) for n in range(0, len(args), 6)]
    return np.concatenate(each)


FUNCTIONS["taps"] = _words
FUNCTIONS["taps_count"] = lambda *args: taps_of(*args).count
FUNCTIONS["taps_first"] = lambda *args: taps_of(*args).span[0]
FUNCTIONS["taps_end"] = lambda *args: taps_of(*args).span[1]
