"""Every primitive, pixel by pixel, against the textbook algorithms in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dala.gpu import command
from dala.gpu.raster import Canvas, shapes
from tests.support import raster_model as model

WIDTH, HEIGHT = 44, 31
I32 = (-(2**31), 2**31 - 1)
U32 = 2**32 - 1


def picture(rng: random.Random, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Return pixels with random alpha, many of them opaque or transparent."""
    made = np.frombuffer(rng.randbytes(width * height * 4), np.uint8).reshape(height, width, 4)
    kind = np.frombuffer(rng.randbytes(width * height), np.uint8).reshape(height, width)
    made = made.copy()
    made[..., 3] = np.where(kind < 140, 255, np.where(kind < 200, 0, made[..., 3]))
    return made


def some_color(rng: random.Random) -> tuple[int, ...]:
    return (*rng.randbytes(3), rng.choice((255, 255, 0, 1, 128, 254, rng.randrange(256))))


def pair(rng: random.Random, clipped: bool) -> tuple[Canvas, model.Model]:
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.pixels[...] = picture(rng)
    copy = model.Model(canvas.pixels)
    if clipped:
        clip = [rng.randrange(n) for n in (WIDTH, HEIGHT, WIDTH, HEIGHT)]
        canvas.run(command.encode_set_clip(*clip))
        copy.clip(*clip)
    return canvas, copy


def same(canvas: Canvas, copy: model.Model) -> None:
    wrong = np.argwhere((canvas.pixels != copy.pixels).any(axis=2))
    assert not len(wrong), [
        (int(x), int(y), canvas.pixels[y, x].tolist(), copy.pixels[y, x].tolist())
        for y, x in wrong[:5]
    ]


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_lines(seed: int, clipped: bool) -> None:
    rng = random.Random(seed)
    canvas, copy = pair(rng, clipped)
    reach = (12, 60, 3, 200)[seed]
    for _ in range(60):
        x1, y1 = rng.randrange(-reach, WIDTH + reach), rng.randrange(-reach, HEIGHT + reach)
        kind = rng.randrange(6)
        x2 = x1 if kind == 0 else rng.randrange(-reach, WIDTH + reach)
        y2 = y1 if kind == 1 else rng.randrange(-reach, HEIGHT + reach)
        if kind == 2:
            x2, y2 = x1, y1
        if kind == 3:
            y2 = y1 + rng.choice((-1, 1)) * (x2 - x1)
        color = some_color(rng)
        canvas.run(command.encode_draw_line(x1, y1, x2, y2, color))
        copy.dots(model.bresenham(x1, y1, x2, y2), color)
        same(canvas, copy)


def test_lines_of_all_octants_around_a_center() -> None:
    for x in range(-9, 10):
        for y in range(-9, 10):
            canvas = Canvas(25, 25)
            canvas.run(command.encode_draw_line(12, 12, 12 + x, 12 + y, (1, 2, 3, 255)))
            drawn = {(int(b), int(a)) for a, b in np.argwhere(canvas.pixels[..., 3])}
            assert drawn == set(model.bresenham(12, 12, 12 + x, 12 + y))


