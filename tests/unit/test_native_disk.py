"""The disk cache of native code: found without parsing while its sources are unchanged."""

from __future__ import annotations

import importlib
import pathlib
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.native import Native, compile_native, disk, function, native
from dala.gpu.compute.engines.cpu.native.names import i64

HEAD = """
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import Array, f32, i64
"""
SOURCES = {
    "cached_numbers": "STEP = 3\n",
    "cached_callee": HEAD
    + "from cached_numbers import STEP\n"
    + "@native\ndef more(n: i64) -> i64:\n    return n * 2 + STEP\n",
    "cached_entry": HEAD
    + "from cached_callee import more\n"
    + "@native\ndef entry(a: Array[f32], n: i64, *, k: int) -> tuple[i64, bool]:\n"
    + '    """Names such as np and inspect in a docstring are ignored."""\n'
    + "    return more(n) + k + len(a), n > 5\n"
    + "@native\ndef rows(a: Array[i64], start: i64, end: i64) -> None:\n"
    + "    for i in range(start, end):\n        a[i] = more(i)\n",
}


class Workspace:
    """Modules in a folder; ``process`` imports and compiles them as a new process would."""

    def __init__(self, folder: pathlib.Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        patch.syspath_prepend(folder)
        patch.setattr(sys, "dont_write_bytecode", True)
        for name, text in SOURCES.items():
            (folder / f"{name}.py").write_text(text)

    def process(self) -> tuple[ModuleType, Jit]:
        importlib.invalidate_caches()
        for name in SOURCES:
            sys.modules.pop(name, None)
        self.patch.setattr(function, "_digests", {})
        module = importlib.import_module("cached_entry")
        return module, Jit(ObjectCache(self.folder / "objects"))

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / f"{name}.py"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def entry(self, **options: Any) -> Native:
        module, compiler = self.process()
        return compile_native(module.entry, compiler=compiler, **{"k": 10, **options})


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    yield Workspace(tmp_path, monkeypatch)
    for name in SOURCES:
        sys.modules.pop(name, None)


def parsed(code: Native) -> bool:
    """Return whether the function was parsed and emitted."""
    return "_emitted" in code.__dict__


def called(code: Native) -> Any:
    return code(np.zeros(100, np.float32), 7)


def test_found_without_parsing(workspace):
    first = workspace.entry()
    assert parsed(first)
    again = workspace.entry()
    assert not parsed(again)
    assert called(first) == called(again) == (7 * 2 + 3 + 10 + 100, True)
    assert (again.params, again.kinds, again.result) == (first.params, first.kinds, first.result)
    assert (again._compiler.cache_hits, again._compiler.compiled) == (1, 0)
    assert again.text == first.text  # emitted on request


def test_found_for_parallel_calls(workspace):
    for expected in (True, False):
        module, compiler = workspace.process()
        code = compile_native(module.rows, compiler=compiler)
        assert parsed(code) == expected
        out = np.zeros(50, np.int64)
        code.parallel(50, 8)(out)
        np.testing.assert_array_equal(out, np.arange(50) * 2 + 3)


def test_constants_and_checked_builds_have_own_entries(unsanitized, workspace):
    assert parsed(workspace.entry())
    assert parsed(workspace.entry(k=11))
    assert parsed(workspace.entry(k=True))
    assert parsed(workspace.entry(checked=True))
    assert called(workspace.entry(k=11))[0] == 128
    assert not parsed(workspace.entry(k=11))
    assert not parsed(workspace.entry(checked=True))


@pytest.mark.parametrize(
    ("name", "old", "new", "result"),
    [
        ("cached_entry", "+ len(a)", "- len(a)", -73),
        ("cached_callee", "n * 2", "n * 4", 141),
        ("cached_numbers", "STEP = 3", "STEP = 5", 129),
        ("cached_callee", "@native\n", "@native(inline=False)\n", 127),
    ],
)
def test_changed_sources_are_compiled_again(workspace, name, old, new, result):
    assert called(workspace.entry())[0] == 127
    workspace.edit(name, old, new)
    changed = workspace.entry()
    assert parsed(changed)
    assert called(changed)[0] == result
    again = workspace.entry()
    assert not parsed(again)
    assert called(again)[0] == result


def test_changed_global_is_compiled_again(workspace):
    workspace.entry()
    module, compiler = workspace.process()
    sys.modules["cached_callee"].STEP = 50
    assert called(compile_native(module.entry, k=10, compiler=compiler))[0] == 174


def test_a_file_edited_during_the_process_is_not_cached(workspace):
    module, compiler = workspace.process()
    compile_native(module.rows, compiler=compiler)  # parses the called function
    workspace.edit("cached_callee", "n * 2", "n * 4")
    assert called(compile_native(module.entry, k=10, compiler=compiler))[0] == 127
    later = workspace.entry()
    assert parsed(later)
    assert called(later)[0] == 141


def test_the_emitters_are_part_of_the_key(workspace, monkeypatch):
    workspace.entry()
    monkeypatch.setattr(disk, "_package", lambda: "another version")
    assert parsed(workspace.entry())


def test_nothing_is_cached_if_emitters_changed_after_import(workspace, monkeypatch):
    monkeypatch.setattr(disk, "_STARTED", 0.0)
    assert called(workspace.entry())[0] == 127
    assert parsed(workspace.entry())


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"digest": 3, "functions": [["x"]]}'])
def test_damaged_entries_are_replaced(unsanitized, workspace, damage):
    code = workspace.entry()
    module, compiler = workspace.process()
    key = disk.cache_key(module.entry, {"k": 10}, compiler, False, code._touch_from)
    assert compiler.cache.get(key) is not None
    compiler.cache.put(key, damage)
    assert called(workspace.entry())[0] == 127
    assert not parsed(workspace.entry())


def test_missing_object_code(workspace):
    workspace.entry()
    for path in (workspace.folder / "objects").iterdir():
        if path.read_bytes()[40:41] != b"{":
            path.unlink()
    code = workspace.entry()
    assert parsed(code)
    assert called(code)[0] == 127


def test_nested_functions_are_not_cached(tmp_path):
    def made(step: int) -> Any:
        @native
        def add(n: i64) -> i64:
            return n + step

        return add

    compiler = Jit(ObjectCache(tmp_path))
    assert compile_native(made(2), compiler=compiler)(5) == 7
    assert compile_native(made(9), compiler=compiler)(5) == 14
    assert disk.cache_key(made(2), {}, compiler) is None
