"""Compositing: every engine draws what the reference defines, within two steps of 255.

That is for scaled and rotated pictures and shadows; ``test_blending.py`` has what is equal. Colors
are compared times alpha: the color of a transparent pixel is not visible.
"""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute.composite import (
    BLENDS,
    DRAW,
    FILL,
    LINEAR,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    Compositor,
)
from tests.support.tolerances import COMPOSED_STEPS

Array = np.ndarray[Any, Any]
CLEAR = (0, 0, 0, 0)


def box(
    kind: int,
    x: float,
    y: float,
    w: float,
    h: float,
    *,
    picture: Array | None = None,
    number: int = 0,
    crop: tuple[float, float, float, float] | None = None,
    angle: float = 0.0,
    radius: float = 0.0,
    width: float = 0.0,
    color: tuple[int, int, int, int] = (255, 255, 255, 255),
    opacity: float = 1.0,
    blend: str = "over",
    flags: int = 0,
    taps: tuple[int, int] | None = None,
) -> Array:
    """Return a record of a box from (x, y) on, rotated around its center."""
    draw = np.zeros(1, DRAW)
    d: Any = draw[0]
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    if angle == 0:
        cos, sin = 1.0, 0.0
    d["kind"], d["blend"], d["flags"], d["picture"] = kind, BLENDS.index(blend), flags, number
    d["cx"], d["cy"], d["cos"], d["sin"] = x + w / 2, y + h / 2, cos, sin
    d["hw"], d["hh"], d["radius"], d["width"] = w / 2, h / 2, radius, width
    reach = 3 * width if kind == SHADOW else 0.0
    ax = abs(cos) * w / 2 + abs(sin) * h / 2 + reach + 1
    ay = abs(sin) * w / 2 + abs(cos) * h / 2 + reach + 1
    d["x0"], d["y0"] = math.floor(x + w / 2 - ax), math.floor(y + h / 2 - ay)
    d["x1"], d["y1"] = math.ceil(x + w / 2 + ax), math.ceil(y + h / 2 + ay)
    d["color"], d["opacity"] = color, opacity
    d["taps_x"] = d["taps_y"] = 1
    if picture is not None:
        u0, v0, u1, v1 = crop or (0, 0, picture.shape[1], picture.shape[0])
        sx, sy = (u1 - u0) / w, (v1 - v0) / h
        d["sx"], d["sy"], d["ox"], d["oy"] = sx, sy, u0, v0
        d["u0"], d["v0"], d["u1"], d["v1"] = u0, v0, u1, v1
        d["taps_x"], d["taps_y"] = taps or (
            max(1, math.ceil(sx / 2 - 1e-6)),
            max(1, math.ceil(sy / 2 - 1e-6)),
        )
    return draw


def render(
    device: str,
    draws: Array,
    pictures: list[Array],
    *,
    size: tuple[int, int] = (96, 64),
    background: tuple[int, int, int, int] | None = CLEAR,
    start: Array | None = None,
    rects: list[tuple[int, int, int, int]] | None = None,
) -> Array:
    """Draw on a device; the field "picture" is an index into the list."""
    w, h = size
    before = np.zeros((h, w, 4), np.uint8) if start is None else start
    with Compositor(device) as compositor:
        made = [compositor.picture(p) for p in pictures]
        draws = draws.copy()
        for draw in draws:
            if draw["kind"] in (PICTURE, TINT):
                draw["picture"] = made[int(draw["picture"])].number
        with dala.device(device):
            target = compute.from_array(before)
        compositor.compose(target, draws, rects, background=background)
        return np.array(target.numpy())


def visible(pixels: Array) -> Array:
    """Return colors times alpha, and alpha, in steps."""
    found = pixels.astype(np.float64)
    found[..., :3] *= found[..., 3:] / 255
    return found


_known: dict[Any, Array] = {}


