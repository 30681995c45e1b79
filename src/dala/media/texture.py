"""Textures: pictures that are loaded once and drawn many times, within a budget of memory."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final

from dala import resources
from dala.errors import BufferTooLarge, FreedError, ParameterError
from dala.gpu.compute import Buffer, from_dlpack
from dala.media.pixels import Pixels, to_rgba
from dala.resources import Closing

#: Under what textures are counted in ``dala.diagnostics()``: their pixels are in the host's memory.
_HOST: Final = "host"


class Texture:
    """A picture in a pool. ``retain`` it while it is drawn, so that it is not let go of.

    It stays valid for whoever holds it after the pool has forgotten it.
    """

    __slots__ = ("__weakref__", "_array", "_buffer", "_count", "_lock", "_pool", "key", "version")

    def __init__(self, key: Hashable, array: Pixels, pool: TexturePool) -> None:
        self.key = key
        #: Changes exactly when the pixels do.
        self.version = 1
        self._pool = weakref.ref(pool)
        self._lock = pool._lock
        self._count = 0
        self._buffer: Buffer | None = None
        self._array = _tracked(array)

    @property
    def array(self) -> Pixels:
        """The pixels, (height, width, 4) of u8, straight alpha. They cannot be written to."""
        return self._array

    @property
    def width(self) -> int:
        """Columns."""
        return int(self._array.shape[1])

    @property
    def height(self) -> int:
        """Rows."""
        return int(self._array.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the pixels."""
        return int(self._array.nbytes)

    @property
    def in_use(self) -> bool:
        """True while somebody has retained it."""
        return self._count > 0

    @property
    def buffer(self) -> Buffer:
        """The pixels on the pool's device, taken there when first asked for."""
        with self._lock:
            pool = self._pool()
            if self._buffer is None:
                device = None if pool is None else pool.device
                self._buffer = from_dlpack(self._array, device=device)
            return self._buffer

    def retain(self) -> Texture:
        """Keeps the pool from letting go of it, until ``release`` was called as often."""
        with self._lock:
            self._count += 1
        return self

    def release(self) -> None:
        """Takes back one ``retain``."""
        with self._lock:
            if not self._count:
                raise ParameterError(
                    f"Texture.release: {self.key!r} was released more often than retained."
                )
            self._count -= 1

    def __repr__(self) -> str:
        return f"<Texture {self.key!r} {self.width}x{self.height}>"

    def _replace(self, array: Pixels) -> None:
        self._array = _tracked(array)
        self._buffer = None
        self.version += 1


