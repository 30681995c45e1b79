"""The names of the kernel language can be imported, and have types."""

from __future__ import annotations

import ast
import builtins
import pathlib

import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import language
from dala.gpu.compute.lang.declaration import CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.language import Pixel, clamp, kernel, rgba

STUB = pathlib.Path(language.__file__).with_suffix(".pyi")
CASTS = {"bool", "float", "int", "f32", "f64", "s32", "s64", "u32", "u8"}
VECTORS = {"rgba", "vec2", "vec3", "vec4"}


def stub_functions():
    """Return the smallest and largest number of arguments of each function in the stub."""
    found: dict[str, list[tuple[int, int]]] = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            most = len(node.args.posonlyargs)
            least = most - len(node.args.defaults)
            most = 64 if node.args.vararg is not None else most
            found.setdefault(node.name, []).append((least, most))
    return {
        name: (min(low for low, _ in all_), max(high for _, high in all_))
        for name, all_ in found.items()
    }


def test_the_stub_declares_every_function_with_its_number_of_arguments():
    declared = {
        name: (row.least, row.most)
        for name, row in FUNCTIONS.items()
        if name not in CASTS | VECTORS
    }
    assert stub_functions() == declared


def test_the_stub_declares_every_constant():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    names = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert names == set(CONSTANTS)


def test_every_name_can_be_imported():
    for name in {*FUNCTIONS, *CONSTANTS} - {"bool", "float", "int"}:
        assert hasattr(language, name), name
    assert not set(language.__all__) & set(dir(builtins))
    assert {*FUNCTIONS, *CONSTANTS} - set(dir(builtins)) <= set(language.__all__)


#: Names that mean functions of buffers in ``dala.gpu.compute``.
BUFFERS = {"shape", "tanh"}
NAMES = {*language.__all__, *FUNCTIONS, *CONSTANTS} - {"bool", "float", "int"}


def test_every_name_is_in_compute_too():
    assert {name for name in NAMES if getattr(compute, name) is not getattr(language, name)} == (
        BUFFERS
    )
    assert set(dir(compute)) >= NAMES
    given: dict[str, object] = {}
    exec(f"from dala.gpu.compute import {', '.join(sorted(NAMES))}", given)
    assert given["max"] is language.max
    with pytest.raises(ImportError, match="cannot import name 'clamped'"):
        exec("from dala.gpu.compute import clamped")
    with pytest.raises(AttributeError, match="has no attribute 'clamped'"):
        _ = compute.clamped


def test_names_in_compute_shadow_nothing():
    """Modules of the package, and those who import all of it, keep Python's builtins."""
    for name in NAMES:
        getattr(compute, name)
    shadowed = set(vars(compute)) & set(dir(builtins))
    assert {name for name in shadowed if not name.startswith("__")} == set()
    assert not set(compute.__all__) & set(dir(builtins))


def test_type_checkers_see_every_name_in_compute():
    stub = pathlib.Path(compute.__file__).with_suffix(".pyi")
    lines = [n for n in ast.parse(stub.read_text("utf-8")).body if isinstance(n, ast.ImportFrom)]
    typed = {alias.asname for line in lines for alias in line.names}
    assert typed == NAMES | set(compute.__all__)


def test_names_of_compute_mean_the_same_inside_a_kernel():
    from dala.gpu.compute import atan2, clamp, kernel, max, pi, shape, tanh

    @kernel
    def from_compute(x):
        return max(tanh(x), clamp(atan2(x, 1.0) / pi, 0.0, 1.0)) + shape()

    x = dala.gpu.compute.buffer([-1.0, 0.0, 2.0], device="reference")
    expected = [max_ + 3.0 for max_ in (0.0, 0.0, 0.9640276)]
    assert from_compute(x).read_list() == pytest.approx(expected)
    dala.gpu.compute.Kernel.unregister("from_compute")


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"bool", "float", "int", "rgba"}))
def test_a_call_outside_a_kernel_raises(name):
    with pytest.raises(dala.DalaError, match=f"^{name}: this name of the kernel language works"):
        getattr(language, name)(1.0)


def test_imported_names_mean_the_same_inside_a_kernel():
    @kernel
    def brighter_by(px: Pixel, *, by: float = 0.5):
        return rgba(clamp(px.rgb + by, 0.0, 1.0), px.a)

    image = dala.gpu.compute.buffer([[[255, 0, 51, 255]]], dtype="u8", device="reference")
    assert brighter_by(image).read_list() == [255, 128, 179, 255]
    dala.gpu.compute.Kernel.unregister("brighter_by")
