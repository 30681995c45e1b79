"""Pictures and paints that calls load onto a surface by themselves, found by content.

The ids are made here, from 2**61 on. What was not used for long is removed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from dala import extensions, forks
from dala.gpu import command as encode
from dala.gpu.checks import renderer_of
from dala.gpu.paint import Gradient, Pattern
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.gpu.surface import Surface

#: A picture that calls take.
Picture: TypeAlias = "ImageLike | PathLike"
#: Paints that are kept on a surface, and their bytes.
MAX_KEPT: Final = 256
MAX_KEPT_BYTES: Final = 64 << 20
_FIRST_ID: Final = 1 << 61


class Kept:
    """The paints that calls have loaded onto a surface."""

    def __init__(self) -> None:
        self.lock = forks.lock()
        self._ids: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        self._next = count(_FIRST_ID)
        self._bytes = 0

    def id_of(
        self, s: Surface, call: str, key: Hashable, load: Callable[[int], tuple[bytes, ...]]
    ) -> int:
        """Return the id of a paint, which is loaded by the commands of ``load`` if it is new."""
        with self.lock:
            found = self._ids.get(key)
            if found is not None:
                self._ids.move_to_end(key)
                return found[0]
            renderer = renderer_of(s, call)
            id, size = next(self._next), 0
            for data in load(id):
                renderer.put_large(data)
                size += len(data)
            self._ids[key] = id, size
            self._bytes += size
            while len(self._ids) > 1 and (
                len(self._ids) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES
            ):
                _, (old, freed) = self._ids.popitem(last=False)
                self._bytes -= freed
                renderer.put(encode.encode_remove_paint(old))
            return id


_kept: WeakKeyDictionary[Surface, Kept] = WeakKeyDictionary()
_making = forks.lock()


def kept_of(s: Surface, call: str = "fill") -> Kept:
    """Return the loaded paints and pictures of a surface."""
    renderer_of(s, call)
    found = _kept.get(s)
    if found is None:
        with _making:
            found = _kept.setdefault(s, Kept())
    return found


def pixels_of(call: str, picture: Picture) -> NDArray:
    """Return the straight RGBA pixels of a picture, (h, w, 4) of uint8."""
    return extensions.drawing.picture_of(picture, call)


def gradient_id(s: Surface, call: str, paint: Gradient) -> int:
    """Return the id of a gradient on a surface."""
    return kept_of(s, call).id_of(s, call, paint.key, lambda id: (paint.command(id),))


def picture_id(s: Surface, call: str, pixels: NDArray, look: Pattern) -> int:
    """Return the id of a paint of pixels, with the matrix, repeat and filter of a pattern."""
    data = np.ascontiguousarray(pixels)
    digest = hashlib.blake2b(data, digest_size=16).digest()
    key = digest, data.shape, look.matrix, look.repeat, look.filter
    height, width = data.shape[:2]

    def load(id: int) -> tuple[bytes, ...]:
        return (
            encode.encode_load_image(id, data, width, height),
            encode.encode_load_pattern(id, id, look.repeat, look.filter, *look.matrix),
            encode.encode_remove_image(id),
        )

    return kept_of(s, call).id_of(s, call, key, load)
