"""Scenes: the tree, edits, key frames, hits, and files that stay as they were written."""

from __future__ import annotations

import itertools
import json
import pathlib
import socket
from fractions import Fraction

import numpy as np
import pytest

from dala.budget import Limits
from dala.errors import CommandTimeout, ParameterError
from dala.media import load_scene
from dala.studio.scenes.patch import patched
from dala.studio.scenes.source import SceneFile
from dala.studio.session import StudioSession
from dala.studio.sources.opening import open_file

VERSIONS = pathlib.Path(__file__).parents[2] / "support" / "versions"

#: Written by hand: what is not edited must stay, to the byte.
TEXT = """{
  "dala": 2, "width": 64, "height": 36,
  "fps": 10,   "duration": 2,
  "background": "#101010",

  "nodes": [
    {"type": "overlay", "id": "box", "color": "#ff0000",
     "position": [4, 6], "size": [10, 8]},
    {"type": "group", "id": "pair", "canvas": [20, 20], "position": [30, 10],
     "scale": 1.5, "nodes": [
       {"type": "overlay", "color": "lime", "size": [10, 10]},
       {"type": "overlay", "id": "blue", "color": "blue", "size": [4, 4], "position": [12, 12]}
    ]},
    {"type": "effect", "filter": "brightness", "params": { "value": 0.1 }},
    { "type": "overlay", "id": "a", "color": "white" },
    { "type": "overlay", "id": "b", "color": "gray" }
  ],
  "layouts": [ {"type": "side_by_side", "nodes": ["a", "b"], "area": [0, 30, 20, 6]} ],
  "animations": [
    {"node": "box", "property": "opacity", "from": 0.5, "to": 1, "duration": 1, "delay": 0.5},
    {"node": "blue", "property": "x", "from": 0, "to": 8, "duration": 1, "repeat": -1}
  ]
}
"""


@pytest.fixture
def scene(session, folder):
    path = folder / "scene.json"
    path.write_text(TEXT)
    session.do({"do": "open", "path": str(path)})
    return session


def nodes(session):
    """Return the nodes by name, inner ones too."""
    found = {}

    def walk(rows):
        for row in rows:
            found[row["name"]] = row
            walk(row["children"])

    walk(session.state()["scene"]["nodes"])
    return found


def text(session):
    return session.do({"do": "copy", "as": "scene"})["text"]


def picture(session, time=0):
    return np.asarray(session.active.source.at(time)).copy()


def lines_changed(session):
    old, new = TEXT.splitlines(), text(session).splitlines()
    return [line for line in new if line not in old], [line for line in old if line not in new]


def test_the_tree(scene):
    state = scene.state()["scene"]
    assert (state["width"], state["height"], state["fps"], state["duration"]) == (64, 36, 10.0, 2)
    assert [n["type"] for n in state["nodes"]] == [
        "overlay", "group", "effect", "overlay", "overlay",
    ]  # fmt: skip
    found = nodes(scene)
    assert [n["name"] for n in found["pair"]["children"]] == ["lime", "blue"]
    assert found["box"]["properties"]["position"] == [4, 6]
    assert found["box"]["animations"] == [
        {"property": "opacity", "keyframes": [[0.5, 0.5, "linear"], [1.5, 1, "linear"]],
         "editable": True}
    ]  # fmt: skip
    assert found["blue"]["animations"][0]["editable"] is False


def test_a_file_that_is_not_edited_stays(scene):
    assert text(scene) == TEXT
    assert scene.state()["tabs"][0]["dirty"] is False


def test_a_property_is_set_in_place_and_in_the_file(scene):
    box = nodes(scene)["box"]["id"]
    live = scene.active.source._scene
    scene.do({"do": "node_set", "node": box, "property": "color", "value": "#00ff00"})
    assert scene.active.source._scene is live  # no scene was made again
    assert picture(scene, 2)[8, 6].tolist() == [26, 255, 26, 255]  # and the brightness
    new, old = lines_changed(scene)
    assert new == ['    {"type": "overlay", "id": "box", "color": "#00ff00",']
    assert len(old) == 1
    assert scene.state()["tabs"][0]["dirty"] is True
    scene.do({"do": "undo"})
    assert text(scene) == TEXT
    assert picture(scene, 2)[8, 6].tolist() == [255, 26, 26, 255]
    scene.do({"do": "redo"})
    assert picture(scene, 2)[8, 6].tolist() == [26, 255, 26, 255]


def test_parameters_of_effects(scene):
    effect = nodes(scene)["brightness"]["id"]
    scene.do({"do": "node_set", "node": effect, "property": "params.value", "value": 0.5})
    assert lines_changed(scene)[0] == [
        '    {"type": "effect", "filter": "brightness", "params": { "value": 0.5 }},'
    ]
    assert picture(scene)[0, 30].tolist() == [144, 144, 144, 255]


