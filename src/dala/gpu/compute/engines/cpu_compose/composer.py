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
    SIMPLE,
    SIZED,
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
        self._tiles = np.zeros(1 << 10, np.int32)
        self._rects, self._told = np.zeros((16, 4), np.int32), np.zeros(5, np.int64)
        self._drawn: tuple[Array | None, Place] = None, (0, 0)
        self._runs: dict[tuple[int, int, int], Callable[..., None]] = {}
        #: Of the code in use: the highest that was asked for.
        self._level = SIMPLE
        self._planner: Native | None = None
        self._at_table, self._at_plans = _place(self._table), _place(self._plans)
        self._at_tables, self._at_tiles = _place(self._tables), _place(self._tiles)
        self._at_rects, self._at_told = _place(self._rects), _place(self._told)

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
        if not draws.flags.c_contiguous:
            draws = np.ascontiguousarray(draws)
        memory = target.handle  # held here while native code works on it
        records = self._records(draws)
        tiles = self._plan(draws, records, rects, width, height)
        area = sum([(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in rects])
        run = self._run(tiles, 1 if area >= SHARED_FROM else tiles)
        fill = -1 if background is None else int.from_bytes(bytes(background), "little")
        run(
            (memory.address, width * height), _ANYWHERE, records, self._at_plans, self._at_table,
            self._at_tables, self._at_tiles, width, fill,
        )  # fmt: skip
        self._drawn = draws, records  # a scene draws from the same array again and again

    def _records(self, draws: Array) -> Place:
        if draws is self._drawn[0]:
            return self._drawn[1]
        return draws.ctypes.data, len(draws) * DRAW_WORDS

    def _plan(
        self, draws: Array, records: Place, rects: Sequence[Rect], width: int, height: int
    ) -> int:
        """Plans and tiles of a frame; how many tiles."""
        if self._plans.size < len(draws) * PLAN_WORDS:
            self._plans = np.zeros(len(draws) * 2 * PLAN_WORDS, np.int64)
            self._at_plans = _place(self._plans)
        many = len(rects)
        if many > len(self._rects):
            self._rects = np.zeros((2 * many, 4), np.int32)
            self._at_rects = _place(self._rects)
        self._rects[:many] = rects
        while True:
            if self._planner is None:
                level = min(self._level, SIZED)
                self._planner = compile_native(make_plans, checked=self._checked, level=level)
            self._planner(
                records, self._at_plans, self._at_table, self._at_tables,
                (self._at_rects[0], 4 * many), self._at_tiles, self._at_told, width, height,
            )  # fmt: skip
            wrong, number, room, tiles, level = self._told.tolist()
            if wrong == NARROW:
                self._broaden(int(draws["picture"][number]))
                continue
            if wrong:
                raise _fault(wrong, number)
            if level > self._level:
                # Code for what scenes seldom need is made when they do: it takes its time.
                self._level, self._planner = level, None
            elif room > self._tables.size:
                self._tables = np.zeros(room + room // 2, np.int32)
                self._at_tables = _place(self._tables)
            elif 4 * tiles > self._tiles.size:
                self._tiles = np.zeros(6 * tiles, np.int32)
                self._at_tiles = _place(self._tiles)
            else:
                return tiles

    def _run(self, tiles: int, chunk: int) -> Callable[..., None]:
        """What runs over so many tiles."""
        level = self._level
        run = self._runs.get((tiles, chunk, level))
        if run is None:
            code = compile_native(draw_tiles, checked=self._checked, level=level)
            if len(self._runs) >= 64:
                self._runs.clear()
            run = self._runs[tiles, chunk, level] = code.parallel(tiles, chunk)
        return run

    @property
    def nbytes(self) -> int:
        """Bytes of RGBA copies, and of tables."""
        own = self._table.nbytes + self._plans.nbytes + self._tables.nbytes + self._tiles.nbytes
        return own + sum(made.nbytes for made in self._broad.values())

    def close(self) -> None:
        """Forgets all pictures and tables."""
        self._table[:] = 0
        self._kept.clear()
        self._broad.clear()
        self._plans, self._tables = np.zeros(0, np.int64), np.zeros(1 << 12, np.int32)
        self._at_plans, self._at_tables = _place(self._plans), _place(self._tables)
        self._runs.clear()
        self._drawn = None, (0, 0)


def _place(array: Array) -> Place:
    """An array as native code takes it without asking; whoever uses this keeps the array."""
    return array.__array_interface__["data"][0], array.size


def _fault(wrong: int, number: int) -> ParameterError:
    what = {
        BAD_KIND: "its kind is none of those that composing.py lists",
        BAD_BLEND: f"its blend mode is none of the {len(BLENDS)} there are",
        BAD_PICTURE: "its picture was never put, or was dropped",
    }.get(wrong, "a number of it is not finite, or its opacity not in 0..1")
    return ParameterError(f"Compositor.compose: draw {number} cannot be drawn: {what}.")