class TexturePool(Closing):
    """Pictures by key, within a budget; what was used least recently leaves first.

    Textures that are in use are never let go of. May be used from several threads; a picture that
    two of them ask for at once is loaded once.

    Args:
        budget_bytes: of all pixels together, four bytes each.
        device: where ``Texture.buffer`` is; the current device where left out.

    >>> import numpy as np
    >>> pool = TexturePool(1_000_000)
    >>> logo = pool.load("logo", np.zeros((10, 20, 3), np.uint8))
    >>> pool.load("logo") is logo, pool.bytes, pool.hits, pool.misses
    (True, 800, 1, 1)
    """

    def __init__(self, budget_bytes: int, device: str | None = None) -> None:
        if isinstance(budget_bytes, bool) or not isinstance(budget_bytes, int) or budget_bytes < 1:
            raise ParameterError(
                f"TexturePool: budget_bytes is a whole number from 1 on, {budget_bytes!r} came."
            )
        #: Bytes of pixels, at most.
        self.budget = budget_bytes
        self.device = device
        #: How often a texture was asked for that was there.
        self.hits = 0
        #: How often one was asked for that was not.
        self.misses = 0
        #: How many were let go of to make room.
        self.evictions = 0
        #: Bytes of pixels now.
        self.bytes = 0
        self._lock = threading.RLock()
        self._loaded = threading.Condition(self._lock)
        self._loading: set[Hashable] = set()
        self._held: OrderedDict[Hashable, Texture] = OrderedDict()  # the oldest first
        self._closed = False

    # facts ------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __bool__(self) -> bool:
        return True

    def keys(self) -> list[Hashable]:
        """The keys, that of the texture used least recently first."""
        with self._lock:
            return list(self._held)

    def __repr__(self) -> str:
        return f"<TexturePool {len(self)} textures, {self.bytes:,} of {self.budget:,} bytes>"

    # use --------------------------------------------------------------------------------------
    def load(self, key: Hashable, source: Any = None) -> Texture:
        """The texture of a key; where there is none yet, it is made of the source.

        Args:
            key: a name, a number, a path: anything that can be a key of a dict.
            source: an array, a Pillow image, a Frame, a Buffer or the path of a picture file, which
                is turned upright as its EXIF says. Left out, the key is the path.

        Raises:
            ParameterError: nothing is known of the key, and it is no path; or no picture.
            FileNotFoundError: there is no such file.
            BufferTooLarge: it does not fit the budget, or what is in use leaves no room.
        """
        if (found := self._wait_or_begin(key)) is not None:
            return found
        try:
            array = to_rgba(_source(key, source), "TexturePool.load")
            with self._lock:
                self._open("load")
                self._make_room(key, array.nbytes, 0)
                made = self._held[key] = Texture(key, array, self)
                self.bytes += made.nbytes
            return made
        finally:
            with self._loaded:
                self._loading.discard(key)
                self._loaded.notify_all()

    def get(self, key: Hashable) -> Texture | None:
        """The texture of a key, or None."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                self.misses += 1
            else:
                self.hits += 1
                self._held.move_to_end(key)
            return found

    def update(self, key: Hashable, source: Any) -> Texture:
        """Gives a texture other pixels, in place: whoever draws it draws these from now on."""
        array = to_rgba(source, "TexturePool.update")
        with self._lock:
            self._open("update")
            found = self._held.get(key)
            if found is None:
                raise ParameterError(
                    f"TexturePool.update: there is no texture {key!r}. Load it: load(key, source)."
                )
            self._make_room(key, array.nbytes, found.nbytes)
            self.bytes += array.nbytes - found.nbytes
            found._replace(array)
            self._held.move_to_end(key)
            return found

    def remove(self, key: Hashable) -> bool:
        """Forgets a texture, in use or not; False where there is none of that key."""
        with self._lock:
            found = self._held.pop(key, None)
            if found is not None:
                self.bytes -= found.nbytes
            return found is not None

    def clear(self) -> None:
        """Forgets all textures."""
        with self._lock:
            self._held.clear()
            self.bytes = 0

    def close(self) -> None:
        """Forgets all textures, and takes no more. Closing twice is fine."""
        with self._lock:
            self._closed = True
            self.clear()

    # inside -----------------------------------------------------------------------------------
    def _open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"TexturePool.{call}: the pool was closed. Make a new one.")

    def _wait_or_begin(self, key: Hashable) -> Texture | None:
        """The texture, after waiting for whoever is loading it; None: the caller loads it."""
        with self._loaded:
            self._open("load")
            try:
                while key in self._loading:
                    self._loaded.wait(0.5)  # with a limit, so that Ctrl-C is heard everywhere
            except TypeError:
                raise ParameterError(
                    f"TexturePool.load: {type(key).__name__} cannot be a key. Give a name first: "
                    "load('name', picture)."
                ) from None
            found = self._held.get(key)
            if found is None:
                self.misses += 1
                self._loading.add(key)
                return None
            self.hits += 1
            self._held.move_to_end(key)
            return found

    def _make_room(self, key: Hashable, nbytes: int, freed: int) -> None:
        """Lets go of the oldest until there is room; of none if that would not do."""
        short = self.bytes - freed + nbytes - self.budget
        if short <= 0:
            return
        idle = [t for t in self._held.values() if not t.in_use and t.key != key]
        if short > sum(t.nbytes for t in idle):
            if nbytes > self.budget:
                raise BufferTooLarge(
                    f"TexturePool: {key!r} is {nbytes:,} bytes, the budget {self.budget:,}. Make "
                    "the picture smaller, or the budget larger."
                )
            used = self.bytes - freed - sum(t.nbytes for t in idle)
            raise BufferTooLarge(
                f"TexturePool: {key!r} is {nbytes:,} bytes; of the budget of {self.budget:,}, "
                f"{used:,} are in use. Remove nodes that show textures, or make the budget larger."
            )
        for texture in idle:
            if short <= 0:
                break
            del self._held[texture.key]
            self.bytes -= texture.nbytes
            self.evictions += 1
            short -= texture.nbytes


def _source(key: Hashable, source: Any) -> Any:
    if source is not None:
        return source
    if isinstance(key, str | os.PathLike) and os.path.exists(key):
        return key
    raise ParameterError(
        f"TexturePool.load: there is no texture {key!r}, and no file of that name. Give what it "
        "is made of: load(key, source)."
    )


def _tracked(array: Pixels) -> Pixels:
    """The array, locked, and counted as long as it lives."""
    array.flags.writeable = False
    resources.track("texture", _HOST, array.nbytes)
    weakref.finalize(array, resources.untrack, "texture", _HOST, array.nbytes).atexit = False
    return array
