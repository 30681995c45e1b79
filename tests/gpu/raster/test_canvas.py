"""The canvas: stops, faults, damage, sprites and refused values."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dala.errors import CommandError, FreedError, ProtocolError
from dala.gpu import command
from dala.gpu.raster import Canvas, Stop

RED = (255, 0, 0, 255)


def test_new_canvas_is_transparent_and_aligned() -> None:
    canvas = Canvas(33, 17)
    assert canvas.pixels.shape == (17, 33, 4)
    assert canvas.pixels.dtype == np.uint8
    assert not canvas.pixels.any()
    assert canvas.pixels.ctypes.data % 64 == 0
    assert (canvas.width, canvas.height) == (33, 17)
    assert canvas.take_damage() == []


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (16385, 1), (1, -1), (2.5, 3), ("4", 4)])
def test_invalid_sizes_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(CommandError, match="must be an int from 1 to 16384"):
        Canvas(*size)
    canvas = Canvas(4, 4)
    with pytest.raises(CommandError, match="resize"):
        canvas.resize(*size)
    assert canvas.width == 4


def test_run_stops_at_commands_that_do_not_draw() -> None:
    canvas = Canvas(8, 8)
    pixels = bytes(range(24))
    others = [
        command.encode_present(),
        command.encode_resize(5, 6),
        command.encode_load_sprite(7, pixels, 2, 3),
        command.encode_remove_sprite(7),
        command.encode_dispatch_compute("name", b"12345", (1, 2, 3)),
        command.encode_read_pixels(0, 0, 1, 1),
        command.encode_load_shader("näme", "source"),
        command.encode_set_uniform("u", b"\0" * 9),
        command.encode_load_image(7, pixels, 3, 2),
        command.encode_remove_image(7),
    ]
    draw = command.encode_fill_rect(0, 0, 1, 1, RED)
    data = draw + b"".join(command.encode_batch([o, draw]) for o in others)
    canvas.check(data)
    at, found = 0, []
    while (stop := canvas.run(data, at)) is not None:
        assert isinstance(stop, Stop)
        assert data[stop.offset] == stop.opcode
        found.append(data[stop.offset : stop.end])
        at = stop.end
    assert found == others
    assert canvas.pixels[0, 0].tolist() == list(RED)
    assert canvas.run(data, len(data)) is None
    assert canvas.run(b"") is None


def test_batches_are_flattened() -> None:
    canvas = Canvas(8, 8)
    inner = command.encode_batch([command.encode_fill_rect(1, 1, 2, 2, RED)])
    data = command.encode_batch([inner, command.encode_batch([]), inner])
    canvas.check(data)
    assert canvas.run(data) is None
    assert (canvas.pixels[1:3, 1:3] == RED).all()
    assert canvas.pixels[..., 3].astype(bool).sum() == 4


def test_commands_may_be_any_bytes_like_object() -> None:
    data = command.encode_clear(RED)
    for given in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        canvas = Canvas(3, 3)
        canvas.check(given)
        canvas.run(given)
        assert (canvas.pixels == RED).all()
    for wrong in ("text", 5, None, memoryview(bytes(20))[::2]):
        with pytest.raises(CommandError, match="data must be contiguous bytes"):
            Canvas(3, 3).check(wrong)
        with pytest.raises(CommandError, match="data must be contiguous bytes"):
            Canvas(3, 3).run(wrong)
    canvas.check(b"")
    with pytest.raises(CommandError, match="at must be an int from 0 to 5, got 6"):
        canvas.run(data, 6)


def test_unknown_ids_are_faults() -> None:
    canvas = Canvas(8, 8)
    big = 2**64 - 1
    parts = [
        command.encode_blit(big, 0, 0),
        command.encode_image_blit(5, 0, 0, 4, 4),
        command.encode_blit(1, 0, 0),
        command.encode_clear(RED),
    ]
    assert canvas.run(b"".join(parts)) is None
    assert canvas.take_faults() == [(4, 0, big), (0x16, 17, 5), (4, 42, 1)]
    assert canvas.take_faults() == []
    assert (canvas.pixels == RED).all()
    canvas.run(command.encode_blit(77, 0, 0) * 200)
    faults = canvas.take_faults()
    assert faults == [(4, 17 * n, 77) for n in range(200)]
    assert str(faults[0].error).startswith(
        "blit: there is no sprite 77. Load it with load_sprite first"
    )


def test_unchecked_bytes_do_not_crash() -> None:
    canvas = Canvas(8, 8)
    for data in (command.encode_fill_rect(0, 0, 1, 1, RED)[:-1], b"\xfe", b"\x07\x01", b"\x0b\x05"):
        with pytest.raises(ProtocolError):
            canvas.run(data)


# what changed ---------------------------------------------------------------------------------
def test_damage_contains_all_changed_pixels() -> None:
    rng = random.Random(4)
    canvas = Canvas(150, 100)
    sprite = bytes([255]) * (12 * 9 * 4)
    canvas.load_sprite(1, sprite, 12, 9)
    canvas.load_image(2, sprite, 12, 9)

    def place() -> tuple[int, int]:
        return rng.randrange(-30, 170), rng.randrange(-30, 120)

    for _ in range(300):
        color = (*rng.randbytes(3), rng.choice((255, 100)))
        x, y = place()
        data = rng.choice(
            [
                command.encode_fill_rect(abs(x), abs(y), 20, 30, color),
                command.encode_draw_line(x, y, *place(), color),
                command.encode_draw_circle(x, y, rng.randrange(90), color),
                command.encode_fill_circle(x, y, rng.randrange(90), color),
                command.encode_draw_triangle(x, y, *place(), *place(), color),
                command.encode_fill_triangle(x, y, *place(), *place(), color),
                command.encode_draw_round_rect(abs(x), abs(y), 40, 30, 9, color),
                command.encode_fill_round_rect(abs(x), abs(y), 40, 30, 9, color),
                command.encode_draw_round_rect_signed(x, y, 40, 30, 9, color),
                command.encode_fill_round_rect_signed(x, y, 40, 30, 9, color),
                command.encode_blit(1, x, y),
                command.encode_image_blit(2, x, y, 30, 20),
                command.encode_set_clip(abs(x), abs(y), 60, 60, rng.random() < 0.3),
            ]
        )
        before = canvas.pixels.copy()
        canvas.run(data)
        changed = (before != canvas.pixels).any(axis=2)
        covered = np.zeros_like(changed)
        for rx, ry, w, h in canvas.take_damage():
            assert rx >= 0
            assert ry >= 0
            assert w > 0
            assert h > 0
            assert rx + w <= 150
            assert ry + h <= 100
            assert ry % 16 == 0
            assert h == 16 or ry + h == 100
            covered[ry : ry + h, rx : rx + w] = True
        assert not (changed & ~covered).any()


def test_damage_of_a_long_line_follows_it() -> None:
    canvas = Canvas(1600, 1600)
    canvas.run(command.encode_draw_line(0, 0, 1599, 1599, RED))
    assert sum(w * h for _, _, w, h in canvas.take_damage()) < 1600 * 200


def test_damage_all_swap_and_resize() -> None:
    canvas = Canvas(40, 20)
    canvas.damage_all()
    assert canvas.take_damage() == [(0, 0, 40, 16), (0, 16, 40, 4)]
    first, other = canvas.pixels, np.zeros((20, 40, 4), np.uint8)
    assert canvas.swap(other) is first
    assert canvas.pixels is other
    canvas.run(command.encode_set_clip(0, 0, 9, 9) + command.encode_clear(RED))
    assert (other[:9, :9] == RED).all()
    assert not first.any()
    canvas.resize(50, 5)
    assert canvas.pixels.shape == (5, 50, 4)
    assert (canvas.pixels[:, :9] == RED).all()
    assert not canvas.pixels[:, 9:].any()
    assert canvas.take_damage() == [(0, 0, 50, 5)]
    canvas.run(command.encode_clear((1, 2, 3, 4)))
    assert (canvas.pixels == (1, 2, 3, 4)).all()
    frozen = np.zeros((5, 50, 4), np.uint8)
    frozen.flags.writeable = False
    for wrong in (other, None, np.zeros((5, 50, 4)), frozen, np.zeros((5, 50, 8), "u1")[..., ::2]):
        with pytest.raises(CommandError, match="swap"):
            canvas.swap(wrong)


def test_closed_canvas_raises() -> None:
    canvas = Canvas(4, 4)
    canvas.load_sprite(1, bytes(16), 2, 2)
    canvas.close()
    canvas.close()
    assert len(canvas._atlas) == 0
    assert canvas._atlas.nbytes == 0
    with pytest.raises(FreedError):
        canvas.run(command.encode_clear(RED))


# sprites --------------------------------------------------------------------------------------
def test_atlas_behaves_like_a_dictionary() -> None:
    rng = random.Random(6)
    canvas = Canvas(64, 64)
    known: dict[int, tuple[bytes, int, int]] = {}
    ids = [rng.getrandbits(64) for _ in range(60)] + list(range(60))
    for step in range(1500):
        id = rng.choice(ids)
        if rng.random() < (0.35 if step % 500 < 300 else 0.8):
            canvas.remove_sprite(id)
            known.pop(id, None)
        else:
            w, h = rng.choice(((0, 4), (1, 1), (3, 5), (16, 16), (40, 33), (64, 64)))
            known[id] = (bytes([*rng.randbytes(3), 255]) * (w * h), w, h)
            canvas.load_sprite(id, *known[id])
        assert len(canvas._atlas) == len(known)
        if step % 25 == 0:
            for other in ids:
                canvas.pixels[...] = 0
                canvas.run(command.encode_blit(other, 0, 0))
                pixels, w, h = known.get(other, (b"", 0, 0))
                assert canvas.pixels[:h, :w].tobytes() == pixels
                assert canvas.pixels[..., 3].astype(bool).sum() == w * h
                assert bool(canvas.take_faults()) == (other not in known)
    assert canvas._atlas.nbytes >= 4 * sum(w * h for _, w, h in known.values())
    for id in ids:
        canvas.remove_sprite(id)
    assert len(canvas._atlas) == 0
    assert canvas._atlas.nbytes <= 1 << 17


def test_sprites_are_clipped() -> None:
    rng = random.Random(9)
    canvas, w, h = Canvas(40, 30), 23, 17
    pixels = np.frombuffer(rng.randbytes(w * h * 4), np.uint8).reshape(h, w, 4).copy()
    pixels[..., 3] = 255
    canvas.load_sprite(5, pixels, w, h)
    canvas.run(command.encode_set_clip(3, 4, 30, 20))
    for x, y in [(0, 0), (-9, -5), (30, 20), (39, 29), (-22, -16), (-23, 3), (2**31 - 1, 0)]:
        canvas.pixels[...] = 7
        canvas.run(command.encode_blit(5, x, y) + command.encode_blit(5, -(2**31), -(2**31)))
        wanted = np.full_like(canvas.pixels, 7)
        for row in range(max(y, 4), min(y + h, 24)):
            for column in range(max(x, 3), min(x + w, 33)):
                wanted[row, column] = pixels[row - y, column - x]
        assert np.array_equal(canvas.pixels, wanted)


def test_pixels_of_the_wrong_size_are_refused() -> None:
    canvas = Canvas(4, 4)
    for load in (canvas.load_sprite, canvas.load_image):
        with pytest.raises(CommandError, match="pixels must be 2 x 3 RGBA pixels of 4 bytes"):
            load(1, bytes(23), 2, 3)
        with pytest.raises(CommandError, match="contiguous bytes"):
            load(1, "text", 2, 3)
        for wrong in ((-1, 2, 3), (2**64, 2, 3), (1, -2, -3), (1, 2.0, 3), ("a", 2, 3)):
            with pytest.raises(CommandError, match="must be an int from 0 to"):
                load(wrong[0], bytes(24), *wrong[1:])
        load(1, b"", 0, 2**32 - 1)
        load(1, bytearray(25)[1:], 2, 3)
    assert (len(canvas._atlas), len(canvas._images)) == (1, 1)
