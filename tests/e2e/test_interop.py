"""Memory from other libraries and back: NumPy, torch and JAX through DLPack, pictures from Pillow.

Sharing is asserted by address. The devices here are those whose memory is the host's; on the others
everything is a copy, which tests/engine/test_buffers.py holds them to.
"""

from __future__ import annotations

import gc
import io
import re
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Pipeline,
    buffer,
    buffer_zeros,
    free,
    from_array,
    from_dlpack,
    read_list,
    run_kernel,
)

HOST = ("cpu", "reference")
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "s32": np.int32,
    "s64": np.int64,
    "u32": np.uint32,
    "u8": np.uint8,
}


class Numpy:
    """How NumPy makes an array, takes a buffer in, and says where its memory is."""

    shares_writable = True
    alignment = 1  # bytes that memory must be aligned to, to be taken without a copy

    def make(self, values: np.ndarray) -> Any:
        return values.copy()

    def take(self, b: Any) -> Any:
        return np.from_dlpack(b)

    def address(self, x: Any) -> int:
        return int(x.ctypes.data)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)


class Torch(Numpy):
    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")

    def make(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values.copy())

    def take(self, b: Any) -> Any:
        return self.torch.from_dlpack(b)

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def numpy(self, x: Any) -> np.ndarray:
        return x.numpy()


class Jax(Numpy):
    shares_writable = False  # its arrays never change, so they are lent for reading only
    alignment = 64

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax")
        self.jax.config.update("jax_enable_x64", True)

    def make(self, values: np.ndarray) -> Any:
        return self.jax.numpy.array(values)

    def take(self, b: Any) -> Any:
        return self.jax.dlpack.from_dlpack(b)

    def address(self, x: Any) -> int:
        return int(x.unsafe_buffer_pointer())


@pytest.fixture(params=[Numpy, Torch, Jax])
def library(request):
    return request.param()


@pytest.fixture(params=HOST, autouse=True)
def device(request):
    with dala.device(request.param):
        yield request.param


def where(b: Any) -> int:
    return int(np.frombuffer(b.read_binary(), np.uint8).ctypes.data)


def shared(library: Numpy, x: Any, b: Any) -> bool:
    """True when x lies in the buffer's memory, or could not because of where that begins."""
    if where(b) % library.alignment:
        assert b.device != "cpu", "the cpu engine aligns its memory for everybody"
        return True
    return library.address(x) == where(b)


# DLPack, both ways ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_in_without_a_copy(library, dtype):
    values = np.arange(12, dtype=DTYPES[dtype]).reshape(3, 4)
    x = library.make(values)
    b = from_dlpack(x)
    assert (b.dtype, b.shape) == (dtype, (3, 4))
    assert where(b) == library.address(x)
    assert b.readonly is not library.shares_writable
    assert read_list(b) == values.ravel().tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_go_out_without_a_copy(library, dtype):
    values = np.arange(12, dtype=DTYPES[dtype]).reshape(3, 4)
    b = from_array(values)
    x = library.take(b)
    assert tuple(x.shape) == (3, 4)
    assert shared(library, x, b)
    assert library.numpy(x).dtype == values.dtype
    assert np.array_equal(library.numpy(x), values)


def test_there_and_back_is_the_same_memory(library):
    b = buffer([[1.0, 2.0], [3.0, 4.0]])
    x = library.take(b)
    again = from_dlpack(x)
    assert shared(library, x, b)
    assert where(again) == library.address(x)
    assert read_list(again) == [1.0, 2.0, 3.0, 4.0]
    free(again)
    assert read_list(b) == [1.0, 2.0, 3.0, 4.0]


