"""Every key of a scene file, with names of files outside of its place: none is opened."""

import ctypes
import os
import shutil
import struct
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dala
from dala import budget
from dala.errors import CubeError, DalaError, SceneFileError
from dala.media import Frame, load_lut
from dala.media.filters.declarations import declared
from dala.media.scene.file.load import load_scene
from dala.media.scene.file.schema import scene_object
from dala.media.scene.nodes.json_types import MAX_PROBLEMS
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.media.text.fonts.faces import bundled
from dala.untrusted.place import Place

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux"),
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("av", reason="needs the media extra")

CUES = "1\n00:00:00,000 --> 00:00:09,000\nwords\n"
#: What a node of a type needs besides.
NEEDED = {
    "text": {"text": "x"},
    "overlay": {"color": "red"},
    "subtitles": {"source": CUES},
    "effect": {"filter": "blur"},
    "group": {"nodes": []},
    "timeline": {"nodes": [{"type": "overlay", "color": "red", "duration": 1}]},
    "scene": {"scene": {"width": 8, "height": 8, "nodes": []}},
}
#: Keys that no node may have, or only one of another type.
OTHERS = {"font", "picture", "source", "transition", "model", "lut", "mask", "path", "file"}
FORMS = (
    lambda path: str(path),
    lambda path: f"../outside/{path.name}",
    lambda path: f"door/{path.name}",
    lambda path: str(path).replace("/", "\\"),
    lambda path: f"file://{path}",
    lambda path: [str(path)],
    lambda path: {"type": "luma", "picture": str(path), "duration": 1},
    lambda path: {"source": str(path)},
    lambda path: f"{path}\n",
    lambda path: f"{path.parents[1]}/inside/a\n/../../outside/{path.name}",
)
IN_OPEN = 0x20


