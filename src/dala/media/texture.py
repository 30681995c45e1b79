"""Textures: pictures that are loaded once and drawn many times, within a memory budget."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NoReturn

from dala import forks, memory
from dala.arguments import Integer
from dala.budget import pause
from dala.errors import BufferTooLarge, FreedError, ParameterError
from dala.gpu.compute import Buffer, from_dlpack
from dala.media.pictures.pixels import Pixels, to_rgba
from dala.resources import Closing, refuse_pickle
from dala.typing import ImageLike, PathLike

#: The device of textures in ``dala.diagnostics()``: their pixels are in host memory.
_HOST: Final = "host"


class Texture:
    """A picture in a pool.

    ``retain`` a texture while it is drawn, so that it is not evicted. A texture stays valid after
    the pool has removed it.

    >>> import numpy as np
    >>> pool = TexturePool(1 << 20, device="cpu")
    >>> texture = pool.load("logo", np.zeros((2, 3, 4), np.uint8))
    >>> texture.width, texture.height, texture.array.shape
    (3, 2, (2, 3, 4))
    """

    __slots__ = ("__weakref__", "_array", "_buffer", "_count", "_lock", "_pool", "key", "version")

    def __init__(self, key: Hashable, array: Pixels, pool: TexturePool) -> None:
        self.key = key
        #: Changes when the pixels change.
        self.version = 1
        self._pool = weakref.ref(pool)
        self._lock = pool._lock
        self._count = 0
        self._buffer: Buffer | None = None
        self._array = _tracked(array)

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self, "Pass the pixels, texture.array.")

    @property
    def array(self) -> Pixels:
        """The pixels, (height, width, 4) of u8 with straight alpha, read-only."""
        return self._array

    @property
    def width(self) -> int:
        """The width in pixels."""
        return int(self._array.shape[1])

    @property
    def height(self) -> int:
        """The height in pixels."""
        return int(self._array.shape[0])

    @property
    def nbytes(self) -> int:
        """The size of the pixels in bytes."""
        return int(self._array.nbytes)

    @property
    def in_use(self) -> bool:
        """True while the texture is retained."""
        return self._count > 0

    @property
    def buffer(self) -> Buffer:
        """The pixels on the pool's device, uploaded on first use."""
        with self._lock:
            pool = self._pool()
            if self._buffer is None:
                device = None if pool is None else pool.device
                self._buffer = from_dlpack(self._array, device=device)
            return self._buffer

    def retain(self) -> Texture:
        """Keep the texture from being evicted until ``release`` is called as often; return it."""
        with self._lock:
            self._count += 1
        return self

    def release(self) -> None:
        """Undo one ``retain``."""
        with self._lock:
            if not self._count:
                raise ParameterError(
                    f"Texture.release: {self.key!r} is released more often than retained."
                )
            self._count -= 1

    def __repr__(self) -> str:
        return f"<Texture {self.key!r} {self.width}x{self.height}>"

    def _replace(self, array: Pixels) -> None:
        self._array = _tracked(array)
        self._buffer = None
        self.version += 1