def test_a_kernel_between_two_arrays_of_another_library(library):
    values = np.linspace(-3, 3, 1000, dtype=np.float32)
    x = library.make(values)
    out = buffer_zeros(1000)
    y = library.take(out)
    run_kernel("relu", [from_dlpack(x)], out)
    assert shared(library, y, out)
    if library.shares_writable:  # JAX may have read the numbers already: it thinks they are fixed
        assert np.array_equal(library.numpy(y), np.maximum(values, 0))
    assert np.array_equal(library.numpy(library.take(out)), np.maximum(values, 0))
    assert np.array_equal(library.numpy(x), values)


def test_a_kernel_writes_the_other_librarys_memory(library):
    x = library.make(np.arange(8, dtype=np.float32))
    b = from_dlpack(x)
    if library.shares_writable:
        run_kernel("scalar_mul", [b], b, {"scalar": 3.0})
        assert library.numpy(x).tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
        library.numpy(x)[0] = 100
        assert read_list(b)[0] == 100
    else:
        with pytest.raises(dala.errors.ReadOnlyError, match="read-only memory"):
            run_kernel("scalar_mul", [b], b, {"scalar": 3.0})
        with pytest.raises(dala.errors.ReadOnlyError, match="write: the buffer shares"):
            b.write([0.0] * 8)
        assert library.numpy(x).tolist() == list(range(8))


def test_a_picture_through_a_pipeline(library):
    values = np.random.default_rng(4).integers(0, 256, (9, 11, 4), np.uint8)
    x = library.make(values)
    between = buffer_zeros(values.shape, "u8", transient=True)
    out = buffer_zeros(values.shape, "u8")
    with Pipeline() as p:
        p.add(
            {"op": "run_kernel", "kernel": "invert", "inputs": [from_dlpack(x)], "output": between}
        )
        p.add({"op": "run_kernel", "kernel": "invert", "inputs": [between], "output": out})
        p.run()
    assert np.array_equal(library.numpy(library.take(out)), values)


# what cannot be shared ------------------------------------------------------------------------


def test_views_with_gaps_are_copied():
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (a.T, a[:, ::2], a[::-1], np.broadcast_to(a[0], (3, 6))):
        b = from_dlpack(view)
        assert where(b) != view.ctypes.data
        assert np.array_equal(np.asarray(b), view)
        assert not b.readonly
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
    assert a.ravel().tolist() == list(range(24))
    rows = from_dlpack(a[1:3])  # rows one after another have no gaps
    assert where(rows) == a[1:3].ctypes.data


def test_views_of_tensors_with_gaps_are_copied():
    torch = pytest.importorskip("torch")
    a = torch.arange(24.0).reshape(4, 6)
    for view in (a.T, a[:, ::2], a[0].expand(3, 6)):
        b = from_dlpack(view)
        assert where(b) != view.data_ptr()
        assert np.array_equal(np.asarray(b), view.numpy())
    assert where(from_dlpack(a[1:3])) == a[1:3].data_ptr()


def test_read_only_arrays_are_shared_and_never_written():
    a = np.arange(6, dtype=np.float32)
    a.flags.writeable = False
    b = from_dlpack(a)
    assert (where(b), b.readonly) == (a.ctypes.data, True)
    with pytest.raises(dala.errors.ReadOnlyError, match=r"Copy it first: buffer\(np.array\(x\)\)"):
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
    out = buffer_zeros(6)
    run_kernel("scalar_mul", [b], out, {"scalar": 2.0})
    assert read_list(out) == [0, 2, 4, 6, 8, 10]
    assert a.tolist() == [0, 1, 2, 3, 4, 5]
    assert not np.from_dlpack(b).flags.writeable
    assert not np.asarray(b).flags.writeable


@pytest.mark.parametrize("dtype", ["float16", "int16", "bool", "complex64"])
def test_dtypes_that_are_not_ours_are_refused(library, dtype):
    x = library.make(np.ones(3, dtype))
    expected = (
        "from_dlpack: dtype must be one of f32, f64, s32, s64, u32, u8, or a NumPy name such as "
        f"'float32' or 'uint8', got '{dtype}'. Convert the data to one of them first."
    )
    with pytest.raises(dala.errors.DtypeError, match=f"^{re.escape(expected)}$"):
        from_dlpack(x)


