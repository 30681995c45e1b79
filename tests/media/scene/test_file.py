"""Scene files: round trips, errors with locations, agreement with the schema."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import dala.media
from dala.errors import ColorError, DalaError, SceneFileError
from dala.gpu.color import color_to_rgba
from dala.media import Scene
from dala.media.scene.animation.animation import Animation
from dala.media.scene.file.load import files_of, load_scene, named_files, scene_to_dict, schema
from dala.media.scene.file.record import forget
from dala.media.scene.file.schema import node_object, scene_object
from dala.media.text.fonts import faces as fonts
from tests.media.scene import scene_files
from tests.media.scene.json_schema import valid

SCHEMA = schema()
RNG = np.random.default_rng(5)
PHOTO = RNG.integers(0, 256, (12, 18, 3), np.uint8)
STAMP = RNG.integers(0, 256, (6, 8, 4), np.uint8)
SLOW = settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the pictures and subtitles that scene files name."""
    base = tmp_path_factory.mktemp("scene").resolve()
    (base / "deep").mkdir()
    Image.fromarray(PHOTO).save(base / "deep" / "photo.png")
    Image.fromarray(STAMP).save(base / "stamp.png")
    (base / "words.srt").write_text(scene_files.CUES)
    return base


def scene(*nodes, **more):
    return {"dala": 1, "width": 24, "height": 16, "nodes": list(nodes), **more}


def problems(data, folder="."):
    with pytest.raises(SceneFileError) as reported:
        load_scene(data, "cpu", base=folder)
    return reported.value.problems


def pixels(made, time=0.0):
    return np.array(made.render(time))


# loading and saving ----------------------------------------------------------------------------
@SLOW
@given(data=scene_files.files())
def test_loaded_file_is_saved_unchanged(folder, data):
    before = copy.deepcopy(data)
    with load_scene(data, "cpu", base=folder) as made:
        assert scene_to_dict(made) == before
        made.render(0.0)
        made.render(0.7)  # what animations do is no change
        assert scene_to_dict(made) == before
    assert data == before
    assert valid(SCHEMA, data)


@settings(SLOW, max_examples=25)
@given(data=scene_files.files())
def test_saved_scene_looks_the_same(folder, data):
    """Without the record of its file, a scene is saved as if made by calls."""
    with load_scene(data, "cpu", base=folder) as made:
        forget(made)
        plain = scene_to_dict(made, base=folder)
        assert valid(SCHEMA, plain)
        with load_scene(plain, "cpu", base=folder) as again:
            assert scene_to_dict(again) == plain
            for time in (0.0, 0.4):
                assert (pixels(again, time) == pixels(made, time)).all()


def test_file_looks_like_the_same_calls(folder, engine_id):
    data = scene(
        {"type": "image", "id": "bg", "source": "deep/photo.png", "size": [24, 16], "fit": "cover"},
        {"type": "image", "source": "stamp.png", "pip": True, "pip_size": [8, 6], "margin": 1},
        {"type": "group", "id": "g", "opacity": 0.5, "canvas": [12, 8], "nodes": [
            {"type": "overlay", "color": "gold", "shape": "circle", "rotation": 20},
        ]},
        {"type": "text", "id": "t", "text": "dala", "size": 7, "position": "bottom",
         "color": "red"},
        {"type": "effect", "filter": "blur", "input": "bg", "params": {"radius": 1}},
        background="teal", blend_space="linear",
        animations=[{"node": "g", "property": "x", "from": 0, "to": 10, "duration": 1}],
    )  # fmt: skip
    with load_scene(data, base=folder) as read, Scene(
        24, 16, background="teal", blend_space="linear"
    ) as made:  # fmt: skip
        background = made.add_image(folder / "deep/photo.png", size=(24, 16), fit="cover")
        made.add_image(folder / "stamp.png", pip=True, pip_size=(8, 6), margin=1)
        group = made.add_group(canvas=(12, 8), opacity=0.5)
        group.add_overlay(color="gold", shape="circle", rotation=20)
        made.add_text("dala", size=7, position="bottom", color="red")
        made.add_effect("blur", background, radius=1)
        made.add_animation(group, "x", 0, 10, 1)
        for time in (0.0, 0.5):
            assert (pixels(read, time) == pixels(made, time)).all()
        assert len(np.unique(pixels(read, 0.5).reshape(-1, 4), axis=0)) > 50


