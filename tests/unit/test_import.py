"""``import dala`` is light: names are there, what is behind them is not loaded."""

import json
import subprocess
import sys

import pytest

import dala
import dala.errors

HEAVY = ["numpy", "llvmlite", "wgpu", "rendercanvas", "av", "PIL", "onnxruntime", "glfw", "typing"]


def in_new_process(code: str) -> str:
    # -S and -I keep site-packages' own imports out, so that only dala's are seen.
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
    record_property("import_ms", round(took * 1000, 2))  # reported; a clock is no judge in a test
    assert loaded == []


@pytest.mark.parametrize("use", ["dala.DalaError", "dala.diagnostics()", "dir(dala)", "dala.gpu"])
def test_light_names_stay_light(use):
    code = f"import dala\n{use}\nprint([n for n in {HEAVY[:-1]!r} if n in sys.modules])"
    assert in_new_process(code) == "[]\n"


def test_every_error_is_at_the_root():
    for name in dala.errors.__all__:
        assert getattr(dala, name) is getattr(dala.errors, name)
        assert issubclass(getattr(dala, name), dala.DalaError)


def test_every_listed_name_is_there():
    assert {"use", "device", "devices", "diagnostics", "doctor", "DalaError", "gpu"} <= {*dir(dala)}
    for name in dir(dala):
        assert getattr(dala, name) is not None or name.startswith("__")


def test_functions_are_not_hidden_by_their_modules():
    from dala import resources as census
    from dala.machine import report as checkup

    assert callable(dala.doctor)
    assert callable(dala.diagnostics)
    assert dala.doctor is checkup.doctor
    assert dala.diagnostics is census.diagnostics


@pytest.mark.parametrize("name", ["doctr", "_private", "ERRORS"])
def test_unknown_name(name):
    with pytest.raises(AttributeError, match=rf"^module 'dala' has no attribute '{name}'$"):
        getattr(dala, name)


def test_a_room_that_lacks_a_package_says_which(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'av'", name="av")

    monkeypatch.delattr(dala, "media")  # looked up before, perhaps
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="'av'"):
        dala.media  # noqa: B018 - looking it up is the test


def test_a_room_that_is_not_there(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delattr(dala, "media")  # looked up before, perhaps
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(AttributeError, match=rf"^dala {dala.__version__} has no dala.media$"):
        dala.media  # noqa: B018
