"""The sprite atlas: pixels in one arena, and a hash table by id that native code reads."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from dala.errors import BufferTooLarge
from dala.gpu.compute.engines.scratch import Arena, aligned
from dala.gpu.raster.stream import SLOT_USED, SLOT_WORDS
from dala.typing import NDArray

#: The initial size of the arena in pixels. It doubles when it is full.
INITIAL_WORDS: Final = 1 << 14
#: Sprites begin at multiples of this many words, which are 64 bytes.
ALIGN_WORDS: Final = 16
#: The state of a slot whose sprite was removed: lookups skip it, new sprites reuse it.
REMOVED: Final = 2
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


class Sprite(NamedTuple):
    """The place of a sprite: its start in the arena, its size, its slot in the table."""

    start: int
    width: int
    height: int
    slot: int

    @property
    def size_words(self) -> int:
        """The words it occupies in the arena."""
        return aligned(self.width * self.height, ALIGN_WORDS)


class Atlas:
    """Stores sprites by id, or other things made of words, which ``call`` loads."""

    def __init__(self, call: str = "load_sprite", things: str = "sprites") -> None:
        self._call, self._things = call, things
        self.words = np.zeros(0, np.uint32)
        self._sprites: dict[int, Sprite] = {}
        self._arena = Arena(0, align=ALIGN_WORDS)
        self._bits = 4
        self.slots = np.zeros(SLOT_WORDS << self._bits, np.uint64)
        self._taken = 0  # slots that are not empty, removed ones included

    def __len__(self) -> int:
        return len(self._sprites)

    @property
    def nbytes(self) -> int:
        """The size of the arena in bytes."""
        return self.words.nbytes

    @property
    def shift(self) -> int:
        """The right shift from the hash of an id to its slot."""
        return 64 - self._bits

    def put(self, id: int, pixels: NDArray, width: int, height: int) -> None:
        """Store the pixels of a sprite, which replaces one of the same id."""
        old = self._sprites.get(id)
        if old is not None and old.width * old.height == pixels.size:
            sprite = old._replace(width=width, height=height)
        else:
            if old is not None:
                self.remove(id)
            sprite = Sprite(self._allocate(pixels.size), width, height, self._new_slot(id))
        self.words[sprite.start : sprite.start + pixels.size] = pixels
        self._sprites[id] = sprite
        self._write(id, sprite)

    def bytes_to_put(self, id: int, pixels: int) -> int:
        """Return the bytes of the new arena that storing so many pixels needs; 0 if they fit."""
        old = self._sprites.get(id)
        if old is not None and old.width * old.height == pixels:
            return 0
        size_words = aligned(pixels, ALIGN_WORDS)
        if size_words == 0 or self._arena.fits(size_words):
            return 0
        return 4 * self._grown(size_words)

    def remove(self, id: int) -> bool:
        """Remove a sprite. Return False if there is none with this id."""
        sprite = self._sprites.pop(id, None)
        if sprite is None:
            return False
        self.slots[SLOT_WORDS * sprite.slot + 3] = REMOVED
        if sprite.size_words:
            self._arena.give(sprite.start, sprite.size_words)
        if self.words.size > INITIAL_WORDS and 4 * self._arena.used < self.words.size:
            self._compact()
        return True

    def clear(self) -> None:
        """Remove all sprites and free their memory."""
        self.__init__(self._call, self._things)  # type: ignore[misc]

    # the arena --------------------------------------------------------------------------------
    def _allocate(self, words: int) -> int:
        if words == 0:
            return 0
        start = self._arena.take(words)
        if start is None:
            self._grow(aligned(words, ALIGN_WORDS))
            start = self._arena.take(words)
        assert start is not None
        return start

    def _grown(self, size_words: int) -> int:
        """Return the words of the arena that has room for so many more."""
        old = self.words.size
        size = max(2 * old, INITIAL_WORDS)
        while size - old < size_words:
            size *= 2
        return size

    def _grow(self, size_words: int) -> None:
        old, size = self.words.size, self._grown(size_words)
        try:
            words = _aligned(size)
        except MemoryError:
            raise BufferTooLarge(
                f"{self._call}: cannot allocate {4 * size} bytes. Remove unused {self._things}."
            ) from None
        words[:old] = self.words
        self.words = words
        self._arena.grow(size)

    def _compact(self) -> None:
        """Move all sprites to the front of a smaller arena."""
        needed = sum(p.size_words for p in self._sprites.values())
        size = INITIAL_WORDS
        while size < 2 * needed:
            size *= 2
        words = _aligned(size)
        at = 0
        for id, sprite in self._sprites.items():
            words[at : at + sprite.size_words] = self.words[
                sprite.start : sprite.start + sprite.size_words
            ]
            self._sprites[id] = sprite._replace(start=at)
            at += sprite.size_words
        self.words = words
        self._arena = Arena(size, at, ALIGN_WORDS)
        for id, sprite in self._sprites.items():
            self._write(id, sprite)

    # the table --------------------------------------------------------------------------------
    def _new_slot(self, id: int) -> int:
        if 2 * (self._taken + 1) > 1 << self._bits:
            self._rebuild()
        slot = self._probe(id)
        self._taken += int(self.slots[SLOT_WORDS * slot + 3] == 0)
        return slot

    def _probe(self, id: int) -> int:
        slot = ((id * _GOLDEN) & _WORD) >> self.shift
        while self.slots[SLOT_WORDS * slot + 3] == SLOT_USED:
            slot = (slot + 1) & ((1 << self._bits) - 1)
        return slot

    def _rebuild(self) -> None:
        self._bits = max(4, (4 * len(self._sprites)).bit_length())
        self.slots = np.zeros(SLOT_WORDS << self._bits, np.uint64)
        self._taken = len(self._sprites)
        for id, sprite in self._sprites.items():
            self._sprites[id] = sprite._replace(slot=self._probe(id))
            self._write(id, self._sprites[id])

    def _write(self, id: int, sprite: Sprite) -> None:
        at = SLOT_WORDS * sprite.slot
        self.slots[at : at + SLOT_WORDS] = (
            id,
            sprite.start,
            sprite.width | sprite.height << 32,
            SLOT_USED,
        )


def _aligned(size: int) -> NDArray:
    """Return words at an address that is a multiple of 64."""
    size_words = np.zeros(size + ALIGN_WORDS, np.uint32)
    skip = -size_words.ctypes.data % (4 * ALIGN_WORDS) // 4
    return size_words[skip : skip + size]
