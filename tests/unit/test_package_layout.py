"""The layout of the package: layers, folders, names, and what each room may know."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.support import house
from tests.support.privates import Library

ROOT = Path(__file__).parents[2]
COMPUTE = "dala.gpu.compute"
ENGINES = f"{COMPUTE}.engines"

#: All that an engine may import, besides other engine modules.
ENGINES_KNOW = {
    "dala.errors",
    "dala.resources",
    "dala.folders",
    "dala.trust",
    "dala.budget",
    "dala.memory",
    "dala.forks",
    "dala.trace.recorder",
    "dala.typing",
    f"{COMPUTE}.dtypes",
    f"{COMPUTE}.lang.ir",
    f"{COMPUTE}.lang.rewrite",
    f"{COMPUTE}.lang.exact.exponential",
    f"{COMPUTE}.lang.exact.fixed_point",
    f"{COMPUTE}.lang.exact.uniform",
}


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    yield
    house.forget()


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("dala", exclude_type_checking_imports=True, cache_dir=None)


def test_import_contracts():
    command = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert command, "lint-imports is not installed: pip install import-linter"
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_engines_know_ir_and_storage_only(graph):
    """An allow list, which import-linter cannot express: anything not listed is forbidden."""
    found = {
        (module, known)
        for module in graph.modules
        if module.startswith(f"{ENGINES}.")
        for known in graph.find_modules_directly_imported_by(module)
        if known not in ENGINES_KNOW and not known.startswith(ENGINES)
    }
    assert found == set()


def test_lang_knows_no_engine(graph):
    found = {
        (module, known)
        for module in graph.modules
        if module.startswith(f"{COMPUTE}.lang.")
        for known in graph.find_modules_directly_imported_by(module)
        if known.startswith(f"{COMPUTE}.")
        and not known.startswith((f"{COMPUTE}.lang.", f"{COMPUTE}.dtypes"))
    }
    assert found == set()


def test_compute_names_no_module_above_it():
    """Not even in a string: ``dala.media`` and ``dala.ml`` register themselves."""
    above = ("dala.media", "dala.ml", "dala.cli", "dala.studio", "dala.batch", "dala.web")
    found = [
        f"{house.name_of(path)}:{number}: {line.strip()}"
        for path in house.modules()
        if house.name_of(path).startswith("gpu/")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(f"{name}{end}" in line for name in above for end in (".", '"', "'", " "))
        and ">>>" not in line
    ]
    assert found == []


@pytest.mark.parametrize(
    "rule",
    [
        house.full_folders,
        house.families,
        house.long_modules,
        house.repeated_classes,
        house.private_access,
        house.unregistered,
    ],
    ids=lambda rule: rule.__name__,
)
def test_layout(rule):
    assert list(rule()) == []


LIBRARY = {
    "gpu/surface.py": """
class Surface:
    def __init__(self):
        self._put = 1
    def look(self, other: "Surface"):
        return self._put + other._put + self._gone
""",
    "gpu/draw.py": """
from dala.gpu.surface import Surface
def near(s: Surface, many: list[Surface]):
    return s._put, [m._put for m in many], s._missing
def unknown(s):
    return s._put
def _helper(): pass
""",
    "gpu/compute/buffer.py": """
from __future__ import annotations
from dala.gpu.draw import _helper
from dala.gpu.surface import Surface
class Buffer:
    _put = None
    def steal(self, s: Surface | None):
        return s._put
""",
    "gpu/compute/lang/below.py": """
from dala.gpu.compute.buffer import Buffer
def make() -> Buffer: ...
def below():
    made = Buffer()
    return made._put
""",
    "media/frame.py": """
import pickle
import canvas
from canvas import Canvas
from dala.gpu.compute.buffer import Buffer
class Own(Canvas):
    _put = 3
    def draw(self):
        self._put, self._window
        super()._resize()
class _Unpickler(pickle._Unpickler): pass
def far(b: Buffer, c: Canvas):
    return b._put, c._put, canvas._put
""",
}


def test_private_access(tmp_path):
    """The rule goes by what an object is, not by the name of the attribute alone."""
    for name, code in LIBRARY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    assert list(Library(tmp_path).violations()) == [
        "gpu/compute/buffer.py:3: dala.gpu.draw (_helper) is private to another package",
        "gpu/compute/buffer.py:8: s._put is private to gpu/surface.py",
        "gpu/draw.py:4: s._missing is not defined by Surface",
        "gpu/draw.py:6: s._put is not known to be defined in this module",
        "gpu/surface.py:6: self._gone is defined by no class of the library",
        "media/frame.py:9: self._window is defined by no class of the library",
        "media/frame.py:10: super()._resize is defined by no class of the library",
        "media/frame.py:11: pickle._Unpickler is private to another package",
        "media/frame.py:13: b._put is private to gpu/compute/buffer.py",
        "media/frame.py:13: c._put is private to another package",
        "media/frame.py:13: canvas._put is private to another package",
    ]


def test_no_module_has_the_name_of_a_public_function_of_its_package():
    """Except four in compute, bound in its ``__init__`` and tested in both import orders."""
    known = {f"{COMPUTE}.{name}" for name in ("buffer", "kernel", "kernels", "pipeline")}
    public = {name for name, found in house.public_things() if callable(found)}
    modules = {
        "dala." + house.name_of(path).removesuffix(".py").replace("/", ".")
        for path in house.modules()
    }
    packages = {name.removesuffix(".__init__") for name in modules}
    assert public & packages - known == set()


@pytest.mark.parametrize("first", ["module", "function"])
def test_functions_with_the_name_of_a_module(first):
    """``dala.gpu.compute.buffer`` is the function, whichever was imported first."""
    code = "import dala\n"
    for name in ("buffer", "kernel", "kernels", "pipeline"):
        lines = [f"import dala.gpu.compute.{name}", f"from dala.gpu.compute import {name}"]
        code += "\n".join(lines if first == "module" else lines[::-1])
        code += f"\nassert callable(dala.gpu.compute.{name}) and callable({name})\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_locks_and_threads_outside_the_registry(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        """
import threading
import threading as th
from concurrent.futures import Future, ThreadPoolExecutor as Pool
from dataclasses import field
from queue import SimpleQueue
import os, queue
from dala import forks
x: threading.Lock = forks.lock()
y: dict[str, SimpleQueue[int]] = {}
def f(a: threading.Thread) -> threading.Event: return threading.current_thread()
threading.Lock()
th.Event()
z = field(default_factory=threading.RLock)
class T(threading.Thread): pass
with Pool(2) as p: Future()
SimpleQueue(); queue.Queue()
os.register_at_fork(before=f)
"""
    )
    found = [row.partition(": ")[2].partition(";")[0] for row in house.unregistered([path])]
    assert found == [
        "threading.Lock",
        "threading.Event",
        "threading.RLock",
        "threading.Thread",
        "concurrent.futures.ThreadPoolExecutor",
        "queue.SimpleQueue",
        "queue.Queue",
        "os.register_at_fork",
    ]
