"""Buffers in other libraries: NumPy, DLPack, and arrays of CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from dala.gpu.compute.dtypes import NUMPY, DtypeLike

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from dala.gpu.compute.buffer import Buffer
    from dala.gpu.compute.engines.base import Engine, Storage
    from dala.typing import NDArray

#: DLPack's number of CUDA's memory.
_CUDA: Final = 2


class ExchangedArray:
    """The protocols by which other libraries take buffers."""

    __slots__ = ()

    if TYPE_CHECKING:
        engine: Engine
        shape: tuple[int, ...]
        dtype: str
        readonly: bool

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
        if sharing is None or (device is not None and device[0] != _CUDA):
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
            "version": 3,
            "shape": self.shape,
            "typestr": NUMPY[self.dtype].str,
            "data": (address, self.readonly),
            "stream": stream,
        }