def expected(draws: Array, pictures: list[Array], given: dict[str, Any]) -> Array:
    """Draw with the definition; cached, because all engines are compared with it."""
    words = repr(sorted(given.items())) if "start" not in given else None
    key = (draws.tobytes(), *(p.tobytes() for p in pictures), words)
    if words is None:
        return render("reference", draws, pictures, **given)
    if len(_known) > 2000:
        _known.clear()
    if key not in _known:
        _known[key] = render("reference", draws, pictures, **given)
    return _known[key]


def assert_same(
    device: str, draws: Array | list[Array], pictures: list[Array], **given: Any
) -> None:
    """Assert that a device draws the same as the definition."""
    all_of_them = np.concatenate(draws) if isinstance(draws, list) else draws
    want = visible(expected(all_of_them, pictures, given))
    got = visible(render(device, all_of_them, pictures, **given))
    far = np.abs(got - want)
    most, some = COMPOSED_STEPS
    at = np.unravel_index(far.argmax(), far.shape)
    assert far.max() <= most, (
        f"{far.max():.2f} steps at (y, x, channel) {tuple(map(int, at))}: {got[at[:2]]}, "
        f"expected {want[at[:2]]}; {(far > most).sum()} of {far.size} too far"
    )
    assert (far > 1.0).mean() <= some, f"{(far > 1).mean():.3%} are more than a step off"


