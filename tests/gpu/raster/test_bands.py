"""Drawing in bands has the same pixels, damage, faults, clip and stops as drawing without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.gpu import command, protocol
from dala.gpu.raster import bands, stream
from dala.gpu.raster.canvas import Canvas
from dala.gpu.raster.frame import FrameRecord

WIDTH, HEIGHT = 90, 150
NEAR = st.integers(-40, 190)
PLAIN = st.integers(0, 190)
SIZE = st.integers(0, 120)
COLOR = st.tuples(*[st.integers(0, 255)] * 3, st.sampled_from([0, 1, 90, 254, 255]))

COMMANDS = st.one_of(
    st.builds(command.encode_fill_rect, PLAIN, PLAIN, SIZE, SIZE, COLOR),
    st.builds(command.encode_draw_line, NEAR, NEAR, NEAR, NEAR, COLOR),
    st.builds(command.encode_draw_circle, NEAR, NEAR, SIZE, COLOR),
    st.builds(command.encode_fill_circle, NEAR, NEAR, SIZE, COLOR),
    st.builds(command.encode_draw_triangle, NEAR, NEAR, NEAR, NEAR, NEAR, NEAR, COLOR),
    st.builds(command.encode_fill_triangle, NEAR, NEAR, NEAR, NEAR, NEAR, NEAR, COLOR),
    st.builds(command.encode_draw_round_rect, PLAIN, PLAIN, SIZE, SIZE, SIZE, COLOR),
    st.builds(command.encode_fill_round_rect, PLAIN, PLAIN, SIZE, SIZE, SIZE, COLOR),
    st.builds(command.encode_draw_round_rect_signed, NEAR, NEAR, SIZE, SIZE, SIZE, COLOR),
    st.builds(command.encode_fill_round_rect_signed, NEAR, NEAR, SIZE, SIZE, SIZE, COLOR),
    st.builds(command.encode_blit, st.integers(1, 3), NEAR, NEAR),
    st.builds(command.encode_clear, COLOR),
    st.builds(command.encode_set_clip, PLAIN, PLAIN, SIZE, SIZE),
    st.builds(command.encode_reset_clip),
    st.builds(command.encode_image_blit, st.integers(1, 2), NEAR, NEAR, SIZE, SIZE),
)

#: The family of filled circles.
DISCS = stream.FAMILIES[protocol.OPCODES["fill_circle"]]

CLIP = [FrameRecord.places[name] for name in ("x0", "y0", "x1", "y1")]


@pytest.fixture(autouse=True)
def _all_kinds(monkeypatch):
    monkeypatch.setattr(Canvas, "_families", stream.ALL)


def drawn(data: bytes, *, banded: bool, checked: bool = False, picks: int = 1 << 10) -> Any:
    """Return the pixels, damage, faults, clip and stop after drawing."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas._checked = checked
    rng = np.random.default_rng(3)
    for id, (w, h) in ((1, (37, 70)), (2, (5, 3))):
        canvas.load_sprite(id, rng.integers(0, 256, (h, w, 4), np.uint8), w, h)
    canvas.load_image(1, rng.integers(0, 256, (20, 30, 4), np.uint8), 30, 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bands, "MIN_CANVAS_BYTES", 0 if banded else 1 << 40)
        patch.setattr(bands, "MIN_COMMAND_BYTES", 0)
        patch.setattr(bands, "BAND_BYTES", 1 << 13)
        patch.setattr(bands, "MAX_PICKS", picks)
        stop = canvas.run(data)
    images = {"image_blit"} >= {c.name for c in command.decode(data)}  # images use no bands
    assert (canvas._bands is not None) == (banded and not images)
    pixels = canvas.pixels.copy()
    return pixels, canvas.take_damage(), canvas.take_faults(), canvas._frame[CLIP], stop


def assert_same(data: bytes, **options: Any) -> None:
    found, wanted = drawn(data, banded=True, **options), drawn(data, banded=False)
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[2] == wanted[2]
    changed = found[0].any(axis=2)
    most = {y: (x, x + w) for x, y, w, _ in wanted[1]}
    for x, y, w, h in found[1]:  # the damage of a line is more exact within a band
        changed[y : y + h, x : x + w] = False
        assert most[y][0] <= x < x + w <= most[y][1]
    assert not changed.any()
    np.testing.assert_array_equal(found[3], wanted[3])
    assert found[4] == wanted[4]


@settings(max_examples=80, deadline=None)
@given(st.lists(COMMANDS, min_size=1, max_size=30))
def test_bands_draw_the_same_pixels(commands):
    assert_same(b"".join(commands))


