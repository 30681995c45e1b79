"""``import dala`` is light: public names exist, and their modules load on first use."""

import importlib
import json
import math
import subprocess
import sys
import types

import pytest

import dala
import dala.errors
from dala.lazy import attach

HEAVY = ["numpy", "llvmlite", "wgpu", "rendercanvas", "av", "PIL", "onnxruntime", "glfw", "typing"]


def in_new_process(code: str) -> str:
    # -S and -I exclude the imports of site-packages.
    paths = [path for path in sys.path if path]
    program = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy(record_property):
    out = in_new_process(
        "from time import perf_counter; begin = perf_counter()\n"
        "import dala\n"
        "took = perf_counter() - begin\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "import json; print(json.dumps([took, loaded]))"
    )
    took, loaded = json.loads(out)
    record_property("import_ms", round(took * 1000, 2))  # reported only: timings vary
    assert loaded == []


@pytest.mark.parametrize("use", ["dala.DalaError", "dala.diagnostics()", "dir(dala)", "dala.gpu"])
def test_light_names_load_nothing_heavy(use):
    code = f"import dala\n{use}\nprint([n for n in {HEAVY[:-1]!r} if n in sys.modules])"
    assert in_new_process(code) == "[]\n"


def test_every_error_is_a_name_of_dala():
    for name in dala.errors.__all__:
        assert getattr(dala, name) is getattr(dala.errors, name)
        assert issubclass(getattr(dala, name), dala.DalaError)


def test_every_listed_name_exists():
    assert {"use", "device", "devices", "diagnostics", "doctor", "DalaError", "gpu"} <= {*dir(dala)}
    for name in dir(dala):
        assert getattr(dala, name) is not None or name.startswith("__")


def test_functions_are_not_hidden_by_their_modules():
    from dala import resources
    from dala.machine import report

    assert callable(dala.doctor)
    assert callable(dala.diagnostics)
    assert dala.doctor is report.doctor
    assert dala.diagnostics is resources.diagnostics


@pytest.mark.parametrize(
    ("name", "hint"), [("doctr", r"\. Did you mean 'doctor'\?"), ("_private", ""), ("zzzz", "")]
)
def test_unknown_name(name, hint):
    with pytest.raises(AttributeError, match=rf"^module 'dala' has no attribute '{name}'{hint}$"):
        getattr(dala, name)


def test_a_missing_dependency_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'av'", name="av")

    monkeypatch.delattr(dala, "media")  # it may be cached
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="'av'"):
        dala.media  # noqa: B018 - the lookup is the test


@pytest.fixture
def package(monkeypatch):
    """A package with one renamed public name."""
    made = types.ModuleType("made_package")
    made.__getattr__, made.__dir__ = attach(
        "made_package", {"floor": "math"}, renamed={"round_down": "floor"}
    )
    monkeypatch.setitem(sys.modules, "made_package", made)
    return made


def test_a_renamed_name_works_and_warns(package):
    text = r"^made_package\.round_down is deprecated, use made_package\.floor\.$"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert package.round_down is math.floor
    assert [warning.filename for warning in caught] == [__file__]
    assert "floor" in dir(package)
    assert "round_down" not in dir(package)


def test_the_new_name_does_not_warn(package, recwarn):
    assert package.floor is math.floor
    assert not recwarn.list


def test_renamed_names_of_dala_exist():
    assert set(dala._RENAMED.values()) <= set(dir(dala))
    assert not set(dala._RENAMED) & set(dir(dala))


def test_a_stub_is_the_list_of_a_package(tmp_path, monkeypatch):
    (tmp_path / "stubbed").mkdir()
    (tmp_path / "stubbed" / "__init__.py").write_text(
        "from dala.lazy import attach_stub\n"
        '__getattr__, __dir__, __all__ = attach_stub(__name__, renamed={"root": "sqrt"})\n'
    )
    (tmp_path / "stubbed" / "__init__.pyi").write_text(
        "from math import sqrt as sqrt\nfrom stubbed import room as room\n"
    )
    (tmp_path / "stubbed" / "room.py").write_text("size = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    import stubbed

    try:
        assert stubbed.__all__ == ["room", "sqrt"]
        assert stubbed.sqrt is math.sqrt
        assert stubbed.room.size == 3
        assert {"room", "sqrt"} <= {*dir(stubbed)}
        with pytest.warns(DeprecationWarning, match=r"^stubbed\.root is deprecated"):
            assert stubbed.root is math.sqrt
        with pytest.raises(
            AttributeError, match=r"^module 'stubbed' has no attribute 'squrt'\. Did"
        ):
            _ = stubbed.squrt
    finally:
        for name in ("stubbed", "stubbed.room"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "name",
    ["", ".audio", ".live", ".microphone", ".scene", ".sources", ".text", ".text.fonts",
     ".transitions", ".video"],
)  # fmt: skip
def test_every_name_of_a_stub_exists(name):
    package = importlib.import_module(f"dala.media{name}")
    assert package.__all__
    for one in package.__all__:
        assert getattr(package, one) is not None