def noise(seed: int, w: int, h: int, channels: int = 4) -> Array:
    """Return a picture with smooth parts, noise, transparent and opaque regions."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (h, w, channels)).astype(np.uint8)
    yy, xx = np.mgrid[:h, :w]
    made[: h // 2, :, 0] = (255 * xx / max(w - 1, 1))[: h // 2]
    if channels == 4:
        kind = (xx * 3 // max(w, 1) + yy * 2 // max(h, 1)) % 3
        made[..., 3] = np.where(kind == 0, 255, np.where(kind == 1, 0, made[..., 3]))
    return made


def opaque(seed: int, w: int, h: int) -> Array:
    """Return an opaque picture."""
    made = noise(seed, w, h)
    made[..., 3] = 255
    return made


BACKDROPS = {
    "opaque": (30, 90, 160, 255),
    "clear": CLEAR,
    "half": (200, 40, 90, 128),
}


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("linear", [0, LINEAR], ids=["srgb", "linear"])
def test_blend_modes(dala_device: str, blend: str, linear: int) -> None:
    top, bottom = noise(1, 40, 30), noise(2, 96, 64)
    draws = [
        box(PICTURE, 0, 0, 96, 64, picture=bottom, number=1, opacity=0.8),
        box(PICTURE, 5, 6, 40, 30, picture=top, blend=blend, flags=linear),
        box(FILL, 50, 6, 30, 30, color=(240, 120, 10, 160), blend=blend, flags=linear),
        box(PICTURE, 50.3, 30.7, 35, 28, picture=top, blend=blend, flags=linear, opacity=0.6),
    ]
    for background in BACKDROPS.values():
        assert_same(dala_device, draws, [top, bottom], background=background)


PLACES = {
    "whole": (7, 5, 40, 30),
    "between": (7.25, 5.6, 40, 30),
    "larger": (-4.5, 3.25, 83.5, 55.25),
    "doubled": (3, 4, 80, 60),
    "halved": (9, 8, 20, 15),
    "smaller": (9.4, 8.3, 13.7, 11.1),
    "tiny": (9, 8, 5, 3),
    "thin": (20.2, 1.5, 0.6, 50),
    "outside": (80, 50, 40, 30),
    "above": (-30, -22, 40, 30),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("flags", [0, NEAREST, OPAQUE, OPAQUE | NEAREST, LINEAR])
def test_positions_and_sizes(dala_device: str, place: str, flags: int) -> None:
    picture = opaque(3, 40, 30) if flags & OPAQUE else noise(3, 40, 30)
    if flags & NEAREST and place in ("smaller", "tiny"):
        picture[:] = picture[:1, :1]  # the texel at an edge may be either
    for background in BACKDROPS.values():
        draws = box(PICTURE, *PLACES[place], picture=picture, flags=flags)
        assert_same(dala_device, draws, [picture], background=background)


@pytest.mark.parametrize("radius", [0, 0.3, 1, 7.5, 40])
@pytest.mark.parametrize("place", ["whole", "between", "larger", "halved"])
@pytest.mark.parametrize("angle", [0, 33, 90])
def test_rounded_corners_and_angles(
    dala_device: str, radius: float, place: str, angle: float
) -> None:
    picture = noise(4, 40, 30)
    where = PLACES[place]
    draws = [
        box(PICTURE, *where, picture=picture, radius=radius, angle=angle),
        box(RING, *where, radius=radius, width=3.5, color=(9, 250, 80, 200), angle=angle),
        box(TINT, *where, picture=picture, radius=radius, angle=angle, color=(250, 9, 8, 180)),
        box(FILL, 60, 40, 20, 13, radius=radius, angle=angle, color=(0, 0, 255, 255), opacity=0.5),
    ]
    assert_same(dala_device, draws, [picture], background=BACKDROPS["half"])


@pytest.mark.parametrize("sigma", [0, 0.4, 2, 9])
@pytest.mark.parametrize("radius", [0, 6, 30])
@pytest.mark.parametrize("angle", [0, 20])
@pytest.mark.parametrize("backdrop", BACKDROPS)
def test_shadows(
    dala_device: str, sigma: float, radius: float, angle: float, backdrop: str
) -> None:
    draws = [
        box(SHADOW, 25, 20, 44, 21, width=sigma, radius=radius, angle=angle, color=(0, 0, 0, 200)),
        box(SHADOW, 2, 45, 9, 9, width=sigma, radius=radius, angle=angle, opacity=0.7),
    ]
    assert_same(dala_device, draws, [], background=BACKDROPS[backdrop])


@pytest.mark.parametrize("width", [40, 20, 17.5, 90])
@pytest.mark.parametrize("radius", [0, 9])
def test_pictures_of_three_channels(dala_device: str, width: float, radius: float) -> None:
    picture = noise(21, 40, 30, 3)
    draws = [
        box(PICTURE, 2, 1, width, width * 0.75, picture=picture, flags=OPAQUE, radius=radius),
        box(PICTURE, 50.5, 3, width / 2, 20, picture=picture, flags=OPAQUE, opacity=0.4),
    ]
    assert_same(dala_device, draws, [picture], background=BACKDROPS["half"])
    with_ring = [*draws, box(TINT, 40, 20, width, 30, picture=picture, color=(9, 200, 9, 99))]
    assert_same(dala_device, with_ring, [picture], background=BACKDROPS["opaque"])


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("size", [(64, 10), (46, 34), (22, 6), (150, 50), (2, 2)], ids=str)
def test_halved_pictures(dala_device: str, size: tuple[int, int], channels: int) -> None:
    """Includes the end of a picture's memory, and clipping on the left."""
    w, h = size
    picture = np.ascontiguousarray(opaque(5, w, h)[..., :channels])
    draws = [
        box(PICTURE, 3, 2, w / 2, h / 2, picture=picture, flags=OPAQUE),
        box(PICTURE, -5, 33, w / 2, h / 2, picture=picture, flags=OPAQUE, radius=4),
        box(PICTURE, 40, 30, w / 2, h / 2, picture=picture, flags=OPAQUE, opacity=0.6),
    ]
    assert_same(dala_device, draws, [picture], background=BACKDROPS["half"])


