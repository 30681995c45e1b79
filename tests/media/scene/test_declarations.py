"""A node type is declared in one place: builder, checks, animation, files and schema follow."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dala.media.scene
from dala.errors import ParameterError, UnknownParameter
from dala.media import Scene
from dala.media.scene import load_scene, scene_to_dict
from dala.media.scene.builder_methods import BuilderMethods
from dala.media.scene.file.schema import schema
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.image import OverlayNode
from dala.media.scene.nodes.node import Content
from dala.media.scene.nodes.properties import Argument, PairProperty, Property
from dala.media.scene.nodes.registry import NODE_TYPES, signature_of
from tests.media.scene.json_schema import valid
from tests.support import scene_stub

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def meter():
    """A node type that no other module knows: a bar whose length shows a level."""

    class MeterNode(OverlayNode):
        """A bar that shows a level."""

        type = "meter"
        OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
            "steps": Argument(t.NumberType(1, 100), "Number of steps.", default=10.0),
        }
        __slots__ = ("steps",)

        level = Property(0.0, t.NumberType(0.0, 1.0), "Length of the bar.", unit="its width")

        def __init__(self, scene, parent, given):
            self.steps = given.pop("steps", 10.0)
            super().__init__(scene, parent, {"color": "white", **given})

        def saved_arguments(self):
            return {"steps": self.steps}

        def content(self):
            return Content(10 * self.level, 2, color=self.color, opaque=True)

    yield MeterNode
    del NODE_TYPES["meter"]
    delattr(BuilderMethods, "add_meter")
    assert not hasattr(Scene, "add_meter")


def test_new_node_type_is_known_everywhere(meter):
    with Scene(20, 4, device="cpu") as scene:
        # builder, of scenes and groups, with signature and docs
        node = scene.add_meter(level=0.5, id="m")
        assert isinstance(node, meter)
        assert scene.add_group().add_node("meter", visible=False).level == 0
        parameters = inspect.signature(scene.add_meter).parameters
        assert parameters["level"].default == 0.0
        assert parameters["level"].annotation == "float"
        assert parameters["steps"].default == 10.0
        assert "level: Length of the bar, in its width." in scene.add_meter.__doc__
        # checks
        with pytest.raises(ParameterError, match="m: level must be a number from 0 to 1, got 2"):
            node.level = 2
        with pytest.raises(UnknownParameter, match="Did you mean 'level'"):
            scene.add_meter(levle=1)
        # animation
        scene.add_animation(node, "level", 0.5, 1, duration=1)
        assert np.asarray(scene.render(0))[0, :, 0].tolist() == [255] * 5 + [0] * 15
        assert np.asarray(scene.render(1))[0, :, 0].tolist() == [255] * 10 + [0] * 10
        # files, both ways
        data = scene_to_dict(scene)
    assert data["nodes"][0] == {
        "type": "meter", "id": "m", "steps": 10, "level": 1, "color": "#ffffff",
    }  # fmt: skip
    with load_scene(data, "cpu") as again:
        assert again["m"].level == 1
        assert scene_to_dict(again) == data
    # schema, and the same checks when loading
    made = schema()
    assert made["$defs"]["meter"]["properties"]["level"] == {
        "description": "Length of the bar, in its width.",
        "type": "number", "minimum": 0.0, "maximum": 1.0,
    }  # fmt: skip
    assert valid(made, data)
    data["nodes"][0]["level"] = 3
    assert not valid(made, data)
    with pytest.raises(dala.errors.SceneFileError, match="level: must be a number from 0 to 1"):
        load_scene(data, "cpu")


def test_the_stub_is_current():
    """``python -m tests.support.scene_stub`` and ``ruff format`` write it."""
    assert scene_stub.names(scene_stub.PATH.read_text()) == scene_stub.names(scene_stub.stub())


def test_builder_methods_are_derived_from_the_declarations():
    for name, cls in NODE_TYPES.items():
        method = getattr(Scene, f"add_{name}")
        assert inspect.signature(method) == signature_of(cls)
        assert ">>> " in method.__doc__, f"{cls.__name__} has no example"
        for item in (*cls.PROPERTIES.values(), *cls.ARGUMENTS.values()):
            assert item.description.endswith(".")


def test_defaults_of_properties_are_valid():
    for cls in NODE_TYPES.values():
        for name, item in cls.PROPERTIES.items():
            if not isinstance(item, PairProperty):
                assert item.type.check("test", name, item.default) == item.default


def test_positional_arguments_are_checked():
    with Scene(2, 2, device="cpu") as scene:
        with pytest.raises(TypeError, match="missing required argument: 'text'"):
            scene.add_text()
        with pytest.raises(TypeError, match="at most 1 positional arguments, got 2"):
            scene.add_text("a", "b")
        with pytest.raises(TypeError, match="multiple values for argument 'text'"):
            scene.add_text("a", text="b")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_examples_are_valid(path):
    assert valid(schema(), json.loads(path.read_text()))


# names of the seed documents ----------------------------------------------------------------------
def test_module_functions():
    scene = dala.media.scene
    picture = np.full((4, 4, 3), 255, np.uint8)
    with scene.new(400, 300, device="cpu") as made:
        small = scene.add_video(made, stream=iter([picture]), fps=1, pip=True)
        assert small.box == (180.0, 20.0, 200.0, 150.0)
        scene.set_pip_transform(made, small.id, position=(0, 0), size=(8, 8))
        badge = scene.add_image(made, picture, position=(20, 20))
        frame = np.asarray(scene.render(made))
        assert frame[0, 0].tolist() == frame[21, 21].tolist() == [255, 255, 255, 255]
        assert badge.type == "image"


def test_add_node_with_a_type_of_its_own():
    with Scene(4, 4, device="cpu") as scene:
        effect = scene.add_node("effect", type="blur", radius=1)
        assert (effect.name, effect.radius) == ("blur", 1)
        assert scene.add_node(type="overlay", color="red").type == "overlay"


def test_images_by_the_key_of_a_texture():
    with Scene(4, 4, device="cpu") as scene:
        scene.textures.load("logo", np.full((4, 4, 3), 255, np.uint8))
        scene.add_image(image_id="logo")
        assert np.asarray(scene.render())[0, 0].tolist() == [255] * 4
        with pytest.raises(ParameterError, match="give image or image_id, not both"):
            scene.add_image("logo", image_id="logo")


def test_the_former_module_of_scene_files_still_works():
    with pytest.warns(DeprecationWarning, match="scene_file is deprecated, use dala.media.scene"):
        old = dala.media.scene_file
    assert old.load_scene is load_scene
    assert old.scene_to_dict is scene_to_dict


def test_former_functions_are_methods():
    module = dala.media.scene
    assert set(module.__all__) == {
        "Scene", "Timeline", "load_scene", "scene_to_dict",
        *("new", "add_video", "add_image", "set_pip_transform", "render"),
    }  # fmt: skip
    assert not set(module._METHODS) & {*module.__all__, *dir(module)}
    with module.new(4, 4, fps=25, device="reference") as scene:
        with pytest.warns(DeprecationWarning, match=r"use dala.media.scene.Scene.add_overlay\."):
            module.add_overlay(scene, "red")
        with pytest.warns(DeprecationWarning, match=r"scene.fps is deprecated"):
            assert module.fps(scene) == 25
        assert np.asarray(module.render(scene))[0, 0].tolist() == [255, 0, 0, 255]
        for name in module._METHODS:
            with pytest.warns(DeprecationWarning, match=f"scene.{name} is deprecated"):
                assert callable(getattr(module, name))
