"""Compositing on WebGPU: pictures in a few large buffers, one dispatch for all rectangles.

Pictures are stored as RGBA words in *arenas*, so that any number of them needs only a few bindings.
When an arena is full, its pictures are copied to a larger one on the device. The data of a frame
(draws, rectangles, small pictures) goes through a *ring* buffer: it is written where no unsubmitted
command reads, so that no extra submit is needed.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVarTuple

import numpy as np

from dala import memory
from dala.errors import BufferTooLarge, FreedError, MemoryLimitExceeded
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.blending import TABLES, share_of
from dala.gpu.compute.engines.compositing import (
    DRAW,
    LINEAR,
    NEAREST,
    PICTURE,
    SHADOW,
    TINT,
    ComposedFrame,
    Composer,
    Rect,
)
from dala.gpu.compute.engines.sampling.draws import DROPPED, places_of
from dala.gpu.compute.engines.scratch import Arena, aligned, scratch_memory
from dala.gpu.compute.engines.webgpu.compose import commands
from dala.gpu.compute.engines.webgpu.device import NativeDevice
from dala.gpu.compute.engines.webgpu.limits import STORAGE_BUFFERS
from dala.gpu.compute.engines.webgpu.pool import size_class
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

Ts = TypeVarTuple("Ts")

#: Each arena is a binding of the shader; with draws and target they use six of eight. A device
#: that binds fewer buffers composes in several dispatches.
MAX_ARENAS: Final = 4
#: The bindings of draws and target.
OTHER_BINDINGS: Final = 2

#: The smallest arena, and the size above which arenas grow by a quarter instead of doubling.
MIN_ARENA: Final = 1 << 20
LARGE_ARENA: Final = 64 << 20

#: Arenas of at least this size shrink when three quarters of them are free.
SHRINK_BYTES: Final = 16 << 20

#: Room that is not counted against memory limits: that of a composer with a few small pictures.
UNCOUNTED: Final = 2 * MIN_ARENA

#: The maximum number of draws in a dispatch; each workgroup has one flag per draw.
MAX_DRAWS: Final = 1024

#: Pictures up to this size go through the ring, which has at least RING_BYTES.
SMALL_UPLOAD: Final = 1 << 18
RING_BYTES: Final = 1 << 20

TILE: Final = 16

#: Word offsets of the fields in a draw record.
_KIND, _BLEND, _FLAGS, _PICTURE = range(4)
_SCALE: Final = slice(16, 18)
_LOW: Final = slice(18, 20)
_CROP: Final = slice(20, 24)
_TAPS: Final = slice(24, 26)
_OPACITY: Final = 27
_OWN: Final = slice(28, 32)
_PLACES: Final = slice(32, 48)


class WebGPUComposer(Composer):
    """A composer on one WebGPU device.

    Args:
        engine: provides memory and shaders.
        limit: the largest arena in bytes; by default the device's largest buffer.
    """

    def __init__(self, engine: WebGPUEngine, limit: int | None = None) -> None:
        self._engine = engine
        self._owner = engine.owner
        most = engine.max_buffer_bytes
        self._limit = (most if limit is None else min(limit, most)) & ~15
        #: The arenas that a dispatch binds.
        self._slots = min(engine.limits[STORAGE_BUFFERS] - OTHER_BINDINGS, MAX_ARENAS)
        #: Arena, first word, width and height of each picture by number; width 0 is a free entry.
        self._table = np.zeros((16, 4), np.int32)
        self._free = deque(range(16))
        self._dropped: deque[int] = deque()
        self._arenas: list[Arena] = []
        #: Storage of the arenas in order, then of the ring; the finalizer shares this list.
        self._held: list[Storage] = []
        self._ring: commands.UploadRing | None = None
        #: The last draws as words, and as rows of the shader.
        self._words = np.zeros((0, DRAW.itemsize // 4), np.int32)
        self._rows = np.zeros((0, commands.RECORD // 4), np.int32)
        #: True after a draw has used them; shaders without them are faster.
        self._shadows = self._blends = False
        #: The room of arenas and ring beside the pixels, which count with their pictures.
        self._room = memory.Held("arena", (), engine.id)
        self._end = weakref.finalize(self, _release, engine, self._held, self._room)
        self._end.atexit = False

    # pictures ---------------------------------------------------------------------------------

    def picture(self, width: int, height: int) -> int:
        self._check_open()
        place = self._find_room(width * height)
        self._count(0)
        if not self._free:
            size = len(self._table)
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._free.extend(range(size, 2 * size))
        number = self._free.popleft()  # reuse the oldest, to detect uses of closed pictures
        self._table[number] = *place, width, height
        return number

    def put(self, picture: int, source: Storage | NDArray, channels: int) -> None:
        self._check_open()
        arena, start, width, height = self._table[picture].tolist()
        count = width * height
        if not count:
            raise FreedError(f"Picture.update: picture {picture} was closed. Make a new one.")
        target = self._held[arena].handle
        unpack = None
        if channels != 4:
            text = read_wgsl("compose_unpack.wgsl", __package__)
            unpack = self._engine.shader(text, 1, commands.UNPACK.size)
        destination = commands.PictureTarget(target, start, count, channels, unpack)
        if isinstance(source, Storage):
            self._post(commands.put_pixels, source.handle, 0, destination)
            return
        view = memoryview(source).cast("B")
        if view.nbytes <= SMALL_UPLOAD:
            ring = self._ring_for(view.nbytes)
            data = bytes(view).ljust(-(-view.nbytes // 4) * 4, b"\0")
            self._post(commands.put_through_ring, ring, data, destination)
            return
        with scratch_memory(self._engine, "Picture.update", view.nbytes) as (between,):
            self._engine.upload(between, view)
            self._post(commands.put_pixels, between.handle, 0, destination)

    def drop(self, picture: int) -> None:
        self._dropped.append(picture)

    # drawing ----------------------------------------------------------------------------------

    def compose(self, frame: ComposedFrame) -> None:
        target, width, _, draws, rects, background = frame
        self._check_open()
        if not rects or (background is None and not len(draws)):
            return
        if target.handle is None:
            raise FreedError("Compositor.compose: the target was freed. Make a new one.")
        if not self._arenas:
            self._open(1)
        tiles, places = _tiles(rects)
        records = self._records(draws)
        color, fill = int.from_bytes(bytes(background or 4), "little"), background is not None
        bound = min(len(self._arenas), self._slots)
        dispatches: list[commands.ComposeDispatch] = []
        for part, arenas in _parts(records, bound, len(self._arenas)):
            data = places + part.tobytes()
            numbers = len(rects), len(part), len(rects), tiles, width, color, int(fill)
            buffers = tuple(self._held[number].handle for number in arenas)
            dispatches.append(commands.ComposeDispatch(data, numbers, buffers))
            fill = False
        ring = self._ring_for(max(len(dispatch.data) for dispatch in dispatches))
        text = commands.shader_text(bound, self._shadows, self._blends)
        tables = TABLES.tobytes() if self._blends else b""
        pipeline = self._engine.shader(text, bound + 1, commands.BLOCK.size + len(tables))
        cost, device = pipeline.costs.of(tiles * len(dispatches)), self._engine.device
        frame_of = (ring, pipeline, target.handle, dispatches, tables)
        self._owner.enqueue(cost, commands.compose_frame, device, *frame_of)

    @property
    def nbytes(self) -> int:
        return sum(storage.nbytes for storage in self._held)

    def count_for(self, accounts: memory.Accounts) -> None:
        self._room.move(accounts)

    def close(self) -> None:
        self._end()
        self._arenas.clear()
        self._ring = None

    # ------------------------------------------------------------------------------------------

    def _records(self, draws: NDArray) -> NDArray:
        """Return the draws as rows of words, with the arenas and positions of their pictures."""
        rows = self._converted(draws)
        kinds, flags = rows[:, _KIND], rows[:, _FLAGS]
        self._shadows = self._shadows or bool((kinds == SHADOW).any())
        self._blends = self._blends or bool((rows[:, _BLEND] | (flags & LINEAR)).any())
        pictured = (kinds == PICTURE) | (kinds == TINT)
        numbers = np.where(pictured, rows[:, _PICTURE], 0)
        own = self._table.take(numbers, axis=0, mode="clip")
        missing = pictured & ((own[:, 2] == 0) | (numbers < 0) | (numbers >= len(self._table)))
        if missing.any():
            raise FreedError(
                f"Compositor.compose: draws refer to picture {int(numbers[missing][0])}, which was "
                "closed or never existed. Keep pictures open while they are drawn."
            )
        rows[:, _OWN] = own
        return rows

    def _converted(self, draws: NDArray) -> NDArray:
        """Return the draws as rows of words with integers; most are as in the last frame."""
        words = np.ascontiguousarray(draws).view(np.int32).reshape(len(draws), DRAW.itemsize // 4)
        if len(words) != len(self._words):
            self._words = np.full_like(words, -1)
            self._rows = np.zeros((len(words), commands.RECORD // 4), np.int32)
        changed = np.flatnonzero((words != self._words).any(axis=1))
        if len(changed):
            self._words[changed] = words[changed]
            self._rows[changed] = _whole_rows(draws[changed], words[changed])
        return self._rows

    def _check_open(self) -> None:
        """Raise if the composer is closed or the device is lost; free dropped pictures."""
        if not self._end.alive:
            raise FreedError("Compositor: the compositor was closed. Make a new one.")
        self._owner.check()
        if not self._dropped:
            return
        while self._dropped:
            number = self._dropped.popleft()
            arena, start, width, height = self._table[number].tolist()
            if width:
                self._arenas[arena].give(start, width * height)
                self._table[number] = 0
                self._free.append(number)
        for number, held in enumerate(self._arenas):
            if held.words * 4 > SHRINK_BYTES and held.used * 4 < held.words:
                with suppress(MemoryLimitExceeded):  # both are there while it is copied
                    self._pack(number, 0)
        self._count(0)

    def _find_room(self, words: int) -> tuple[int, int]:
        """Find or make room for a picture; return the arena and the first word."""
        for number, arena in enumerate(self._arenas):
            start = arena.take(words)
            if start is not None:
                return number, start
        need = aligned(words)
        refused: MemoryLimitExceeded | None = None
        for number, arena in enumerate(self._arenas):
            if (arena.used + need) * 4 <= self._limit:
                try:
                    self._pack(number, need)
                    break
                except MemoryLimitExceeded as error:
                    refused = error  # both are there while it is copied; a new one may fit
        else:
            number = len(self._arenas)
            if refused is not None and number == MAX_ARENAS:
                raise refused
            if need * 4 > self._limit or number == MAX_ARENAS:
                held = sum(arena.used for arena in self._arenas) * 4
                raise BufferTooLarge(
                    f"Compositor.picture: a picture of {words * 4} bytes does not fit. Pictures "
                    f"on {self._owner.name} are in {MAX_ARENAS} buffers of at most {self._limit} "
                    f"bytes, which hold {held} now. Close pictures, or use device 'cpu'."
                )
            self._open(need)
        start = self._arenas[number].take(words)
        assert start is not None
        return number, start

    def _count(self, more: int, coming: int = 0) -> None:
        """Count the room beside the pixels, with ``more`` bytes that are about to be allocated.

        ``coming`` are bytes of a picture that is counted already and has no place yet.
        """
        pixels = 4 * sum(arena.used for arena in self._arenas) + coming
        spare = max(self.nbytes + more - pixels - UNCOUNTED, 0)
        if more:
            self._room.resize(spare, "Scene")
        else:
            self._room.settle(spare)

    def _open(self, words: int) -> None:
        storage = self._allocate(words, 4 * words)
        self._held.insert(len(self._arenas), storage)
        self._arenas.append(Arena(storage.nbytes // 4))

    def _allocate(self, words: int, coming: int) -> Storage:
        """Allocate memory for an arena, with room to grow unless a memory limit is near."""
        need = max(words * 4, MIN_ARENA // 2)
        more = need * 2 if need * 2 <= LARGE_ARENA else need + need // 4
        nbytes = min(size_class(more, self._limit), self._limit)
        try:
            self._count(nbytes, coming)
        except MemoryLimitExceeded:
            nbytes = size_class(words * 4, self._limit)
            self._count(nbytes, coming)
        try:
            return self._engine.allocate(nbytes, zero=False)
        except BaseException:
            self._count(0, coming)
            raise

    def _pack(self, number: int, extra: int) -> None:
        """Move an arena's pictures to a new arena, without gaps and with room for more."""
        old, arena = self._held[number], self._arenas[number]
        storage = self._allocate(arena.used + extra, 4 * extra)
        table = self._table
        here = np.flatnonzero((table[:, 0] == number) & (table[:, 2] > 0))
        here = here[np.argsort(table[here, 1])]
        sizes = [aligned(int(w) * int(h)) for w, h in table[here, 2:]]
        moves: list[list[int]] = []  # from, to, words
        used = 0
        for picture, size in zip(here.tolist(), sizes, strict=True):
            start = int(table[picture, 1])
            if moves and sum(moves[-1][::2]) == start:
                moves[-1][2] += size
            else:
                moves.append([start, used, size])
            table[picture, 1] = used
            used += size
        self._post(commands.move_pictures, old.handle, storage.handle, moves)
        self._engine.release(old)
        self._held[number] = storage
        self._arenas[number] = Arena(storage.nbytes // 4, used)
        self._count(0, 4 * extra)

    def _ring_for(self, nbytes: int) -> commands.UploadRing:
        """Return the ring, replaced by a larger one if needed."""
        ring = self._ring
        if ring is None or ring.nbytes < nbytes + commands.RECORD:
            wanted = max(RING_BYTES, 2 * nbytes + commands.RECORD)
            self._count(wanted)
            storage = self._engine.allocate(wanted, zero=False)
            if ring is not None:
                self._engine.release(self._held.pop())
            self._held.append(storage)
            ring = self._ring = commands.UploadRing(storage)
            self._count(0)
        return ring

    def _post(self, work: Callable[[NativeDevice, *Ts], None], *args: *Ts) -> None:
        self._owner.post(work, self._engine.device, *args)


def _release(engine: WebGPUEngine, held: list[Storage], room: memory.Held) -> None:
    while held:
        engine.release(held.pop())
    room.release()


def _whole_rows(draws: NDArray, words: NDArray) -> NDArray:
    """Return rows of words with the integers by which positions are computed."""
    rows = np.zeros((len(words), commands.RECORD // 4), np.int32)
    rows[:, : words.shape[1]] = words
    places = places_of(draws, NEAREST)
    rows[places.nearest, _FLAGS] |= NEAREST
    low = places.steps & 0xFFFF
    steps = rows[:, _PLACES].reshape(-1, 4, 4)
    steps[:, :, :3] = (places.steps >> DROPPED).transpose(2, 0, 1)
    steps[:, :, 3] = (low[:, 0] | (low[:, 1] << 16)).T
    rows[:, _PLACES] = steps.reshape(len(rows), 16)
    rows[:, _LOW] = (low[::2, 2] | (low[1::2, 2] << 16)).T
    rows[:, _SCALE], rows[:, _TAPS] = places.scale.T, places.bits.T
    rows[:, _CROP] = np.concatenate([places.first, places.last]).T
    rows[:, _OPACITY] = share_of(draws["opacity"])
    return rows


def _parts(rows: NDArray, bound: int, held: int) -> Iterator[tuple[NDArray, tuple[int, ...]]]:
    """Yield runs of draws for one dispatch each, with the arenas that it binds.

    There are ``held`` arenas, of which a dispatch binds ``bound``. Where these are fewer, the
    pictures of a run refer to their arenas by place.
    """
    if bound == held:
        for i in range(0, max(len(rows), 1), MAX_DRAWS):
            yield rows[i : i + MAX_DRAWS], tuple(range(held))
        return
    pictured = (rows[:, _KIND] == PICTURE) | (rows[:, _KIND] == TINT)
    numbers = np.where(pictured, rows[:, _OWN.start], -1).tolist()
    first, arenas = 0, dict[int, int]()
    for i, number in enumerate([*numbers, None]):
        new = number is not None and number >= 0 and number not in arenas
        if number is None or i - first == MAX_DRAWS or (new and len(arenas) == bound):
            if i > first or number is None:
                part = rows[first:i].copy()
                own = part[:, _OWN.start]
                own[:] = [arenas.get(n, 0) for n in numbers[first:i]]
                used = list(arenas)
                yield part, tuple((used + [0] * bound)[:bound])
            first, arenas = i, {}
        if number is not None and number >= 0:
            arenas.setdefault(number, len(arenas))


def _tiles(rects: Sequence[Rect]) -> tuple[int, bytes]:
    """Return the number of tiles, and the rectangles as records for ``compose.wgsl``."""
    places = np.zeros((len(rects), commands.RECORD // 4), np.int32)
    tiles = 0
    for i, (x0, y0, x1, y1) in enumerate(rects):
        places[i, 0] = tiles
        places[i, 4:8] = x0, y0, x1, y1
        tiles += -(-(x1 - (x0 & ~7)) // TILE) * -(-(y1 - y0) // TILE)
    return tiles, places.tobytes()
