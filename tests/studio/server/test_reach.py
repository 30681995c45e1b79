"""What pages and scene files can reach: names lead into the folders of the studio or nowhere."""

import gc
import json
import os
import shutil
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dala import studio as studios
from dala.errors import DalaError, ParameterError, SceneFileError
from dala.media import Frame
from dala.media.scene.file.load import load_scene, named_files
from dala.media.text.fonts.faces import bundled
from dala.studio.session import StudioSession
from dala.untrusted import beneath
from dala.untrusted.place import Place
from tests.studio.server.client import Running


@pytest.fixture(params=["kernel", "walk"])
def project(tmp_path, monkeypatch, request):
    """A folder of a project, with files of every kind inside and, of the same names, outside."""
    if request.param == "kernel" != beneath.mode:
        pytest.skip("this system has no openat2")
    monkeypatch.setattr(beneath, "mode", request.param)
    made = tmp_path / "project"
    (made / "deep" / "er" / "most").mkdir(parents=True)
    (made / "a").symlink_to("deep/er/most")
    for folder, level in ((made, 200), (made / "deep", 100), (tmp_path, 10)):
        Frame.from_array(np.full((8, 8, 3), level, np.uint8), device="cpu").save(
            folder / "picture.png"
        )
        (folder / "words.srt").write_text("1\n00:00:00,000 --> 00:00:09,000\nwords\n")
        (folder / "table.cube").write_text(
            "LUT_3D_SIZE 2\n"
            + "".join(f"{r} {g} {b}\n" for b in (0, 1) for g in (0, 1) for r in (0, 1))
        )
        font = next(Path(f.path) for f in bundled() if not f.package)
        shutil.copy(font, folder / "letters.ttf")
    return made


@pytest.fixture
def session(project):
    with StudioSession([project], device="cpu") as made:
        yield made


#: Nodes that name a file, by the file.
NODES = {
    "image": ("picture.png", lambda name: {"type": "image", "source": name}),
    "overlay": ("picture.png", lambda name: {"type": "overlay", "source": name}),
    "video": ("picture.png", lambda name: {"type": "video", "source": name}),
    "audio": ("picture.png", lambda name: {"type": "audio", "source": name}),
    "subtitles": ("words.srt", lambda name: {"type": "subtitles", "source": name}),
    "font": ("letters.ttf", lambda name: {"type": "text", "text": "x", "font": name}),
    "fonts": ("letters.ttf", lambda name: {"type": "text", "text": "x", "font": ["serif", name]}),
    "lut": (
        "table.cube",
        lambda name: {"type": "effect", "filter": "lut_apply", "params": {"lut": name}},
    ),
    "second": (
        "picture.png",
        lambda name: {"type": "effect", "filter": "blend", "params": {"over": name}},
    ),
    "transition": (
        "picture.png",
        lambda name: {
            "type": "timeline",
            "nodes": [
                {"type": "overlay", "color": "red", "duration": 2},
                {
                    "type": "overlay",
                    "color": "blue",
                    "duration": 2,
                    "transition": {"type": "luma", "picture": name, "duration": 1},
                },
            ],
        },
    ),
    "group": (
        "picture.png",
        lambda name: {"type": "group", "nodes": [{"type": "image", "source": name}]},
    ),
    "scene": (
        "picture.png",
        lambda name: {
            "type": "scene",
            "scene": {"width": 8, "height": 8, "nodes": [{"type": "image", "source": name}]},
        },
    ),
}


def opened(session, project, *nodes, **more):
    scene = {"dala": 1, "width": 8, "height": 8, "nodes": list(nodes), **more}
    (project / "scene.json").write_text(json.dumps(scene))
    session.do({"do": "open", "path": "scene.json"})
    return session.active


@pytest.mark.parametrize("kind", NODES)
def test_every_name_of_a_scene_stays_inside(session, project, kind):
    file, node = NODES[kind]
    outside = project.parent / file
    hostile = {
        f"../{file}",
        str(outside),
        f"a/../../../../{file}",
        f"{project}/deep/../../{file}",
        f"link-{file}",
        f"door/{file}",
        f"{file}\n",
        f"/proc/self/root{outside}",
        f"http://127.0.0.1:9/{file}",
        f"http://127.0.0.1:9/{file}\n",
        f"tcp://127.0.0.1:9/{file}\n",
        f"unix:///{outside}\n",
        f"file://{outside}",
        f"concat:{outside}",
        f"..\\{file}",
        str(outside).replace("/", "\\"),
    }
    (project / f"link-{file}").symlink_to(outside)
    (project / "door").symlink_to("..")
    before = set(session.tabs)
    for name in hostile:
        if kind == "subtitles" and name.endswith("\n"):
            continue  # the text of subtitles itself, as it may be in a scene
        with pytest.raises(DalaError, match=r"allowed folder|there is no f|must be"):
            opened(session, project, node(name))
        assert set(session.tabs) == before, name