def test_the_first_draw_does_not_matter(dala_device: str) -> None:
    """One compositor draws simple, then scaled, rotated and blurred, then simple draws again."""
    picture = opaque(8, 40, 30)
    plain = box(PICTURE, 3, 2, 40, 30, picture=picture, flags=OPAQUE)
    scaled = box(PICTURE, 30, 8, 51, 22, picture=picture)
    turned = box(PICTURE, 20, 20, 40, 30, picture=picture, angle=30)
    halo = box(SHADOW, 25, 20, 44, 21, width=3, color=(0, 0, 0, 200))
    with Compositor(dala_device) as compositor, dala.device(dala_device):
        kept = compositor.picture(picture)
        for parts in ([plain], [plain, scaled], [turned], [scaled, halo, plain], [plain]):
            draws = np.concatenate(parts)
            want = render(dala_device, draws, [picture])
            draws["picture"] = kept.number
            target = compute.buffer_zeros((64, 96, 4), "u8")
            compositor.compose(target, draws, background=CLEAR)
            assert (target.numpy() == want).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels(dala_device: str, channels: int) -> None:
    picture = noise(5, 61, 43, channels)
    if channels == 1:
        picture = picture[..., 0]
    flags = OPAQUE if channels != 4 else 0
    draws = [
        box(PICTURE, 1, 2, 61, 43, picture=picture, flags=flags),
        box(PICTURE, 50, 20, 33, 31, picture=picture, flags=flags, opacity=0.5),
        box(PICTURE, 10, 40, 30, 20, picture=picture, flags=flags, angle=12),
    ]
    assert_same(dala_device, draws, [picture])


@pytest.mark.parametrize("scale", [2.7, 5, 9.5])
def test_pictures_made_much_smaller(dala_device: str, scale: float) -> None:
    for picture, flags in ((noise(6, 300, 200), 0), (opaque(7, 300, 200), OPAQUE)):
        for angle in (0, 15):
            draws = box(
                PICTURE, 5.5, 4, 300 / scale, 200 / scale, picture=picture, flags=flags, angle=angle
            )
            assert_same(dala_device, draws, [picture], background=BACKDROPS["opaque"])


def test_crops_do_not_bleed(dala_device: str) -> None:
    picture = opaque(8, 64, 48)
    picture[:, 32:] = (255, 0, 0, 255)
    picture[:, :32] = (0, 255, 0, 255)
    draws = box(PICTURE, 3, 3, 90, 60, picture=picture, crop=(0, 0, 32, 48), flags=OPAQUE)
    made = render(dala_device, draws, [picture])
    assert (made[3:63, 3:93] == (0, 255, 0, 255)).all()
    assert_same(
        dala_device,
        [
            box(PICTURE, 3, 3, 31, 20, picture=picture, crop=(20, 7, 51, 27), flags=OPAQUE),
            box(PICTURE, 40, 3, 50.5, 33, picture=picture, crop=(20.5, 7.25, 40, 27)),
        ],
        [picture],
    )


def test_mirrored(dala_device: str) -> None:
    picture = noise(9, 40, 30)
    draws = box(PICTURE, 7, 5, 60, 45, picture=picture)
    draws["sx"], draws["ox"] = -draws["sx"], 40
    assert_same(dala_device, draws, [picture], background=BACKDROPS["opaque"])


def test_one_pixel_pictures(dala_device: str) -> None:
    dot, row, column = noise(1, 1, 1), noise(2, 40, 1), noise(3, 1, 30)
    dot[..., 3] = 77
    draws = [
        box(PICTURE, 3, 3, 40, 30, picture=dot),
        box(PICTURE, 20.5, 10, 40, 30, picture=row, number=1),
        box(PICTURE, 40, 20, 40, 30.5, picture=column, number=2),
        box(PICTURE, 60, 40, 20, 20, picture=column, number=2, angle=30),
    ]
    assert_same(dala_device, draws, [dot, row, column], background=BACKDROPS["opaque"])


def test_half_white_over_black(dala_device: str) -> None:
    white = box(FILL, 0, 0, 96, 64, opacity=0.5)
    made = render(dala_device, white, [], background=(0, 0, 0, 255))
    assert (np.abs(made[..., :3].astype(int) - 128) <= 1).all()
    assert (made[..., 3] == 255).all()
    light = box(FILL, 0, 0, 96, 64, opacity=0.5, flags=LINEAR)
    made = render(dala_device, light, [], background=(0, 0, 0, 255))
    assert (np.abs(made[..., :3].astype(int) - 188) <= 1).all()


