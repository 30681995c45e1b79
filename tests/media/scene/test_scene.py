"""Scenes: nodes and their properties, on every engine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ColorError, FreedError, ParameterError, ShapeError, UnknownParameter
from dala.media import Frame, Scene
from tests.support.tolerances import COMPOSED_STEPS

RNG = np.random.default_rng(11)
PHOTO = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
STAMP = RNG.integers(0, 256, (8, 10, 4), dtype=np.uint8)


def pixels(scene, time=None):
    return np.array(scene.render(time)).astype(int)


def assert_near(got, want, steps=COMPOSED_STEPS[0]):
    got, want = np.asarray(got, int), np.asarray(want, int)
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= steps


def over(below, picture, opacity=1.0):
    """Return straight RGBA over an opaque picture, by definition."""
    alpha = picture[..., 3:] / 255 * opacity
    colors = picture[..., :3] * alpha + below[..., :3] * (1 - alpha)
    return np.dstack([colors, np.full(colors.shape[:2], 255)]).round().astype(int)


def ground(color=(0, 0, 0, 255), size=(30, 20)):
    return np.full((size[1], size[0], 4), color, int)


# nodes ------------------------------------------------------------------------------------------
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


# text -----------------------------------------------------------------------------------------
def test_text_over_a_picture(engine_id):
    from dala.media.text.text import TextStyle, set_text

    with Scene(120, 40, background="navy") as scene:
        node = scene.add_text("Dala", size=24, color="yellow", position=(7, 3))
        made = set_text("Dala", TextStyle(size=24, color="yellow"))
        dx, dy = made.offset
        want = ground((0, 0, 128, 255), (120, 40))
        part = np.s_[3 + dy : 3 + dy + made.height, 7 + dx : 7 + dx + made.width]
        want[part] = over(want[part], made.pixels)
        assert_near(pixels(scene), want)
        assert node.box[2:] == made.box
        node.text = ""
        assert (pixels(scene) == [0, 0, 128, 255]).all()
        node.update(text="X", size=30, anchor="center", position=(60, 20))
        got = pixels(scene)[..., 0]
        x, y = (np.nonzero(got > 100)[i].mean() for i in (1, 0))
        assert abs(x - 60) < 3
        assert abs(y - 20) < 5


def test_text_is_rendered_again_only_when_it_changes(engine_id):
    with Scene(60, 30) as scene:
        node = scene.add_text("Hi", size=16, shadow=(1, 1, 2, "red"))
        scene.render()
        version = node.content().version
        node.update(x=5.0, opacity=0.5, rotation=10)
        scene.render()
        assert node.content().version == version
        node.color = "lime"
        scene.render()
        assert node.content().version == version + 1


# frames and time --------------------------------------------------------------------------------
def test_frames_carry_exact_times(engine_id):
    with Scene(4, 4, fps=29.97) as scene:
        frames = [scene.render() for _ in range(3)]
        assert [f.pts for f in frames] == [0, 1, 2]
        assert frames[2].time == Fraction(2 * 1001, 30000)
        assert scene.time == float(Fraction(2 * 1001, 30000))
        assert scene.render(0.5).time == Fraction(1, 2)
        assert scene.render().time == Fraction(15 * 1001, 30000)
        assert (scene.frame_count, scene.fps) == (5, 29.97)
        assert np.asarray(frames[0]).shape == (4, 4, 4)
        assert np.asarray(frames[0]).dtype == np.uint8


def test_animation_is_a_function_of_time(engine_id):
    with Scene(20, 10, fps=10) as scene:
        node = scene.add_overlay(color="white", size=(4, 4))
        scene.add_animation(node, "x", 0, 10, 1, "linear")
        scene.add_animation(node.id, "color", from_="white", to="red", duration=1)
        frames = [pixels(scene) for _ in range(11)]
        assert frames[0][0, 0].tolist() == [255, 255, 255, 255]
        assert frames[5][0, 5].tolist() == [255, 128, 128, 255]
        assert frames[5][0, 4].tolist() == [0, 0, 0, 255]
        assert frames[10][0, 13].tolist() == [255, 0, 0, 255]
        np.testing.assert_array_equal(pixels(scene, 0.5), frames[5])
        moving = scene.add_animation(node, "opacity", 1, 0, 1)
        scene.remove_node(moving)
        assert moving.done


def test_pip(engine_id):
    with Scene(640, 360) as scene:
        node = scene.add_image(PHOTO, pip=True)
        assert node.box == (640 - 200 - 20, 20, 200, 150)
        got = pixels(scene)
        assert got[19, 500].tolist() == [0, 0, 0, 255]
        assert_near(got[20, 420, :3], PHOTO[0, 0])
        scene.set_pip_transform(node, position="bottom-left", size=(100, 50))
        assert node.box == (20, 360 - 50 - 20, 100, 50)
        scene.set_pip_transform(node.id, position=(7, 8))
        assert node.box == (7, 8, 100, 50)
        other = scene.add_image(PHOTO, pip_position="top-left", pip_size=(60, 40), margin=5)
        assert other.box == (5, 5, 60, 40)


def test_add_node(engine_id):
    with Scene(30, 20) as scene:
        scene.add_node("image", PHOTO, id="photo")
        scene.add_node("effect", "invert", input="photo")
        group = scene.add_node("group", position=(2, 2))
        group.add_node("overlay", color="red", size=(3, 3))
        scene.add_node("animation", "photo", "opacity", 1, 0, 1)
        want = 255 - PHOTO.astype(int)
        want[2:5, 2:5] = (255, 0, 0)
        np.testing.assert_array_equal(pixels(scene)[..., :3], want)
        assert [n.type for n in scene.nodes.values()] == ["image", "effect", "group", "overlay"]
        assert scene["photo"].effects == [scene["effect-2"]]


def test_two_scenes_share_a_pool(engine_id):
    from dala.media import TexturePool

    pool = TexturePool(10**6)
    pool.load("photo", PHOTO)
    with Scene(30, 20) as one, Scene(30, 20) as two:
        one.textures = two.textures = pool
        for scene in (one, two):
            scene.add_image("photo")
            np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)
    assert "photo" in pool
    assert not pool.get("photo").in_use


# errors ---------------------------------------------------------------------------------------
def test_invalid_arguments_change_nothing():
    with Scene(30, 20, device="reference") as scene:
        node = scene.add_image(PHOTO, id="photo")
        before = dict(node.property_values)
        cases = [
            (lambda: node.set("opacity", 2), ParameterError,
             "opacity must be a number from 0 to 1, got 2."),
            (lambda: node.set("opactiy", 1), UnknownParameter, "Did you mean 'opacity'"),
            (lambda: node.update(x=5, blend="mulitply"), ParameterError, "'multiply'"),
            (lambda: node.set("x", float("nan")), ParameterError, "x must be a number, got nan."),
            (lambda: node.set("position", 3), ParameterError, "position must be"),
            (lambda: node.set("position", "midle"), ParameterError, "top-left"),
            (lambda: node.set("border", (1, "blurple")), ColorError, "photo: border"),
            (lambda: node.set("crop", (0, 0, 0, 5)), ParameterError, "above 0"),
            (lambda: scene.add_image(PHOTO, id="photo"), ParameterError, "already"),
            (lambda: scene.add_image("nowhere.png"), FileNotFoundError, "nowhere.png"),
            (lambda: scene.add_image(3), TypeError, "image must be an array"),
            (lambda: scene.add_image(PHOTO, pip=False, pip_size=(3, 3)), ParameterError, "pip"),
            (lambda: scene.add_overlay(), ParameterError, "an image or a color is required"),
            (lambda: scene.add_effect("blurr"), KeyError, "Did you mean 'blur'"),
            (lambda: scene.add_effect("blur", radios=3), UnknownParameter, "'radius'"),
            (lambda: scene.add_effect("blur", radius=-1), ParameterError, "radius"),
            (lambda: scene.add_effect("blur", "foto"), ParameterError, "'photo'"),
            (lambda: scene.add_node("vidoe"), ParameterError, "'video'"),
            (lambda: scene.add_text(5), ParameterError, "text must be a str"),
            (lambda: scene.remove_node("x"), ParameterError, "there is no node"),
            (lambda: scene.side_by_side([]), ParameterError, "at least one"),
            (lambda: scene.grid([node], gap=-1), ParameterError, "gap"),
            (lambda: scene.render(float("inf")), ParameterError, "seconds"),
            (lambda: scene.set_pip_transform(node, size=(9, 9), position=1), ParameterError, "pos"),
            (lambda: scene.add_overlay("reddish"), FileNotFoundError, "add_overlay: .* no color"),
            (lambda: scene.add_text("a", font="Nosuch"), ParameterError, "add_text: .* 'Nosuch'"),
            (lambda: scene.add_animation(node, "opactiy", 0, 1, 1), UnknownParameter,
             "^add_animation: .* 'opacity'"),
            (lambda: scene.add_animation(node, "fit", 0, 1, 1), ParameterError,
             "^add_animation: property must be one that can be animated, got .fit"),
            (lambda: scene.add_animation(node, "opacity", 0, 3, 1), ParameterError,
             "from 0 to 1, got 3"),
            (lambda: scene.add_animation(node, "x", keyframes=[(0, 1), (1, 1e9)]), ParameterError,
             "x must be a number"),
        ]  # fmt: skip
        for call, error, words in cases:
            with pytest.raises(error, match=words):
                call()
        assert node.property_values == before
        assert list(scene.nodes) == ["photo"]
        assert len(scene.animator) == 0
        np.testing.assert_array_equal(pixels(scene)[..., :3], PHOTO)
    for bad in ({"width": 0}, {"width": 2.5}, {"fps": 0}, {"blend_space": "gamma"}):
        with pytest.raises(ParameterError):
            Scene(**{"width": 4, "height": 4, "device": "reference", **bad})
    with pytest.raises(FreedError, match="closed"):
        scene.render()
    with pytest.raises(FreedError, match="closed"):
        scene.add_overlay(color="red")
    scene.close()


def test_misspelled_attribute():
    with Scene(4, 4, device="reference") as scene:
        node = scene.add_overlay(color="red")
        with pytest.raises(AttributeError):
            node.opactiy = 1
        effect = scene.add_effect("blur", radius=2)
        with pytest.raises(AttributeError):
            effect.sgima = 1
        effect.sigma = 2.0
        assert (effect.radius, effect.get("sigma")) == (2, 2.0)
        with pytest.raises(ParameterError):
            effect.radius = 500
        assert effect.radius == 2


def test_set_background(engine_id):
    with Scene(4, 4) as scene:
        scene.add_overlay(color="red", size=(1, 4))
        kept = scene.render()
        scene.background = "#00ff0080"
        got = pixels(scene)
        assert got[0, 0].tolist() == [255, 0, 0, 255]
        assert got[0, 1].tolist() == [0, 255, 0, 128]
        assert np.asarray(kept)[0, 1].tolist() == [0, 0, 0, 255]


def test_failing_animation_is_reported(engine_id):
    def fails():
        raise OSError("on purpose")

    with Scene(4, 4, fps=10) as scene:
        node = scene.add_overlay(color="red")
        scene.add_animation(node, "opacity", 1, 0.5, 0.1, on_end=fails)
        for _ in range(3):
            got = pixels(scene)
        assert "on purpose" in str(scene.errors["animation"])
        assert got[0, 0].tolist() == [128, 0, 0, 255]


def test_empty_picture_is_refused():
    with Scene(8, 8, device="reference") as scene:
        with pytest.raises(ShapeError, match="add_image: image must be a picture with pixels"):
            scene.add_image(np.zeros((0, 4, 3), np.uint8))
        assert len(scene.nodes) == 0
