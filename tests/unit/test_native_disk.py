"""Native code found on disk without parsing: only while all that it was made from is the same."""

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
    "recalled_numbers": "STEP = 3\n",
    "recalled_callee": HEAD
    + "from recalled_numbers import STEP\n"
    + "@native\ndef more(n: i64) -> i64:\n    return n * 2 + STEP\n",
    "recalled_entry": HEAD
    + "from recalled_callee import more\n"
    + "@native\ndef entry(a: Array[f32], n: i64, *, k: int) -> tuple[i64, bool]:\n"
    + '    """Words such as np and inspect in here mean nothing."""\n'
    + "    return more(n) + k + len(a), n > 5\n"
    + "@native\ndef rows(a: Array[i64], start: i64, end: i64) -> None:\n"
    + "    for i in range(start, end):\n        a[i] = more(i)\n",
}


class Place:
    """Modules in a folder, which every ``process`` imports and compiles as if it were the first."""

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
        module = importlib.import_module("recalled_entry")
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
def place(tmp_path, monkeypatch):
    yield Place(tmp_path, monkeypatch)
    for name in SOURCES:
        sys.modules.pop(name, None)


def parsed(code: Native) -> bool:
    """Whether the full way was gone."""
    return "_emitted" in code.__dict__


def called(code: Native) -> Any:
    return code(np.zeros(100, np.float32), 7)


def test_found_without_parsing(place):
    first = place.entry()
    assert parsed(first)
    again = place.entry()
    assert not parsed(again)
    assert called(first) == called(again) == (7 * 2 + 3 + 10 + 100, True)
    assert (again.params, again.kinds, again.result) == (first.params, first.kinds, first.result)
    assert (again._compiler.cache_hits, again._compiler.compiled) == (1, 0)
    assert again.text == first.text  # for people to read, when they ask


def test_found_for_threads(place):
    for expected in (True, False):
        module, compiler = place.process()
        code = compile_native(module.rows, compiler=compiler)
        assert parsed(code) == expected
        out = np.zeros(50, np.int64)
        code.parallel(50, 8)(out)
        np.testing.assert_array_equal(out, np.arange(50) * 2 + 3)


def test_constants_and_checks_are_apart(place):
    assert parsed(place.entry())
    assert parsed(place.entry(k=11))
    assert parsed(place.entry(k=True))
    assert parsed(place.entry(checked=True))
    assert called(place.entry(k=11))[0] == 128
    assert not parsed(place.entry(k=11))
    assert not parsed(place.entry(checked=True))


@pytest.mark.parametrize(
    ("name", "old", "new", "result"),
    [
        ("recalled_entry", "+ len(a)", "- len(a)", -73),
        ("recalled_callee", "n * 2", "n * 4", 141),
        ("recalled_numbers", "STEP = 3", "STEP = 5", 129),
        ("recalled_callee", "@native\n", "@native(inline=False)\n", 127),
    ],
)
def test_a_changed_source_is_seen(place, name, old, new, result):
    assert called(place.entry())[0] == 127
    place.edit(name, old, new)
    changed = place.entry()
    assert parsed(changed)
    assert called(changed)[0] == result
    again = place.entry()
    assert not parsed(again)
    assert called(again)[0] == result


def test_a_name_that_means_something_else(place):
    place.entry()
    module, compiler = place.process()
    sys.modules["recalled_callee"].STEP = 50
    assert called(compile_native(module.entry, k=10, compiler=compiler))[0] == 174


def test_a_file_edited_while_it_is_in_use_is_not_remembered(place):
    module, compiler = place.process()
    compile_native(module.rows, compiler=compiler)  # its callee is parsed now
    place.edit("recalled_callee", "n * 2", "n * 4")
    assert called(compile_native(module.entry, k=10, compiler=compiler))[0] == 127
    later = place.entry()
    assert parsed(later)
    assert called(later)[0] == 141


def test_the_emitters_are_part_of_it(place, monkeypatch):
    place.entry()
    monkeypatch.setattr(disk, "_package", lambda: "another version")
    assert parsed(place.entry())


def test_emitters_edited_after_they_were_imported_write_for_nobody_else(place, monkeypatch):
    monkeypatch.setattr(disk, "_STARTED", 0.0)
    assert called(place.entry())[0] == 127
    assert parsed(place.entry())


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"digest": 3, "functions": [["x"]]}'])
def test_damaged_entries_are_made_anew(place, damage):
    code = place.entry()
    module, compiler = place.process()
    key = disk.cache_key(module.entry, {"k": 10}, compiler, False, code._touch_from)
    assert compiler.cache.get(key) is not None
    compiler.cache.put(key, damage)
    assert called(place.entry())[0] == 127
    assert not parsed(place.entry())


def test_an_object_that_is_gone(place):
    place.entry()
    for path in (place.folder / "objects").iterdir():
        if path.read_bytes()[40:41] != b"{":
            path.unlink()
    code = place.entry()
    assert parsed(code)
    assert called(code)[0] == 127


def test_functions_within_functions_are_not_remembered(tmp_path):
    def made(step: int) -> Any:
        @native
        def add(n: i64) -> i64:
            return n + step

        return add

    compiler = Jit(ObjectCache(tmp_path))
    assert compile_native(made(2), compiler=compiler)(5) == 7
    assert compile_native(made(9), compiler=compiler)(5) == 14
    assert disk.cache_key(made(2), {}, compiler) is None