@pytest.mark.parametrize("kind", [k for k in NODES if k != "audio"])
def test_names_inside_are_found(session, project, kind):
    file, node = NODES[kind]
    (project / "within").symlink_to("deep")
    for name in (file, f"./deep/../{file}", f"within/../{file}", str(project / file)):
        tab = opened(session, project, node(name))
        assert np.asarray(tab.source.at(1)).shape == (8, 8, 4)
        session.do({"do": "close", "tab": tab.id})


def test_the_folder_above_is_that_after_links(session, project):
    """Checked was `deep/picture.png`, and opened `../picture.png`."""
    tab = opened(session, project, {"type": "image", "source": "a/../../picture.png"})
    assert np.asarray(tab.source.at(0))[0, 0].tolist() == [100, 100, 100, 255]
    os.remove(project / "deep" / "picture.png")
    with pytest.raises(SceneFileError, match=r"there is no file 'a/../../picture\.png'"):
        opened(session, project, {"type": "image", "source": "a/../../picture.png"})


@pytest.mark.parametrize("kind", [k for k in NODES if k != "audio"])
def test_programs_can_keep_scenes_to_a_folder(project, kind):
    file, node = NODES[kind]
    for name, fails in ((file, False), (f"../{file}", True)):
        scene = {"dala": 1, "width": 8, "height": 8, "nodes": [node(name)]}
        (project / "scene.json").write_text(json.dumps(scene))
        assert named_files(project / "scene.json") == [project / name]
        load_scene(project / "scene.json", "cpu").close()  # the user's own may name what it likes
        if fails:
            with pytest.raises(SceneFileError, match="allowed folder"):
                load_scene(project / "scene.json", "cpu", place=Place([project]))
        else:
            load_scene(project / "scene.json", "cpu", place=Place([project])).close()


def test_changes_of_a_scene_stay_inside(session, project):
    opened(session, project, {"type": "image", "source": "picture.png"})
    for properties in ({"source": "../picture.png"}, {"source": "a/../../../../picture.png"}):
        with pytest.raises(ParameterError, match="allowed folder"):
            session.do({"do": "node_add", "type": "image", "properties": properties})
    (node,) = session.state()["scene"]["nodes"]
    with pytest.raises(ParameterError, match="allowed folder"):
        session.do(
            {"do": "node_set", "node": node["id"], "property": "source", "value": "../picture.png"}
        )


def test_a_file_that_is_swapped_after_loading_is_not_read(session, project):
    """A render loads the scene again: names are checked again, with what they are then."""
    opened(session, project, {"type": "image", "source": "picture.png"})
    os.remove(project / "picture.png")
    os.symlink(project.parent / "picture.png", project / "picture.png")
    with pytest.raises(SceneFileError, match="allowed folder"):
        session.active.source.made("cpu")


@pytest.mark.parametrize("model", ["/{parent}/own.onnx", "../own.onnx", "..\\own.onnx", "own.json"])
def test_models_of_followed_nodes_stay_inside(session, project, model, monkeypatch):
    monkeypatch.chdir(project.parent)
    (project.parent / "own.onnx").write_bytes(b"x")
    (project.parent / "own.json").write_text("{}")
    nodes = [
        {"type": "video", "id": "v", "source": "picture.png"},
        {"type": "overlay", "id": "o", "color": "red"},
    ]
    target = {"video": "v", "model": model.replace("/{parent}", str(project.parent))}
    with pytest.raises(DalaError, match=r"allowed folder|there is no file"):
        opened(session, project, *nodes, follows=[{"node": "o", "target": {**target, "box": True}}])