def test_hits_and_boxes(scene):
    found = nodes(scene)
    picture(scene)

    def hit(x, y):
        return scene.do({"do": "hit", "x": x, "y": y})

    assert hit(5, 7)["node"] == found["box"]["id"]
    assert hit(5, 7)["box"] == [4, 6, 10, 8]
    assert hit(31, 11)["node"] == found["lime"]["id"]  # in a group of scale 1.5
    assert hit(31, 11)["box"] == [30, 10, 15, 15]
    assert hit(45.5, 28.5)["node"] is None
    assert hit(63, 1)["node"] is None
    assert scene.do({"do": "box", "node": found["brightness"]["id"]}).keys() == {"box", "corners"}


def test_rotated_boxes(scene):
    box = nodes(scene)["box"]["id"]
    scene.do({"do": "node_set", "node": box, "property": "anchor", "value": "center"})
    scene.do({"do": "node_set", "node": box, "property": "position", "value": [20, 15]})
    scene.do({"do": "node_set", "node": box, "property": "rotation", "value": 90})
    made = scene.do({"do": "box", "node": box})
    assert made["box"] == [16, 10, 8, 10]
    assert made["corners"] == [[24, 10], [24, 20], [16, 20], [16, 10]]
    assert scene.do({"do": "hit", "x": 20, "y": 18})["node"] == box
    assert scene.do({"do": "hit", "x": 15, "y": 15})["node"] is None


def test_dragging_is_in_pixels_of_the_picture(scene):
    lime = nodes(scene)["lime"]["id"]
    for distance in (1.5, 3, 6):
        message = {"do": "node_drag", "node": lime, "dx": distance, "dy": 0, "drag": 1}
        reply = scene.do(message)
    assert reply["position"] == [4, 0]  # the group is 1.5 times as large
    assert lines_changed(scene)[0] == [
        '       {"type": "overlay", "color": "lime", "size": [10, 10], "position": [4, 0]},'
    ]
    scene.do({"do": "undo"})
    assert text(scene) == TEXT
    assert scene.state()["undo"] is False


def test_nodes_leave_their_layout_when_they_are_moved(scene):
    before = picture(scene)
    a = nodes(scene)["a"]["id"]
    scene.do({"do": "node_set", "node": a, "property": "position", "value": [1, 30]})
    after = json.loads(text(scene))
    assert "layouts" not in after
    by_id = {n.get("id"): n for n in after["nodes"]}
    assert by_id["a"]["position"] == [1, 30]
    assert by_id["a"]["size"] == [10, 6]
    assert by_id["b"]["position"] == [10, 30]
    made = picture(scene)
    np.testing.assert_array_equal(made[30:36, 12:20], before[30:36, 12:20])
    assert not np.array_equal(made[30:36, :2], before[30:36, :2])


def test_nodes_are_added_moved_and_removed(scene):
    group = nodes(scene)["pair"]["id"]
    made = scene.do({
        "do": "node_add", "type": "text", "parent": group, "at": 0,
        "properties": {"text": "Hi", "size": 12},
    })["node"]  # fmt: skip
    assert [n["type"] for n in nodes(scene)["pair"]["children"]] == ["text", "overlay", "overlay"]
    scene.do({"do": "node_move", "node": made, "parent": None, "to": 1})
    assert [n["id"] for n in scene.state()["scene"]["nodes"]][1] == made
    scene.do({"do": "node_remove", "node": nodes(scene)["box"]["id"]})
    data = json.loads(text(scene))
    assert [a["node"] for a in data["animations"]] == ["blue"]
    handles = [n["id"] for n in scene.state()["scene"]["nodes"]]
    scene.do({"do": "undo"})
    scene.do({"do": "undo"})
    scene.do({"do": "redo"})
    scene.do({"do": "redo"})
    assert [n["id"] for n in scene.state()["scene"]["nodes"]] == handles


def test_a_node_that_is_moved_keeps_its_text(scene):
    scene.do({"do": "node_move", "node": nodes(scene)["box"]["id"], "parent": None, "to": 2})
    new, old = lines_changed(scene)
    assert new == old == []


