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
    "shaders/files.py",
)
#: What opens, reads, writes, renames or removes a file by its name, asks for an address, or runs
#: another program, by the last part of its name, whatever library it is of.
_WORDS = """
    CDLL ElementTree FileIO FileResponse HostRequests PartFile Popen Session StaticFiles TarFile
    TemporaryFile ZipFile check_call check_output connect convert_tfjs_file copy2 copyfile
    copytree create_connection execv fdopen fromfile genfromtxt hardlink_to listdir load
    load_array load_cube load_lut load_model load_scene load_subtitles loadtxt make_archive
    makedirs memmap mkfifo mkstemp mmap mount move open open_best open_code open_container
    open_file open_image open_model open_sample open_session open_source open_trusted open_writer
    opendir parse_file popen read_bytes read_file read_picture read_text remove removedirs rename
    renames replace_file rglob rmdir rmtree savez savetxt scandir spawnv startfile store
    symlink_to system tofile touch truetype unlink unpack_archive urlopen urlretrieve write_bytes
    write_folder write_png write_text write_whole
"""
OPENING = frozenset(_WORDS.split())
#: What reaches names that nobody can read in the source.
HIDING = frozenset(("eval", "exec", "__import__", "globals"))
#: The gate: what it returns is open.
GATES = frozenset(("folders.open", "place.open", "_place.open"))
#: A gate that is made where it is used, or that the room itself is.
HERE = ("Place(", "self.open")

#: What opens files by name all the same, and why it may.
OPENED, MADE = "takes what the gate opened", "a name of the studio's own, in its own folder"
TARGET, PACKAGE = "takes a target of the gate", "a file of the package"
PROGRAM = "for calls of the user's own program"
NONE, CONSTANT = "it is about no file", "of names in the source"
DECLARED = "of names that nodes and layouts declare"
ALLOWED = {
    "studio/application.py:__init__:StaticFiles": PACKAGE,
    "studio/application.py:_page:open": NONE,
    "studio/application.py:_socket:connect": NONE,
    "studio/application.py:_upload:open": MADE,
    "studio/application.py:_upload:rmdir": MADE,
    "studio/application.py:_upload:unlink": MADE,
    "studio/application.py:_download:FileResponse": OPENED,
    "studio/application.py:_page:FileResponse": PACKAGE,
    "studio/cards/values.py:_read:load": OPENED,
    "studio/cards/values.py:_read:load_array": OPENED,
    "studio/cards/values.py:_read:load_lut": OPENED,
    "studio/cards/values.py:_value:load": OPENED,
    "studio/cards/chain.py:_link:load": "a declared model, by its name",
    "studio/cards/models.py:__init__:load_model": "a declared model, by its name",
    "studio/commands/chain.py:kernel_save:write_whole": TARGET,
    "studio/commands/home.py:run:make_archive": MADE,
    "studio/commands/home.py:run:unlink": MADE,
    "studio/folders.py:listing:scandir": OPENED,
    "studio/commands/registry.py:commands:import_module": CONSTANT,
    "studio/commands/tabs.py:open_:open_file": OPENED,
    "studio/commands/tabs.py:open_:open_sample": "a sample, by its name",
    "studio/document/tab.py:_card:getattr": CONSTANT,
    "studio/home/jobs.py:tell:getattr": CONSTANT,
    "studio/picture/moment.py:pixels:getattr": CONSTANT,
    "studio/sources/source.py:facts:getattr": CONSTANT,
    "studio/scenes/patch.py:_aligned:remove": NONE,
    "studio/security.py:has_cookie:open": NONE,
    "studio/security.py:knows:open": NONE,
    "studio/session.py:__init__:rmtree": MADE,
    "studio/session.py:close_tab:remove": NONE,
    "studio/viewer.py:changed_view:getattr": CONSTANT,
    "studio/home/rendering.py:_still:open": OPENED,
    "studio/home/rendering.py:_frames:open": OPENED,
    "studio/home/rendering.py:_store:store": TARGET,
    "studio/home/rendering.py:_video:open_writer": TARGET,
    "studio/notebook.py:opened:open": PROGRAM,
    "studio/notebook.py:_view_class:read_text": PACKAGE,
    "studio/picture/h264.py:__init__:open": "an encoder",
    "studio/scenes/source.py:made:load_scene": "with the gate as its place",
    "studio/scenes/source.py:save:write_whole": TARGET,
    "studio/security.py:has_cookie:load": "a cookie",
    "studio/session.py:offer:rmtree": MADE,
    "studio/sources/opening.py:open_file:open": OPENED,
    "studio/sources/opening.py:_is_still:open_image": OPENED,
    "studio/sources/source.py:open:load": OPENED,
    "studio/sources/source.py:__init__:open": OPENED,
    "studio/sources/source.py:__init__:open_source": "an open reader",
    "media/scene/file/load.py:read:read_bytes": PROGRAM + ", or " + OPENED,
    "media/scene/file/load.py:_param:load_array": OPENED,
    "media/scene/file/load.py:_param:load": OPENED,
    "media/scene/file/load.py:_lay_out:getattr": DECLARED,
    "media/scene/file/load.py:_make:getattr": DECLARED,
    "media/scene/file/follows.py:load_follow:import_module": CONSTANT,
    "media/scene/file/follows.py:save_follow:getattr": DECLARED,
    "media/scene/file/save.py:_animation:getattr": DECLARED,
    "media/scene/file/save.py:save_scene:write_whole": PROGRAM,
    "ml/convert/tfjs.py:convert_tfjs_file:read_bytes": PROGRAM,
    "ml/runtime/onnx_graph.py:open_model:open_trusted": PROGRAM,
    "shaders/files.py:_text:open": PROGRAM,
}