def test_tensors_that_dlpack_cannot_say_are_refused():
    torch = pytest.importorskip("torch")
    learning = torch.ones(3, requires_grad=True)
    for x in (learning, torch.ones(3, dtype=torch.bfloat16), torch.eye(3).to_sparse()):
        with pytest.raises(dala.errors.DtypeError, match="from_dlpack: Tensor cannot be read"):
            from_dlpack(x)
        with pytest.raises(dala.errors.DtypeError, match="from_array: Tensor cannot be read"):
            from_array(x)
    assert read_list(from_array(learning.detach())) == [1.0, 1.0, 1.0]


def test_bytes_in_the_other_order():
    turned = np.array([1, 2, 3], np.dtype(np.int32).newbyteorder())
    with pytest.raises(dala.errors.DtypeError, match=r"copy it: from_array\(x\)"):
        from_dlpack(turned)
    assert read_list(from_array(turned)) == [1, 2, 3]


def test_a_freed_buffer_is_not_handed_out(library):
    b = buffer([1.0])
    free(b)
    with pytest.raises(dala.errors.FreedError, match="was freed"):
        library.take(b)


# who lives longer -----------------------------------------------------------------------------


def test_a_buffer_keeps_what_it_shares(library):
    x = library.make(np.arange(50_000, dtype=np.int32))
    address = library.address(x)
    b = from_dlpack(x)
    del x
    gc.collect()
    others = [library.make(np.full(50_000, -1, np.int32)) for _ in range(4)]
    assert address not in {library.address(other) for other in others}
    assert where(b) == address
    assert np.array_equal(np.asarray(b), np.arange(50_000, dtype=np.int32))


@pytest.mark.parametrize("end", ["free", "collect"])
def test_an_array_outlives_its_buffer(library, end):
    b = from_array(np.arange(50_000, dtype=np.int32))
    x = library.take(b)
    address = where(b)
    if end == "free":
        free(b)
    del b
    gc.collect()
    others = [from_array(np.full(50_000, -1, np.int32)) for _ in range(4)]
    assert address not in {where(other) for other in others}
    assert np.array_equal(library.numpy(x), np.arange(50_000, dtype=np.int32))


def test_shared_memory_is_let_go_with_the_last_of_its_users():
    a = np.arange(100, dtype=np.float32)
    watched = weakref.ref(a)
    b = from_dlpack(a)
    view = np.from_dlpack(b)
    del a
    free(b)
    del b
    gc.collect()
    assert view[7] == 7
    assert watched() is not None
    del view
    gc.collect()
    assert watched() is None


# Pillow ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(11)
COLORS = RNG.integers(0, 256, (5, 7, 3), np.uint8)


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_pictures_come_in_as_they_are(pillow, mode):
    image = pillow.fromarray(COLORS).convert(mode)
    expected = np.frombuffer(image.tobytes(), np.uint8).reshape(5, 7, -1)
    b = from_array(image)
    assert (b.shape, b.dtype) == ((5, 7) if mode == "L" else (5, 7, len(mode)), "u8")
    assert b.read() == expected.tobytes()
    assert buffer(image, dtype="u8").read() == expected.tobytes()
    numbers = buffer(image)  # f32, the same numbers: 255 is not made 1.0
    assert (numbers.dtype, read_list(numbers)) == ("f32", expected.ravel().tolist())
    out = buffer_zeros(b.shape, "u8")
    out.write(image)
    assert out.read() == expected.tobytes()


def test_a_picture_through_a_kernel_and_back(pillow):
    image = pillow.fromarray(COLORS)
    out = buffer_zeros((5, 7, 3), "u8")
    run_kernel("invert", [from_array(image)], out)
    assert pillow.fromarray(np.asarray(out)).tobytes() == (255 - COLORS).tobytes()


