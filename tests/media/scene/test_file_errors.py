"""Scene files: errors and the schema."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala.media
from dala.errors import ColorError, DalaError, FileMissing, FolderGiven, SceneFileError
from dala.gpu.color import color_to_rgba
from dala.media.scene.animation.animation import Animation
from dala.media.scene.file.load import load_scene, scene_to_dict
from dala.media.scene.file.schema import node_object, scene_object
from tests.media.scene import scene_files
from tests.media.scene.described import SCHEMA, SLOW, pixels, scene
from tests.media.scene.json_schema import valid


def problems(data, folder="."):
    with pytest.raises(SceneFileError) as reported:
        load_scene(data, "cpu", base=folder)
    return reported.value.problems


# errors -------------------------------------------------------------------------------------------


def color_error(text):
    with pytest.raises(ColorError) as error:
        color_to_rgba(text)
    return str(error.value).partition(": color ")[2]


TEXT = {"type": "text", "text": "a"}


BOX = {"type": "overlay", "id": "box", "color": "red"}


@pytest.mark.parametrize(("data", "reported"), [
    ([], "the file: must be a scene, got []."),
    (scene(TEXT | {"position": [1, "left"]}),
     "nodes[0].position[1]: must be a number, got 'left'."),
    (scene(TEXT | {"position": "lft"}), "nodes[0].position: must be one of 'top-left'"),
    (scene({"type": "scene"}), "nodes[0].scene: missing; must be a scene."),
    (scene({"type": "scene", "scene": scene(TEXT, TEXT | {"opacity": 2})}),
     "nodes[0].scene.nodes[1].opacity: must be a number from 0 to 1, got 2."),
    (scene(BOX, {"type": "scene", "scene": scene(BOX, BOX)}),
     "nodes[1].scene.nodes[1].id: 'box' is already the id of nodes[1].scene.nodes[0]."),
    (scene(BOX, {"type": "scene", "scene": scene(animations=[
        {"node": "box", "property": "x", "from": 0, "to": 1, "duration": 1}])}),
     "nodes[1].scene.animations[0].node: there is no node with the id 'box'."),
    (scene({"type": "scene", "scene": scene({"type": "image", "source": "none.png"})}),
     "nodes[0].scene.nodes[0].source: the file 'none.png' does not exist"),
    (scene({"type": "scene", "scene": scene({"type": "overlay"})}), "nodes[0].scene.nodes[0]: "),
    (scene(TEXT | {"position": [1]}), "nodes[0].position: must be [x, y], got [1]."),
    (scene(TEXT | {"position": True}),
     "nodes[0].position: must be [x, y] or one of 'top-left', "),
    (scene(TEXT | {"opacity": 2}), "nodes[0].opacity: must be a number from 0 to 1, got 2."),
    (scene(TEXT | {"opacty": 1}),
     "nodes[0].opacty: a node of type 'text' has no such key. Did you mean 'opacity'?"),
    (scene(TEXT | {"color": "rde"}), "nodes[0].color: " + color_error("rde")),
    (scene(TEXT | {"color": 7}), "nodes[0].color: must be a color, got 7."),
    (scene({"type": "text"}), "nodes[0].text: missing; must be a string."),
    (scene({"type": "txt"}), "nodes[0].type: must be one of 'animation', 'audio', 'effect'"),
    (scene({}), "nodes[0].type: must be one of"),
    (scene(7), "nodes[0]: must be an object with a type, got 7."),
    (scene({"type": "group", "nodes": [TEXT, TEXT | {"size": 0}]}),
     "nodes[0].nodes[1].size: must be a number from 1 to 1000, got 0."),
    (scene(BOX, BOX), "nodes[1].id: 'box' is already the id of nodes[0]."),
    (scene(BOX, {"type": "effect", "filter": "blurr"}),
     "nodes[1].filter: there is no filter 'blurr'. Did you mean 'blur'"),
    (scene({"type": "effect", "filter": "blur", "params": {"radus": 1}}),
     "nodes[0].params.radus: the parameters of 'blur' has no such key. Did you mean 'rad"),
    (scene({"type": "effect", "filter": "blur", "radius": 1}),
     "nodes[0].radius: it is a parameter of 'blur'. Move it to params."),
    (scene({"type": "effect", "filter": "blur", "params": {"radius": -1}}),
     "nodes[0].params.radius: must be a number from 0 to 200, got -1."),
    (scene(BOX, {"type": "effect", "filter": "blur", "input": "bx"}),
     "nodes[1].input: there is no node with the id 'bx'. Did you mean 'box'?"),
    (scene({"type": "image", "source": "no.png"}),
     "nodes[0].source: the file 'no.png' does not exist (in '"),
    (scene({"type": "overlay"}), "nodes[0]: an image or a color is required"),
    (scene(TEXT | {"font": "no.ttf"}), "nodes[0].font: the file 'no.ttf' does not exist"),
    (scene(TEXT | {"font": "Nobodys Sans"}), "nodes[0].font: there is no family 'Nobodys Sans'"),
    (scene(TEXT | {"font": ["serif", "no.ttf"]}),
     "nodes[0].font[1]: the file 'no.ttf' does not exist"),
    (scene(BOX, animations=[{"node": "box", "property": "x", "to": 1, "duration": 1,
                             "easing": "eas-in"}]),
     "animations[0].easing: there is no easing 'eas-in'. Did you mean 'ease-in'"),
    (scene(BOX, animations=[{"node": "box", "property": "oppacity", "to": 1, "duration": 1}]),
     "animations[0]: a node of type 'overlay' has no property 'oppacity'. Did you mean 'opacity'?"),
    (scene(BOX, animations=[{"node": "box", "property": "x"}]),
     "animations[0]: duration is missing"),
    (scene(BOX, {"type": "animation", "node": "bax", "property": "x"}),
     "nodes[1].node: there is no node with the id 'bax'. Did you mean 'box'?"),
    (scene(BOX, animations=[{"node": "box", "property": "x", "keyframes": [[0, 1], [1]]}]),
     "animations[0].keyframes[1]: must be [seconds, value] or [seconds, value, easing], got [1]."),
    (scene(BOX, layouts=[{"type": "stack", "nodes": ["bix"]}]),
     "layouts[0].nodes[0]: there is no node with the id 'bix'. Did you mean 'box'?"),
    (scene(BOX, layouts=[{"type": "stack", "nodes": 2}]),
     "layouts[0].nodes: must be a list of ids, got 2."),
    (scene(BOX, layouts=[{"type": "stack", "nodes": ["box"], "columns": 2}]),
     "layouts[0].columns: only a grid has columns."),
    (scene(BOX, layouts=[{"type": "grid", "nodes": 4, "gap": 20}]),
     "layouts[0]: 2 x 2 boxes with gaps of 20 do not fit"),
    (scene() | {"dala": 3}, "dala: this is version 3 of the format, and 2 is the newest"),
    (scene() | {"width": 0.5}, "width: must be an integer from 1 to 16384, got 0.5."),
    (scene() | {"fps": "fast"}, "fps: fps must be a number above 0"),
    (scene(TEXT | {"font": "x" * 200, "size": "x" * 200}),
     "nodes[0].size: must be a number from 1 to 1000, got '" + "x" * 59 + "..."),
])  # fmt: skip
def test_errors_name_the_location(data, reported):
    if isinstance(data, dict):
        found = problems(data)
    else:
        lines: list[str] = []
        scene_object().check(data, "", lines)
        found = lines
    assert any(line.startswith(reported) for line in found), found


def test_all_mistakes_are_reported_at_once():
    data = scene(*[TEXT | {"opacity": n} for n in range(2, 14)], {"type": "image", "source": "no"})
    with pytest.raises(SceneFileError) as reported:
        load_scene(data, "cpu")
    assert len(reported.value.problems) == 12  # files are looked for when the rest is right
    lines = str(reported.value).splitlines()
    assert len(lines) == 11
    assert lines[0] == "scene: nodes[0].opacity: must be a number from 0 to 1, got 2."
    assert lines[10] == "scene: and 2 more."
    again = pickle.loads(pickle.dumps(reported.value))
    assert again.problems == reported.value.problems
    assert isinstance(again, DalaError)
    two = problems(scene({"type": "image", "source": "no.png"}, {"type": "overlay"}))
    assert len(two) == 2


def test_deeply_nested_groups():
    node = TEXT
    for _ in range(2000):
        node = {"type": "group", "nodes": [node]}
    with pytest.raises(SceneFileError, match="nested too deep"):
        load_scene({**scene(), "nodes": [node]}, "cpu")


@pytest.mark.parametrize(("text", "reported"), [
    ('{"dala": 2,\n  "width" 3}', "bad.json: line 2, column 11: expecting ':' delimiter."),
    ("", "bad.json: line 1, column 1: expecting value."),
    ('{"dala": NaN}', "bad.json: NaN is not a number in JSON."),
    ('{"a":' * 100_000, "bad.json: lists and objects are nested too deep."),
    ('{"dala": 2, "width": 2, "width": 3, "height": 2, "nodes": []}',
     "bad.json: width: the key occurs twice. Remove one."),
    (b"\xff\xfe", "bad.json: the file is not UTF-8 (byte 0)."),
])  # fmt: skip
def test_invalid_json(tmp_path, text, reported):
    path = tmp_path / "bad.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SceneFileError) as found:
        load_scene(path)
    assert str(found.value) == reported


def test_missing_file(tmp_path):
    with pytest.raises(FileMissing, match="there is no file"):
        load_scene(tmp_path / "no.json")
    with pytest.raises(FolderGiven, match="is a folder"):
        load_scene(tmp_path)


def scenes_open():
    return dala.diagnostics()["objects"].get("scene", {"count": 0})["count"]


def test_refused_file_leaves_nothing_open(folder):
    before = scenes_open()
    with load_scene(scene(BOX), "cpu"):
        assert scenes_open() == before + 1
    problems(scene({"type": "image", "source": "stamp.png"}, {"type": "overlay"}), folder)
    inside = {"type": "scene", "scene": scene(BOX)}
    problems(scene(inside, {"type": "overlay"}), folder)
    assert scenes_open() == before
    with load_scene(scene(inside), "cpu") as made:
        assert scenes_open() == before + 2
        assert scene_to_dict(made) == scene(inside)
        made.remove_node(made.nodes["scene-1"])
        assert scenes_open() == before + 1
    assert scenes_open() == before


# schema -------------------------------------------------------------------------------------------


def test_the_example(tmp_path):
    path = Path(__file__).parents[3] / "examples" / "scene.json"
    data = json.loads(path.read_text())
    assert valid(SCHEMA, data)
    with load_scene(path, "cpu") as made:
        assert scene_to_dict(made) == data
        made.save(tmp_path / "moved.json")
        with load_scene(tmp_path / "moved.json", "cpu") as again:
            assert (pixels(made, 3.2) == pixels(again, 3.2)).all()


def test_animation_keys_are_the_arguments_of_animations():
    arguments = set(Animation.__init__.__annotations__) - {"return", "on_end"}
    keys = {
        {"from": "from_", "level": "by"}.get(name, name) for name in node_object("animation").fields
    }
    assert arguments == keys - {"type"}


def places(value, at=()):
    """Yield all locations in a file, as tuples of keys."""
    yield at
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in inside:
            yield from places(item, (*at, key))


@SLOW
@given(data=scene_files.files(), random=st.randoms(use_true_random=False))
def test_schema_agrees_with_the_checks(data, random):
    """Introduce one mistake; the checks and the schema must agree."""
    # Parameters may be anything where a filter says nothing of them.
    spots = [at for at in places(data) if at and "params" not in at]
    *way, last = random.choice(spots)
    home = data
    for key in way:
        home = home[key]
    what = random.choice(["object", "unknown", "remove", "number"])
    if what == "object":
        home[last] = {"no": "such"}
    elif what == "number":
        home[last] = -2_000_000
    elif what == "unknown" and isinstance(home, dict):
        home["unheard-of"] = 1
    elif isinstance(home, dict) and last in ("type", "dala", "width", "nodes", "text", "filter"):
        del home[last]
    reported = []
    scene_object().check(data, "", reported)
    assert valid(SCHEMA, data) == (not reported)


JUNK = (
    None, True, -1, 0, 1e308, 5e-324, 2**70, "", "x", "#12", "\n", "top-left", [], [1], [1, 2],
    [1, 2, 3, 4], {}, {"a": 1}, [[1, 2]], "red", -0.5, 1e6, "../..", "a\0b",
)  # fmt: skip


@SLOW
@given(data=scene_files.files(), random=st.randoms(use_true_random=False))
def test_random_data_is_refused(folder, data, random):
    data = copy.deepcopy(data)  # strategies share their lists
    for _ in range(random.choice([1, 1, 2])):
        *way, last = random.choice([at for at in places(data) if at])
        home = data
        for key in way:
            home = home[key]
        home[last] = copy.deepcopy(random.choice(JUNK))
    reported = ["nodes: none"]
    try:
        load_scene(data, "cpu", base=folder).close()
    except SceneFileError as error:
        reported = error.problems
    assert reported
    assert all(": " in line for line in reported)