@pytest.mark.parametrize("model", ["{parent}/own", "../own", "own.onnx", "u2netp", 7])
def test_cards_of_models_load_declared_ones_only(session, project, model):
    (project.parent / "own.onnx").write_bytes(b"x")
    session.do({"do": "open", "path": "picture.png"})
    value = model if model == 7 else model.replace("{parent}", str(project.parent))
    for message in (
        {"do": "add", "kind": "model", "name": "boxes", "params": {"model": value}},
        {"do": "preset", "value": {"chain": [{"model": "boxes", "params": {"model": value}}]}},
    ):
        with pytest.raises(ParameterError, match="must be one of nanodet"):
            session.do(message)
    card = session.do({"do": "add", "kind": "model", "name": "boxes"})["card"]
    with pytest.raises(ParameterError, match="must be one of nanodet"):
        session.do({"do": "set", "card": card, "param": "model", "value": value})


def test_weights_are_found_by_names_only(tmp_path):
    from dala.ml.weights.find import find_weights

    (tmp_path / "own.onnx").write_bytes(b"x")
    assert find_weights(str(tmp_path / "own")) is None
    assert find_weights("../shipped/selfie") is None


@pytest.mark.parametrize("param", ["lut", "over"])
def test_files_of_cards_stay_inside(session, project, param):
    session.do({"do": "open", "path": "picture.png"})
    name = {"lut": "lut_apply", "over": "blend"}[param]
    file = {"lut": "table.cube", "over": "picture.png"}[param]
    card = session.do({"do": "add", "kind": "filter", "name": name})["card"]
    for value in (f"../{file}", f"a/../../../../{file}", str(project.parent / file), f"{file}\n"):
        with pytest.raises(ParameterError, match=r"allowed folder|must be|there is no file"):
            session.do({"do": "set", "card": card, "param": param, "value": value})
    session.do({"do": "set", "card": card, "param": param, "value": f"a/../../../{file}"})


def test_the_scene_of_the_start_may_name_its_files(project):
    """The user named it, so what it names is trusted; other files beside those are not."""
    nodes = [
        {"type": "image", "source": "../picture.png"},
        {"type": "text", "text": "x", "font": "../letters.ttf"},
    ]
    scene = {"dala": 1, "width": 8, "height": 8, "nodes": nodes}
    (project / "scene.json").write_text(json.dumps(scene))
    app = studios.app(project / "scene.json", device="cpu")
    try:
        app.session.do({"do": "node_add", "type": "image", "properties": nodes[0]})
        other = {"type": "subtitles", "properties": {"source": "../words.srt"}}
        with pytest.raises(ParameterError, match="allowed folder"):
            app.session.do({"do": "node_add", **other})
    finally:
        app.close()


def test_pipes_and_devices_are_not_waited_for(session, project):
    os.mkfifo(project / "pipe.png")
    for name in ("pipe.png", "/dev/stdin", "/dev/tty"):
        with pytest.raises(ParameterError, match=r"not a regular file|allowed folder"):
            session.do({"do": "open", "path": name})
        with pytest.raises(SceneFileError):
            opened(session, project, {"type": "video", "source": name})


def test_errors_name_files_as_people_know_them(session, project):
    (project / "damaged.png").write_bytes(b"x")
    (project / "damaged.mp4").write_bytes(b"x")
    for name in ("damaged.png", "damaged.mp4"):
        from dala.studio.message import error_json

        with pytest.raises((DalaError, OSError)) as caught:
            session.do({"do": "open", "path": name})
        text = error_json(caught.value)["text"]
        assert name in text
        assert "dala-opened" not in text


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts in /proc")
def test_changes_of_a_scene_hold_no_more_files(session, project):
    """Old scenes may wait for the collector; the same file is open once for all of them."""
    fonts = {"type": "text", "text": "x", "font": ["letters.ttf", "deep/letters.ttf"]}
    table = {"type": "effect", "filter": "lut_apply", "params": {"lut": "table.cube"}}
    opened(session, project, fonts, table, {"type": "image", "source": "picture.png"})
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            session.do({"do": "node_add", "type": "image", "properties": {"source": "picture.png"}})
        assert len(os.listdir("/proc/self/fd")) <= before + 3
    finally:
        gc.enable()


def test_downloads_follow_no_link_that_leads_out(project):
    with Running(studios.app(folders=[project], device="cpu")) as server:
        session = server.studio.session
        address = session.offer(project / "picture.png")
        assert server.get(f"/{address}")[2] == (project / "picture.png").read_bytes()
        os.remove(project / "picture.png")
        assert server.get(f"/{address}")[0] == 404
        os.symlink(project.parent / "picture.png", project / "picture.png")
        assert server.get(f"/{address}")[0] == 404


# kernels that are saved ---------------------------------------------------------------------------
KERNEL = "def half(px: Pixel):\n    return rgba(px.rgb * 0.5, px.a)\n"


