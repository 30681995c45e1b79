"""Scenes: text, frames and time, errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ColorError, FreedError, ParameterError, ShapeError, UnknownParameter
from dala.media import Scene
from tests.media.scene.seen import PHOTO, assert_near, ground, over, pixels

# text ---------------------------------------------------------------------------------------------


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


# frames and time ----------------------------------------------------------------------------------


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


# errors -------------------------------------------------------------------------------------------


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
            (lambda: scene.add_effect("blur", "phto"), ParameterError, "'photo'"),
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