def test_slopes_of_tiny_lines_are_exact_enough() -> None:
    for dx in range(1, shapes.MAX_TINY):
        j = np.arange(dx + 1)
        for dy in range(dx + 1):
            way = (shapes.HALF + dy * shapes.RECIPROCALS[dx] * j) >> 32
            assert np.array_equal(way, (2 * dy * j + dx) // (2 * dx)), (dx, dy)


def test_closed_form_of_a_line_is_bresenham() -> None:
    for x in range(-11, 12):
        for y in range(-11, 12):
            plane = [(a, b) for a in range(-12, 13) for b in range(-12, 13)]
            listed = {p for p in plane if model.on_line(p, 0, 0, x, y)}
            assert listed == set(model.bresenham(0, 0, x, y))


def far(rng: random.Random) -> int:
    near = rng.randrange(-50, 90)
    return rng.choice((near, near, rng.randrange(*I32), *I32, near * 10 ** rng.randrange(8)))


@pytest.mark.parametrize("seed", range(3))
def test_huge_lines(seed: int) -> None:
    rng = random.Random(seed)
    for n in range(60):
        canvas, copy = pair(rng, n % 2 == 1)
        # Through a visible point, or anywhere.
        ends = [far(rng) for _ in range(4)]
        if n % 3:
            x, y = rng.randrange(WIDTH), rng.randrange(HEIGHT)
            ends = [rng.randrange(*I32), rng.randrange(*I32)]
            ends += [max(min(2 * x - ends[0], I32[1]), I32[0])]
            ends += [max(min(2 * y - ends[1], I32[1]), I32[0])]
        color = some_color(rng)
        canvas.run(command.encode_draw_line(*ends, color))
        copy.dots([p for p in copy.seen() if model.on_line(p, *ends)], color)
        same(canvas, copy)


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("clipped", [False, True])
def test_circles(filled: bool, clipped: bool) -> None:
    rng = random.Random(5)
    canvas, copy = pair(rng, clipped)
    encode = command.encode_fill_circle if filled else command.encode_draw_circle
    for r in [*range(24), 30, 40, 63, 64, 65, 66, 80, 100, 129]:
        x, y = rng.randrange(-r, WIDTH + r), rng.randrange(-r, HEIGHT + r)
        color = some_color(rng)
        canvas.run(encode(x, y, r, color))
        shape = model.disc(r) if filled else model.midpoint(r)
        copy.dots([(x + a, y + b) for a, b in shape], color)
        same(canvas, copy)


def test_closed_form_of_a_circle_is_the_midpoint_circle() -> None:
    for r in range(40):
        plane = [(a, b) for a in range(-r - 2, r + 3) for b in range(-r - 2, r + 3)]
        assert {p for p in plane if model.on_circle(*p, r)} == model.midpoint(r)
        assert {p for p in plane if model.in_disc(*p, r)} == model.disc(r)


@pytest.mark.parametrize("seed", range(3))
def test_huge_circles(seed: int) -> None:
    rng = random.Random(seed)
    for n in range(40):
        canvas, copy = pair(rng, n % 2 == 1)
        r = rng.choice((U32, U32 - 1, 2**31, rng.randrange(65, 300), rng.randrange(65, U32)))
        # A center as far away as its field allows, whose outline passes near the canvas.
        x, y = rng.randrange(WIDTH), rng.randrange(HEIGHT)
        kind = rng.randrange(3)
        if r < 2**31:
            x += (0, r, -r)[kind]
            y += (r, 0, 0)[kind]
        elif kind:  # the diagonal is far away, but the sides may be visible
            step = int(r * 0.7071067811865476)
            x, y = x - step if step < 2**31 else I32[0], min(y + step, I32[1])
        color = some_color(rng)
        x, y = max(min(x, I32[1]), I32[0]), max(min(y, I32[1]), I32[0])
        filled = n % 4 < 2
        encode = command.encode_fill_circle if filled else command.encode_draw_circle
        canvas.run(encode(x, y, r, color))
        inside = model.in_disc if filled else model.on_circle
        copy.dots([(a, b) for a, b in copy.seen() if inside(a - x, b - y, r)], color)
        same(canvas, copy)


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_triangles(seed: int, clipped: bool) -> None:
    rng = random.Random(seed)
    canvas, copy = pair(rng, clipped)
    reach = (5, 30, 300)[seed]
    for n in range(40):
        corners = [
            (rng.randrange(-reach, WIDTH + reach), rng.randrange(-reach, HEIGHT + reach))
            for _ in range(3)
        ]
        if n % 8 == 0:
            corners[1] = corners[0]
        if n % 16 == 0:
            corners[2] = corners[0]
        if n % 8 == 1:
            corners[1] = (corners[1][0], corners[0][1])
        color = some_color(rng)
        flat = [v for c in corners for v in c]
        canvas.run(command.encode_fill_triangle(*flat, color))
        copy.dots([p for p in copy.seen() if model.in_triangle(p, *corners)], color)
        same(canvas, copy)
        canvas.run(command.encode_draw_triangle(*flat, color))
        copy.dots(model.wire(*corners), color)
        same(canvas, copy)


@pytest.mark.parametrize("seed", range(2))
def test_huge_triangles(seed: int) -> None:
    rng = random.Random(seed)
    for n in range(40):
        canvas, copy = pair(rng, n % 2 == 1)
        corners = [(far(rng), far(rng)) for _ in range(3)]
        color = some_color(rng)
        canvas.run(command.encode_fill_triangle(*[v for c in corners for v in c], color))
        copy.dots([p for p in copy.seen() if model.in_triangle(p, *corners)], color)
        same(canvas, copy)


def test_triangles_that_share_edges_cover_each_pixel_once() -> None:
    rng = random.Random(3)
    canvas, one = Canvas(WIDTH, HEIGHT), (0, 0, 0, 255)
    canvas.run(command.encode_clear(one))
    frame = [(-9, -9), (WIDTH + 9, -9), (WIDTH + 9, HEIGHT + 9), (-9, HEIGHT + 9)]
    for _ in range(20):
        center = (rng.randrange(WIDTH), rng.randrange(HEIGHT))
        before = canvas.pixels.copy()
        for k in range(4):
            corners = (*frame[k], *frame[(k + 1) % 4], *center)
            canvas.run(command.encode_fill_triangle(*corners, (255, 255, 255, 64)))
        once = np.array(
            [model.blend((v, v, v, 255), (255, 255, 255, 64))[0] for v in range(256)], np.uint8
        )
        assert np.array_equal(canvas.pixels[..., :3], once[before[..., :3]])


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("filled", [False, True])
def test_round_rects(filled: bool, clipped: bool) -> None:
    rng = random.Random(8)
    canvas, copy = pair(rng, clipped)
    encode = command.encode_fill_round_rect if filled else command.encode_draw_round_rect
    sizes = [(w, h) for w in (0, 1, 2, 3, 4, 9) for h in (0, 1, 2, 3, 12)]
    sizes += [(rng.randrange(1, 70), rng.randrange(1, 60)) for _ in range(40)]
    sizes += [(180, 150), (200, 133)]
    for w, h in sizes:
        x, y, r = rng.randrange(WIDTH), rng.randrange(HEIGHT), rng.choice((0, 1, 2, 5, 20, 90, U32))
        if w > 60:
            x, y = 0, 0
        color = some_color(rng)
        canvas.run(encode(x, y, w, h, r, color))
        copy.dots(model.round_rect(x, y, w, h, r, filled), color)
        same(canvas, copy)


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("filled", [False, True])
def test_round_rects_at_signed_positions(filled: bool, clipped: bool) -> None:
    rng = random.Random(9)
    canvas, copy = pair(rng, clipped)
    name = "fill" if filled else "draw"
    encode = getattr(command, f"encode_{name}_round_rect_signed")
    for _ in range(60):
        w, h = rng.choice((0, 1, rng.randrange(90))), rng.choice((0, 2, rng.randrange(90)))
        x, y = rng.randrange(-60, WIDTH), rng.randrange(-60, HEIGHT)
        r, color = rng.choice((0, 1, 5, 20, 90, U32)), some_color(rng)
        canvas.run(encode(x, y, w, h, r, color))
        copy.dots(model.round_rect(x, y, w, h, r, filled), color)
        same(canvas, copy)
        plain = getattr(command, f"encode_{name}_round_rect")(abs(x), abs(y), w, h, r, color)
        canvas.run(plain)
        copy.dots(model.round_rect(abs(x), abs(y), w, h, r, filled), color)
        same(canvas, copy)


def test_round_rects_at_extreme_signed_positions() -> None:
    low, high = -(2**31), 2**31 - 1
    canvas = Canvas(20, 10)
    for x in (low, high):
        for y in (low, high):
            canvas.run(command.encode_draw_round_rect_signed(x, y, U32, U32, 0, "red"))
    assert not canvas.pixels.any()  # their edges are far away
    canvas.run(command.encode_fill_round_rect_signed(low, low, U32, U32, 9, "red"))
    assert (canvas.pixels == (255, 0, 0, 255)).all()
    canvas.run(command.encode_draw_round_rect_signed(low, 3, U32, 2, 0, "blue"))
    assert (canvas.pixels[3:5] == (0, 0, 255, 255)).all()
    assert (canvas.pixels[5] == (255, 0, 0, 255)).all()


@pytest.mark.parametrize("clipped", [False, True])
def test_rects_and_clear(clipped: bool) -> None:
    rng = random.Random(2)
    canvas, copy = pair(rng, clipped)
    for n in range(60):
        x, y = rng.randrange(WIDTH + 3), rng.randrange(HEIGHT + 3)
        w, h = (rng.choice((0, 1, rng.randrange(60), U32)) for _ in range(2))
        color = some_color(rng)
        canvas.run(command.encode_fill_rect(x, y, w, h, color))
        inside = [(a, b) for a, b in copy.seen() if x <= a < x + w and y <= b < y + h]
        copy.dots(inside, color)
        same(canvas, copy)
        if n % 20 == 19:
            canvas.run(command.encode_clear(color))
            copy.clear(color)
            same(canvas, copy)


def test_huge_rects_and_round_rects() -> None:
    for encode, extra in ((command.encode_fill_rect, ()), (command.encode_fill_round_rect, (9,))):
        canvas = Canvas(20, 10)
        canvas.run(encode(0, 0, U32, U32, *extra, "red"))
        corner = 0 if extra else 255
        assert canvas.pixels[0, 0].tolist() == [corner, 0, 0, corner]
        assert (canvas.pixels[:, 9:] == (255, 0, 0, 255)).all()
        canvas.run(encode(U32, U32, U32, U32, *extra, "blue"))
        assert not (canvas.pixels == (0, 0, 255, 255)).all(axis=2).any()
    canvas = Canvas(20, 10)
    canvas.run(command.encode_draw_round_rect(3, 2, U32, U32, 0, "red"))
    drawn = {(int(b), int(a)) for a, b in np.argwhere(canvas.pixels[..., 3])}
    assert drawn == {(x, 2) for x in range(3, 20)} | {(3, y) for y in range(2, 10)}


def test_clip_outside_the_canvas() -> None:
    canvas = Canvas(8, 8)
    for lift in (command.encode_reset_clip(), command.encode_set_clip(0, 0, 1, 1, False)):
        canvas.run(command.encode_set_clip(U32, 2, U32, U32) + command.encode_clear("red"))
        assert not canvas.pixels.any()
        canvas.run(lift + command.encode_clear("red"))
        assert (canvas.pixels == (255, 0, 0, 255)).all()
        canvas.run(command.encode_clear((0, 0, 0, 0)))


@pytest.mark.parametrize("size", [(1021, 530), (2049, 2050)])
def test_large_clear_fills_every_pixel(size: tuple[int, int]) -> None:
    width, height = size
    canvas = Canvas(width, height)
    canvas.run(command.encode_clear((1, 2, 3, 4)))
    assert (canvas.pixels == (1, 2, 3, 4)).all()
    canvas.run(command.encode_set_clip(0, 3, width, height - 5) + command.encode_clear("white"))
    assert (canvas.pixels[3:-2] == 255).all()
    assert (canvas.pixels[:3] == (1, 2, 3, 4)).all()
    assert (canvas.pixels[-2:] == (1, 2, 3, 4)).all()