@pytest.fixture
def card(session):
    session.do({"do": "open", "sample": "coffee"})
    return session.do({"do": "add", "kind": "kernel", "text": KERNEL})["card"]


def save(session, card, path, **more):
    return session.do({"do": "kernel_save", "card": card, "path": str(path), **more})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print('hello')",
        "import os\n" + KERNEL,
        KERNEL + "os.system('id')\n",
        "@__import__('os').system\n" + KERNEL,
        "@kernel(__import__('os').getpid())\n" + KERNEL,
        "from dala.cli.common.signals import stopping as kernel\n@kernel('x')\n" + KERNEL,
        'from dala import *; "x"; __import__("os").system("id")\n' + KERNEL,
        '"text"; __import__("os").system("id")\n' + KERNEL,
        KERNEL.replace("):", ") -> __import__('os').getpid():", 1),
        KERNEL.replace("px: Pixel", "px: Pixel, *, a: float = __import__('os').getpid()"),
        "# coding: utf-7\n# +AAo-import os\n" + KERNEL,
        "\n#!x vim: set fileencoding=utf-7 :\n" + KERNEL,
    ],
)
def test_only_kernels_are_saved(session, project, card, text):
    """What is saved may be imported by a program of the user: it must not run anything."""
    session.do({"do": "kernel", "card": card, "text": text})
    with pytest.raises(ParameterError, match="the text is no kernel"):
        save(session, card, project / "new.py", replace=True)
    assert not (project / "new.py").exists()


def test_files_of_others_are_not_replaced(session, project, card):
    (project / "tool.py").write_text("print('mine')")
    with pytest.raises(ParameterError, match=r"'tool\.py' exists, and is not of this studio"):
        save(session, card, project / "tool.py")
    (project / "link.py").symlink_to("tool.py")
    with pytest.raises(ParameterError, match="exists"):
        save(session, card, project / "link.py")
    assert (project / "tool.py").read_text() == "print('mine')"
    with pytest.raises(ParameterError, match="replace must be true or false"):
        save(session, card, project / "tool.py", replace="yes")
    assert save(session, card, project / "tool.py", replace=True)["path"] == str(
        project / "tool.py"
    )
    assert (project / "tool.py").read_text() == KERNEL


def test_pictures_of_others_are_not_rendered_over(session, project):
    session.do({"do": "open", "path": "picture.png"})
    before = (project / "picture.png").read_bytes()
    (project / "mine.png").write_bytes(before)
    (project / "link.png").symlink_to("mine.png")
    for name in ("mine.png", "link.png"):
        with pytest.raises(ParameterError, match="exists, and is not of this studio"):
            session.do({"do": "render", "path": name})
    assert (project / "mine.png").read_bytes() == before
    for more in ({"path": "new.png"}, {"path": "new.png"}, {"path": "mine.png", "replace": True}):
        session.do({"do": "render", **more})
        session.jobs.wait()


@pytest.mark.parametrize("size", [(65535, 65535), (8, 8)])
def test_a_gif_that_claims_much_is_an_error_of_ours(session, project, size):
    """Pillow's own error for it ended as a mistake of the studio."""
    head = b"GIF89a" + struct.pack("<HHBBB", *size, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, *size, 0) + b"\2\2\x4c\1\0;"
    (project / "claims.gif").write_bytes(head + frame)
    with suppress(DalaError):
        session.do({"do": "open", "path": "claims.gif"})


def test_own_files_are_saved_again(session, project, card):
    for _ in range(2):
        save(session, card, project / "new.py")
    session.do({"do": "kernel_save", "card": card})
    (project / "opened.py").write_text(KERNEL)
    session.do({"do": "open", "path": "opened.py"})
    session.do({"do": "kernel", "card": "c1", "text": KERNEL.replace("0.5", "0.25")})
    session.do({"do": "kernel_save", "card": "c1"})
    assert "0.25" in (project / "opened.py").read_text()


def test_scenes_of_others_are_not_replaced(session, project):
    opened(session, project, {"type": "image", "source": "picture.png"})
    (project / "other.json").write_text("{}")
    with pytest.raises(ParameterError, match="exists, and is not of this studio"):
        session.do({"do": "scene_save", "path": "other.json"})
    session.do({"do": "scene_save"})
    session.do({"do": "scene_save", "path": "third.json"})
    session.do({"do": "scene_save", "path": "other.json", "replace": True})
    assert json.loads((project / "other.json").read_text())["width"] == 8