def test_save_and_load(folder, tmp_path):
    with Scene(24, 16, fps="30000/1001", background="#11223344", device="cpu") as made:
        made.duration = 3
        photo = made.add_image(folder / "deep/photo.png", id="photo", anchor="center")
        made.add_overlay(color=(255, 0, 0), size=(4, 5), position=(1, 2.5), shadow=(1, 2, 3))
        made.add_animation(photo, "rotation", 0, 90, 2, ("steps", 4), delay=0.5, repeat=-1)
        made.add_animation(photo, "position", keyframes=[(0, (0, 0)), (1, (5, 5), "ease")])
        made.save(tmp_path / "made.json")
        with load_scene(tmp_path / "made.json", "cpu") as again:
            assert again.duration == 3
            for time in (0.0, 1.2):
                assert (pixels(again, time) == pixels(made, time)).all()
    saved = json.loads((tmp_path / "made.json").read_text())
    assert saved["nodes"][0]["source"] == Path(
        os.path.relpath(folder / "deep" / "photo.png", tmp_path.resolve())
    ).as_posix()  # fmt: skip
    assert saved == {
        "dala": 1, "width": 24, "height": 16, "fps": "30000/1001", "background": "#11223344",
        "duration": 3,
        "nodes": [
            {"type": "image", "id": "photo", "source": saved["nodes"][0]["source"],
             "anchor": "center"},
            {"type": "overlay", "color": "#ff0000", "position": [1, 2.5], "size": [4, 5],
             "shadow": [1, 2, 3, "#00000080"]},
        ],
        "animations": [
            {"node": "photo", "property": "rotation", "from": 0, "to": 90, "duration": 2,
             "easing": ["steps", 4], "delay": 0.5, "repeat": -1},
            {"node": "photo", "property": "position",
             "keyframes": [[0, [0, 0]], [1, [5, 5], "ease"]]},
        ],
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["made.json"]


def test_a_scene_inside_a_scene(folder, tmp_path):
    (tmp_path / "away").mkdir()
    with Scene(8, 6, background="#00000000", fps=12, device="cpu") as inner:
        inner.add_image(folder / "stamp.png", id="a", opacity=0.5)
        spot = inner.add_overlay("red", shape="circle", size=(3, 3))
        inner.add_animation(spot, "x", 0, 5, 1)
        inner.save(tmp_path / "away" / "inner.json")
        with load_scene(tmp_path / "away" / "inner.json", "cpu") as child, Scene(
            24, 16, background="navy", device="cpu"
        ) as made:  # fmt: skip
            node = made.add_scene(child, id="a", position=(4, 3), rotation=10)  # an id of its own
            made.add_group(inner, size=(12, 9))
            made.add_animation(node, "opacity", 0, 1, 1)
            made.save(tmp_path / "made.json")
            with load_scene(tmp_path / "made.json", "cpu") as again:
                for time in (0.0, 0.4, 2.0):
                    assert (pixels(again, time) == pixels(made, time)).all()
                assert files_of(again) == [folder / "stamp.png"]
                inside = again["a"].child
                again["a"].child["a"].opacity = 0.25
                saved = scene_to_dict(again)
            assert inside._closed
        assert not inner._closed
    assert saved["nodes"][0] == {
        "type": "scene", "id": "a", "position": [4, 3], "rotation": 10, "scene": {
            "width": 8, "height": 6, "fps": 12, "background": "#00000000",
            "nodes": [
                {"type": "image", "id": "a", "opacity": 0.25,
                 "source": os.path.relpath(folder / "stamp.png", tmp_path.resolve())},
                {"type": "overlay", "id": "overlay-2", "color": "#ff0000", "shape": "circle",
                 "size": [3, 3]},
            ],
            "animations": [
                {"node": "overlay-2", "property": "x", "from": 0, "to": 5, "duration": 1},
            ],
        },
    }  # fmt: skip
    assert saved["nodes"][1]["type"] == "scene"


def test_only_changes_are_rewritten(folder):
    data = scene(
        {"type": "image", "id": "a", "source": "stamp.png", "position": "bottom-right"},
        {"type": "image", "id": "b", "source": "stamp.png", "position": "top-right", "margin": 1},
        {"type": "overlay", "id": "c", "color": "red", "border": [1, "blue"]},
        {"type": "effect", "id": "e", "filter": "blur", "input": "a", "params": {"radius": 1}},
        layouts=[{"type": "stack", "nodes": ["c"]}],
    )
    with load_scene(data, "cpu", base=folder) as made:
        made["b"].x = 3
        made["c"].border_color = "lime"
        made["c"].height = 4
        made["e"].set("radius", 2)
        made["a"].show(folder / "deep" / "photo.png")
        made.background = "white"
        now = scene_to_dict(made)
    a, b, c, e = now["nodes"]
    assert a == data["nodes"][0] | {"source": "deep/photo.png"}
    assert b == {"type": "image", "id": "b", "source": "stamp.png", "position": [3, 1]}
    assert c == {
        "type": "overlay", "id": "c", "color": "red", "border_width": 1, "border_color": "#00ff00",
        "size": [24, 4],
    }  # fmt: skip
    assert e == data["nodes"][3] | {"params": {"radius": 2}}
    assert now["background"] == "#ffffff"
    assert now["layouts"] == []
    with load_scene(now, "cpu", base=folder) as again:
        assert scene_to_dict(again) == now


def test_effect_may_precede_its_node(folder):
    data = scene(
        {"type": "effect", "filter": "invert", "input": "late"},
        {"type": "overlay", "id": "late", "color": "black"},
    )
    with load_scene(data, "cpu") as made:
        assert (pixels(made) == 255).all()


def test_generated_ids_avoid_those_of_the_file():
    data = scene(
        {"type": "overlay", "color": "red"}, {"type": "overlay", "id": "overlay-1", "color": "red"}
    )
    with load_scene(data, "cpu") as made:
        assert len(made.nodes) == 2
        assert made["overlay-1"].serial > made["overlay-2"].serial
        assert scene_to_dict(made) == data


def holding(picture):
    made = Scene(2, 2, device="cpu")
    made.add_image(picture, id="i")
    return made


@pytest.mark.parametrize(("add", "words"), [
    (lambda s: s.add_image(PHOTO, id="p"),
     "node 'p': its source is an array, which no file can name"),
    (lambda s: s.add_video(iter([PHOTO]), id="v"),
     "node 'v': its source is a list_iterator, which no file can name"),
    (lambda s: s.add_animation(s.add_overlay("red", id="o"), "x", 0, 1, 1, easing=lambda t: t),
     "animation of 'o', 'x': its easing is a function"),
    (lambda s: s.add_animation(s.add_overlay("red", id="o"), "x", 0, 1, 1, on_end=print),
     "animation of 'o', 'x': on_end is a function"),
    (lambda s: s.add_scene(holding(PHOTO), id="s"),
     "node 's': in its scene, node 'i': its source is an array"),
])  # fmt: skip
def test_objects_that_no_file_can_name_are_refused(tmp_path, add, words):
    with Scene(8, 8, device="cpu") as made:
        add(made)
        with pytest.raises(SceneFileError) as reported:
            made.save(tmp_path / "no.json")
    assert words in str(reported.value)
    assert list(tmp_path.iterdir()) == []


def test_videos(folder, tmp_path):
    pytest.importorskip("av")
    from tests.media.video.clips import encode, numbered

    encode(tmp_path / "clip.mp4", numbered(8), rate=8)
    data = scene(
        {"type": "video", "id": "a", "source": "clip.mp4", "size": [24, 16], "offset": 0.25,
         "speed": 2, "loop": True},
        {"type": "video", "source": "clip.mp4", "pip": True, "pip_size": [8, 6], "end": "hide"},
        layouts=[{"type": "grid", "nodes": 2, "gap": 1}],
    )  # fmt: skip
    with load_scene(data, "cpu", base=tmp_path) as made, Scene(24, 16, device="cpu") as calls:
        assert scene_to_dict(made) == data
        calls.add_video(tmp_path / "clip.mp4", size=(24, 16), offset=0.25, speed=2, loop=True)
        calls.add_video(tmp_path / "clip.mp4", pip=True, pip_size=(8, 6), end="hide")
        left, right = ([float(n) for n in box] for box in calls.grid(2, 1))
        written = scene_to_dict(calls, base=tmp_path)
        assert written["nodes"] == [
            {"type": "video", "source": "clip.mp4", "offset": 0.25, "speed": 2, "loop": True,
             "size": left[2:]},
            {"type": "video", "source": "clip.mp4", "end": "hide", "position": right[:2],
             "size": right[2:]},
        ]  # fmt: skip
        with load_scene(written, "cpu", base=tmp_path) as again:
            for time in (0.0, 0.3, 0.9, 1.5):
                want = pixels(calls, time)
                assert (pixels(made, time) == want).all()
                assert (pixels(again, time) == want).all()
            assert made["a"].source.version > 1


def test_files_of_filters_and_fonts_move_with_the_scene(folder, tmp_path):
    (folder / "own.ttf").write_bytes(fonts._read(fonts.find(None)))
    (folder / "warm.cube").write_text(
        "LUT_3D_SIZE 2\n" + "".join(f"{r} {g} 0\n" for _ in "01" for g in "01" for r in "01")
    )
    data = scene(
        {"type": "overlay", "id": "o", "color": "white"},
        {"type": "effect", "filter": "lut_apply", "input": "o", "params": {"lut": "warm.cube"}},
        {"type": "effect", "filter": "overlay", "params": {"picture": "stamp.png", "opacity": 0.5}},
        {"type": "text", "text": "x", "size": 9, "font": ["own.ttf", "serif"]},
    )
    with load_scene(data, "cpu", base=folder) as made:
        assert scene_to_dict(made) == data
        assert files_of(made) == [folder / n for n in ("own.ttf", "stamp.png", "warm.cube")]
        want = pixels(made)
        assert want[15, 23].tolist() == [255, 255, 0, 255]
        assert len(np.unique(want.reshape(-1, 4), axis=0)) > 20
        made.save(tmp_path / "moved.json")
        assert scene_to_dict(made) == data
    with load_scene(tmp_path / "moved.json", "cpu") as again:
        assert (pixels(again) == want).all()


def test_structuring_elements(folder, tmp_path):
    def effect(element):
        params = {"element": element, "operation": "dilate"}
        return {"type": "effect", "id": "e", "filter": "morphology", "params": params}

    box = {"type": "overlay", "color": "white", "position": [9, 9], "size": [3, 3]}
    listed = scene(box, effect([[0, 0, 1], [0, 1, 1]]))
    array = np.array([[0, 0, 1], [0, 1, 1]], bool)
    np.save(folder / "element.npy", array)
    with Scene(24, 16, device="cpu") as calls:
        calls.add_overlay(color="white", position=(9, 9), size=(3, 3))
        calls.add_effect("morphology", element=array, operation="dilate", id="e")
        want = pixels(calls)
        white = np.zeros((16, 24), bool)
        white[9:12, 8:12] = white[10:13, 8:11] = True  # as in OpenCV, the element is not mirrored
        assert (want[..., 0] == 255 * white).all()
        calls.save(tmp_path / "saved.json")
        saved = scene_to_dict(calls)["nodes"][1]
        assert saved["params"]["element"] == [[0, 0, 1], [0, 1, 1]]
    for data in (listed, scene(box, effect("element.npy")), tmp_path / "saved.json"):
        with load_scene(data, "cpu", base=folder) as made:
            assert (pixels(made) == want).all()
            if isinstance(data, dict):
                assert scene_to_dict(made) == data
            made["e"].update(element=array[:, ::-1])  # a change is saved as it is
            changed = scene_to_dict(made)["nodes"][1]["params"]["element"]
            assert changed == [[1, 0, 0], [1, 1, 0]]
    (folder / "element.npy").write_text("no array")
    with pytest.raises(SceneFileError, match=r"'element\.npy' cannot be read by numpy"):
        load_scene(scene(box, effect("element.npy")), "cpu", base=folder)


def test_files_of(folder):
    data = scene(
        {"type": "image", "source": "stamp.png"}, {"type": "subtitles", "source": "words.srt"}
    )
    with load_scene(data, "cpu", base=folder) as made:
        assert files_of(made) == [folder / "stamp.png", folder / "words.srt"]
    (folder / "named.json").write_text(json.dumps(scene({"type": "image", "source": "none.png"})))
    assert named_files(folder / "named.json") == [folder / "none.png"]


# errors -----------------------------------------------------------------------------------------
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
    (scene() | {"dala": 2}, "dala: this is version 2 of the format, and 1 is the newest"),
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
    ('{"dala": 1,\n  "width" 3}', "bad.json: line 2, column 11: expecting ':' delimiter."),
    ("", "bad.json: line 1, column 1: expecting value."),
    ('{"dala": NaN}', "bad.json: NaN is not a number in JSON."),
    ('{"a":' * 100_000, "bad.json: lists and objects are nested too deep."),
    ('{"dala": 1, "width": 2, "width": 3, "height": 2, "nodes": []}',
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
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_scene(tmp_path / "no.json")
    with pytest.raises(FileNotFoundError, match="is a folder"):
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


# schema -----------------------------------------------------------------------------------------
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
