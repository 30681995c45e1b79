"""The CPU's composer: where pictures lie, and what is worked out before tiles are shared out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.composing import BLENDS, Composer, Rect
from dala.gpu.compute.engines.cpu_compose.expand import expand_gray, expand_rgb
from dala.gpu.compute.engines.cpu_compose.plans import (
    BAD_BLEND,
    BAD_KIND,
    BAD_PICTURE,
    NARROW,
    make_plans,
)
from dala.gpu.compute.engines.cpu_compose.tiles import draw_tiles
from dala.gpu.compute.engines.cpu_compose.words import (
    ADDRESS,
    CHANNELS,
    DRAW_WORDS,
    ORIGIN,
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    PICTURE_WORDS,
    PLAN_WORDS,
    TILE_COLUMNS,
    TILE_ROWS,
)
from dala.gpu.compute.engines.cpu_native import Native, compile_native

Array: TypeAlias = np.ndarray[Any, Any]
#: The address and the length of an array.
Place: TypeAlias = tuple[int, int]

#: Pixels from which work is shared out, and pixels of a picture that a thread spreads at a time.
SHARED_FROM: Final = 1 << 14
SPREAD_PIXELS: Final = 1 << 16
#: Memory that pictures may lie in: all of it.
_ANYWHERE: Final = (ORIGIN, 1 << 62)


class CPUComposer(Composer):
    """Draws in native code. Pictures are read where they are, gray ones copied."""

    #: Runs the build of native code that checks every access; for tests.
    _checked: bool = False

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._next = count()
        self._table = np.zeros((16, PICTURE_WORDS), np.int64)
        self._kept: dict[int, Any] = {}
        self._broad: dict[int, Array] = {}
        self._plans = np.zeros(0, np.int64)
        self._tables = np.zeros(1 << 12, np.int32)
        self._runs: dict[tuple[int, int], Callable[..., None]] = {}
        self._cut: tuple[tuple[Rect, ...], Array, Callable[..., None], Place] | None = None
        self._planner: Native | None = None
        self._at_table, self._at_plans = _place(self._table), _place(self._plans)
        self._at_tables = _place(self._tables)

    def picture(self, width: int, height: int) -> int:
        """A place in the table; places of dropped pictures are used again."""
        number = self._numbers.pop() if self._numbers else next(self._next)
        if number >= len(self._table):
            more = np.zeros((2 * len(self._table), PICTURE_WORDS), np.int64)
            more[: len(self._table)] = self._table
            self._table = more
            self._at_table = _place(more)
        self._table[number] = 0
        self._table[number, PICTURE_WIDTH] = width
        self._table[number, PICTURE_HEIGHT] = height
        return number

    def put(self, picture: int, source: Storage | Any, channels: int) -> None:
        """Notes where the pixels are. Gray ones become RGBA now, RGB ones when a draw needs it."""
        kept: Any
        if isinstance(source, Storage):
            kept = source.handle
            address = kept.address
        else:
            kept = source
            address = kept.__array_interface__["data"][0]
        self._broad.pop(picture, None)
        self._kept[picture] = kept
        self._table[picture, ADDRESS] = address
        self._table[picture, CHANNELS] = channels
        if channels == 1:
            self._broaden(picture)

    def _broaden(self, picture: int) -> None:
        """Makes an RGBA copy of a picture that has fewer channels, and draws from that."""
        address, width, height, channels = (int(n) for n in self._table[picture])
        size = width * height
        made = np.empty(size, np.uint32)
        function = expand_gray if channels == 1 else expand_rgb
        code = compile_native(function, checked=self._checked)
        code.parallel(size, SPREAD_PIXELS)((address, size * channels), made)
        self._broad[picture] = made
        self._table[picture, ADDRESS] = made.ctypes.data
        self._table[picture, CHANNELS] = 4

    def drop(self, picture: int) -> None:
        """Forgets the picture."""
        if self._table[picture, PICTURE_WIDTH]:
            self._table[picture] = 0
            self._kept.pop(picture, None)
            self._broad.pop(picture, None)
            self._numbers.append(picture)

    def compose(
        self,
        target: Storage,
        width: int,
        height: int,
        draws: Array,
        rects: Sequence[Rect],
        background: tuple[int, int, int, int] | None,
    ) -> None:
        """Plans every draw, then draws tile by tile."""
        if not rects:
            return
        memory = target.handle  # held here while native code works on it
        draws = np.ascontiguousarray(draws)
        records = (draws.ctypes.data, len(draws) * DRAW_WORDS)
        self._plan(draws, records, width, height)
        run, tiles = self._tiles(rects)
        fill = -1 if background is None else int.from_bytes(bytes(background), "little")
        run(
            (memory.address, width * height), _ANYWHERE, records, self._at_plans, self._at_table,
            self._at_tables, tiles, width, fill,
        )  # fmt: skip

    def _plan(self, draws: Array, records: Place, width: int, height: int) -> None:
        many = len(draws)
        if self._plans.size < many * PLAN_WORDS:
            self._plans = np.zeros(many * 2 * PLAN_WORDS, np.int64)
            self._at_plans = _place(self._plans)
        if self._planner is None:
            self._planner = compile_native(make_plans, checked=self._checked)
        while True:
            wrong, found = self._planner(
                records, self._at_plans, self._at_table, self._at_tables, width, height
            )
            if wrong == NARROW:
                self._broaden(int(draws["picture"][found]))
                continue
            if wrong:
                raise _fault(wrong, found)
            if found <= self._tables.size:
                return
            self._tables = np.zeros(found + found // 2, np.int32)
            self._at_tables = _place(self._tables)

    def _tiles(self, rects: Sequence[Rect]) -> tuple[Callable[..., None], Place]:
        """What runs over the tiles of rectangles, and these; those of the last call are kept."""
        key = tuple(rects)
        if self._cut is None or self._cut[0] != key:
            tiles = np.concatenate([_cut(*rect) for rect in key]) if len(key) > 1 else _cut(*key[0])
            total = tiles.size // 4
            area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in key)
            chunk = 1 if area >= SHARED_FROM else total
            run = self._runs.get((total, chunk))
            if run is None:
                code = compile_native(draw_tiles, checked=self._checked)
                if len(self._runs) >= 64:
                    self._runs.clear()
                run = self._runs[total, chunk] = code.parallel(total, chunk)
            self._cut = key, tiles, run, _place(tiles)
        return self._cut[2], self._cut[3]

    @property
    def nbytes(self) -> int:
        """Bytes of RGBA copies, and of tables."""
        own = self._table.nbytes + self._plans.nbytes + self._tables.nbytes
        return own + sum(made.nbytes for made in self._broad.values())

    def close(self) -> None:
        """Forgets all pictures and tables."""
        self._table[:] = 0
        self._kept.clear()
        self._broad.clear()
        self._plans, self._tables = np.zeros(0, np.int64), np.zeros(1 << 12, np.int32)
        self._at_plans, self._at_tables = _place(self._plans), _place(self._tables)
        self._runs.clear()
        self._cut = None


def _place(array: Array) -> Place:
    """An array as native code takes it without asking; whoever uses this keeps the array."""
    return array.__array_interface__["data"][0], array.size


def _cut(x0: int, y0: int, x1: int, y1: int) -> Array:
    """A rectangle in tiles of about the same width, row by row."""
    across = -(-(x1 - x0) // TILE_COLUMNS)
    step = ((x1 - x0 + across - 1) // across + 15) & ~15
    lefts = np.arange(x0, x1, step, dtype=np.int32)
    tops = np.arange(y0, y1, TILE_ROWS, dtype=np.int32)
    made = np.empty((len(tops), len(lefts), 4), np.int32)
    made[..., 0], made[..., 1] = lefts[None, :], tops[:, None]
    made[..., 2] = np.minimum(lefts + step, x1)[None, :]
    made[..., 3] = np.minimum(tops + TILE_ROWS, y1)[:, None]
    return made.reshape(-1)


def _fault(wrong: int, number: int) -> ParameterError:
    what = {
        BAD_KIND: "its kind is none of those that composing.py lists",
        BAD_BLEND: f"its blend mode is none of the {len(BLENDS)} there are",
        BAD_PICTURE: "its picture was never put, or was dropped",
    }.get(wrong, "a number of it is not finite, or its opacity not in 0..1")
    return ParameterError(f"Compositor.compose: draw {number} cannot be drawn: {what}.")
