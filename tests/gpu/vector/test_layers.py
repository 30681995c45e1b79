"""Layers: opacity, blend modes, filters, shadows, clips, and what may go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dala import gpu
from dala.errors import DalaError, MemoryLimitExceeded
from dala.gpu import Path
from dala.gpu.color import BLENDS, OPERATORS
from dala.gpu.vector import layers

W, H = 40, 30


def test_a_layer_alone_is_what_it_holds():
    with gpu.create_surface(W, H) as plain, gpu.create_surface(W, H) as layered:
        plain.circle(20, 15, 12, "#ff8000c0")
        with layered.layer():
            layered.circle(20, 15, 12, "#ff8000c0")
        assert (plain.to_array() == layered.to_array()).all()


def test_opacity_is_of_the_whole():
    with gpu.create_surface(W, H) as s:
        s.clear("white")
        with s.layer(opacity=0.5):
            s.circle(15, 15, 10, "black")
            s.circle(25, 15, 10, "black")
        assert {*s.to_array()[15, 10:31, 0].tolist()} == {128}


@pytest.mark.parametrize("blend", BLENDS)
def test_blend_modes_are_those_of_scenes(blend):
    from dala.media import Scene

    back, front = (200, 120, 30), (90, 180, 220, 160)
    with gpu.create_surface(4, 4) as s:
        s.clear(back)
        with s.layer(blend=blend, opacity=0.75):
            s.rect(0, 0, 4, 4, front)
        found = s.to_array()[0, 0]
    with Scene(4, 4, background=back) as scene:
        pixels = np.full((4, 4, 4), front, np.uint8)
        scene.add_image(pixels, position=(0, 0), size=(4, 4), blend=blend, opacity=0.75)
        assert found.tolist() == np.asarray(scene.render())[0, 0].tolist()


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_of_porter_and_duff(operator):
    """Compared with the formulas in f64, within a clip of half the coverage and outside of it."""
    rng = np.random.default_rng(3)
    back, front = rng.integers(0, 256, (2, 8, 8, 4), np.uint8)
    back[:, 0], front[:, 1] = (9, 8, 7, 255), (0, 0, 0, 0)
    with gpu.create_surface(8, 8) as s:
        s.set_pixels(back)
        with s.clip(Path.rect(0, 0.5, 8, 6)), s.layer(blend=operator, opacity=0.75):
            s.image(front, 0, 0)
        found = s.to_array()
    share = np.array([128, 255, 255, 255, 255, 255, 128, 0])[:, None, None] / 255
    below, above = back[..., 3:] / 255, front[..., 3:] / 255 * 0.75
    a, b = (
        (0.0, 1.0, other, 1 - other)[code]
        for code, other in zip(OPERATORS[operator], (below, above), strict=True)
    )
    over, under = above * a * share, below * (b * share + 1 - share)
    alpha = over + under
    colors = (front[..., :3] * over + back[..., :3] * under) / np.maximum(alpha, 1e-9)
    wanted = np.concatenate([colors, alpha * 255], axis=2)
    wanted = np.where(alpha > 0, wanted, 0)
    assert np.abs(found - wanted).max() <= 0.51
    assert (found[7] == back[7]).all()


def test_the_modes_have_the_numbers_of_the_compositor():
    from dala.gpu.compute.engines import compositing

    assert compositing.BLENDS == BLENDS


def test_filters():
    from dala.media import gpu as filters

    with gpu.create_surface(W, H) as s:
        with s.layer(filters=[("brightness", {"value": -0.2}), "invert"]):
            s.rect(10, 10, 12, 8, "red")
        found = s.to_array()
    pixels = np.zeros((H, W, 4), np.uint8)
    pixels[10:18, 10:22] = (255, 0, 0, 255)
    wanted = filters.invert(filters.brightness(pixels, value=-0.2))
    seen = wanted[..., 3] > 0
    assert (found[seen] == wanted[seen]).all()


def test_shadow():
    with gpu.create_surface(W, H) as s:
        with s.layer(shadow=(5, 3, 0, "#00000080")):
            s.rect(10, 10, 8, 6, "red")
        found = s.to_array()
        assert found[12, 12].tolist() == [255, 0, 0, 255]
        assert found[18, 22].tolist() == [0, 0, 0, 128]
        assert not found[12, 8].any()
    with gpu.create_surface(W, H) as s:
        with s.layer(shadow=(0, 0, 2, "black")):
            s.rect(15, 10, 8, 6, "red")
        row = s.to_array()[13, :15, 3].astype(int)
        assert row[14] > 60
        assert (np.diff(row[4:]) >= 0).all()


def test_a_blur_and_a_clip_around_it():
    with gpu.create_surface(W, H) as s:
        with s.clip(Path.rect(0, 0, 20.5, 30)), s.layer(blur=2):
            s.rect(10, 10, 20, 10, "white")
        alpha = s.to_array()[15, :, 3].astype(int)
        assert alpha[19] == 255
        assert abs(alpha[20] - 128) <= 1
        assert alpha[21] == 0
        assert 0 < alpha[9] < 255


def test_blurs_have_no_dark_fringe():
    with gpu.create_surface(W, H) as s:
        with s.layer(filters=[("box_blur", {"radius": 3})]):
            s.rect(10, 10, 12, 8, (250, 120, 60))
        found = s.to_array().astype(int)
        assert found[14, 8, 3] == pytest.approx(255 * 2 / 7, abs=1.5)
        strong = found[..., 3] > 60
        assert np.abs(found[strong][:, :3] - (250, 120, 60)).max() <= 3


@pytest.mark.parametrize("name", ["pixelate", "erode", "dilate"])
def test_filters_of_neighbors_have_no_dark_fringe(name):
    with gpu.create_surface(W, H) as s:
        s.clear("white")
        with s.layer(filters=[name]):
            s.circle(19.5, 14.5, 9.5, (250, 120, 60))
        assert (s.to_array()[..., :3] >= (249, 119, 59)).all()


def test_errors_of_filters_name_the_layer():
    with gpu.create_surface(W, H) as s, pytest.raises(DalaError, match=r"layer: filters.0. ..blur"):
        with s.layer(filters=[("blur", {"size": 3})]):
            s.circle(19.5, 14.5, 9.5, "red")
        s.synchronize()


def test_nested():
    with gpu.create_surface(W, H) as s:
        with s.layer(opacity=0.5), s.layer(opacity=0.5):
            s.rect(0, 0, 4, 4, "white")
        assert s.to_array()[0, 0, 3] == 64


def test_integer_shapes_and_pictures_are_in_layers_too():
    with gpu.create_surface(W, H) as s:
        s.load_sprite(1, bytes([255] * 16), 2, 2)
        with s.layer(opacity=0.5):
            s.fill_rect(0, 0, 2, 2, "white")
            s.blit(1, 4, 0)
        assert s.to_array()[0, :6, 3].tolist() == [128, 128, 0, 0, 128, 128]


def test_presented_frames_have_layers():
    with gpu.create_surface(W, H) as s:
        for color in ("red", "blue"):
            with s.layer(opacity=0.5):
                s.rect(3, 3, 20, 20, color)
            s.present()
        s.synchronize()
        assert (s._renderer.front == s.to_array()).all()


def test_what_is_wrong():
    with gpu.create_surface(W, H) as s:
        for wrong in (
            {"blend": "mix"}, {"filters": [("lut_apply", {"lut": "/etc/passwd"})]}, {"blur": "x"},
            {"filters": [("blur", {"radius": object()})]}, {"opacity": float("nan")},
        ):  # fmt: skip
            with pytest.raises(DalaError, match="layer"), s.layer(**wrong):
                pass
        s.submit(gpu.command.encode_end_layer())
        with pytest.raises(DalaError, match="no layer is open"):
            s.synchronize()
        with s.layer():
            s.present()
        with pytest.raises(DalaError, match="a layer is open"):
            s.synchronize()
        with s.layer(filters=["no_such_filter"]):
            s.rect(0, 0, 4, 4, "red")
        with pytest.raises(DalaError, match="no_such_filter"):
            s.synchronize()
        s.rect(0, 0, 4, 4, "red")
        assert s.to_array()[0, 0].tolist() == [255, 0, 0, 255]


def test_memory_of_layers_and_clips_counts():
    with gpu.create_surface(512, 512, memory="4 MiB") as s:
        for _ in range(3):
            s.submit(gpu.command.encode_begin_layer(1, "over", ""))
        with pytest.raises(MemoryLimitExceeded, match="layer"):
            s.synchronize()
    with gpu.create_surface(1024, 1024, memory="11 MiB") as s:
        path = Path.circle(500, 500, 400)
        s.submit(4 * gpu.command.encode_clip_shape("nonzero", path))
        with pytest.raises(MemoryLimitExceeded, match="clip"):
            s.synchronize()


@pytest.mark.parametrize(
    "soft",
    [
        ("shadow", {"x": 4, "y": -7, "blur": 3, "color": [9, 8, 7, 200]}),
        ("shadow", {"x": -90, "y": 0, "blur": 0, "color": [9, 8, 7, 200]}),
        ("blur", {"radius": 9, "sigma": 4.5}),
        ("blur", {"radius": 70}),
        ("blur", {"sigma": 3}),
        ("box_blur", {"radius": 3}),
    ],
)
@pytest.mark.parametrize("place", [(20, 30, 8, 5), (0, 0, 6, 9), (60, 41, 4, 7), (9, 9, 0, 0)])
def test_only_what_a_blur_reaches_is_filtered_with_the_same_bytes(soft, place):
    pixels = np.zeros((48, 64, 4), np.uint8)
    x, y, w, h = place
    pixels[y : y + h, x : x + w] = np.random.default_rng(5).integers(0, 256, (h, w, 4))
    name, given = soft
    whole = layers._with_shadow(pixels, **given) if name == "shadow" else None
    whole = layers._blurred(pixels, soft) if whole is None else whole
    empty = np.zeros((0,))
    made = layers.Layer(pixels.copy(), empty, empty, (), 1.0, 0, [soft])
    found = layers.finished(made)
    assert (found[..., 3] == whole[..., 3]).all()
    assert (found == whole)[whole[..., 3] > 0].all()


def test_a_soft_shadow_has_exactly_its_color():
    with gpu.create_surface(W, H) as s:
        with s.layer(shadow=(6, 0, 2, (201, 77, 33, 60))):
            s.rect(10, 10, 8, 8, "white")
        shadow = s.to_array()[12, 19:28]
        assert (shadow[:, :3] == (201, 77, 33)).all()
        assert shadow[0, 3] > shadow[-1, 3] > 0