@settings(max_examples=15, deadline=None)
@given(st.lists(COMMANDS, min_size=1, max_size=20))
def test_bands_draw_the_same_pixels_in_checked_code(commands):
    assert_same(b"".join(commands), checked=True)


def test_more_commands_than_a_band_has_room_for():
    rng = np.random.default_rng(11)
    numbers = rng.integers(-20, 150, (500, 2)).tolist()
    data = b"".join(
        command.encode_fill_circle(x, y, 9, (n % 256, 200, 20, 120))
        for n, (x, y) in enumerate(numbers)
    )
    assert_same(data, picks=150)


def test_more_faults_than_there_is_room_for():
    data = b"".join(command.encode_blit(9 + n, n, n) for n in range(stream.MAX_FAULTS + 20))
    _, _, faults, _, _ = drawn(data, banded=True)
    assert [fault.id for fault in faults] == list(range(9, 29 + stream.MAX_FAULTS))
    assert_same(data)


def test_bands_stop_at_commands_that_do_not_draw():
    other = command.encode_set_uniform("k", b"1234")
    data = command.encode_fill_rect(0, 0, 90, 150, "red") + other + command.encode_clear("blue")
    pixels, _, _, _, stop = drawn(data, banded=True)
    assert (pixels == (255, 0, 0, 255)).all()
    assert data[stop.offset : stop.end] == other
    assert_same(data)


def test_family_without_compiled_code(monkeypatch):
    monkeypatch.setattr(Canvas, "_families", DISCS)
    data = command.encode_fill_circle(40, 70, 60, "red") + command.encode_draw_line(
        0, 0, 80, 149, "blue"
    )
    found = drawn(data, banded=True)[0]
    assert Canvas._families == stream.ALL
    np.testing.assert_array_equal(found, drawn(data, banded=False)[0])


def test_another_canvas_compiles_all_families_meanwhile(monkeypatch):
    monkeypatch.setattr(Canvas, "_families", DISCS)

    def late(*args: Any) -> bool:
        Canvas._families = stream.ALL  # as another thread would
        return bands.worth_banding(*args)

    monkeypatch.setattr("dala.gpu.raster.canvas.worth_banding", late)
    data = b"".join(
        (
            command.encode_fill_circle(40, 70, 60, "red"),
            command.encode_draw_line(0, 0, 80, 149, "blue"),
            command.encode_fill_rect(3, 20, 40, 90, "green"),
        )
    )
    assert_same(data)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("alpha", [90, 255])
@pytest.mark.parametrize("before", [False, True])
def test_shapes_with_a_clip_that_misses_most_bands(checked, alpha, before):
    """Every kind of shape, inside and outside the canvas, with clips that miss most bands."""
    color = (200, 100, 50, alpha)
    shapes = (
        command.encode_draw_circle(45, 75, 60, color)
        + command.encode_draw_circle(45, 75, 100, color)
        + command.encode_draw_round_rect(2, 2, 80, 140, 30, color)
        + command.encode_fill_round_rect(2, 2, 80, 140, 30, color)
        + command.encode_fill_circle(45, 75, 90, color)
        + command.encode_draw_triangle(-9, -9, 99, 80, 20, 190, color)
        + command.encode_fill_triangle(-9, -9, 99, 80, 20, 190, color)
        + command.encode_draw_line(0, -5, 89, 180, color)
        + command.encode_fill_rect(1, 1, 88, 148, color)
        + command.encode_blit(1, 20, 60)
    )
    for y, h in ((0, 5), (70, 3), (148, 9), (200, 5), (40, 0)):
        clip = command.encode_set_clip(10, y, 60, h)
        data = clip + shapes if before else shapes + clip + shapes
        assert_same(data, checked=checked)


@pytest.mark.parametrize("size", [(1, 1), (16384, 3), (3, 16384), (1920, 1080), (4096, 4096)])
def test_number_of_bands(size):
    made = bands.Bands(*size)
    assert (made.count - 1) << made.shift < size[1] <= made.count << made.shift
    assert made.count <= bands.MAX_BANDS


def test_large_canvas_uses_bands_after_its_first_command(monkeypatch):
    monkeypatch.setattr(Canvas, "_families", None)
    canvas = Canvas(1024, 600)
    canvas.run(command.encode_clear("green"))
    canvas.run(command.encode_clear("blue"))
    assert canvas._bands is None  # one thread clears fastest
    canvas.run(command.encode_clear("green") + command.encode_fill_rect(0, 0, 1024, 600, "red"))
    assert canvas._bands is not None
    assert (canvas.pixels == (255, 0, 0, 255)).all()
