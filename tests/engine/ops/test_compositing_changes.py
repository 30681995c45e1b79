"""Composition: parts, pictures that change, random scenes, distance from the formulas."""

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
    FILL,
    LINEAR,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
    Compositor,
)
from dala.gpu.compute.engines import compositing
from tests.engine.ops.composited import (
    Array,
    assert_same,
    box,
    noise,
    opaque,
    render,
)

# changes ------------------------------------------------------------------------------------------


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
    assert (whole == parts).all()


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


@pytest.mark.long
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


# distance from the formulas in real numbers -------------------------------------------------------


@pytest.mark.parametrize("scale", [0.37, 0.9, 1.7])
@pytest.mark.parametrize("angle", [0, 33])
def test_samples_are_near_the_formula(scale: float, angle: float) -> None:
    """Inside of an opaque picture: within 0.55 of a step."""
    picture = opaque(31, 60, 44)
    draw = box(PICTURE, 20, 8, 60 * scale, 44 * scale, picture=picture, angle=angle, flags=OPAQUE)
    made = render("reference", draw, [picture])
    d: Any = compositing.on_grid(draw)[0]
    y, x = np.mgrid[:64, :96] + 0.5
    u = (x - d["cx"]) * d["cos"] + (y - d["cy"]) * d["sin"]
    v = (y - d["cy"]) * d["cos"] - (x - d["cx"]) * d["sin"]
    inside = (np.abs(u) < d["hw"] - 2) & (np.abs(v) < d["hh"] - 2)
    assert inside.sum() > 50
    total = np.zeros((64, 96, 3))
    n, m = (1 << math.ceil(math.log2(taps)) for taps in (int(d["taps_x"]), int(d["taps_y"])))
    for i, j in np.ndindex(n, m):
        s = (u + (i + 0.5) / n - 0.5 + d["hw"]) * np.float64(d["sx"]) - 0.5
        t = (v + (j + 0.5) / m - 0.5 + d["hh"]) * np.float64(d["sy"]) - 0.5
        for below, right in np.ndindex(2, 2):
            column, row = np.floor(s).astype(int) + right, np.floor(t).astype(int) + below
            weight = (1 - np.abs(s - column)) * (1 - np.abs(t - row)) / (n * m)
            texel = picture[np.clip(row, 0, 43), np.clip(column, 0, 59), :3]
            total += weight[..., None] * texel
    assert np.abs(made[..., :3] - total)[inside].max() <= 0.55


@pytest.mark.parametrize("sigma", [0.8, 5, 11])
def test_shadows_are_near_the_formula(sigma: float) -> None:
    """The integrals along x and y of a Gaussian cut at 3 deviations: within 0.7 of a step."""
    draw = box(SHADOW, 30.25, 20.5, 31, 23, width=sigma, color=(255, 255, 255, 255))
    draw["x0"], draw["y0"], draw["x1"], draw["y1"] = 0, 0, 96, 64
    made = render("reference", draw, [], background=(0, 0, 0, 255))

    def share(at: Array, low: float, high: float) -> Array:
        ends = (np.clip((edge - at) / sigma, -3, 3) * math.sqrt(0.5) for edge in (low, high))
        first, last = (np.array([math.erf(z) for z in end]) for end in ends)
        return (last - first) / (2 * math.erf(3 * math.sqrt(0.5)))

    across = share(np.arange(96) + 0.5, 30.25, 61.25)
    want = 255 * share(np.arange(64) + 0.5, 20.5, 43.5)[:, None] * across
    assert np.abs(made[..., 0] - want).max() <= 0.7