def test_only_rectangles_change(dala_device: str) -> None:
    start, picture = noise(11, 96, 64), noise(12, 50, 40)
    rects = [(0, 0, 17, 9), (20, 3, 61, 64), (61, 60, 96, 61)]
    draws = np.concatenate([
        box(PICTURE, 1.5, 2, 90, 60, picture=picture),
        box(FILL, 10, 10, 80, 52, radius=9, color=(9, 8, 255, 255)),
    ])  # fmt: skip
    for background in (None, (1, 2, 3, 255)):
        given: dict[str, Any] = {"start": start, "rects": rects, "background": background}
        assert_same(dala_device, draws, [picture], **given)
        made = render(dala_device, draws, [picture], **given)
        outside = np.ones((64, 96), bool)
        for x0, y0, x1, y1 in rects:
            outside[y0:y1, x0:x1] = False
        assert (made[outside] == start[outside]).all()


def test_tiles_do_not_show(dala_device: str) -> None:
    """Drawing in parts gives an identical picture, wherever tiles begin."""
    picture, veil = opaque(13, 300, 200), noise(14, 200, 160)
    draws = np.concatenate([
        box(PICTURE, -3.5, -2, 700, 150, picture=picture, flags=OPAQUE),
        box(PICTURE, 20, 10, 200, 160, picture=veil, number=1, radius=30),
        box(SHADOW, 300, 40, 200, 60, width=8, color=(0, 0, 0, 150)),
        box(PICTURE, 311.3, 22.2, 333, 99, picture=veil, number=1, opacity=0.7, radius=12),
        box(PICTURE, 400, 20, 150, 90, picture=veil, number=1, angle=40, blend="screen"),
    ])  # fmt: skip
    size = (640, 140)
    given: dict[str, Any] = {"size": size, "background": (5, 5, 5, 255)}
    whole = render(dala_device, draws, [picture, veil], **given)
    pieces = [(x, y, min(x + 111, 640), min(y + 47, 140))
              for y in range(0, 140, 47) for x in range(0, 640, 111)]  # fmt: skip
    parts = render(dala_device, draws, [picture, veil], rects=pieces, **given)
    far = np.abs(whole.astype(int) - parts)
    # Opaque spans of a picture with alpha may use fixed point in one and not in the
    # other: a step, where they differ at all.
    assert far.max() <= 1


def test_wide_target(dala_device: str) -> None:
    picture, veil = opaque(15, 700, 20), noise(16, 1100, 24)
    draws = [
        box(PICTURE, -10, 0, 1300, 40, picture=picture, flags=OPAQUE),
        box(PICTURE, 100.5, 5.5, 1111, 24, picture=veil, number=1),
        box(FILL, 30, 10, 1200, 15, radius=7, color=(250, 250, 0, 90)),
    ]
    assert_same(dala_device, draws, [picture, veil], size=(1280, 40))


def test_hidden_draws_do_not_show(dala_device: str) -> None:
    top = opaque(17, 96, 64)
    draws = np.concatenate([
        box(FILL, 0, 0, 96, 64, color=(1, 2, 3, 255)),
        box(PICTURE, 0, 0, 96, 64, picture=top, flags=OPAQUE),
    ])  # fmt: skip
    assert (render(dala_device, draws, [top], background=None) == top).all()


def test_invalid_draws_write_nothing() -> None:
    start = noise(18, 96, 64)
    good = box(FILL, 0, 0, 96, 64)
    for name, value in (
        ("kind", 9), ("blend", 99), ("cx", np.nan), ("hw", np.inf), ("opacity", 1.5),
    ):  # fmt: skip
        bad = box(FILL, 0, 0, 10, 10)
        bad[name] = value
        with Compositor("cpu") as compositor, dala.device("cpu"):
            target = compute.from_array(start)
            with pytest.raises(dala.ParameterError, match="draw 1"):
                compositor.compose(target, np.concatenate([good, bad]))
            assert (target.numpy() == start).all()
    with Compositor("cpu") as compositor, dala.device("cpu"):
        target = compute.from_array(start)
        picture = compositor.picture(start)
        draws = box(PICTURE, 0, 0, 96, 64, picture=start, number=picture.number)
        picture.close()
        with pytest.raises(dala.ParameterError, match="dropped"):
            compositor.compose(target, draws)


