"""Memory that buffers share with other libraries on the same GPU.

No work waits for the host: one stream waits for what another has been given. Memory of others is
held until our work with it has ended, and ours returns to the pool when they drop it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.engines.base import SharedTensor, Storage
from dala.gpu.compute.engines.webgpu.cuda import dlpack
from dala.gpu.compute.engines.webgpu.cuda.copies.pinned import PinnedMemory
from dala.gpu.compute.engines.webgpu.dispatcher import buffer_of
from dala.gpu.compute.engines.webgpu.pool import DeviceBuffer, PoolSlot

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.api import CudaApi
    from dala.gpu.compute.engines.webgpu.device import NativeDevice
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Kernels read and write whole units of so many bytes.
_UNIT: Final = 16
_BOOL: Final = np.dtype(np.bool_)
_WORD: Final = np.dtype(np.uint16)


class ForeignMemory:
    """Memory of another library, in the place of a ``CudaBuffer``."""

    host = False

    def __init__(self, tensor: dlpack.GpuTensor) -> None:
        self.address = tensor.address
        self.size = -(-tensor.nbytes // _UNIT) * _UNIT
        self._release = tensor.release

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter is ending
            self._release()


def ordinal_of(engine: WebGPUEngine) -> int:
    """Return the GPU's number, as CUDA counts."""
    return int(engine.id.partition(":")[2])


def enter(engine: WebGPUEngine) -> None:
    """Make the GPU's context that of this thread, for other libraries."""
    engine.device.native.api.enter()


def pinned_memory(engine: WebGPUEngine) -> PinnedMemory:
    """Return the memory for large transfers."""
    return PinnedMemory(engine)


def adopt_tensor(engine: WebGPUEngine, tensor: Any) -> SharedTensor | None:
    """Return a tensor's memory as storage, or None if it is not in the memory of this GPU.

    Rows that are apart, and memory that does not begin at a multiple of 16 bytes, are copied on
    the GPU. Two bytes of "u16" are an axis of u8. A tensor whose size is no multiple of 16 bytes
    is shared to be read only: kernels write whole units.
    """
    where = getattr(tensor, "__dlpack_device__", None)
    if where is None:
        if not hasattr(tensor, "__cuda_array_interface__"):
            return None
    else:
        kind, number = where()
        if kind not in (dlpack.CUDA, dlpack.MANAGED) or number != ordinal_of(engine):
            return None
    api: CudaApi = engine.device.native.api
    found = dlpack.read_tensor(tensor, api.stream)
    if found.pitch is None:  # columns or channels are apart
        found.release()
        whole = getattr(tensor, "contiguous", None) or tensor.copy
        found = dlpack.read_tensor(whole(), api.stream)
    if found.stream is not None:
        engine.owner.call(api.follow, found.stream)
    memory = ForeignMemory(found)
    shape, dtype = found.shape, found.dtype
    if dtype == _WORD:
        shape, dtype = (*shape, 2), np.dtype(np.uint8)
    if dtype == _BOOL:
        dtype = np.dtype(np.uint8)
    nbytes = found.nbytes
    if found.address % _UNIT or found.pitch != found.row_bytes:
        storage = engine.allocate(nbytes, zero=False)
        if nbytes:
            engine.owner.call(_copy_rows, engine.device, memory, buffer_of(storage), found)
        return SharedTensor(storage, shape, dtype, readonly=False)
    buffer = DeviceBuffer(nbytes, memory.size, PoolSlot(memory, memory.size))
    storage = Storage(nbytes, buffer, foreign=True)
    return SharedTensor(storage, shape, dtype, readonly=found.readonly or nbytes % _UNIT != 0)


def _copy_rows(
    device: NativeDevice, memory: ForeignMemory, target: DeviceBuffer, tensor: dlpack.GpuTensor
) -> None:
    pitch, row = tensor.pitch or 0, tensor.row_bytes
    native, rows = device.native_buffer(target), tensor.nbytes // row
    device.encoder().copy_rows(memory, pitch, native, row, rows)


def lend_tensor(
    engine: WebGPUEngine,
    storage: Storage,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    readonly: bool,
    stream: int | None = dlpack.DEFAULT_STREAM,
    max_version: tuple[int, int] | None = None,
    offset: int = 0,
) -> Any:
    """Return a capsule of DLPack over a storage, from a byte on.

    The stream waits for our work; -1 is for none.
    """
    stream = dlpack.DEFAULT_STREAM if stream is None else stream
    slot = engine.owner.call(_lend, engine.device, buffer_of(storage), stream)
    made = dlpack.make_capsule(
        slot.native.address + offset, shape, dtype, ordinal_of(engine),
        partial(engine.owner.post_from_finalizer, _take_back, engine.device, slot, stream),
        readonly=readonly, versioned=max_version is not None and max_version[0] >= 1,
    )  # fmt: skip
    storage.exposed = partial(_lent, slot)
    return made


def address_of(storage: Storage) -> int:
    """Return the address of memory that other libraries use, too."""
    slot = buffer_of(storage).slot
    return int(slot.native.address) if slot is not None else 0


def array_interface(engine: WebGPUEngine, storage: Storage) -> tuple[int, int]:
    """Return the address of a storage, and the stream to wait for.

    Nothing tells when the array is dropped, so the memory is not used again.
    """
    slot = engine.owner.call(_lend, engine.device, buffer_of(storage), -1)
    storage.exposed = partial(_lent, slot)
    return slot.native.address, engine.device.native.api.stream


def _lend(device: NativeDevice, buffer: DeviceBuffer, stream: int) -> PoolSlot:
    device.flush()
    device.native_buffer(buffer)  # raises if it has no memory
    slot = buffer.slot
    assert slot is not None, buffer
    device.native.wait_for_reads()
    if stream != -1:
        device.native.api.lead(stream or dlpack.DEFAULT_STREAM)
    slot.lent += 1
    return slot


def _lent(slot: PoolSlot) -> bool | None:
    """Return True while another library uses the memory, else None."""
    return slot.lent > 0 or None


def _take_back(device: NativeDevice, slot: PoolSlot, stream: int) -> None:
    """Return memory to the pool, once the other stream has done its work."""
    if stream == -1:
        return  # it is not known who uses it: freeing it waits for the GPU
    device.native.api.follow(stream or dlpack.DEFAULT_STREAM)
    device.discard(device.pool.take_back(slot))
