"""The vector drawing of a canvas: stored paths, the state of transforms, and compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dala.errors import CommandError, DalaError, LimitExceeded
from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.protocol import BY_OPCODE, DrawCommand
from dala.gpu.raster.atlas import Atlas
from dala.gpu.raster.frame import FrameRecord
from dala.gpu.raster.images import StoredImage
from dala.gpu.vector import prepare as codes
from dala.gpu.vector.edges import Pen
from dala.gpu.vector.paints import Inking
from dala.gpu.vector.stored import key_of, words_of
from dala.gpu.vector.strokes import MAX_DASHES, POINT
from dala.gpu.vector.sweep import CELLS, clip_bands, paint_bands
from dala.typing import NDArray

#: Edges and draws that are collected before they are drawn, and edges of one shape at most.
EDGES: Final = 1 << 15
DRAWS: Final = 1 << 10
MAX_EDGES: Final = 1 << 21
#: Pixels that are drawn on several threads, and the bands of one thread.
MIN_PIXELS: Final = 1 << 15
BANDS_PER_THREAD: Final = 4

_AT, _CODE, _DRAWS, _DRAWN, _ID, _DEPTH, _COUNT = (
    Pen.places[name] for name in ("at", "code", "draws", "drawn", "id", "depth", "count")
)
#: The first of the four numbers of the clip.
_X0: Final = FrameRecord.places["x0"]
#: Coverage of no clip at all.
NO_CLIP: Final = np.zeros((0, 0), np.uint8)
_IDENTITY: Final = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Painter:
    """Executes vector commands on a canvas."""

    def __init__(
        self, checked: bool, hold: Callable[[int, str], None], check_work: Callable[[str], None]
    ) -> None:
        self._hold, self._check_work = hold, check_work
        self.checked = checked
        #: Paths, paints and masks.
        self.stored = Atlas("load_path", "paths, paints and masks")
        #: The coverage of the clip, and what it was before each clip that a pop removes.
        self.clip = NO_CLIP
        self._clips: list[tuple[int, NDArray]] = []
        self._clip_bands = compile_native(clip_bands, checked=checked)
        self._prepare = compile_native(codes.prepare, checked=checked)
        self._paint = compile_native(paint_bands, checked=checked)
        self._pen = np.zeros(Pen.size)
        self._numbers = self._pen.view(np.int64)
        self._stack = np.zeros(codes.SAVED * codes.MAX_PUSHES)
        self._edges = np.empty(4 * EDGES, np.int32)
        self._points = np.empty(POINT * EDGES)
        self._draws = np.empty(Inking.size * DRAWS, np.int64)
        self._cells = np.zeros(0, np.int32)
        self._marks = np.zeros(0, np.uint8)
        self.reset()

    @property
    def nbytes(self) -> int:
        """The bytes of stored paths, paints and masks, and of clips."""
        return self.stored.nbytes + self.clip.nbytes + sum(p.nbytes for _, p in self._clips)

    def reset(self) -> None:
        """Forget the transform and the clips, and all that was pushed."""
        self._pen[:6] = _IDENTITY
        self._numbers[_DEPTH] = 0
        self.clip, self._clips = NO_CLIP, []

    def store(self, command: DrawCommand, images: dict[int, StoredImage]) -> None:
        """Store a path, paint or mask."""
        words = words_of(command, images)
        self.stored.put(key_of(command.name, command.id), words, words.size, 1)

    def remove(self, command: DrawCommand) -> None:
        """Remove a path, paint or mask; an unknown id is ignored."""
        self.stored.remove(key_of(command.name, command.id))

    def run(
        self,
        data: NDArray,
        at: int,
        spans: tuple[ArraySpan, ...],
        frame: NDArray,
        size: tuple[int, int],
    ) -> tuple[int, bool, DalaError | None]:
        """Execute commands from a byte on, as far as they are known here.

        Return the offset of the command where it stopped, whether that one is done, and its error.
        """
        pixels, framed, damage = spans[:3]
        numbers = self._numbers
        while True:
            self._prepare(
                span_of(data), framed, damage, span_of(self._pen), span_of(self._stack),
                span_of(self._edges), span_of(self._points), span_of(self._draws),
                span_of(self.stored.slots), span_of(self.stored.words), self.stored.shift, at,
            )  # fmt: skip
            code, at = int(numbers[_CODE]), int(numbers[_AT])
            if numbers[_DRAWS]:
                self._draw(pixels, size, int(numbers[_DRAWS]), int(numbers[_DRAWN]))
            self._check_work("submit")
            if code == codes.TOO_LARGE and self._edges.size < 4 * MAX_EDGES:
                self._edges = np.empty(8 * self._edges.size, np.int32)
                self._points = np.empty(8 * self._points.size)
            elif code != codes.FULL:
                break
        if code == codes.CLIPPED:
            self._add_clip(frame, size, int(data[at + 1]))
        if self._edges.size > 4 * EDGES:
            self._edges, self._points = np.empty(4 * EDGES, np.int32), np.empty(POINT * EDGES)
        if code == codes.POP:
            self._pop_clip(frame)
        elif code < 0 and code != codes.CLIPPED:
            return at, True, self._error(code, int(data[at]))
        return at, code in (codes.POP, codes.CLIPPED), None

    def _add_clip(self, frame: NDArray, size: tuple[int, int], evenodd: int) -> None:
        """Narrow the clip to the edges that are prepared."""
        width, height = size
        self._hold(width * height, "clip")
        pen, old = self._numbers, self.clip
        left, top, right, bottom = (int(side) for side in frame[_X0 : _X0 + 4])
        made = np.zeros((height, width), np.uint8)
        if left < right and top < bottom:
            Inking.write(
                self._draws, x0=left, y0=top, x1=right, y1=bottom, first=0,
                count=int(pen[_COUNT]), evenodd=evenodd,
            )  # fmt: skip
            self._room(1)
            self._clip_bands.parallel(1, 1)(
                span_of(old), span_of(made), span_of(self._edges), span_of(self._draws),
                span_of(self._cells), span_of(self._marks), width, height, height,
            )  # fmt: skip
        depth = int(pen[_DEPTH])
        if depth:
            self._stack[codes.SAVED * depth - 1] = 1
        self._clips.append((depth, old))
        self.clip = made

    def _pop_clip(self, frame: NDArray) -> None:
        """Restore the state before the clips since the last push."""
        depth = int(self._numbers[_DEPTH])
        while self._clips and self._clips[-1][0] == depth:
            self.clip = self._clips.pop()[1]
        saved = self._stack[codes.SAVED * (depth - 1) : codes.SAVED * depth]
        self._pen[:6], frame[_X0 : _X0 + 4] = saved[:6], saved[6:10].astype(np.int64)
        self._numbers[_DEPTH] = depth - 1
        self._hold(0, "clip")

    def _room(self, bands: int) -> None:
        """Make cells for so many bands."""
        if self._cells.size < bands * CELLS:
            self._cells = np.zeros(bands * CELLS, np.int32)
            self._marks = np.zeros(bands * CELLS // 16, np.uint8)

    def _draw(self, pixels: ArraySpan, size: tuple[int, int], draws: int, area: int) -> None:
        """Draw the prepared shapes, in bands on several threads if that is worth it."""
        width, height = size
        bands = 1
        if area >= MIN_PIXELS and pool().threads > 1:
            bands = min(BANDS_PER_THREAD * pool().threads, height)
        rows = -(-height // bands)
        bands = -(-height // rows)
        self._room(bands)
        self._paint.parallel(bands, 1)(
            pixels, span_of(self._edges), span_of(self._draws), span_of(self.clip),
            span_of(self.stored.words), span_of(self._cells), span_of(self._marks), width, height,
            rows, draws,
        )  # fmt: skip

    def _error(self, code: int, opcode: int) -> DalaError:
        call = BY_OPCODE[opcode].function
        if code == codes.TOO_LARGE:
            return LimitExceeded(f"{call}: the shape has more than {MAX_EDGES} edges.", call=call)
        if code == codes.LENGTH:
            text = f"the outline of the shape is longer than {codes.MAX_LENGTH} pixels"
            return LimitExceeded(f"{call}: {text}.", call=call)
        if code == codes.DASHES:
            return LimitExceeded(f"{call}: the line has more than {MAX_DASHES} dashes.", call=call)
        if code == codes.DEPTH:
            text = f"more than {codes.MAX_PUSHES} pushes are open"
            return CommandError(f"{call}: {text if call == 'push' else 'nothing was pushed'}.")
        return CommandError(
            f"{call}: no path or paint has the id {int(self._numbers[_ID]) % 2**64}."
        )
