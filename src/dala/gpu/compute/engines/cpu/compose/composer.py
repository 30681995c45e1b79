"""The CPU's composer: where pictures lie, and what is worked out before tiles are shared out."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.compositing import BLENDS, Composer, Rect
from dala.gpu.compute.engines.cpu.compose.expand import expand_gray, expand_rgb
from dala.gpu.compute.engines.cpu.compose.plans import (
    BAD_BLEND,
    BAD_KIND,
    BAD_PICTURE,
    NARROW,
    make_plans,
)
from dala.gpu.compute.engines.cpu.compose.records import (
    ADDRESS,
    CHANNELS,
    DRAWS,
    JOB_WORDS,
    ORIGIN,
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    PICTURE_WORDS,
    PLAN_WORDS,
    SIMPLE,
    SIZED,
    WRONG,
)
from dala.gpu.compute.engines.cpu.compose.tiles import draw_tiles
from dala.gpu.compute.engines.cpu.memory import address_of, place_of
from dala.gpu.compute.engines.cpu.native import compile_native

Array: TypeAlias = np.ndarray[Any, Any]

#: Pixels from which work is shared out, and pixels of a picture that a thread spreads at a time.
SHARED_FROM: Final = 1 << 14
SPREAD_PIXELS: Final = 1 << 16
#: The words of a job: the rooms, what is new in a frame, and what planning tells.
_ROOMS: Final = struct.Struct(f"={DRAWS}q").pack_into
_NEWS: Final = struct.Struct(f"={WRONG - DRAWS}q").pack_into
_TOLD: Final = struct.Struct(f"={JOB_WORDS - WRONG}q").unpack_from
_CORNERS: Final = struct.Struct("=4i").pack_into
#: Memory that pictures may lie in: all of it.
_ANYWHERE: Final = (ORIGIN, 1 << 62)


class CPUComposer(Composer):
    """Draws in native code. Pictures are read where they are, gray ones copied."""

    #: Runs the build of native code that checks every access; for tests.
    _checked: bool = False

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._next = count()
        #: Whether the job has been told of the rooms as they are.
        self._roomed = False
        self._lay(np.zeros((16, PICTURE_WORDS), np.int64))
        self._kept: dict[int, Any] = {}
        self._broad: dict[int, Array] = {}
        self._plans = np.zeros(1 << 9, np.int64)
        self._tables = np.zeros(1 << 12, np.int32)
        self._tiles = np.zeros(1 << 10, np.int32)
        #: What planning and drawing are told, and tell.
        self._job = bytearray(8 * JOB_WORDS)
        self._at_job = place_of(np.frombuffer(self._job, np.int64))
        self._drawn: tuple[Array | None, int] = None, 0
        self._filled: tuple[Any, int] = None, -1
        self._rect = np.zeros(4, np.int32)
        self._at_rect = address_of(self._rect)
        self._runs: dict[tuple[int, int, int], Callable[[], None]] = {}
        #: Of the code in use: the highest that was asked for.
        self._level = SIMPLE
        self._planner: Callable[[], None] | None = None

    def _lay(self, table: Array) -> None:
        """Takes a table of pictures; ``_entries`` are its words, which are set sooner there."""
        self._table, self._roomed = table, False
        self._entries = memoryview(table).cast("B").cast("q")

    def picture(self, width: int, height: int) -> int:
        """A place in the table; places of dropped pictures are used again."""
        number = self._numbers.pop() if self._numbers else next(self._next)
        if number >= len(self._table):
            more = np.zeros((2 * len(self._table), PICTURE_WORDS), np.int64)
            more[: len(self._table)] = self._table
            self._lay(more)
        self._table[number] = 0
        self._table[number, PICTURE_WIDTH] = width
        self._table[number, PICTURE_HEIGHT] = height
        return number

    def put(self, picture: int, source: Storage | Any, channels: int) -> None:
        """Notes where the pixels are. Gray ones become RGBA now, RGB ones when a draw needs it."""
        kept: Any
        if isinstance(source, Storage):
            kept = source.handle
            place = kept.address
        else:
            kept = source
            place = address_of(source)
        if self._broad:
            self._broad.pop(picture, None)
        self._kept[picture] = kept
        entry = picture * PICTURE_WORDS
        self._entries[entry + ADDRESS], self._entries[entry + CHANNELS] = place, channels
        if channels == 1:
            self._broaden(picture)

    def _broaden(self, picture: int) -> None:
        """Makes an RGBA copy of a picture that has fewer channels, and draws from that."""
        place, width, height, channels = (int(n) for n in self._table[picture])
        size = width * height
        made = np.empty(size, np.uint32)
        function = expand_gray if channels == 1 else expand_rgb
        code = compile_native(function, checked=self._checked)
        code.parallel(size, SPREAD_PIXELS)((place, size * channels), made)
        self._broad[picture] = made
        self._table[picture, ADDRESS] = address_of(made)
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
        if draws is not self._drawn[0]:  # a scene draws from the same array again and again
            if not draws.flags.c_contiguous:
                draws = np.ascontiguousarray(draws)
            self._drawn = draws, address_of(draws)
        if background is not self._filled[0]:
            fill = -1 if background is None else int.from_bytes(bytes(background), "little")
            self._filled = background, fill
        if len(rects) == 1:
            _CORNERS(self._rect, 0, *rects[0])
            corners = self._at_rect
        else:
            many = np.fromiter(chain.from_iterable(rects), np.int32, 4 * len(rects))
            corners = address_of(many)
        memory = target.handle  # held here while native code works on it
        _NEWS(
            self._job, 8 * DRAWS, self._drawn[1], len(draws), corners, len(rects), memory.address,
            width, height, self._filled[1],
        )  # fmt: skip
        tiles, pixels = self._plan(draws)
        chunk = 1 if pixels >= SHARED_FROM else tiles
        run = self._runs.get((tiles, chunk, self._level)) or self._runner(tiles, chunk)
        run()

    def _plan(self, draws: Array) -> tuple[int, int]:
        """Plans the job, and cuts it into tiles; how many, and of how many pixels."""
        count, job = len(draws), self._job
        if self._plans.size < count * PLAN_WORDS:
            self._plans, self._roomed = np.zeros(count * 2 * PLAN_WORDS, np.int64), False
        while True:
            if not self._roomed:
                rooms: tuple[Array, ...] = self._plans, self._table, self._tables, self._tiles
                _ROOMS(job, 0, *chain.from_iterable(place_of(room) for room in rooms))
                self._roomed = True
            if self._planner is None:
                level = min(self._level, SIZED)
                code = compile_native(make_plans, checked=self._checked, level=level)
                self._planner = code.prepare(_ANYWHERE, self._at_job, keep_gil=True)
            self._planner()
            wrong, number, room, tiles, pixels, level = _TOLD(job, 8 * WRONG)
            if wrong == NARROW:
                self._broaden(int(draws["picture"][number]))
            elif wrong:
                raise _fault(wrong, number)
            elif level > self._level:
                # Code for what scenes seldom need is made when they do: it takes its time.
                self._level, self._planner = level, None
            elif room > self._tables.size:
                self._tables, self._roomed = np.zeros(room + room // 2, np.int32), False
            elif 4 * tiles > self._tiles.size:
                self._tiles, self._roomed = np.zeros(6 * tiles, np.int32), False
            else:
                return tiles, pixels

    def _runner(self, tiles: int, chunk: int) -> Callable[[], None]:
        """Makes what runs over so many tiles."""
        code = compile_native(draw_tiles, checked=self._checked, level=self._level)
        if len(self._runs) >= 64:
            self._runs.clear()
        run = code.parallel(tiles, chunk, fixed=(_ANYWHERE, self._at_job))
        self._runs[tiles, chunk, self._level] = run
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
        self._plans, self._tables = np.zeros(1 << 9, np.int64), np.zeros(1 << 12, np.int32)
        self._roomed = False
        self._runs.clear()
        self._drawn = None, 0


def _fault(wrong: int, number: int) -> ParameterError:
    what = {
        BAD_KIND: "its kind is none of those that composing.py lists",
        BAD_BLEND: f"its blend mode is none of the {len(BLENDS)} there are",
        BAD_PICTURE: "its picture was never put, or was dropped",
    }.get(wrong, "a number of it is not finite, or its opacity not in 0..1")
    return ParameterError(f"Compositor.compose: draw {number} cannot be drawn: {what}.")
