"""Memory that buffers share with other libraries, in the memory of the processor's "GPU"."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from dala.errors import ReadOnlyError
from dala.gpu import compute
from dala.gpu.compute.engines.webgpu.cuda.dlpack import make_capsule, read_tensor
from dala.media import gpu

CALLERS = 123  # the stream of another library


class Tensor:
    """A tensor of a library that has the memory of an array on the GPU 7."""

    device = "cuda:7"

    def __init__(self, array: np.ndarray, *, asks: bool = True, readonly: bool = False) -> None:
        self.array = array
        self.readonly = readonly
        self.streams: list[int | None] = []
        self.dropped = 0
        self._asks = asks

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 7)

    def __dlpack__(self, *, stream=None, max_version=None):
        if max_version is not None and not self._asks:
            raise TypeError("unexpected keyword argument")
        if stream is not None and not self._asks:
            raise NotImplementedError
        self.streams.append(stream)

        def drop() -> None:
            self.dropped += 1

        address, shape = self.array.ctypes.data, self.array.shape
        return make_capsule(
            address, shape, self.array.dtype, 7, drop,
            readonly=self.readonly, versioned=max_version is not None,
        )  # fmt: skip

    def copy(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.array))


class Interface:
    """An array of a library that has the older interface only."""

    def __init__(self, array: np.ndarray, stream: int | None = CALLERS) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "strides": array.strides,
            "data": (array.ctypes.data, False), "version": 3, "stream": stream,
        }  # fmt: skip


def aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy whose memory begins at a multiple of 64 bytes, as a GPU's does."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64
    made = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def settle(engine) -> None:
    engine.synchronize()
    gc.collect()
    engine.synchronize()


def test_tensors_share_their_memory(engine):
    tensor = Tensor(aligned(np.float32([[-1, 2], [3, -4]])))
    shared = compute.from_dlpack(tensor, device=engine.id)
    compute.relu(shared, shared)
    engine.synchronize()
    assert tensor.array.tolist() == [[0, 2], [3, 0]]
    assert tensor.streams == [77]  # it let ours wait
    assert shared.nbytes == 16
    assert tensor.dropped == 0
    shared.free()
    settle(engine)
    assert tensor.dropped == 1


def test_memory_of_others_is_held_until_the_work_has_ended(engine, monkeypatch):
    ended = [False]
    monkeypatch.setattr(type(engine.device.native.api), "reached", lambda self, event: ended[0])
    tensor = Tensor(aligned(np.ones((4, 4), np.float32)))
    with compute.from_dlpack(tensor, device=engine.id) as shared:
        compute.relu(shared, shared)
    engine.owner.call(engine.device.flush)
    gc.collect()
    assert tensor.dropped == 0
    ended[0] = True
    settle(engine)
    assert tensor.dropped == 1


def test_what_kernels_cannot_write_is_read_only(engine):
    odd = compute.from_dlpack(Tensor(aligned(np.arange(5, dtype=np.float32))), device=engine.id)
    assert odd.read_list() == [0, 1, 2, 3, 4]
    with pytest.raises(ReadOnlyError):
        compute.relu(odd, odd)
    constant = Tensor(aligned(np.ones(4, np.float32)), readonly=True)
    assert compute.from_dlpack(constant, device=engine.id).readonly


@pytest.mark.parametrize("asks", [True, False])
def test_rows_that_are_apart_are_copied_on_the_gpu(engine, asks):
    before = engine.stats()
    picture = np.arange(6 * 32, dtype=np.uint8).reshape(6, 32)
    rows = Interface(picture[:, :20]) if asks else Tensor(aligned(picture), asks=False)
    buffer = compute.from_dlpack(rows, device=engine.id)
    after = engine.stats()
    assert np.array_equal(buffer.numpy(), picture[:, :20] if asks else picture)
    assert [after[k] - before[k] for k in ("uploaded_bytes", "downloaded_bytes")] == [0, 0]
    assert engine.device.native.api.order[-1] == ("follow", CALLERS if asks else 1)


def test_columns_that_are_apart_are_copied_by_their_library(engine):
    picture = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(3, 6, 8)

    class Turned(Interface):
        def copy(self) -> Interface:
            return Interface(np.ascontiguousarray(self.array))

    buffer = compute.from_dlpack(Turned(picture.transpose(1, 2, 0)), device=engine.id)
    assert np.array_equal(buffer.numpy(), picture.transpose(1, 2, 0))


def test_words_are_pairs_of_bytes_and_bools_are_bytes(engine):
    words = np.arange(16, dtype=np.uint16).reshape(2, 8) * 300
    buffer = compute.from_dlpack(Tensor(aligned(words)), device=engine.id)
    assert np.array_equal(buffer.numpy(), words.view(np.uint8).reshape(2, 8, 2))
    flags = compute.from_dlpack(Tensor(aligned(np.ones(16, bool))), device=engine.id)
    assert (flags.dtype, flags.read_list()) == ("u8", [1] * 16)
    with pytest.raises(TypeError, match="from_dlpack"):
        compute.from_dlpack(Tensor(aligned(np.ones(16, np.int8))), device=engine.id)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_buffers_are_lent_and_come_back_to_the_pool(engine, version):
    settle(engine)
    before = engine.stats()["live_buffers"]
    buffer = compute.buffer(np.arange(8, dtype=np.float32), device=engine.id)
    assert buffer.__dlpack_device__() == (2, 7)
    capsule = buffer.__dlpack__(stream=CALLERS, max_version=version)
    assert engine.device.native.api.order[-1] == ("lead", CALLERS)

    class Given:
        def __dlpack__(self, **options):
            return capsule

    taken = read_tensor(Given(), 1)
    assert (taken.shape, taken.dtype, taken.pitch) == ((8,), np.float32, taken.row_bytes)
    address = taken.address
    buffer.free()
    other = compute.buffer(np.zeros(8, np.float32), device=engine.id)  # not the memory in use
    settle(engine)
    assert engine.sharing.address_of(other.storage("test")) != address
    taken.release()
    settle(engine)
    assert engine.device.native.api.order[-1] == ("follow", CALLERS)
    other = compute.buffer(np.zeros(8, np.float32), device=engine.id)
    settle(engine)
    assert engine.sharing.address_of(other.storage("test")) == address
    del other
    settle(engine)
    assert engine.stats()["live_buffers"] <= before + 1


def test_capsules_that_nobody_takes_are_released(engine):
    buffer = compute.buffer(np.arange(8, dtype=np.float32), device=engine.id)
    lent = buffer.storage("test").handle
    capsule = buffer.__dlpack__()
    assert lent.slot.lent == 1
    del capsule
    settle(engine)
    assert lent.slot.lent == 0
    assert np.from_dlpack(buffer, device="cpu").tolist() == list(range(8))
    assert np.from_dlpack(buffer).tolist() == list(range(8))


def test_the_interface_of_cuda_arrays(engine):
    buffer = compute.buffer(np.arange(8, dtype=np.float32).reshape(2, 4), device=engine.id)
    facts = buffer.__cuda_array_interface__
    assert (facts["shape"], facts["typestr"], facts["stream"]) == ((2, 4), "<f4", 77)
    assert not hasattr(compute.buffer([1.0], device="cpu"), "__cuda_array_interface__")


def test_two_views_of_one_tensor_overlap(engine):
    tensor = Tensor(aligned(np.zeros((32, 32, 4), np.uint8)))
    one, two = (compute.from_dlpack(tensor, device=engine.id) for _ in range(2))
    with pytest.raises(ValueError, match="must not be the input"):
        compute.run_kernel("blur", [one], two, {"radius": 3})
    own = compute.buffer_zeros((32, 32, 4), "u8", device=engine.id)
    lent = own.__dlpack__(max_version=(1, 0))

    class Given(Tensor):
        def __dlpack__(self, **options):
            return lent

    again = compute.from_dlpack(Given(tensor.array), device=engine.id)
    with pytest.raises(ValueError, match="must not be the input"):
        compute.run_kernel("blur", [again], own, {"radius": 3})


def test_pictures_in_the_gpu_s_memory_are_filtered_there(engine, monkeypatch):
    from dala.gpu.compute.call import foreign
    from dala.gpu.compute.engines import auto, instances
    from dala.gpu.compute.kernel import get as kernel

    monkeypatch.setitem(instances.by_name, "cuda:7", engine)
    picture = aligned(np.random.default_rng(3).integers(0, 256, (32, 48, 4), np.uint8))
    given = []

    class Library:
        @staticmethod
        def from_dlpack(buffer):
            given.append(buffer)
            return "a tensor"

    monkeypatch.setattr(foreign, "_library", lambda value: Library)
    before = engine.stats()
    assert gpu.blur(Tensor(picture), radius=3) == "a tensor"
    with auto.device("cuda:7"):
        assert kernel("blur")(Tensor(picture), radius=3) == "a tensor"
    after = engine.stats()
    assert [after[k] - before[k] for k in ("uploaded_bytes", "downloaded_bytes")] == [0, 0]
    wanted = gpu.blur(np.array(picture), radius=3, device="cpu")
    assert all(np.array_equal(one.numpy(), wanted) for one in given)