def test_palettes_become_colors(pillow):
    image = pillow.new("P", (3, 1))
    image.putpalette([10, 20, 30, 250, 0, 7, 1, 2, 3])
    image.putdata([2, 0, 1])
    assert read_list(from_array(image)) == [1, 2, 3, 10, 20, 30, 250, 0, 7]
    image.info["transparency"] = 1
    b = from_array(image)
    assert b.shape == (1, 3, 4)
    assert read_list(b) == [1, 2, 3, 255, 10, 20, 30, 255, 250, 0, 7, 0]


def test_black_and_white_becomes_gray(pillow):
    image = pillow.new("1", (3, 1))
    image.putdata([0, 1, 255])
    b = from_array(image)
    assert (b.shape, b.dtype, read_list(b)) == ((1, 3), "u8", [0, 255, 255])


def test_inks_become_colors(pillow):
    image = pillow.new("CMYK", (2, 1))
    image.putdata([(0, 255, 255, 0), (0, 0, 0, 255)])
    b = from_array(image)
    assert (b.shape, read_list(b)) == ((1, 2, 3), [255, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(("mode", "made"), [("YCbCr", "RGB"), ("HSV", "RGB"), ("RGBX", "RGB")])
def test_other_colour_spaces_become_rgb(pillow, mode, made):
    image = pillow.fromarray(COLORS).convert(mode)
    b = from_array(image)
    assert b.shape == (5, 7, 3)
    assert b.read() == image.convert(made).tobytes()
    assert np.abs(np.asarray(b).astype(int) - COLORS).max() <= 6  # Pillow's own rounding


def test_gray_with_alpha_and_premultiplied_become_rgba(pillow):
    gray = pillow.new("LA", (1, 1), (90, 40))
    assert read_list(from_array(gray)) == [90, 90, 90, 40]
    assert read_list(from_array(gray.convert("La"))) == [89, 89, 89, 40]
    color = pillow.new("RGBA", (1, 1), (255, 0, 51, 51)).convert("RGBa")
    assert color.getpixel((0, 0)) == (51, 0, 10, 51)
    assert read_list(from_array(color)) == [255, 0, 50, 51]


def test_modes_of_numbers_keep_them(pillow):
    deep = np.array([[0, 1, 40_000, 65_535]], np.uint16)
    b = from_array(pillow.fromarray(deep))
    assert (b.dtype, read_list(b)) == ("s32", [0, 1, 40_000, 65_535])
    assert read_list(buffer(pillow.fromarray(deep))) == [0, 1, 40_000, 65_535]
    with pytest.raises(dala.errors.OutOfRange, match="buffer: 40000 does not fit in 'u8'"):
        buffer(pillow.fromarray(deep), dtype="u8")
    whole = from_array(pillow.fromarray(np.array([[-5, 7]], np.int32)))
    assert (whole.dtype, read_list(whole)) == ("s32", [-5, 7])
    real = from_array(pillow.fromarray(np.array([[0.5, -2.0]], np.float32)))
    assert (real.dtype, read_list(real)) == ("f32", [0.5, -2.0])


def test_broken_and_closed_pictures_are_refused(pillow):
    file = io.BytesIO()
    pillow.fromarray(COLORS).save(file, "PNG")
    broken = pillow.open(io.BytesIO(file.getvalue()[:60]))
    expected = r"^from_array: the Pillow image of mode 'RGB' cannot be read \(.*truncated"
    with pytest.raises(dala.errors.DtypeError, match=expected):
        from_array(broken)
    closed = pillow.fromarray(COLORS)
    closed.close()
    with pytest.raises(dala.errors.DtypeError, match="from_array: the Pillow image of mode 'RGB'"):
        from_array(closed)


def test_pillow_is_not_imported_where_nobody_uses_it(device):
    code = (
        "import sys, numpy as np, dala.gpu.compute as c; "
        f"c.from_array(np.zeros(3), device={device!r}); print('PIL' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
