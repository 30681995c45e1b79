"""Results of the user are written as a whole: under a name of their own, which is then changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "dala"
OWN = "in a folder of its own, which nobody else reads"
#: What writes under the last name all the same, and why it may.
ALLOWED = {
    "answers/generate.py:main": "for developers",
    "batch/chains.py:_file": OWN,
    "batch/storage/local.py:claim": "a name of its own, which is then changed",
    "batch/tables/work.py:_local_file": OWN,
    "batch/worker.py:main": "standard output",
    "cli/common/signals.py:_spooled": OWN,
    "cli/common/verbosity.py:first_today": "the stamp of a notice",
    "gpu/compute/engines/cpu/cache.py:put": "a name of its own, which is then changed",
    "media/audio/files/writer.py:save": "an unfinished file, or a stream",
    "media/live/muxing.py:__init__": "FFmpeg changes the names of segments and playlists",
    "media/video/chunks/packets.py:__init__": "in memory",
    "media/video/chunks/packets.py:start_encoding": OWN,
    "media/video/output/target.py:open": "an unfinished file, a pipe or a device",
    "ml/weights/pull.py:_convert": OWN,
    "ml/weights/pull.py:_fetch": OWN,
    "ml/weights/pull.py:_run": OWN,
    "secure.py:certificate_files": OWN,
    "studio/application.py:_upload": OWN,
    "trace/session.py:_append": OWN,
}
#: What is written to there gets its name when it is whole.
WHOLE = (
    "work.path.",
    "part.path.",
    "storage.",
    "av.open(str(part.path)",
    "av.open(f'file:{work.path}'",
)


def writes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the function of everything that writes to a file by its name, and the call.

    >>> list(writes("def f(p):\\n    p.write_text('')\\n    open(p, 'rb')\\n"))
    [('f', "p.write_text('')")]
    """
    yield from _writes(ast.parse(text), "")


def _writes(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            name = getattr(child.func, "attr", getattr(child.func, "id", ""))
            given = [*child.args, *(k.value for k in child.keywords if k.arg == "mode")]
            modes = [a.value for a in given if isinstance(a, ast.Constant)]
            opens = name in ("open", "fdopen") and any(
                isinstance(m, str) and m and set(m) <= set("rwaxbt+") and set(m) & set("wax+")
                for m in modes
            )
            if opens or (name in ("write_text", "write_bytes") and "." in ast.unparse(child.func)):
                yield function, ast.unparse(child)
        inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _writes(child, child.name if inner else function)


def test_no_result_is_written_in_place():
    found = {
        f"{path.relative_to(SOURCES).as_posix()}:{function}": call
        for path in sorted(SOURCES.rglob("*.py"))
        for function, call in writes(path.read_text("utf-8"))
        if not call.startswith(WHOLE) and function != "write_folder"
    }
    assert found.keys() == ALLOWED.keys(), found


@pytest.mark.parametrize(
    "text",
    ["open(path, 'w')", "path.open(mode='ab')", "Path(x).write_bytes(b'')", "io.open(p, 'r+b')"],
)
def test_the_lint_is_not_fooled(text):
    assert list(writes(f"def f():\n    return {text}")) == [("f", text)]
