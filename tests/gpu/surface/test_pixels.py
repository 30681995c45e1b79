"""Pixels of a surface: set, read, resized and presented; errors; memory."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala import gpu
from dala.errors import (
    CommandError,
    DalaError,
    FreedError,
    ShaderError,
)
from dala.gpu import Surface, command, create_surface
from dala.gpu.render.worker import MAX_QUEUED
from tests.gpu.surface.painting import BLUE, GREEN, RED, model

# pixels -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_get_pixels_returns_what_was_set(width, height, seed, as_array):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)
    with create_surface(width, height) as s:
        assert s.get_pixels() == bytes(width * height * 4)
        s.set_pixels(pixels if as_array else pixels.tobytes())
        assert s.get_pixels() == pixels.tobytes()
        assert np.array_equal(np.asarray(s), pixels)
        x, y = width // 3, height // 3
        assert s.read_pixels(x, y, width - x, height - y) == pixels[y:, x:].tobytes()
        assert s.read_pixels(width, height, 0, 0) == b""
        with pytest.raises(CommandError, match="must lie inside"):
            s.read_pixels(x, y, width - x + 1, height - y)


def test_set_pixels_copies_and_keeps_its_order(s):
    pixels = np.full((24, 32, 4), 7, np.uint8)
    flipped = np.full((24, 64, 4), 9, np.uint8)[:, ::-2]  # not contiguous
    paused, resume = s._renderer.pause()
    assert paused.acquire(timeout=300)
    s.clear("red")
    s.set_pixels(pixels)
    pixels[:] = 8
    s.fill_rect(0, 0, 1, 1, "blue")
    resume.release()
    assert s.get_pixels() == BLUE + b"\7" * (32 * 24 * 4 - 4)
    s.set_pixels(flipped)
    assert s.get_pixels() == b"\x09" * (32 * 24 * 4)


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"123", bytes(32 * 24 * 3), "text", 5, None, np.zeros((24, 32, 4), np.float32),
        np.zeros((32, 24, 4), np.uint8), [1, 2], bytes(32 * 24 * 4 + 1),
    ],
)  # fmt: skip
def test_pixels_of_another_size_or_dtype_are_refused(s, bad):
    s.clear("red")
    with pytest.raises(CommandError, match=r"^set_pixels: "):
        s.set_pixels(bad)
    if bad is not None:
        with pytest.raises(CommandError, match=r"^with_pixels: "):
            s.with_pixels(lambda pixels: bad)
    assert s.get_pixels() == RED * 32 * 24
    assert s.errors == []


def test_set_pixels_during_a_resize(s):
    paused, resume = s._renderer.pause()
    assert paused.acquire(timeout=300)
    s._renderer.put(
        command.encode_resize(2, 1)
    )  # as by another thread: the surface does not know of it
    s.set_pixels(bytes(32 * 24 * 4))
    resume.release()
    with pytest.raises(CommandError, match="set_pixels: rgba must be 2 x 1 RGBA pixels"):
        s.get_pixels()
    assert s.get_pixels() == bytes(8)


def test_with_pixels_in_place_and_with_a_returned_array(s):
    s.clear("red")

    def green(pixels):
        assert pixels.shape == (24, 32, 4)
        assert pixels.tobytes() == RED * 32 * 24
        pixels[:, :16] = list(GREEN)

    gpu.with_pixels(s, green)
    assert s.read_pixels(15, 0, 2, 1) == GREEN + RED
    s.with_pixels(lambda pixels: 255 - pixels)
    assert s.read_pixels(16, 0, 1, 1) == b"\0\xff\xff\0"
    s.with_pixels(lambda pixels: BLUE * 32 * 24)
    assert s.get_pixels() == BLUE * 32 * 24
    kept = []
    s.with_pixels(kept.append)
    kept[0][:] = 0  # has no effect later
    assert s.get_pixels() == BLUE * 32 * 24
    s.present()
    s.with_pixels(lambda pixels: GREEN * 32 * 24)
    s.present()
    s.synchronize()
    assert s._renderer.front.tobytes() == s.get_pixels() == GREEN * 32 * 24


def test_with_pixels_that_raises_changes_nothing(s):
    s.clear("red")

    def fails(pixels):
        pixels[:] = 0
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        s.with_pixels(fails)
    assert s.get_pixels() == RED * 32 * 24
    with pytest.raises(CommandError, match="fn must be a function"):
        s.with_pixels(5)


@pytest.mark.parametrize(
    "inner",
    [
        Surface.get_pixels, Surface.synchronize, Surface.to_array, Surface.take_reads,
        lambda s: s.read_pixels(0, 0, 1, 1), lambda s: s.with_pixels(lambda p: None),
    ],
)  # fmt: skip
def test_waiting_inside_with_pixels_is_refused(s, inner):
    s.clear("red")
    with pytest.raises(CommandError, match="the surface is paused while its function runs"):
        s.with_pixels(lambda pixels: inner(s))
    assert s.get_pixels() == RED * 32 * 24


def test_drawing_inside_with_pixels_is_executed_afterwards(s):
    def draws(pixels):
        assert s.size == (32, 24)
        for n in range(3 * MAX_QUEUED):
            s.fill_rect(0, 0, 1, 1, (n % 256, 0, 0))
        s.set_pixels(bytes(32 * 24 * 4))
        s.fill_rect(1, 0, 1, 1, "red")
        assert s.stats["queue"] == 3 * MAX_QUEUED + 2
        pixels[:] = 9

    s.with_pixels(draws)
    assert s.get_pixels() == b"\0\0\0\0" + RED + bytes(32 * 24 * 4 - 8)


def test_destroy_inside_with_pixels():
    s = create_surface(4, 4)
    with pytest.raises(FreedError, match="with_pixels"):
        s.with_pixels(lambda pixels: s.close())
    assert s.closed


def test_numpy_copy_and_save(s, tmp_path):
    s.clear((1, 2, 3, 4))
    assert np.asarray(s, np.int32).sum() == 10 * 32 * 24
    with pytest.raises(ValueError, match="copy=False"):
        np.array(s, copy=False)
    s.save(tmp_path / "x.png")
    image = pytest.importorskip("PIL.Image").open(tmp_path / "x.png")
    assert image.mode == "RGBA"
    assert image.tobytes() == s.get_pixels()


def test_surface_cannot_be_copied_or_pickled(s):
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(CommandError, match="cannot be copied or pickled"):
            act(s)
    assert not s.closed


# sizes --------------------------------------------------------------------------------------------


def test_resize_keeps_pixels_that_fit(s):
    pixels = np.random.default_rng(1).integers(0, 256, (24, 32, 4), np.uint8)
    s.set_pixels(pixels)
    s.present()
    s.set_clip(0, 0, 1, 1)
    for width, height in ((40, 10), (3, 50), (1, 1), (60, 60)):
        s.resize(width, height)
        assert (s.width, s.height) == s.size == (width, height)
        kept = np.zeros((height, width, 4), np.uint8)
        h, w = min(height, pixels.shape[0]), min(width, pixels.shape[1])
        kept[:h, :w] = pixels[:h, :w]
        assert s.get_pixels() == kept.tobytes()
        assert s._renderer.front.tobytes() == kept.tobytes()
        assert repr(s) == f"<Surface {width} x {height}>"
        pixels = kept
    s.clear("red")  # the clip was removed
    s.present()
    assert s.get_pixels() == RED * 3600
    assert s._renderer.front.tobytes() == RED * 3600


def test_size_after_a_resize_in_a_batch(s):
    s.batch([command.encode_resize(5, 6), command.encode_clear("red")])
    assert s.size == (5, 6)
    assert s.get_pixels() == RED * 30


def test_size_waits_only_for_a_queued_resize(s):
    paused, resume = s._renderer.pause()
    assert paused.acquire(timeout=300)
    s.clear("red")
    assert s.size == (32, 24)  # would hang if it waited
    resume.release()


def test_diagnostics_follow_the_size():
    def surfaces():
        found = dala.diagnostics()["objects"].get("surface", {"count": 0, "bytes": 0})
        return found["count"], found["bytes"]

    count, nbytes = surfaces()
    with create_surface(10, 10) as s:
        assert surfaces() == (count + 1, nbytes + 800)
        s.resize(20, 10)
        s.synchronize()
        assert surfaces() == (count + 1, nbytes + 1600)
    assert surfaces() == (count, nbytes)


# frames -------------------------------------------------------------------------------------------


def test_present_swaps_and_continues_from_the_frame(s):
    s.clear("red")
    s.synchronize()
    assert s._renderer.front.tobytes() == bytes(32 * 24 * 4)
    s.present()
    s.fill_rect(0, 0, 32, 12, "blue")
    assert s.get_pixels() == BLUE * 32 * 12 + RED * 32 * 12
    assert s._renderer.front.tobytes() == RED * 32 * 24
    s.present()
    assert s.get_pixels() == s._renderer.front.tobytes() == BLUE * 32 * 12 + RED * 32 * 12


SHAPES = st.one_of(
    st.builds(
        command.encode_fill_rect,
        st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60),
        st.tuples(*[st.integers(0, 255)] * 4),
    ),
    st.builds(
        command.encode_fill_circle,
        st.integers(-9, 60), st.integers(-9, 60), st.integers(0, 30),
        st.tuples(*[st.integers(0, 255)] * 4),
    ),
    st.builds(command.encode_clear, st.tuples(*[st.integers(0, 255)] * 4)),
    st.builds(
        command.encode_set_clip,
        st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60),
    ),
    st.just(command.encode_present()),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(SHAPES, max_size=20))
def test_presents_do_not_change_the_pixels(commands):
    with create_surface(50, 50) as s:
        s.submit(b"".join(commands))
        s.present()
        drawn = b"".join(c for c in commands if c != b"\x05")
        assert s.get_pixels() == s._renderer.front.tobytes() == model(50, 50, drawn)
        assert s.stats["frames"] == commands.count(b"\x05") + 1


def test_present_copies_changed_bands_only():
    """A mark set by hand survives where nothing was drawn; a full copy would overwrite it."""
    with create_surface(64, 64) as s:
        s.clear("red")
        s.present()
        s.synchronize()
        renderer = s._renderer

        def mark():
            renderer.front[40, 5] = 77  # becomes the back framebuffer at the next present
            renderer.front[3, 60] = 77
            renderer.front[3, 9] = 77

        renderer.call(mark)
        s.fill_rect(8, 2, 4, 3, "blue")
        s.present()
        assert s.read_pixels(5, 40, 1, 1) == b"MMMM"
        assert s.read_pixels(60, 3, 1, 1) == b"MMMM"
        assert s.read_pixels(9, 3, 1, 1) == BLUE


def test_stats(s):
    assert s.stats == {"frames": 0, "fps": 0.0, "dropped": 0, "queue": 0}
    for _ in range(5):
        s.present()
    s.synchronize()
    found = s.stats
    assert (found["frames"], found["dropped"], found["queue"]) == (5, 0, 0)
    s._renderer._presented.clear()
    s._renderer._presented.extend([10.0, 10.5, 11.0])
    assert s.stats["fps"] == 2.0


# errors -------------------------------------------------------------------------------------------


def raises_on_present(s):
    def fails(renderer):
        raise OSError("no screen")

    s._renderer.on_present = fails
    s.present()


FAILING = [
    (lambda s: s.blit(99, 0, 0), CommandError, "there is no sprite 99"),
    (lambda s: s.draw_image(2**64 - 1, 0, 0, 1, 1), CommandError, f"no image {2**64 - 1}"),
    (lambda s: s.submit(command.encode_resize(0, 5)), CommandError, "resize: w must be"),
    (lambda s: s.submit(command.encode_resize(5, 2**32 - 1)), CommandError, "resize: h must be"),
    (lambda s: s.dispatch_compute("nothing"), ShaderError, "no shader with this name"),
    (lambda s: s.load_shader("x", "what is this"), ShaderError, "neither WGSL"),
    (lambda s: s.dispatch_compute("def f(px: Pixel): return"), DalaError, "return"),
    (raises_on_present, CommandError, "OSError: no screen"),
]


@pytest.mark.parametrize(("fail", "kind", "text"), FAILING)
def test_failing_command_does_not_stop_the_others(s, fail, kind, text):
    s.clear("red")
    fail(s)
    s.fill_rect(0, 0, 1, 1, "blue")
    with pytest.raises(kind, match=text) as caught:
        s.get_pixels()
    assert s.get_pixels() == BLUE + RED * (
        32 * 24 - 1
    )  # raised once, and everything else was drawn
    assert s.errors == [caught.value]
    assert s.size == (32, 24)


@pytest.mark.parametrize(
    "wait",
    [
        Surface.synchronize, Surface.get_pixels, Surface.to_array, Surface.take_reads,
        lambda s: s.read_pixels(0, 0, 1, 1), lambda s: s.with_pixels(lambda p: None),
    ],
)  # fmt: skip
def test_every_waiting_call_raises_the_error(s, wait):
    s.blit(1, 0, 0)
    s.blit(2, 0, 0)
    with pytest.raises(CommandError, match="there is no sprite 1"):
        wait(s)
    wait(s)
    assert [str(e).split(".")[0] for e in s.errors] == [
        "blit: there is no sprite 1",
        "blit: there is no sprite 2",
    ]


def test_last_errors_are_kept_in_order(s):
    for n in range(200):
        s.blit(n, 0, 0)
    with pytest.raises(CommandError, match="no sprite 0"):
        s.synchronize()
    assert [int(str(e).split("sprite ")[1].split(".")[0]) for e in s.errors] == [*range(136, 200)]


def test_batch_with_a_failing_command_draws_the_rest(s):
    s.batch([
        command.encode_clear("red"),
        command.encode_blit(5, 0, 0),
        command.encode_resize(2**32 - 1, 1),
        command.encode_fill_rect(0, 0, 1, 1, "blue"),
    ])  # fmt: skip
    with pytest.raises(CommandError, match="no sprite 5"):
        s.synchronize()
    assert s.get_pixels() == BLUE + RED * (32 * 24 - 1)
    assert len(s.errors) == 2


def test_errors_are_listed_after_close():
    with create_surface(2, 2) as s:
        s.blit(5, 0, 0)
        s.size  # noqa: B018
        with pytest.raises(CommandError):
            s.synchronize()
    assert len(s.errors) == 1


# memory -------------------------------------------------------------------------------------------


def test_memory_of_a_surface():
    """The peak of traced memory, with a full queue."""
    width, height = 1920, 1080

    def fill(s):
        for _ in range(3):
            paused, resume = s._renderer.pause()
            assert paused.acquire(timeout=300)
            for n in range(MAX_QUEUED):
                s.fill_rect(n % 1000, n % 700, 9, 9, (n % 256, 0, 0, 200))
            resume.release()
            s.present()
            s.synchronize()

    with create_surface(width, height) as warm:  # compiles everything before the measurement
        fill(warm)
    for thread in threading.enumerate():
        if thread.name == "dala-calls":
            thread.join()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with create_surface(width, height) as s:
            fill(s)
            peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak - 2 * width * height * 4 < 2 << 20