def test_key_frames(scene):
    box = nodes(scene)["box"]["id"]
    scene.do({"do": "key_set", "node": box, "property": "opacity", "time": 1, "value": 0})
    scene.do({
        "do": "key_set", "node": box, "property": "x", "time": 0, "value": 4, "drag": 1,
    })  # fmt: skip
    scene.do({
        "do": "key_set", "node": box, "property": "x", "time": 1, "value": 24, "easing": "ease-out",
    })  # fmt: skip
    rows = json.loads(text(scene))["animations"]
    assert rows[0] == {
        "node": "box", "property": "opacity", "delay": 0.5,
        "keyframes": [[0, 0.5], [0.5, 0], [1, 1]],
    }  # fmt: skip
    assert rows[2] == {"node": "box", "property": "x", "keyframes": [[0, 4], [1, 24, "ease-out"]]}
    with load_scene(json.loads(text(scene)), "cpu") as made:
        made.render(1)
        assert made["box"].opacity == 0
        assert made["box"].x == 24
    scene.do({"do": "key_remove", "node": box, "property": "x", "time": 0})
    scene.do({"do": "key_remove", "node": box, "property": "x", "time": 1})
    assert len(json.loads(text(scene))["animations"]) == 2
    with pytest.raises(ParameterError, match="that of a key frame"):
        scene.do({"do": "key_remove", "node": box, "property": "opacity", "time": 0.77})
    with pytest.raises(ParameterError, match="repeats"):
        blue = nodes(scene)["blue"]["id"]
        scene.do({"do": "key_set", "node": blue, "property": "x", "time": 0, "value": 1})


def test_a_node_without_an_id_gets_one_for_its_animation(scene):
    lime = nodes(scene)["lime"]["id"]
    scene.do({"do": "key_set", "node": lime, "property": "opacity", "time": 0, "value": 0.5})
    data = json.loads(text(scene))
    assert data["nodes"][1]["nodes"][0]["id"] == "overlay-1"
    assert data["animations"][-1]["node"] == "overlay-1"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"do": "node_set", "node": "n1", "property": "opacity", "value": 7}, "from 0 to 1"),
        ({"do": "node_set", "node": "n1", "property": "nope", "value": 7}, "no such key"),
        ({"do": "node_set", "node": "n1", "property": "type", "value": "text"}, "a property of"),
        ({"do": "node_set", "node": "n99", "property": "x", "value": 7}, "handle of a node"),
        ({"do": "node_set", "node": "n1", "property": "id", "value": "pair"}, "already the id"),
        ({"do": "node_add", "type": "circle"}, "one of audio"),
        ({"do": "node_add", "type": "image", "properties": {"source": "/etc/passwd"}}, "allowed"),
        ({"do": "node_add", "type": "image", "properties": {"source": "../x.png"}}, "allowed"),
        ({"do": "node_add", "type": "video", "properties": {"source": "http://a/b.mp4"}}, "a file"),
        ({"do": "node_add", "type": "text", "properties": {"text": 3}}, "text"),
        ({"do": "node_move", "node": "n2", "parent": "n3", "to": 0}, "outside of the node"),
        ({"do": "node_move", "node": "n1", "parent": "n5", "to": 0}, "a group"),
        ({"do": "key_set", "node": "n1", "property": "text", "time": 0, "value": 1}, "property"),
        ({"do": "key_set", "node": "n1", "property": "x", "time": 0}, "value"),
    ],
)
def test_refused_edits_change_nothing(scene, message, error):
    before = scene.state()
    with pytest.raises(ParameterError, match=error):
        scene.do(message)
    assert scene.state() == before
    assert text(scene) == TEXT


def test_saving(scene, folder):
    box = nodes(scene)["box"]["id"]
    scene.do({"do": "node_set", "node": box, "property": "x", "value": 9})
    scene.do({"do": "scene_save"})
    saved = (folder / "scene.json").read_text()
    assert '"x": 9' in saved
    assert scene.state()["tabs"][0]["dirty"] is False
    scene.do({
        "do": "node_add", "type": "image", "properties": {"source": "quarters.png"},
    })  # fmt: skip
    (folder / "inner").mkdir(exist_ok=True)
    scene.do({"do": "scene_save", "path": str(folder / "inner" / "copy.json")})
    data = json.loads((folder / "inner" / "copy.json").read_text())
    assert data["nodes"][-1] == {"type": "image", "source": "../quarters.png"}
    with load_scene(folder / "inner" / "copy.json", "cpu") as made:
        np.testing.assert_array_equal(np.asarray(made.render(0)), picture(scene))
    assert (folder / "scene.json").read_text() == saved


def test_an_uploaded_scene_cannot_reach_other_files(server, folder, tmp_path):
    from tests.studio.server.client import Refused

    (tmp_path / "secret.png").write_bytes((folder / "quarters.png").read_bytes())
    data = {"dala": 2, "width": 8, "height": 8, "nodes": [
        {"type": "image", "source": str(tmp_path / "secret.png")}]}  # fmt: skip
    status, _, body = server.post("/upload?name=s.json", json.dumps(data).encode())
    assert status == 200
    with server.page() as page, pytest.raises(Refused, match="allowed folder"):
        page.ask("open", path=json.loads(body)["path"])