class Watch:
    """The names of the files of a folder that were opened, by whatever library."""

    def __init__(self, folder: Path):
        library = ctypes.CDLL(None)
        self._number = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert library.inotify_add_watch(self._number, os.fsencode(folder), IN_OPEN) > 0

    def opened(self) -> list[str]:
        found, data = [], b""
        with suppress(BlockingIOError):
            while True:
                data += os.read(self._number, 1 << 16)
        while data:
            _, _, _, size = struct.unpack_from("iIII", data)
            name, data = data[16 : 16 + size].rstrip(b"\0").decode(), data[16 + size :]
            found += [name] if name else []  # without a name it is the folder itself
        return found

    def close(self):
        os.close(self._number)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The place of a scene, and a folder beside it with a file of every kind."""
    made = tmp_path_factory.mktemp("scenes").resolve()
    inside, outside = made / "inside", made / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "door").symlink_to("../outside")
    Frame.from_array(np.zeros((8, 8, 3), np.uint8), device="cpu").save(outside / "picture.png")
    shutil.copy(outside / "picture.png", inside / "picture.png")
    shutil.copy(next(f.path for f in bundled() if not f.package), outside / "letters.ttf")
    (inside / "a\n").mkdir()  # what has a line end may be the text of a file, and is no name
    (outside / "drawing.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><path d="M0 0h8v8z"/></svg>'
    )
    (outside / "words.srt").write_text(CUES)
    (outside / "table.cube").write_text("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n")
    (outside / "model.onnx").write_bytes(b"x")
    np.save(outside / "map.npy", np.zeros((8, 8, 2), np.float32))
    return inside, outside


@pytest.fixture
def watch(folders):
    made = Watch(folders[1])
    yield made
    made.close()


def render(folder, node, place):
    scene = {"dala": 1, "width": 8, "height": 8, "nodes": [node]}
    with suppress(DalaError, OSError, ValueError, TypeError):
        made = load_scene(scene, "cpu", base=folder, place=place)
        try:
            made.render(0.5)
        finally:
            made.close()


def hostile(folder):
    return [form(file) for file in sorted(folder.iterdir()) for form in FORMS]


def test_the_watch_sees_what_libraries_open(folders, watch):
    inside, outside = folders
    for node, file in (
        ({"type": "image", "source": "../outside/picture.png"}, "picture.png"),
        ({"type": "video", "source": "../outside/picture.png"}, "picture.png"),
        ({"type": "text", "text": "x", "font": str(outside / "letters.ttf")}, "letters.ttf"),
        ({"type": "subtitles", "source": "door/words.srt"}, "words.srt"),
    ):
        render(inside, node, None)
        assert file in watch.opened()
        render(inside, node, Place([inside]))
        assert watch.opened() == []
        render(inside, node, Place([inside, outside]))
        assert file in watch.opened()


@pytest.mark.third
@pytest.mark.parametrize("kind", NODE_TYPES)
def test_no_key_of_a_node_opens_files_outside(folders, watch, kind):
    inside, outside = folders
    place, cls = Place([inside]), NODE_TYPES[kind]
    keys = {argument.key or name for name, argument in cls.ARGUMENTS.items()}
    for key in sorted(keys | set(cls.PROPERTIES) | OTHERS):
        for value in hostile(outside):
            usual = NEEDED.get(kind, {"source": "picture.png"})
            render(inside, {"type": kind, **usual, key: value}, place)
            assert watch.opened() == [], (key, value)


def test_no_parameter_of_a_filter_opens_files_outside(folders, watch):
    inside, outside = folders
    place, count = Place([inside]), 0
    for name, spec in sorted(declared().items()):
        for parameter in spec.parameters:
            for value in hostile(outside):
                node = {"type": "effect", "filter": name, "params": {parameter.name: value}}
                render(inside, node, place)
                assert watch.opened() == [], (name, value)
                count += 1
    assert count > 5000


REFERENCE = '<ProcessList id="x" version="1.3"><Reference {}path="{}"/></ProcessList>'


@pytest.mark.parametrize("name", ["table.ctf", "table.clf", "table.spi1d"])
@pytest.mark.parametrize("form", ["plain", "utf-16", "entity"])
def test_color_tables_do_not_lead_to_others(folders, watch, name, form):
    pytest.importorskip("PyOpenColorIO", reason="needs the color extra")
    inside, outside = folders
    bits = 'inBitDepth="32f" outBitDepth="32f" '
    data = '<?xml version="1.0"?>' + REFERENCE.format(bits, outside / "table.cube")
    if form == "entity":
        text = REFERENCE.format(bits, outside / "table.cube").replace("<", "&#60;")
        data = f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e '{text}'>]><a>&e;</a>"
    (inside / name).write_bytes(data.encode("utf-16" if form == "utf-16" else "utf-8"))
    with pytest.raises(CubeError, match="names another table"):
        load_lut(inside / name)
    render(
        inside, {"type": "effect", "filter": "lut_apply", "params": {"lut": name}}, Place([inside])
    )
    assert watch.opened() == []


def test_errors_name_files_as_people_know_them(folders):
    """Not by the links of the gate, whose names change from run to run."""
    inside, _ = folders
    nodes = [{"type": "audio", "source": "picture.png"}]
    with pytest.raises(SceneFileError, match=r"'picture\.png' has no sound") as caught:
        load_scene(
            {"dala": 2, "width": 8, "height": 8, "nodes": nodes}, base=inside, place=Place([inside])
        )
    assert "dala-opened" not in str(caught.value)


@pytest.mark.parametrize(
    "nodes", [[{"type": "overlay", "below": "x"}] * 5000, [{f"k{i}": 1 for i in range(5000)}]]
)
def test_many_mistakes_are_not_all_looked_for(nodes):
    """Each is compared with the keys that there are: a file of 64 MiB took hours."""
    with pytest.raises(SceneFileError) as caught:
        load_scene({"dala": 2, "width": 8, "height": 8, "nodes": nodes})
    assert len(caught.value.problems) <= MAX_PROBLEMS + 1


def test_the_deadline_is_looked_at_while_mistakes_are():
    nodes = [{"type": "overlay", "color": "red"}] * 5000
    looked = []

    class Clock:
        @staticmethod
        def monotonic():
            looked.append(0)
            return 0.0

    with pytest.MonkeyPatch.context() as patch, dala.limits(time=1):
        patch.setattr(budget, "clock", Clock)
        problems: list[str] = []
        scene_object().check({"nodes": nodes, "width": 1, "height": 1, "dala": 2}, "", problems)
    assert len(looked) >= 5000