class TexturePool(Closing):
    """A cache of pictures by key, within a memory budget; the least recently used is evicted first.

    Textures in use are never evicted. A pool is thread-safe; a picture that several threads load at
    the same time is loaded once.

    Args:
        budget_bytes: of all pixels together, four bytes each.
        device: the device of ``Texture.buffer``; the current one by default.

    >>> import numpy as np
    >>> pool = TexturePool(1_000_000)
    >>> logo = pool.load("logo", np.zeros((10, 20, 3), np.uint8))
    >>> pool.load("logo") is logo, pool.bytes, pool.hits, pool.misses
    (True, 800, 1, 1)
    """

    _instead = "Pass the pixels, texture.array."

    def __init__(self, budget_bytes: int, device: str | None = None) -> None:
        Integer(1).check("TexturePool", "budget_bytes", budget_bytes)
        #: The most bytes of pixels.
        self.budget = budget_bytes
        self.device = device
        #: Lookups that found a texture, and those that did not; textures that were evicted; the
        #: current bytes of pixels.
        self.hits = self.misses = self.evictions = self.bytes = 0
        self._lock = forks.rlock()
        self._loaded = forks.condition(self._lock)
        self._loading: set[Hashable] = set()
        self._held: OrderedDict[Hashable, Texture] = OrderedDict()  # least recently used first
        forks.in_child(self._forget_loading)
        self._closed = False

    def _forget_loading(self) -> None:
        """Forget pictures that are being loaded: a forked child has no loading threads."""
        self._loading.clear()

    # properties ---------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __bool__(self) -> bool:
        return True

    def keys(self) -> list[Hashable]:
        """Return the keys, least recently used first."""
        with self._lock:
            return list(self._held)

    def __repr__(self) -> str:
        return f"<TexturePool {len(self)} textures, {self.bytes:,} of {self.budget:,} bytes>"

    # use ----------------------------------------------------------------------------------------
    def load(self, key: Hashable, source: ImageLike | PathLike | None = None) -> Texture:
        """Return the texture of a key, made from the source if there is none yet.

        Args:
            key: a name, a number, a path: any hashable value.
            source: an array, a Pillow image, a Frame, a Buffer or the path of a picture file, which
                is rotated as its EXIF orientation says. By default the key is the path.

        Raises:
            ParameterError: the key is unknown and not a path, or the source is not a picture.
            FileNotFoundError: there is no such file.
            BufferTooLarge: the texture exceeds the budget, or textures in use leave no room.
        """
        if (found := self._find_or_begin(key)) is not None:
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
        """Return the texture of a key, or None."""
        with self._lock:
            return self._find(key)

    def _find(self, key: Hashable) -> Texture | None:
        """Return a texture, now the last used one; count whether it is there."""
        found = self._held.get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
            self._held.move_to_end(key)
        return found

    def update(self, key: Hashable, source: ImageLike | PathLike) -> Texture:
        """Replace the pixels of a texture in place, and return it."""
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
        """Remove a texture, in use or not; return whether there was one."""
        with self._lock:
            found = self._held.pop(key, None)
            if found is not None:
                self.bytes -= found.nbytes
            return found is not None

    def clear(self) -> None:
        """Remove all textures."""
        with self._lock:
            self._held.clear()
            self.bytes = 0

    def close(self) -> None:
        """Remove all textures and refuse new ones. Closing twice has no effect."""
        with self._lock:
            self._closed = True
            self.clear()

    # implementation -----------------------------------------------------------------------------
    def _open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"TexturePool.{call}: the pool was closed. Make a new one.")

    def _find_or_begin(self, key: Hashable) -> Texture | None:
        """Return the texture, waiting for a thread that loads it; None if the caller must."""
        with self._loaded:
            self._open("load")
            try:
                while key in self._loading:
                    pause(self._loaded, 0.5, "TexturePool.load")
            except TypeError:
                raise ParameterError(
                    f"TexturePool.load: key must be hashable, got {type(key).__name__}. Give a "
                    "name first: load('name', picture)."
                ) from None
            found = self._find(key)
            if found is None:
                self._loading.add(key)
            return found

    def _make_room(self, key: Hashable, nbytes: int, freed: int) -> None:
        """Evict the oldest textures until there is room; none if that is not enough."""
        short = self.bytes - freed + nbytes - self.budget
        if short <= 0:
            return
        idle = [t for t in self._held.values() if not t.in_use and t.key != key]
        if short > sum(t.nbytes for t in idle):
            if nbytes > self.budget:
                raise BufferTooLarge(
                    f"TexturePool: {key!r} has {nbytes:,} bytes, more than the budget of "
                    f"{self.budget:,}. Use a smaller picture or a larger budget."
                )
            used = self.bytes - freed - sum(t.nbytes for t in idle)
            raise BufferTooLarge(
                f"TexturePool: {key!r} has {nbytes:,} bytes; of the budget of {self.budget:,}, "
                f"{used:,} are in use. Release textures or use a larger budget."
            )
        for texture in idle:
            if short <= 0:
                break
            del self._held[texture.key]
            self.bytes -= texture.nbytes
            self.evictions += 1
            short -= texture.nbytes


def _source(key: Hashable, source: ImageLike | PathLike | None) -> ImageLike | PathLike:
    if source is not None:
        return source
    if isinstance(key, str | os.PathLike) and os.path.exists(key):
        return key
    raise ParameterError(
        f"TexturePool.load: there is no texture {key!r} and no file of that name. Give a source: "
        "load(key, source)."
    )


def _tracked(array: Pixels) -> Pixels:
    """Make an array read-only and count it in diagnostics until it is garbage collected."""
    array.flags.writeable = False
    accounts = memory.reserve("texture", _HOST, array.nbytes, "TexturePool.load")
    weakref.finalize(array, memory.release, "texture", _HOST, array.nbytes, accounts).atexit = False
    return array
