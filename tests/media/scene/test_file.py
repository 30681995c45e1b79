"""Scene files: loading and saving."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from dala.errors import SceneFileError
from dala.media import Scene
from dala.media.scene.file.load import files_of, load_scene, named_files, scene_to_dict
from dala.media.scene.file.record import forget
from dala.media.text.fonts import faces as fonts
from tests.media.scene import scene_files
from tests.media.scene.described import PHOTO, SCHEMA, SLOW, pixels, scene
from tests.media.scene.json_schema import valid

#: Random boxes are often too low for their text.
pytestmark = pytest.mark.filterwarnings("ignore:(set|add)_text. the text .* is cut")
VERSIONS = Path(__file__).parents[2] / "support" / "versions"


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
        "dala": 2, "width": 24, "height": 16, "fps": "30000/1001", "background": "#11223344",
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


def test_a_file_of_version_1_has_its_sizes_turned():
    """It had the sizes of filters as [height, width]; those of nodes were always as they are."""
    with load_scene(VERSIONS / "scene-1.json", "cpu") as scene:
        inner = scene["inner"].child
        sizes = {"small": (30, 10), "rough": 2, "box": (40, 20), "middle": (8, 4), "bar": (40, 6)}
        assert {name: scene[name].get("size") for name in sizes} == sizes
        assert inner["half"].params["size"] == (16, 4)
        saved = scene_to_dict(scene)
        scene.render(0.5)
    assert saved["dala"] == 2
    assert saved["nodes"][1]["params"] == {"size": [30, 10], "fit": "stretch"}
    moved = saved["animations"][0]
    assert (moved["from"], moved["to"]) == ([8, 2], [12, 6])
    with load_scene(saved, "cpu") as again:
        assert scene_to_dict(again) == saved


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
