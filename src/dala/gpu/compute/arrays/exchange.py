"""Buffers in other libraries (NumPy, DLPack, arrays of CUDA), and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from dala.errors import DalaError
from dala.gpu.compute.dtypes import NUMPY, DtypeLike

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from dala.gpu.compute.buffer import Buffer
    from dala.gpu.compute.engines.base import Engine, Storage
    from dala.typing import NDArray

#: DLPack's number of CUDA's memory.
_CUDA: Final = 2


class ExchangedArray:
    """The protocols by which other libraries take buffers, and notebooks show them."""

    __slots__ = ()

    if TYPE_CHECKING:
        engine: Engine
        shape: tuple[int, ...]
        dtype: str
        nbytes: int
        readonly: bool
        transient: bool

        @property
        def freed(self) -> bool: ...
        def numpy(self) -> NDArray: ...
        def contents(self, call: str) -> NDArray: ...
        def storage(self, call: str) -> Storage: ...
        def settled(self, call: str) -> Storage: ...

    def __array__(self, dtype: DtypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False and self.engine.host_view(self.storage("np.asarray")) is None:
            raise ValueError(
                f"np.asarray: a buffer on {self.engine.id} cannot be read without a copy"
            )
        if copy or (dtype is not None and NUMPY[self.dtype] != dtype):
            return self.contents("np.asarray").astype(dtype or NUMPY[self.dtype])
        return self.numpy()

    # Options depend on the consumer's DLPack version; NumPy checks those of the host's memory.
    def __dlpack__(self, **options: Any) -> CapsuleType:
        sharing, device = self.engine.sharing, options.get("dl_device")
        # NumPy leaves the device open, and has no stream: it takes the host's memory only.
        host = "dl_device" in options and (device or "stream" not in options)
        if sharing is None or (host and not (device and device[0] == _CUDA)):
            return self.numpy().__dlpack__(**options)
        options.pop("dl_device", None)
        if options.pop("copy", None):
            return cast("Buffer", self).__copy__().__dlpack__(**options)
        made: CapsuleType = sharing.lend_tensor(
            self.engine,
            self.settled("__dlpack__"),
            self.shape,
            NUMPY[self.dtype],
            readonly=self.readonly,
            **options,
        )
        return made

    def __dlpack_device__(self) -> tuple[int, int]:
        sharing = self.engine.sharing
        return (1, 0) if sharing is None else (_CUDA, sharing.ordinal_of(self.engine))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        sharing = self.engine.sharing
        if sharing is None:
            raise AttributeError("__cuda_array_interface__: the buffer is not on a cuda device")
        address, stream = sharing.array_interface(self.engine, self.settled("the interface"))
        return {
            "version": 3, "shape": self.shape, "typestr": NUMPY[self.dtype].str,
            "data": (address, self.readonly), "stream": stream,
        }  # fmt: skip

    # notebooks -----------------------------------------------------------------------------------
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