def found_in(room: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield what opens something in a room, as ``module:function:name``."""
    top = SOURCES / room
    for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
        module = path.relative_to(SOURCES).as_posix()
        for function, name, node in openings(path.read_text("utf-8")):
            yield f"{module}:{function}:{name}", node


def openings(text: str) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield the function, the name and the node of what opens something, however it is written.

    Not only calls count: a function may be called by another name, or by ``map``. Names may be
    imported as others, or be looked up by ``getattr``.
    """
    yield from _openings(ast.parse(text), "")


def _openings(node: ast.AST, function: str) -> Iterator[tuple[str, str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Call):
            if (name := _name(child.func)) in OPENING:
                yield function, name, child
            elif name in ("getattr", "attrgetter", "methodcaller", "import_module"):
                looked = child.args[-2 if name == "getattr" and len(child.args) > 2 else -1]
                word = looked.value if isinstance(looked, ast.Constant) else name
                if word in OPENING or word == name:
                    yield function, str(word), child
            elif name in HIDING:
                yield function, name, child
            rest = [*ast.iter_child_nodes(child)]
            rest = rest if not isinstance(child.func, ast.Name) else rest[1:]
            for each in rest:
                if isinstance(each, ast.Attribute) and each is child.func:
                    yield from _openings(each, function)
                else:
                    yield from _openings(_Wrapped(each), function)
        elif isinstance(child, ast.ImportFrom | ast.Import):
            for name in child.names:
                other = name.asname not in (None, name.name)
                if name.name == "*" or (other and name.name.rpartition(".")[2] in OPENING):
                    yield function, name.name, child
        else:
            named = isinstance(child, ast.Name | ast.Attribute)
            if named and isinstance(child.ctx, ast.Load) and _name(child) in OPENING:
                yield function, _name(child), child
            yield from _openings(child, child.name if inner else function)


class _Wrapped(ast.AST):
    """A node as the child of another."""

    _fields = ("child",)

    def __init__(self, child: ast.AST) -> None:
        super().__init__()
        self.child = child


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_gate(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call):
        return False
    called = ast.unparse(call.func)
    return ".".join(called.split(".")[-2:]) in GATES or called.startswith(HERE)


@pytest.mark.parametrize("room", ROOMS)
def test_names_of_strangers_go_through_the_gate(room):
    assert {
        key for key, call in found_in(room) if not is_gate(call) and key not in ALLOWED
    } == set()


@pytest.mark.parametrize(
    "text",
    [
        "Path(name).open()", "np.load(name)", "av.open(name)", "Image.open(name)", "io.open(name)",
        "os.open(name, 0)", "io.FileIO(name)", "np.fromfile(name)", "np.memmap(name)",
        "codecs.open(name)", "open_image(name)", "wave.open(name)", "sqlite3.connect(name)",
        "zipfile.ZipFile(name)", "subprocess.Popen(['cat', name])", "urllib.request.urlopen(name)",
        "Path(name).read_text()", "(Path(name)).read_bytes()", "self.files[name].open()",
        "list(map(open, names))", "look = open\nlook(name)", "look = Image.open\nlook(name)",
        "partial(np.load, name)()", "from PIL.Image import open as show\nshow(name)",
        "from numpy import load as take", "from os import *", "getattr(Path(name), 'open')()",
        "getattr(np, word)(name)", "operator.methodcaller('open')(Path(name))",
        "eval('open(name)')", "__import__('os').open(name, 0)", "importlib.import_module(word)",
        "with Path(name).open() as file:\n    file.read()", "[open(n) for n in names]",
        "lambda name: open(name)", "f(g(open(name)))", "open(open(name).read())",
        "x = {'a': Image.open(name)}", "os.replace_file(name)", "def f(at=open): at(name)",
    ],
)  # fmt: skip
def test_the_lint_is_not_fooled(text):
    assert any(not is_gate(node) for _, _, node in openings(text)), text


@pytest.mark.parametrize(
    "text", ["place.open(name)", "self.folders.open(name)", "Place(roots).open(name)", "opened(1)"]
)
def test_the_gate_is_let_through(text):
    assert all(is_gate(node) for _, _, node in openings(text))


def test_scenes_of_the_studio_have_a_place():
    found = [call for key, call in found_in("studio") if key.endswith(":load_scene")]
    assert found
    assert all("place" in [k.arg for k in call.keywords] for call in found)


def test_the_list_has_nothing_that_is_gone():
    assert set(ALLOWED) - {key for room in ROOMS for key, _ in found_in(room)} == set()
