"""The CPU compositor: it keeps pictures, plans each frame and draws it in tiles."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import chain, count
from typing import Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.compositing import BLENDS, ComposedFrame, Composer
from dala.gpu.compute.engines.cpu.compose.plans import *
from dala.gpu.compute.engines.cpu.compose.records import *
from dala.gpu.compute.engines.cpu.compose.rows import expand_gray, expand_rgb
from dala.gpu.compute.engines.cpu.compose.tiles import draw_tiles
from dala.gpu.compute.engines.cpu.memory import Memory, address_of, span_of
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.typing import NDArray

#: Frames with fewer pixels are drawn on one thread.
PARALLEL_PIXELS: Final = 1 << 14
#: Pixels that a thread converts to RGBA at a time.
CONVERT_PIXELS: Final = 1 << 16
#: Parts of a job: buffers, the inputs of a frame, and the results of planning.
DRAWS, ERROR = JobRecord.places["draws"], JobRecord.places["error"]
ADDRESS, CHANNELS = PictureRecord.places["address"], PictureRecord.places["channels"]
_BUFFERS: Final = struct.Struct(f"={DRAWS}q").pack_into
_FRAME: Final = struct.Struct(f"={ERROR - DRAWS}q").pack_into
_RESULTS: Final = struct.Struct(f"={JobRecord.size - ERROR}q").unpack_from
_CORNERS: Final = struct.Struct("=4i").pack_into
#: All memory as one array, since pictures may be anywhere.
_ALL_MEMORY: Final = (ORIGIN, 1 << 62)


class CPUComposer(Composer):
    """The CPU compositor. Pictures are read in place, except gray ones, which are converted."""

    #: Use native code with bounds checks; for tests.
    _checked: bool = False

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = count()
        #: Whether the job holds the current addresses of the buffers.
        self._current = False
        self._use_table(np.zeros((16, PictureRecord.size), np.int64))
        self._sources: dict[int, Memory | NDArray] = {}
        self._converted: dict[int, NDArray] = {}
        self._plans = np.zeros(1 << 9, np.int64)
        self._tables = np.zeros(1 << 12, np.int32)
        self._tiles = np.zeros(1 << 10, np.int32)
        #: The inputs and results of planning and drawing.
        self._job = bytearray(8 * JobRecord.size)
        self._at_job = span_of(np.frombuffer(self._job, np.int64))
        self._drawn: tuple[NDArray | None, int] = None, 0
        self._filled: tuple[tuple[int, int, int, int] | None, int] = None, -1
        self._rect = np.zeros(4, np.int32)
        self._at_rect = address_of(self._rect)
        self._runs: dict[tuple[int, int, int], Callable[[], None]] = {}
        #: The highest level of code that was needed so far.
        self._level = SIMPLE
        self._planner: Callable[[], None] | None = None

    def _use_table(self, table: NDArray) -> None:
        """Replace the table of pictures; ``_entries`` is a faster view for setting its words."""
        self._table, self._current = table, False
        self._entries = memoryview(table).cast("B").cast("q")

    def picture(self, width: int, height: int) -> int:
        """Return the number of a new picture; numbers of dropped pictures are reused."""
        number = self._free.pop() if self._free else next(self._next)
        if number >= len(self._table):
            more = np.zeros((2 * len(self._table), PictureRecord.size), np.int64)
            more[: len(self._table)] = self._table
            self._use_table(more)
        self._table[number] = 0, width, height, 0
        return number

    def put(self, picture: int, source: Storage | NDArray, channels: int) -> None:
        """Set the pixels of a picture. Gray is converted to RGBA now, RGB when a draw needs it."""
        held: Memory | NDArray = source.handle if isinstance(source, Storage) else source
        place = held.address if isinstance(held, Memory) else address_of(held)
        if self._converted:
            self._converted.pop(picture, None)
        self._sources[picture] = held
        entry = picture * PictureRecord.size
        self._entries[entry + ADDRESS], self._entries[entry + CHANNELS] = place, channels
        if channels == 1:
            self._convert(picture)

    def _convert(self, picture: int) -> None:
        """Copy a picture with fewer channels to RGBA, and draw from the copy."""
        place, width, height, channels = (int(n) for n in self._table[picture])
        size = width * height
        made = np.empty(size, np.uint32)
        function = expand_gray if channels == 1 else expand_rgb
        code = compile_native(function, checked=self._checked)
        code.parallel(size, CONVERT_PIXELS)((place, size * channels), made)
        self._converted[picture] = made
        self._table[picture] = address_of(made), width, height, 4

    def drop(self, picture: int) -> None:
        """Remove a picture."""
        if self._table[picture].any():
            self._table[picture] = 0
            self._sources.pop(picture, None)
            self._converted.pop(picture, None)
            self._free.append(picture)

    def compose(self, frame: ComposedFrame) -> None:
        """Plan every draw, then draw tile by tile."""
        target, width, height, draws, rects, background = frame
        if not rects:
            return
        if draws is not self._drawn[0]:  # a scene reuses the same array
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
        memory = target.handle  # kept alive while native code uses it
        _FRAME(
            self._job, 8 * DRAWS, self._drawn[1], len(draws), corners, len(rects), memory.address,
            width, height, self._filled[1],
        )  # fmt: skip
        tiles, pixels = self._plan(draws)
        chunk = 1 if pixels >= PARALLEL_PIXELS else tiles
        run = self._runs.get((tiles, chunk, self._level)) or self._runner(tiles, chunk)
        run()

    def _plan(self, draws: NDArray) -> tuple[int, int]:
        """Plan the job and cut it into tiles; return the numbers of tiles and pixels."""
        count, job = len(draws), self._job
        if self._plans.size < count * PlanRecord.size:
            self._plans, self._current = np.zeros(count * 2 * PlanRecord.size, np.int64), False
        while True:
            if not self._current:
                buffers: tuple[NDArray, ...] = self._plans, self._table, self._tables, self._tiles
                _BUFFERS(job, 0, *chain.from_iterable(span_of(buffer) for buffer in buffers))
                self._current = True
            if self._planner is None:
                level = min(self._level, SIZED)
                code = compile_native(make_plans, checked=self._checked, level=level)
                self._planner = code.prepare(_ALL_MEMORY, self._at_job, keep_gil=True)
            self._planner()
            error, number, needed, tiles, pixels, level = _RESULTS(job, 8 * ERROR)
            if error == NEEDS_RGBA:
                self._convert(int(draws["picture"][number]))
            elif error:
                raise _draw_error(error, number)
            elif level > self._level:
                # Few scenes need this code, so it is compiled on first use.
                self._level, self._planner = level, None
            elif needed > self._tables.size:
                self._tables, self._current = np.zeros(needed + needed // 2, np.int32), False
            elif 4 * tiles > self._tiles.size:
                self._tiles, self._current = np.zeros(6 * tiles, np.int32), False
            else:
                return tiles, pixels

    def _runner(self, tiles: int, chunk: int) -> Callable[[], None]:
        """Return a function that draws this many tiles."""
        code = compile_native(draw_tiles, checked=self._checked, level=self._level)
        if len(self._runs) >= 64:
            self._runs.clear()
        run = code.parallel(tiles, chunk, fixed=(_ALL_MEMORY, self._at_job))
        self._runs[tiles, chunk, self._level] = run
        return run

    @property
    def nbytes(self) -> int:
        """Bytes of RGBA copies and of tables."""
        own = self._table.nbytes + self._plans.nbytes + self._tables.nbytes + self._tiles.nbytes
        return own + sum(made.nbytes for made in self._converted.values())

    def close(self) -> None:
        """Remove all pictures and free the tables."""
        self._table[:] = 0
        self._sources.clear()
        self._converted.clear()
        self._plans, self._tables = np.zeros(1 << 9, np.int64), np.zeros(1 << 12, np.int32)
        self._current = False
        self._runs.clear()
        self._drawn = None, 0


def _draw_error(error: int, number: int) -> ParameterError:
    problem = {
        BAD_KIND: "has an unknown kind",
        BAD_BLEND: f"has an unknown blend mode. There are {len(BLENDS)}: 0 to {len(BLENDS) - 1}",
        BAD_PICTURE: "uses a picture that was never set, or was dropped",
    }.get(error, "has a number that is not finite, or an opacity outside of 0..1")
    return ParameterError(
        f"Compositor.compose: draw {number} {problem}.", call="Compositor.compose"
    )
