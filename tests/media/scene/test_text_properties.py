"""The properties of text nodes agree with the fields of TextStyle.

Both are declared: text knows no scenes, and a field has no type to animate, unit or description.
"""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from dala.errors import ParameterError
from dala.media import Scene
from dala.media.scene.nodes.property_types import NumberType
from dala.media.scene.nodes.text import TextNode
from dala.media.text.style import TextStyle
from dala.notices import MediaNotice

#: What the scene decides: its blend space, and that letters are at quarter pixels.
OF_THE_SCENE = ("blend", "subpixel")
FIELDS = {f.name: f.default for f in fields(TextStyle) if f.name not in OF_THE_SCENE}


@pytest.mark.parametrize("name", FIELDS)
def test_same_defaults(name):
    declared = TextNode.PROPERTIES[name]
    assert declared.type.check("add_text", name, FIELDS[name]) == declared.default


@pytest.mark.parametrize(
    "name", [n for n in FIELDS if isinstance(TextNode.PROPERTIES[n].type, NumberType)]
)
def test_same_ranges(name):
    kind = TextNode.PROPERTIES[name].type
    for bound, outward in ((kind.low, -math.inf), (kind.high, math.inf)):
        TextStyle(**{name: bound})
        assert kind.check("add_text", name, bound) == bound
        outside = math.nextafter(bound, outward)
        with pytest.raises(ParameterError):
            TextStyle(**{name: outside})
        with pytest.raises(ParameterError):
            kind.check("add_text", name, outside)


def test_a_text_stays_where_its_position_names():
    with Scene(200, 100, device="cpu") as scene:
        label = scene.add_text("", size=18, position="bottom-right", margin=8)
        for text in ("7", "a longer text"):
            label.text = text
            x, y, width, height = label.box
            assert (x + width, y + height) == (192, 92)
        label.x = 10
        label.text = "moved"
        assert label.x == 10


def test_a_text_that_is_wider_than_its_scene_says_so():
    with Scene(100, 40, device="cpu") as scene:
        label = scene.add_text("a text without end", size=18)
        with pytest.warns(MediaNotice, match="is cut: it is .* wide, and has 100. Set width"):
            scene.render(0)
        label.width = 100
        scene.render(0)
        label.width = None
        scene.add_animation(label, "x", 100, -200, 2)
        scene.render(0)
