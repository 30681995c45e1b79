"""run_to_surface: the same picture as run_kernel with set_pixels, on every engine."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import dala
from dala.errors import (
    ArityError,
    CommandError,
    DeviceError,
    DtypeError,
    FreedError,
    ParameterError,
    ShapeMismatch,
    UnknownKernel,
)
from dala.gpu import create_surface
from dala.gpu.compute import (
    buffer,
    buffer_zeros,
    from_array,
    kernel,
    run_kernel,
    run_to_surface,
    to_array,
)

RNG = np.random.default_rng(7)
PHOTO = RNG.integers(0, 256, (19, 37, 4), dtype=np.uint8)


def shown_by_hand(name, inputs, out, params) -> bytes:
    """Return the pixels after run_kernel and set_pixels."""
    run_kernel(name, inputs, out, params)
    with create_surface(out.shape[1], out.shape[0]) as s:
        s.set_pixels(np.array(to_array(out)))
        return s.get_pixels()


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("invert", {}),
        ("brightness", {"value": 0.25}),
        ("blur", {"radius": 2, "sigma": 1.0}),
        ("sharpen", {"amount": 0.5}),
    ],
)
def test_run_to_surface_equals_run_kernel_and_set_pixels(engine_id, name, params):
    photo, out = from_array(PHOTO), buffer_zeros(PHOTO.shape, "u8")
    want = shown_by_hand(name, [photo], buffer_zeros(PHOTO.shape, "u8"), params)
    with create_surface(37, 19) as s:
        run_to_surface(name, [photo], out, s, params)
        assert s.get_pixels() == want
        assert s.errors == []
    assert np.array(to_array(out)).tobytes() == want


@kernel
def as_it_is(x):
    return x


@kernel
def ramp(x, *, amount=1.0):
    return x * amount


def expected_rgba(numbers: np.ndarray) -> np.ndarray:
    """Return an array as RGBA: clamped, halves up, gray repeated, opaque."""
    steps = (
        numbers
        if numbers.dtype == np.uint8
        else np.clip(numbers, 0.0, 1.0) * numbers.dtype.type(255)
    )
    steps = np.floor(steps.astype(np.float64) + 0.5)
    if steps.ndim == 2:
        steps = steps[..., None]
    want = np.full((*steps.shape[:2], 4), 255, np.uint8)
    channels = steps.shape[2]
    want[..., : max(channels, 3)] = steps if channels >= 3 else steps[..., :1]
    return want


@pytest.mark.parametrize("channels", [(), (1,), (3,), (4,)])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_other_formats_are_converted_to_rgba(engine_id, dtype, channels):
    shape = (5, 7, *channels)
    if dtype == "u8":
        numbers = RNG.integers(0, 256, shape, dtype=np.uint8)
    else:
        numbers = RNG.uniform(-0.5, 1.5, shape).astype(np.float32)
    with create_surface(7, 5) as s:
        run_to_surface(as_it_is, [from_array(numbers)], buffer_zeros(shape, dtype), s)
        assert np.array_equal(s.to_array(), expected_rgba(numbers))


def test_run_to_surface_keeps_its_order_among_commands(engine_id):
    photo, out = from_array(PHOTO), buffer_zeros(PHOTO.shape, "u8")
    want = 255 - PHOTO
    want[..., 3] = PHOTO[..., 3]
    with create_surface(37, 19) as s:
        s.fill_rect(0, 0, 37, 19, "red")  # is overwritten
        s.set_clip(0, 0, 1, 1)  # does not apply to pictures
        run_to_surface("invert", [photo], out, s)
        s.reset_clip()
        s.fill_rect(3, 2, 4, 5, "blue")  # is on top
        s.present()
        s.fill_rect(30, 10, 2, 2, "lime")
        got = s.to_array()
    want[2:7, 3:7] = (0, 0, 255, 255)
    want[10:12, 30:32] = (0, 255, 0, 255)
    assert np.array_equal(got, want)


def test_presented_frame_has_the_picture(engine_id):
    photo, out = from_array(PHOTO), buffer_zeros(PHOTO.shape, "u8")
    with create_surface(37, 19) as s:
        for amount in (0.1, 0.2):
            run_to_surface("brightness", [photo], out, s, {"value": amount})
            s.present()
        s.synchronize()
        want = np.array(to_array(out))
        assert np.array_equal(s._renderer.front, want)
        assert np.array_equal(s.to_array(), want)


def test_output_may_be_overwritten_after_the_call(engine_id):
    """Each surface has the picture of its own call, though all calls share a buffer."""
    out = buffer_zeros((4, 4, 4), "u8")
    inputs = [from_array(np.full((4, 4, 4), n, np.uint8)) for n in range(12)]
    surfaces = [create_surface(4, 4) for _ in inputs]
    for s, a in zip(surfaces, inputs, strict=True):
        run_to_surface(as_it_is, [a], out, s)
    for n, s in enumerate(surfaces):
        assert s.get_pixels() == bytes([n]) * 64
        s.close()


def test_more_pictures_than_may_be_in_flight(engine_id):
    out = buffer_zeros((8, 8, 4), "u8")
    inputs = [from_array(np.full((8, 8, 4), n, np.uint8)) for n in range(20)]
    with create_surface(8, 8) as s:
        for a in inputs:
            run_to_surface(as_it_is, [a], out, s)
            s.fill_rect(0, 0, 1, 1, "white")
        want = np.full((8, 8, 4), 19, np.uint8)
        want[0, 0] = 255
        assert np.array_equal(s.to_array(), want)
        assert s.errors == []


def test_buffers_may_be_freed_after_the_call(engine_id):
    with create_surface(8, 8) as s:
        out = buffer_zeros((8, 8, 3), "f32")
        run_to_surface(ramp, [from_array(np.ones((8, 8, 3), np.float32))], out, s, {"amount": 0.5})
        out.free()
        del out
        gc.collect()
        for _ in range(3):  # other buffers reuse the memory
            buffer_zeros((8, 8, 3), "f32")
        assert s.get_pixels() == bytes([128, 128, 128, 255]) * 64


def test_surface_with_a_queued_resize(engine_id):
    small, large = buffer_zeros((3, 5, 4), "u8"), buffer_zeros((6, 4, 4), "u8")
    with create_surface(5, 3) as s:
        s.resize(4, 6)
        run_to_surface(as_it_is, [from_array(np.full((6, 4, 4), 9, np.uint8))], large, s)
        assert s.get_pixels() == b"\x09" * 96
        with pytest.raises(ShapeMismatch, match=r"the shape \(6, 4, 4\) of the surface"):
            run_to_surface(as_it_is, [small], small, s)
        assert s.get_pixels() == b"\x09" * 96


def test_resize_between_check_and_copy(engine_id):
    """The resize is still queued when the size is checked: the picture is refused later."""
    out = buffer_zeros((3, 5, 4), "u8")
    with create_surface(5, 3) as s:
        s.clear("navy")
        paused, resume = s._renderer.pause()
        paused.acquire()
        s.resize(4, 6)
        caught: list[BaseException] = []

        def work():
            try:
                run_to_surface(as_it_is, [out], out, s)
                s.synchronize()
            except ShapeMismatch as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        resume.release()
        thread.join()
        assert "the shape (6, 4, 4) of the surface" in str(caught[0])
        want = np.zeros((6, 4, 4), np.uint8)
        want[:3] = (0, 0, 128, 255)
        assert np.array_equal(s.to_array(), want)


def test_wrong_outputs_are_refused_before_the_kernel_runs(engine_id):
    a, out = from_array(PHOTO), buffer_zeros(PHOTO.shape, "u8")
    with create_surface(37, 20) as s:
        s.clear("teal")
        before = s.get_pixels()
        with pytest.raises(ShapeMismatch) as caught:
            run_to_surface("invert", [a], out, s)
        assert str(caught.value) == (
            "run_to_surface: output must have the shape (20, 37, 4) of the surface, or 3, 1 or no "
            "channels, got (19, 37, 4)."
        )
        assert not to_array(out).any()
        with pytest.raises(ShapeMismatch, match=r"got \(20, 37, 2\)"):
            run_to_surface(as_it_is, [buffer_zeros((20, 37, 2))], buffer_zeros((20, 37, 2)), s)
        with pytest.raises(ShapeMismatch, match=r"got \(37,\)"):
            run_to_surface(as_it_is, [buffer_zeros((37,))], buffer_zeros((37,)), s)
        with pytest.raises(DtypeError, match="got 's32'"):
            numbers = buffer_zeros((20, 37, 4), "s32")
            run_to_surface(as_it_is, [numbers], numbers, s)
        assert s.get_pixels() == before
        assert s.errors == []


def test_other_wrong_arguments(engine_id):
    a, out = buffer_zeros((2, 2, 4), "u8"), buffer_zeros((2, 2, 4), "u8")
    with create_surface(2, 2) as s:
        with pytest.raises(UnknownKernel, match="run_to_surface: no kernel 'inverd'"):
            run_to_surface("inverd", [a], out, s)
        with pytest.raises(CommandError, match="surface must be a Surface, got Buffer"):
            run_to_surface("invert", [a], out, out)
        with pytest.raises(ArityError, match="output must be a Buffer, got ndarray"):
            run_to_surface("invert", [a], np.zeros((2, 2, 4), np.uint8), s)
        with pytest.raises(ParameterError, match="no parameter 'amount'"):
            run_to_surface("invert", [a], out, s, {"amount": 1})
        with pytest.raises(ArityError, match="inputs must be 1 buffer"):
            run_to_surface("invert", [a, a], out, s)
        assert s.errors == []
    with pytest.raises(FreedError, match="run_to_surface: the surface was destroyed"):
        run_to_surface("invert", [a], out, s)
    out.free()
    with create_surface(2, 2) as s, pytest.raises(FreedError, match="was freed"):
        run_to_surface("invert", [a], out, s)


def test_many_threads_on_one_surface(engine_id):
    """In any order, the result is the whole picture of one thread."""
    with create_surface(16, 16) as s:
        buffers = [
            (from_array(np.full((16, 16, 4), n, np.uint8)), buffer_zeros((16, 16, 4), "u8"))
            for n in range(4)
        ]

        def work(pair):
            for _ in range(5):
                run_to_surface(as_it_is, [pair[0]], pair[1], s)

        threads = [threading.Thread(target=work, args=(pair,)) for pair in buffers]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        pixels = set(s.get_pixels())
        assert len(pixels) == 1
        assert pixels <= {0, 1, 2, 3}
        assert s.errors == []


def test_surface_destroyed_with_a_picture_in_flight(engine_id):
    a, out = from_array(PHOTO), buffer_zeros(PHOTO.shape, "u8")
    for _ in range(5):
        s = create_surface(37, 19)
        run_to_surface("invert", [a], out, s)
        s.close()
    assert np.array_equal(np.array(to_array(out))[..., :3], 255 - PHOTO[..., :3])


def test_device_loss_is_raised_by_the_next_wait(monkeypatch):
    """The download fails: the surface keeps its pixels and raises."""
    found = [d.id for d in dala.devices() if d.backend == "webgpu"]
    if not found:
        pytest.skip("WebGPU has no adapter on this machine")
    with create_surface(2, 2) as s:
        s.clear("red")
        out = buffer_zeros((2, 2, 4), "u8", device=found[0])
        real = type(out.engine).download_async

        def failing(self, storage):
            future = real(self, storage)
            future.result()
            lost = type(future)()
            lost.set_exception(DeviceError("the device went away"))
            return lost

        monkeypatch.setattr(type(out.engine), "download_async", failing)
        run_to_surface(as_it_is, [buffer_zeros((2, 2, 4), "u8", device=found[0])], out, s)
        with pytest.raises(DeviceError, match="went away"):
            s.synchronize()
        monkeypatch.undo()
        assert s.get_pixels() == b"\xff\x00\x00\xff" * 4
        run_to_surface(as_it_is, [out], buffer_zeros((2, 2, 4), "u8", device=found[0]), s)
        assert s.get_pixels() == b"\0" * 16


def test_gray_values_are_clamped_and_rounded():
    """Gray values 0, a half, 1 and more."""
    with create_surface(4, 1) as s:
        grays = buffer([[0.0, 0.5, 1.0, 7.0]], device="cpu")
        run_to_surface(as_it_is, [grays], buffer_zeros((1, 4), device="cpu"), s)
        assert s.get_pixels() == bytes(
            [0, 0, 0, 255, 128, 128, 128, 255, 255, 255, 255, 255, 255, 255, 255, 255]
        )