@pytest.mark.parametrize("kind", ["video", "audio", "image", "overlay", "subtitles"])
def test_pages_open_no_addresses_whatever_their_end(scene, kind):
    schemes, ends = ("http", "TCP", "unix", "concat"), ("", "\n", "\r", "\0", "\u2028", "\u200b")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        for scheme, end in itertools.product(schemes, ends):
            given = {"source": f"{scheme}://{host}/x.mp4{end}"}
            with pytest.raises(ParameterError, match="must be a file"):
                scene.do({"do": "node_add", "type": kind, "properties": given})
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize("kind", ["video", "audio", "image", "overlay"])
@pytest.mark.parametrize(
    "name", ["quarters.png\n", "../secret.png\n", "a\n.mp4", "tcp:127.0.0.1:9\n", "\n"]
)
def test_only_subtitles_are_text(scene, kind, name):
    with pytest.raises(ParameterError, match="control character"):
        scene.do({"do": "node_add", "type": kind, "properties": {"source": name}})
    cues = "1\n00:00:00,000 --> 00:00:01,000\nHello\n"
    scene.do({"do": "node_add", "type": "subtitles", "properties": {"source": cues}})


def test_a_scene_of_the_user_may_name_files_outside(tmp_path, folder):
    from dala import studio as studios

    (tmp_path / "scenes").mkdir()
    (tmp_path / "p.png").write_bytes((folder / "quarters.png").read_bytes())
    data = {"dala": 2, "width": 8, "height": 8, "nodes": [{"type": "image", "source": "../p.png"}]}
    (tmp_path / "scenes" / "s.json").write_text(json.dumps(data))
    with studios.app(tmp_path / "scenes" / "s.json", device="cpu") as made:
        assert made.session.state()["scene"]["width"] == 8
        with pytest.raises(ParameterError, match="allowed folder"):
            made.session.do({"do": "open", "path": str(tmp_path / "other.png")})


# patches ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "text", "expected"),
    [
        ({"a": 1}, {"a": 1}, ' { "a" :1 }\n', ' { "a" :1 }\n'),
        ({"a": 1}, {"a": True}, '{"a": 1}', '{"a": true}'),
        ({"a": 1, "b": 2}, {"b": 2}, '{"a": 1,  "b": 2}', '{"b": 2}'),
        ({"a": 1}, {"a": 1, "c": [1]}, '{ "a": 1 }', '{ "a": 1, "c": [1] }'),
        ({"a": []}, {"a": [1]}, '{"a": [ ]}', '{"a": [1]}'),
        ([1, 2, 3], [1, 3], "[ 1,2, 3 ]", "[ 1,3 ]"),
        ([[1], [2]], [[2], [1]], "[[1 ],[ 2]]", "[[ 2],[1 ]]"),
        ({"é": "\u2028"}, {"é": "x"}, '{"é": "\\u2028"}', '{"é": "x"}'),
    ],
)
def test_patches(old, new, text, expected):
    assert patched(text, old, new) == expected


def test_patches_of_any_document():
    from hypothesis import given, settings
    from hypothesis import strategies as st

    values = st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=12,
    )  # fmt: skip

    @settings(max_examples=40)
    @given(values, values, st.sampled_from([None, 1, 4]))
    def check(old, new, indent):
        made = patched(json.dumps(old, indent=indent), old, new)
        assert json.loads(made) == new

    check()


def test_a_file_of_version_1_is_opened_as_version_2(session, folder):
    """Its sizes of filters were [height, width]; it is not changed before it is saved."""
    text = (VERSIONS / "scene-1.json").read_text()
    (folder / "old.json").write_text(text)
    session.do({"do": "open", "path": str(folder / "old.json")})
    source = session.active.source
    assert not source.dirty
    made = source.text()
    assert json.loads(made)["nodes"][1]["params"]["size"] == [30, 10]
    changed = [a for a, b in zip(made.split("\n"), text.split("\n"), strict=True) if a != b]
    assert len(changed) == 5  # the version, three sizes and an animation
    assert (folder / "old.json").read_text() == text


def test_a_scene_has_its_time(tmp_path):
    """Drawings, texts and effects of a page may take long; nothing waits for them for ever."""
    (tmp_path / "scene.json").write_text(TEXT)
    with StudioSession([tmp_path], device="cpu") as session:
        source = open_file(
            session, session.folders.open(str(tmp_path / "scene.json"), "open")
        ).source
        assert isinstance(source, SceneFile)
        assert source._bounds.time == session.limits.chain_time == 30
        source._bounds = Limits(time=1e-9)
        with pytest.raises(CommandTimeout):
            source.at(Fraction(1))
        with pytest.raises(CommandTimeout):
            source.made("cpu")
