"""Buffers in notebooks: small ones as numbers, picture-shaped ones as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.errors import DalaError

if TYPE_CHECKING:
    from dala.typing import NDArray


class ShownArray:
    """The rich representations of buffers."""

    __slots__ = ()

    if TYPE_CHECKING:
        shape: tuple[int, ...]
        dtype: str
        nbytes: int
        transient: bool

        @property
        def freed(self) -> bool: ...
        def numpy(self) -> NDArray: ...

    def _repr_png_(self) -> bytes | None:
        from dala.notebook import is_picture, picture_png

        values = self._values() if is_picture(self.shape, self.dtype) else None
        return None if values is None else picture_png(values)

    def _repr_html_(self) -> str | None:
        from dala.notebook import html_text, is_picture, numbers_text

        if is_picture(self.shape, self.dtype):
            return None  # notebooks prefer HTML to the picture
        values = self._values()
        return None if values is None else html_text(f"{self!r}\n{numbers_text(values)}")

    def _values(self) -> NDArray | None:
        """Return the values; None if they are gone, undefined or too many to read for a look."""
        from dala.notebook import MAX_BYTES

        if self.freed or self.transient or self.nbytes > MAX_BYTES:
            return None
        try:
            return self.numpy()
        except (DalaError, MemoryError):
            return None