def test_pictures_can_be_changed_and_dropped(dala_device: str) -> None:
    """A picture shows the pixels it was last given; a dropped number is reused."""
    with Compositor(dala_device) as compositor, dala.device(dala_device):
        target = compute.buffer_zeros((20, 30, 4), "u8")
        first, second = opaque(1, 30, 20), opaque(2, 30, 20)
        picture = compositor.picture(first)
        draws = box(PICTURE, 0, 0, 30, 20, picture=first, number=picture.number)
        compositor.compose(target, draws)
        assert (target.numpy() == first).all()
        picture.update(compute.from_array(second))
        gc.collect()
        compositor.compose(target, draws)
        assert (target.numpy() == second).all()
        rgb = np.ascontiguousarray(first[..., :3])
        picture.update(rgb)
        compositor.compose(target, draws)
        assert (target.numpy() == first).all()
        picture.close()
        again = compositor.picture(second)
        draws["picture"] = again.number
        compositor.compose(target, draws)
        assert (target.numpy() == second).all()


def test_similar_arrays_are_set_quickly(dala_device: str) -> None:
    """For other arrays ``update_fast`` returns False and changes nothing."""
    first, second = opaque(1, 30, 20), opaque(2, 30, 20)
    with Compositor(dala_device) as compositor, dala.device(dala_device):
        target = compute.buffer_zeros((20, 30, 4), "u8")
        picture = compositor.picture(first)
        draws = box(PICTURE, 0, 0, 30, 20, picture=first, number=picture.number)
        others = [
            np.ascontiguousarray(second[..., :3]), second[:, ::-1], second.astype(np.int8),
            second[:10], second.tolist(), None, compute.from_array(second),
            np.ma.masked_array(second),
        ]  # fmt: skip
        assert not any(picture.update_fast(other) for other in others)
        compositor.compose(target, draws)
        assert (target.numpy() == first).all()
        assert picture.update_fast(second)
        compositor.compose(target, draws)
        assert (target.numpy() == second).all()
        picture.update(np.ascontiguousarray(first[..., :3]))
        assert picture.opaque
        assert not picture.update_fast(second)  # another kind than the last
        picture.update(compute.from_array(second))
        assert not picture.update_fast(second)
        picture.update(second)
        picture.close()
        assert not picture.update_fast(second)


def test_the_cpu_reads_pictures_in_place() -> None:
    with Compositor("cpu") as compositor, dala.device("cpu"):
        before = compositor.nbytes
        pixels = opaque(3, 400, 300)
        pictures = [compositor.picture(pixels) for _ in range(10)]
        assert compositor.nbytes == before
        target = compute.buffer_zeros((300, 400, 4), "u8")
        draws = box(PICTURE, 0, 0, 400, 300, picture=pixels, number=pictures[3].number)
        compositor.compose(target, draws)
        pixels[..., :3] = 7
        compositor.compose(target, draws)
        assert (target.numpy()[..., :3] == 7).all()
        pictures[0].update(np.ascontiguousarray(pixels[..., 0]))
        assert compositor.nbytes >= before + 400 * 300 * 4
        for picture in pictures:
            picture.close()
        assert compositor.nbytes < before + 400 * 300 * 4


def test_picture_numbers_are_reused() -> None:
    with Compositor("cpu") as compositor, dala.device("cpu"):
        target = compute.buffer_zeros((64, 96, 4), "u8")
        sizes = []
        for k in range(60):
            pictures = [compositor.picture(noise(k, 30, 20, n)) for n in (1, 3, 4)]
            draws = [
                box(PICTURE, 5, 5, 50, 40, picture=np.zeros((20, 30)), number=p.number, angle=9)
                for p in pictures
            ]
            compositor.compose(target, np.concatenate(draws))
            for picture in pictures:
                picture.close()
            sizes.append(compositor.nbytes)
        assert len(set(sizes)) == 1


