"""Composition: draws on every engine."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute.composite import (
    BLENDS,
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
from tests.engine.ops.composited import (
    CLEAR,
    assert_same,
    box,
    noise,
    opaque,
    render,
)

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
