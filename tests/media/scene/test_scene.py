"""Scenes: nodes and groups."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.media import Frame, Scene
from tests.media.scene.seen import PHOTO, RNG, assert_near, ground, over, pixels

STAMP = RNG.integers(0, 256, (8, 10, 4), dtype=np.uint8)


# nodes --------------------------------------------------------------------------------------------


def test_half_white_over_black(engine_id):
    with Scene(4, 2) as scene:
        scene.add_overlay(color="white", opacity=0.5)
        assert (pixels(scene) == [128, 128, 128, 255]).all()


def test_half_white_over_black_in_linear_light(engine_id):
    with Scene(4, 2, blend_space="linear") as scene:
        scene.add_overlay(color="white", opacity=0.5)
        assert_near(pixels(scene), ground((188, 188, 188, 255), (4, 2)))


def test_position_of_an_image(engine_id):
    with Scene(30, 20, background="teal") as scene:
        scene.add_image(STAMP, position=(3, 5))
        want = ground((0, 128, 128, 255))
        want[5:13, 3:13] = over(want[5:13, 3:13], STAMP)
        assert_near(pixels(scene), want)


def test_types_of_images(engine_id, tmp_path):
    from PIL import Image

    path = tmp_path / "photo.png"
    Image.fromarray(PHOTO).save(path)
    gray = PHOTO[..., 0]
    floats = (PHOTO / np.float32(255)).astype(np.float32)
    for given in (PHOTO, Frame.from_array(PHOTO), Image.fromarray(PHOTO), path, str(path), floats):
        with Scene(30, 20) as scene:
            scene.add_image(given)
            np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)
    with Scene(30, 20) as scene:
        scene.add_image(gray)
        np.testing.assert_array_equal(pixels(scene)[..., :3], np.dstack([gray] * 3))
    with Scene(30, 20) as scene:
        scene.textures.load("photo", PHOTO)
        scene.add_image("photo")
        scene.add_image("photo", position=(15, 0))
        scene.add_image(scene.textures.get("photo"), position=(0, 10))
        want = ground()[..., :3]
        want[:] = PHOTO
        want[:, 15:] = PHOTO[:, :15]
        want[10:] = PHOTO[:10]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        assert scene.textures.get("photo").in_use
        scene.textures.update("photo", 255 - PHOTO)
        np.testing.assert_array_equal(pixels(scene)[..., :3], 255 - want)
        scene.render()
        assert scene.frames_skipped == 1
        for node in [*scene.nodes]:
            scene.remove_node(node)
        assert not scene.textures.get("photo").in_use


def test_images_are_copied(engine_id):
    mine = PHOTO.copy()
    with Scene(30, 20) as scene:
        scene.add_image(mine)
        scene.render()
        mine[:] = 0
        scene.add_overlay(color="red", size=(1, 1))
        got = pixels(scene)
        np.testing.assert_array_equal(got[1:, :, :3], PHOTO[1:])
        assert got[0, 0].tolist() == [255, 0, 0, 255]


def test_order_is_by_z_index_and_insertion(engine_id):
    with Scene(2, 2) as scene:
        first = scene.add_overlay(color="red")
        scene.add_overlay(color="lime")
        assert pixels(scene)[0, 0].tolist() == [0, 255, 0, 255]
        first.z_index = 1
        assert pixels(scene)[0, 0].tolist() == [255, 0, 0, 255]
        scene.add_overlay(color="blue", z_index=1)
        assert pixels(scene)[0, 0].tolist() == [0, 0, 255, 255]
        first.z_index = 1.5
        first.visible = False
        assert pixels(scene)[0, 0].tolist() == [0, 0, 255, 255]
        first.visible = True
        assert pixels(scene)[0, 0].tolist() == [255, 0, 0, 255]


def test_fit(engine_id):
    """A picture of two halves, twice as wide as high, in a square box."""
    halves = np.zeros((4, 8, 3), np.uint8)
    halves[:, :4], halves[:, 4:] = (200, 0, 0), (0, 0, 200)
    with Scene(8, 8) as scene:
        node = scene.add_image(halves, size=(8, 8))
        got = pixels(scene)
        assert (got[:, 0, 0] == 200).all()
        assert (got[:, 7, 2] == 200).all()
        node.fit = "contain"
        got = pixels(scene)
        assert (got[[0, 1, 6, 7]] == [0, 0, 0, 255]).all()
        np.testing.assert_array_equal(got[2:6, :, :3], halves)
        node.fit = "cover"
        got = pixels(scene)
        assert (got[:, :3, 0] == 200).all()
        assert (got[:, 5:, 2] == 200).all()
        node.update(fit="none", size=(4, 8))
        got = pixels(scene)
        np.testing.assert_array_equal(got[2:6, :4, :3], halves[:, 2:6])
        assert (got[:, 4:] == [0, 0, 0, 255]).all()


def test_crop_and_default_sizes(engine_id):
    with Scene(30, 20) as scene:
        node = scene.add_image(PHOTO, crop=(5, 4, 12, 8), position=(2, 3))
        want = ground()[..., :3]
        want[3:11, 2:14] = PHOTO[4:12, 5:17]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        assert node.box == (2, 3, 12, 8)
        node.width = 6
        assert node.box == (2, 3, 6, 4)


def test_right_angles_are_exact(engine_id):
    with Scene(30, 30) as scene:
        node = scene.add_image(PHOTO, position=(15, 15), anchor="center", rotation=90)
        want = np.zeros((30, 30, 3), int)
        want[:, 5:25] = np.rot90(PHOTO, -1)
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        node.rotation = 180
        want = np.zeros((30, 30, 3), int)
        want[5:25] = PHOTO[::-1, ::-1]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)


def test_downscaling_averages(engine_id):
    fine = np.indices((16, 16)).sum(0) % 2 * np.uint8(255)
    with Scene(4, 4) as scene:
        scene.add_image(fine.astype(np.uint8), size=(4, 4))
        assert_near(pixels(scene)[..., :3], np.full((4, 4, 3), 128))


def test_border_and_corners(engine_id):
    with Scene(20, 20) as scene:
        scene.add_overlay(color="blue", position=(2, 2), size=(16, 16), radius=5, border=(2, "red"))
        got = pixels(scene)
    assert got[10, 2].tolist() == got[10, 3].tolist() == [255, 0, 0, 255]
    assert got[10, 4].tolist() == got[10, 10].tolist() == [0, 0, 255, 255]
    assert got[2, 2].tolist() == [0, 0, 0, 255]
    assert got[10, 1].tolist() == [0, 0, 0, 255]


def test_shapes(engine_id):
    with Scene(20, 12) as scene:
        node = scene.add_overlay("white", shape="circle", position=(0, 0))
        assert node.box == (0, 0, 12, 12)
        got = pixels(scene)[..., 0]
        assert got[6, 6] == 255
        assert got[0, 0] == got[11, 11] == got[6, 12] == 0
        assert abs(got.sum() / 255 - np.pi * 36) < 1.5
        node.update(shape="pill", size=(20, 12))
        got = pixels(scene)[..., 0]
        assert got[0, 10] == 255
        assert got[0, 0] == 0


def test_shadow_is_below_its_node(engine_id):
    with Scene(40, 40, background="white") as scene:
        scene.add_overlay(color="red", position=(10, 10), size=(20, 20), shadow=(0, 6, 4, "black"))
        got = pixels(scene)
    assert got[20, 20].tolist() == [255, 0, 0, 255]
    assert got[2, 20].tolist() == [255, 255, 255, 255]
    below = got[30:40, 20, 0]
    assert (np.diff(below) >= 0).all()  # darkest at the box, lighter away from it
    assert below[0] < 20
    assert below[-1] > 200
    assert abs(int(below[6]) - 128) <= 25  # half at the shadow's own edge


def test_shadow_follows_alpha(engine_id):
    """The shadow of a disc with alpha is round, also over transparency."""
    y, x = np.mgrid[:21, :21] - 10
    disc = np.zeros((21, 21, 4), np.uint8)
    disc[x * x + y * y <= 64] = (0, 255, 0, 255)
    with Scene(60, 60, background="transparent") as scene:
        scene.add_image(disc, position=(10, 10), shadow=(20, 20, 3, "#0000ffff"))
        got = pixels(scene)
    assert got[20, 20].tolist() == [0, 255, 0, 255]
    assert_near(got[40, 40], [0, 0, 255, 255])
    assert got[31, 31, 3] == 0  # the corner of the shadow's box
    assert got[50, 2].tolist() == [0, 0, 0, 0]
    total = got[30:, 30:, 3].sum() / 255
    assert abs(total - (disc[..., 3] > 0).sum()) < 0.05 * total
    soft = got[40, 44:56, 3]
    assert (np.diff(soft) <= 0).all()
    assert ((soft > 10) & (soft < 245)).sum() >= 2


BLENDS = {
    "add": lambda b, s: np.minimum(b + s, 1),
    "multiply": lambda b, s: b * s,
    "screen": lambda b, s: b + s - b * s,
    "darken": np.minimum,
    "lighten": np.maximum,
    "difference": lambda b, s: np.abs(b - s),
    "exclusion": lambda b, s: b + s - 2 * b * s,
}


@pytest.mark.parametrize("name", BLENDS)
def test_blend_modes(engine_id, name):
    below, above = PHOTO, np.ascontiguousarray(PHOTO[::-1, ::-1])
    with Scene(30, 20) as scene:
        scene.add_image(below)
        scene.add_image(above, blend=name)
        want = BLENDS[name](below / 255, above / 255) * 255
        assert_near(pixels(scene)[..., :3], np.rint(want))


def test_node_fades_as_a_whole(engine_id):
    """Below the border of a half transparent box its own color does not show."""
    with Scene(20, 20, background="black") as scene:
        scene.add_overlay(
            color="white", position=(4, 4), size=(12, 12), border=(3, "blue"), opacity=0.5
        )
        got = pixels(scene)
    assert_near(got[5, 10], [0, 0, 128, 255])
    assert_near(got[10, 10], [128, 128, 128, 255])
    assert got[0, 0].tolist() == [0, 0, 0, 255]


# groups -------------------------------------------------------------------------------------------


def test_group_moves_and_clips(engine_id):
    with Scene(30, 20) as scene:
        group = scene.add_group(position=(4, 3), canvas=(10, 8))
        group.add_image(PHOTO, position=(-2, -1))
        want = ground()[..., :3]
        want[3:11, 4:14] = PHOTO[1:9, 2:12]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        group.position = (12, 9)
        want = ground()[..., :3]
        want[9:17, 12:22] = PHOTO[1:9, 2:12]
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)


def test_isolated_group_looks_like_a_flattened_one(engine_id):
    def made(**properties):
        with Scene(30, 20, background="teal") as scene:
            group = scene.add_group(position=(3, 2), canvas=(20, 15), **properties)
            group.add_image(STAMP, position=(1, 1))
            group.add_overlay(color="#ff000080", position=(5, 4), size=(8, 8), radius=3)
            inner = group.add_group(position=(2, 6))
            inner.add_image(STAMP, opacity=0.6)
            return pixels(scene), group.flat

    flat, is_flat = made()
    own, is_own = made(blend="over", rotation=360)
    assert (is_flat, is_own) == (True, False)
    assert_near(own, flat, 3)


def test_nested_groups_keep_alpha(engine_id):
    with Scene(4, 4, background="transparent") as scene:
        outer = scene.add_group(opacity=0.5)
        inner = outer.add_group(opacity=0.5)
        inner.add_overlay(color="red", size=(2, 4))
        inner.add_overlay(color="lime", size=(1, 4))
        got = pixels(scene)
    assert_near(got[:, 0], np.tile([0, 255, 0, 64], (4, 1)))
    assert_near(got[:, 1], np.tile([255, 0, 0, 64], (4, 1)))
    assert (got[:, 2:] == 0).all()


def test_group_blends_inside_first(engine_id):
    with Scene(4, 4, background="white") as scene:
        group = scene.add_group()
        group.add_overlay(color="#808080", size=(2, 4))
        group.add_overlay(color="#808080", blend="multiply")
        got = pixels(scene)
    assert_near(got[0, 0], [64, 64, 64, 255])
    assert_near(got[0, 3], [128, 128, 128, 255])  # nothing below it in its group


def test_scaled_group(engine_id):
    with Scene(16, 16) as scene:
        group = scene.add_group(canvas=(8, 8), size=(16, 16))
        group.add_overlay(color="white", position=(2, 2), size=(4, 4))
        got = pixels(scene)[..., 0]
    assert (got[6:10, 6:10] == 255).all()
    assert got[1, 8] == 0
    assert got.sum() / 255 == pytest.approx(64, abs=1)


def test_a_scene_inside_a_scene(engine_id):
    with Scene(10, 8, background="transparent") as inner, Scene(30, 20) as outer:
        inner.add_overlay(color="red", size=(5, 8), opacity=0.5)
        node = outer.add_group(inner, position=(4, 2))
        want = ground()
        want[2:10, 4:9] = (128, 0, 0, 255)
        assert_near(pixels(outer), want)
        inner.add_overlay(color="lime", position=(9, 7), size=(1, 1))
        assert_near(pixels(outer)[9, 13], [0, 255, 0, 255])
        before = outer.frames_skipped
        outer.render()
        assert outer.frames_skipped == before + 1
        with pytest.raises(ParameterError, match="contain itself"):
            inner.add_scene(outer)
        outer.remove_node(node)
        assert (pixels(outer) == ground()).all()
        inner.render()  # still open