STEEP = ("color-dodge", "color-burn", "overlay", "hard-light", "soft-light")
KINDS = (PICTURE, PICTURE, PICTURE, FILL, RING, SHADOW, TINT)


@st.composite
def scenes(draw: Any) -> tuple[list[Array], list[Array], tuple[int, int, int, int]]:
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    pictures = [noise(seed, 40, 30), opaque(seed + 1, 55, 21), noise(seed + 2, 9, 70)]
    if seed % 2:
        pictures[1] = np.ascontiguousarray(pictures[1][..., :3])
    made = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(KINDS))
        number = int(rng.integers(3))
        whole = draw(st.booleans())
        x, y = rng.uniform(-30, 90), rng.uniform(-30, 60)
        w, h = rng.uniform(1, 120), rng.uniform(1, 90)
        if whole:
            x, y, w, h = (float(round(n)) for n in (x, y, w, h))
            if draw(st.booleans()):
                h, w = (float(n) for n in pictures[number].shape[:2])
        made.append(
            box(
                kind, x, y, w, h,
                picture=pictures[number],
                number=number,
                angle=draw(st.sampled_from([0, 0, 0, 45, 137.3])),
                radius=draw(st.sampled_from([0, 0, 3, 12.5, 200])),
                width=float(rng.uniform(0, 8)),
                color=tuple(int(c) for c in rng.integers(0, 256, 4)),
                opacity=draw(st.sampled_from([1.0, 1.0, 0.5, 0.13])),
                blend=draw(st.sampled_from(["over", "over", "over", *BLENDS])),
                flags=(OPAQUE if number == 1 else 0) | draw(st.sampled_from([0, 0, 0, LINEAR])),
            )
        )  # fmt: skip
    background = tuple(int(c) for c in rng.integers(0, 256, 4))
    return made, pictures, background


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(scene=scenes())
def test_any_scene(
    dala_device: str, scene: tuple[list[Array], list[Array], tuple[int, int, int, int]]
) -> None:
    """Draw by draw, each over what the definition has drawn before; then all of them at once.

    The latter leaves out modes that magnify a step below: they divide by the source.
    """
    draws, pictures, background = scene
    state = np.zeros((64, 96, 4), np.uint8)
    state[:] = background
    for draw in draws:
        assert_same(dala_device, draw, pictures, start=state, background=None)
        state = render("reference", draw, pictures, start=state, background=None)
    if not any(BLENDS[int(d[0]["blend"])] in STEEP for d in draws):
        assert_same(dala_device, draws, pictures, background=background)


@pytest.mark.parametrize("width", [5, 16, 23, 40])
@pytest.mark.parametrize("scale", [1, 1.7])
def test_transparent_sources_change_nothing(width: int, scale: float) -> None:
    """The colors of transparent pixels do not change either, whatever is drawn beside them."""
    ground = (161, 203, 101, 0)
    picture = np.zeros((8, width, 4), np.uint8)
    picture[..., :3] = 77
    for seen in ([], [0], [width - 1], [2, 3]):
        picture[..., 3] = 0
        picture[:, seen, 3] = 200
        draws = box(PICTURE, 3, 2, width * scale, 8 * scale, picture=picture)
        got = render("cpu", draws, [picture], background=ground)
        empty = got[..., 3] == 0
        assert (got[empty] == ground).all()
        assert empty.all() == (not seen)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scene=scenes())
def test_native_code_stays_in_bounds(
    scene: tuple[list[Array], list[Array], tuple[int, int, int, int]],
) -> None:
    draws, pictures, background = scene
    from dala.gpu.compute.engines.cpu.compose.composer import CPUComposer

    plain = render("cpu", np.concatenate(draws), pictures, background=background)
    CPUComposer._checked = True
    try:
        checked = render("cpu", np.concatenate(draws), pictures, background=background)
    finally:
        CPUComposer._checked = False
    assert (np.abs(plain.astype(int) - checked) <= 1).all()
