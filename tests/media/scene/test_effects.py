"""Effects in scenes: on everything below, on a node, on a group; hidden, mixed, animated."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import kernel
from dala.gpu.compute.engines.sampling.gauss import gaussian_weights
from dala.media import Scene
from tests.media.scene.test_scene import PHOTO, assert_near, pixels


def test_backdrop_effect(engine_id):
    with Scene(30, 20) as scene:
        scene.add_image(PHOTO)
        scene.add_effect("invert")
        scene.add_overlay(color="red", size=(3, 3))
        want = 255 - PHOTO.astype(int)
        want[:3, :3] = (255, 0, 0)
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)


def test_backdrop_effect_with_box_and_opacity(engine_id):
    with Scene(30, 20) as scene:
        scene.add_image(PHOTO)
        effect = scene.add_effect("invert", position=(4, 5), size=(10, 6))
        want = PHOTO.astype(int)
        want[5:11, 4:14] = 255 - want[5:11, 4:14]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        effect.opacity = 0.25
        want = PHOTO.astype(float)
        want[5:11, 4:14] = 0.75 * want[5:11, 4:14] + 0.25 * (255 - want[5:11, 4:14])
        assert_near(pixels(scene)[..., :3], np.rint(want))


def test_adjacent_effects_are_one_filter_list(engine_id):
    with Scene(30, 20) as scene:
        scene.add_image(PHOTO)
        scene.add_effect("blur", radius=2)
        scene.add_effect("brightness", value=0.1)
        scene.add_effect("invert")
        got = pixels(scene)
        assert scene.stats["filtered"] == 1
        assert "blur + brightness + invert" in scene.explain()
    rgba = np.dstack([PHOTO, np.full(PHOTO.shape[:2], 255, np.uint8)])
    want = dala.media.gpu.blur(rgba, radius=2)
    want = dala.media.gpu.invert(dala.media.gpu.brightness(want, value=0.1))
    assert_near(got, want)


def test_effect_on_a_node(engine_id):
    with Scene(30, 20, background="teal") as scene:
        node = scene.add_image(PHOTO, position=(2, 2), size=(20, 14), rotation=0)
        plain = pixels(scene)[2:16, 2:22]
        first = scene.add_effect("blur", node, radius=2)
        scene.add_effect("sharpen", first, amount=0.4)
        got = pixels(scene)
        assert scene.stats["filtered"] == 1
        want = dala.media.gpu.blur(plain.astype(np.uint8), radius=2)
        want = dala.media.gpu.sharpen(want, amount=0.4)
        assert_near(got[2:16, 2:22], want)
        assert (got[:2] == [0, 128, 128, 255]).all()
        node.x = 5
        moved = pixels(scene)
        assert scene.stats["filtered"] == 0  # moving it changes nothing about its picture
        np.testing.assert_array_equal(moved[2:16, 5:25], got[2:16, 2:22])


def test_blur_spreads_alpha(engine_id):
    """Blurred white over transparency stays white, without dark fringes."""
    stamp = np.zeros((15, 15, 4), np.uint8)
    stamp[4:11, 4:11] = 255
    with Scene(15, 15, background="transparent") as scene:
        node = scene.add_image(stamp)
        scene.add_effect("blur", node, radius=3)
        got = pixels(scene)
    alpha = got[..., 3]
    assert 0 < alpha[3, 7] < 255
    assert (got[alpha > 8][:, :3] >= 250).all()
    assert alpha.sum() == pytest.approx(49 * 255, rel=0.02)


def blurred(mask, radius, sigma):
    """Return a mask from 0 to 1 after a Gaussian blur with zeros outside."""
    weights = gaussian_weights(radius, sigma)
    for axis in (0, 1):
        mask = np.apply_along_axis(np.convolve, axis, mask, weights, "same")
    return mask


def test_blur_extends_beyond_the_box(engine_id):
    """A shape without a picture, a text and a group are blurred with their edges."""
    with Scene(60, 40, background="black") as scene:
        box = scene.add_overlay(color="white", position=(20, 15), size=(16, 10))
        effect = scene.add_effect("blur", box, radius=6, sigma=3.0)
        got = pixels(scene)
        mask = np.zeros((40, 60))
        mask[15:25, 20:36] = 1.0
        assert_near(got[..., 0], np.rint(255 * blurred(mask, 6, 3.0)), steps=2)
        effect.update(radius=8, sigma=None)
        assert_near(pixels(scene)[..., 0], np.rint(255 * blurred(mask, 8, 4.0)), steps=2)
        effect.opacity = 0.5
        want = 255 * (blurred(mask, 8, 4.0) + mask) / 2
        assert_near(pixels(scene)[..., 0], np.rint(want), steps=2)
    with Scene(60, 40, background="black") as scene:
        group = scene.add_group(canvas=(16, 10), position=(20, 15))
        group.add_overlay(color="white")
        scene.add_effect("gaussian_blur", group, sigma=2.0)
        got = pixels(scene)
        assert_near(got[..., 0], np.rint(255 * blurred(mask, 6, 2.0)), steps=2)


def test_blurred_shape_keeps_corners_border_and_rotation(engine_id):
    """The result equals a blurred group with a margin around the shape."""
    look = {"color": "gold", "shape": "circle", "border": (3, "navy"), "size": (30, 30)}
    with Scene(80, 60, background="gray") as scene:
        node = scene.add_overlay(position=(24, 12), **look)
        scene.add_effect("blur", node, radius=5)
        got = pixels(scene)
    with Scene(80, 60, background="gray") as scene:
        group = scene.add_group()
        group.add_overlay(position=(24, 12), **look)
        scene.add_effect("blur", group, radius=5)
        assert_near(got, pixels(scene), steps=2)
    with Scene(80, 60, background="gray") as scene:
        bar = scene.add_overlay(color="white", position=(40, 30), size=(30, 8), anchor="center")
        scene.add_effect("blur", bar, radius=5)
        flat = pixels(scene)
        bar.rotation = 90
        turned = pixels(scene)
    assert_near(turned[10:50, 20:60], np.rot90(flat[10:50, 20:60]), steps=2)
    assert flat[30, 22, 0] > 140 > flat[30, 15, 0]  # beyond its end, and not for ever


def test_blur_keeps_edges_of_pictures_and_of_the_scene(engine_id):
    with Scene(30, 20, background="black") as scene:
        photo = scene.add_image(PHOTO[:8, :10], position=(10, 6))
        scene.add_effect("blur", photo, radius=3)
        got = pixels(scene)
        alpha = np.full((8, 10, 1), 255, np.uint8)
        want = dala.media.gpu.blur(np.dstack([PHOTO[:8, :10], alpha]), radius=3)
        assert_near(got[6:14, 10:20], want)
        assert not got[:6, :, :3].any()
        assert not got[:, :10, :3].any()
        photo.visible = False
        band = scene.add_overlay(color="white", size=(30, 10))
        scene.add_effect("blur", band, radius=4)
        got = pixels(scene)
        assert (got[:6] == 255).all()  # as far as the blur does not reach
        assert 0 < got[11, 0, 0] == got[11, 29, 0] < 255


def test_blurred_node_moves_to_the_edge_and_back(engine_id):
    def build(x):
        made = Scene(40, 30, background="navy")
        node = made.add_overlay(color="white", position=(x, 8), size=(12, 12), shape="pill")
        made.add_effect("blur", node, radius=4)
        return made, node

    scene, node = build(14)
    with scene:
        first = pixels(scene)
        for x in (16, 28, 34, 0, -5, 14):
            node.x = x
            got = pixels(scene)
            fresh, _ = build(x)
            with fresh:
                np.testing.assert_array_equal(got, pixels(fresh))
        np.testing.assert_array_equal(got, first)
        node.x = 15
        pixels(scene)
        assert scene.stats["filtered"] == 0


def test_effect_on_a_group_and_custom_kernel(engine_id):
    swap = kernel("def scene_swap(px: Pixel, *, amount: float):\n"
                  "    return rgba(px.b * amount, px.g, px.r, px.a)")  # fmt: skip
    with Scene(30, 20) as scene:
        group = scene.add_group()
        group.add_image(PHOTO)
        effect = scene.add_effect(swap, group, amount=1.0)
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO[..., ::-1])
        effect.amount = 0.0
        got = pixels(scene)
        assert (got[..., 0] == 0).all()
        np.testing.assert_array_equal(got[..., 2], PHOTO[..., 0])
        effect.visible = False
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)
        scene.remove_node(effect)
        named = scene.add_effect("scene_swap", group, amount=1.0)
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO[..., ::-1])
        assert named.get("amount") == 1.0


def test_effect_with_transparent_result(engine_id):
    half = kernel("def scene_half(px: Pixel): return rgba(px.r, px.g, px.b, 0.5)")
    with Scene(30, 20, background="blue") as scene:
        node = scene.add_image(PHOTO)
        effect = scene.add_effect(half, node)
        want = np.rint((PHOTO + np.array([0.0, 0.0, 255.0])) / 2)
        assert_near(pixels(scene)[..., :3], want)
        scene.remove_node(effect)
        scene.add_overlay(color="lime", position=(2, 2), size=(10, 10), id="green")
        scene.add_effect("chroma_key", "green", key=(0, 1, 0))
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)


def test_effect_in_a_group_filters_only_the_group(engine_id):
    with Scene(8, 8, background="white") as scene:
        group = scene.add_group()
        group.add_overlay(color="red", size=(4, 8))
        group.add_effect("invert")
        got = pixels(scene)
    assert_near(got[0, 0], [0, 255, 255, 255])
    assert_near(got[0, 7], [255, 255, 255, 255])


def test_failing_effect_is_reported_and_can_be_corrected(engine_id):
    with Scene(30, 20) as scene:
        node = scene.add_image(PHOTO)
        scene.render()
        wrong = np.zeros((3, 3, 4), np.uint8)
        effect = scene.add_effect("overlay_alpha", over=wrong)
        for _ in range(2):
            with pytest.raises(ValueError, match="size"):
                scene.render()
        effect.set("over", np.full((20, 30, 4), 255, np.uint8))
        assert (pixels(scene)[..., :3] == 255).all()
        effect.set("over", wrong)
        with pytest.raises(ValueError, match="size"):
            scene.render()
        scene.remove_node(effect)
        on_node = scene.add_effect("overlay_alpha", node, over=wrong)
        with pytest.raises(ValueError, match="size"):
            scene.render()
        on_node.visible = False
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)


def test_visibility_and_opacity_of_effects(engine_id):
    with Scene(30, 20) as scene:
        node = scene.add_image(PHOTO)
        effect = scene.add_effect("invert", node)
        np.testing.assert_array_equal(pixels(scene)[..., :3], 255 - PHOTO.astype(int))
        effect.visible = False
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)
        effect.update(visible=True, opacity=0.25)
        want = PHOTO * 0.75 + (255.0 - PHOTO) * 0.25
        assert_near(pixels(scene)[..., :3], np.rint(want))
        effect.opacity = 1
        brighter = scene.add_effect("brightness", node, value=0.2, z_index=-1)
        first = pixels(scene)[..., :3]
        assert_near(first, 255 - np.minimum(PHOTO.astype(int) + 51, 255))
        brighter.z_index = 1
        assert_near(pixels(scene)[..., :3], np.minimum(255 - PHOTO.astype(int) + 51, 255))


def test_animated_effects_and_groups(engine_id):
    with Scene(30, 20, fps=10) as scene:
        scene.add_image(PHOTO)
        effect = scene.add_effect("brightness", value=0.0)
        scene.add_animation(effect, "value", 0.0, 0.4, 1)
        frames = [pixels(scene) for _ in range(6)]
        assert effect.value == pytest.approx(0.2)
        assert_near(frames[5][..., :3], np.minimum(PHOTO.astype(int) + 51, 255))
        blur = scene.add_effect("blur", radius=1)
        scene.add_animation(blur, "radius", 1, 5, 1)
        scene.render(scene.time + 0.5)
        assert blur.radius == 3
