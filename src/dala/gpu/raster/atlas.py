"""Sprites: all their pixels in one arena, and a table by id that native code looks them up in."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Final, NamedTuple

import numpy as np

from dala.errors import BufferTooLarge
from dala.gpu.raster.stream import SLOT, USED

#: Words of the arena to begin with; it doubles.
FIRST: Final = 1 << 14
#: Words that sprites begin at multiples of: a vector of 64 bytes.
GRAIN: Final = 16
#: A slot whose sprite was removed: looked past, and used again.
DEAD: Final = 2
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


class Place(NamedTuple):
    """A sprite: where its pixels begin in the arena, its size, its slot in the table."""

    start: int
    width: int
    height: int
    slot: int

    @property
    def room(self) -> int:
        """The words it takes in the arena."""
        return -(-self.width * self.height // GRAIN) * GRAIN


class Atlas:
    """Sprites by id."""

    def __init__(self) -> None:
        self.words = np.zeros(0, np.uint32)
        self._places: dict[int, Place] = {}
        self._free: list[tuple[int, int]] = []  # (start, room), in order, never touching
        self._bits = 4
        self.slots = np.zeros(SLOT << self._bits, np.uint64)
        self._taken = 0  # slots that are not empty, dead ones too

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """The bytes of the arena."""
        return self.words.nbytes

    @property
    def shift(self) -> int:
        """How far the hash of an id is shifted for its slot."""
        return 64 - self._bits

    def put(self, id: int, pixels: np.ndarray[Any, Any], width: int, height: int) -> None:
        """Copies the words of a sprite; another one of this id goes."""
        old = self._places.get(id)
        if old is not None and old.width * old.height == pixels.size:
            place = old._replace(width=width, height=height)
        else:
            if old is not None:
                self.remove(id)
            room = -(-pixels.size // GRAIN) * GRAIN
            place = Place(self._allocate(room), width, height, self._new_slot(id))
        self.words[place.start : place.start + pixels.size] = pixels
        self._places[id] = place
        self._write(id, place)

    def remove(self, id: int) -> bool:
        """Forgets a sprite; False if there was none."""
        place = self._places.pop(id, None)
        if place is None:
            return False
        self.slots[SLOT * place.slot + 3] = DEAD
        self._release(place.start, place.room)
        if self.words.size > FIRST and 4 * sum(r for _, r in self._free) > 3 * self.words.size:
            self._compact()
        return True

    def clear(self) -> None:
        """Forgets all of them, and their memory."""
        self.__init__()  # type: ignore[misc]

    # the arena --------------------------------------------------------------------------------
    def _allocate(self, room: int) -> int:
        if room == 0:
            return 0
        fitting = [(r, n) for n, (_, r) in enumerate(self._free) if r >= room]
        if not fitting:
            self._grow(room)
            return self._allocate(room)
        size, n = min(fitting)
        start = self._free[n][0]
        if size == room:
            del self._free[n]
        else:
            self._free[n] = (start + room, size - room)
        return start

    def _grow(self, room: int) -> None:
        old = self.words.size
        size = max(2 * old, FIRST)
        while size - old < room:
            size *= 2
        try:
            words = _aligned(size)
        except MemoryError:
            raise BufferTooLarge(
                f"load_sprite: the atlas would take {4 * size} bytes, which cannot be had. "
                "Remove sprites that are not drawn any more."
            ) from None
        words[:old] = self.words
        self.words = words
        self._release(old, size - old)

    def _release(self, start: int, room: int) -> None:
        if room == 0:
            return
        n = bisect_left(self._free, (start, 0))
        if n < len(self._free) and self._free[n][0] == start + room:
            room += self._free.pop(n)[1]
        if n > 0 and sum(self._free[n - 1]) == start:
            start, more = self._free.pop(n - 1)
            room += more
        insort(self._free, (start, room))

    def _compact(self) -> None:
        """Moves all sprites to the front of a smaller arena."""
        needed = sum(p.room for p in self._places.values())
        size = FIRST
        while size < 2 * needed:
            size *= 2
        words = _aligned(size)
        at = 0
        for id, place in self._places.items():
            words[at : at + place.room] = self.words[place.start : place.start + place.room]
            self._places[id] = place._replace(start=at)
            at += place.room
        self.words = words
        self._free = [(at, size - at)] if at < size else []
        for id, place in self._places.items():
            self._write(id, place)

    # the table --------------------------------------------------------------------------------
    def _new_slot(self, id: int) -> int:
        if 2 * (self._taken + 1) > 1 << self._bits:
            self._rebuild()
        slot = self._probe(id)
        self._taken += int(self.slots[SLOT * slot + 3] == 0)
        return slot

    def _probe(self, id: int) -> int:
        slot = ((id * _GOLDEN) & _WORD) >> self.shift
        while self.slots[SLOT * slot + 3] == USED:
            slot = (slot + 1) & ((1 << self._bits) - 1)
        return slot

    def _rebuild(self) -> None:
        self._bits = max(4, (4 * len(self._places)).bit_length())
        self.slots = np.zeros(SLOT << self._bits, np.uint64)
        self._taken = len(self._places)
        for id, place in self._places.items():
            self._places[id] = place._replace(slot=self._probe(id))
            self._write(id, self._places[id])

    def _write(self, id: int, place: Place) -> None:
        at = SLOT * place.slot
        self.slots[at : at + SLOT] = id, place.start, place.width | place.height << 32, USED


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """Words at an address that is a multiple of a vector's size."""
    room = np.zeros(size + GRAIN, np.uint32)
    skip = -room.ctypes.data % (4 * GRAIN) // 4
    return room[skip : skip + size]
