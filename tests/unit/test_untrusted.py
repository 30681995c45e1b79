"""Rooms that get names from strangers open nothing but what the gate has opened."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "dala"
#: Rooms in which names of files come from pages, scene files and documents.
ROOMS = (
    "studio",
    "media/scene/file",
    "web/serving.py",
    "ml/convert/tfjs.py",
    "ml/runtime/onnx_graph.py",
)
#: Calls that open, read, write or remove a file by its name.
_WORDS = """
    FileResponse PartFile copy2 copyfile listdir load load_array load_cube load_lut load_model
    load_scene load_subtitles make_archive open open_source open_writer read_bytes read_file
    read_picture read_text rename rmtree scandir store touch unlink write_bytes write_text
"""
OPENING = frozenset(_WORDS.split())
#: The gate: what it returns is open.
GATES = frozenset(("folders.open", "place.open", "_place.open"))
#: A gate that is made where it is used, or that the room itself is.
HERE = ("Place(", "self.open")

#: What opens files by name all the same, and why it may.
OPENED, MADE = "takes what the gate opened", "a name of the studio's own, in its own folder"
TARGET, PACKAGE = "takes a target of the gate", "a file of the package"
PROGRAM = "for calls of the user's own program"
ALLOWED = {
    "studio/application.py:_upload:open": MADE,
    "studio/application.py:_upload:unlink": MADE,
    "studio/application.py:_download:FileResponse": OPENED,
    "studio/application.py:_page:FileResponse": PACKAGE,
    "studio/cards/values.py:_read:load": OPENED,
    "studio/cards/values.py:_read:load_array": OPENED,
    "studio/cards/values.py:_read:load_lut": OPENED,
    "studio/cards/values.py:_value:load": OPENED,
    "studio/cards/chain.py:_link:load": "a declared model, by its name",
    "studio/cards/models.py:__init__:load_model": "a declared model, by its name",
    "studio/commands/chain.py:kernel_save:PartFile": TARGET,
    "studio/commands/chain.py:kernel_save:write_text": TARGET,
    "studio/commands/home.py:run:make_archive": MADE,
    "studio/commands/home.py:run:unlink": MADE,
    "studio/folders.py:listing:scandir": OPENED,
    "studio/home/rendering.py:_still:open": OPENED,
    "studio/home/rendering.py:_frames:open": OPENED,
    "studio/home/rendering.py:_store:store": TARGET,
    "studio/home/rendering.py:_video:open_writer": TARGET,
    "studio/notebook.py:opened:open": PROGRAM,
    "studio/notebook.py:_view_class:read_text": PACKAGE,
    "studio/picture/h264.py:__init__:open": "an encoder",
    "studio/scenes/source.py:made:load_scene": "with the gate as its place",
    "studio/scenes/source.py:save:PartFile": TARGET,
    "studio/scenes/source.py:save:write_text": TARGET,
    "studio/security.py:has_cookie:load": "a cookie",
    "studio/session.py:offer:rmtree": MADE,
    "studio/sources/opening.py:open_file:open": OPENED,
    "studio/sources/opening.py:_is_still:open": OPENED,
    "studio/sources/source.py:open:load": OPENED,
    "studio/sources/source.py:__init__:open": OPENED,
    "studio/sources/source.py:__init__:open_source": "an open reader",
    "media/scene/file/load.py:read:read_bytes": PROGRAM + ", or " + OPENED,
    "media/scene/file/load.py:_param:load_array": OPENED,
    "media/scene/file/load.py:_param:load": OPENED,
    "media/scene/file/save.py:save_scene:PartFile": PROGRAM,
    "media/scene/file/save.py:save_scene:write_text": PROGRAM,
    "ml/convert/tfjs.py:convert_tfjs_file:read_bytes": PROGRAM,
    "ml/runtime/onnx_graph.py:check_file:open": PROGRAM,
}


def calls(room: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls in a room that open something, as ``module:function:call``."""
    top = SOURCES / room
    for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
        module = path.relative_to(SOURCES).as_posix()
        for function, call in _calls(ast.parse(path.read_text("utf-8")), ""):
            found = call.func
            name = found.attr if isinstance(found, ast.Attribute) else getattr(found, "id", "")
            if name in OPENING:
                yield f"{module}:{function}:{name}", call


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Call):
            yield function, child
        yield from _calls(child, child.name if inner else function)


def is_gate(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    return ".".join(called.split(".")[-2:]) in GATES or called.startswith(HERE)


@pytest.mark.parametrize("room", ROOMS)
def test_names_of_strangers_go_through_the_gate(room):
    assert {key for key, call in calls(room) if not is_gate(call) and key not in ALLOWED} == set()


def test_scenes_of_the_studio_have_a_place():
    found = [call for key, call in calls("studio") if key.endswith(":load_scene")]
    assert found
    assert all("place" in [k.arg for k in call.keywords] for call in found)


def test_the_list_has_nothing_that_is_gone():
    assert set(ALLOWED) - {key for room in ROOMS for key, _ in calls(room)} == set()
