"""The layout of the package: layers, folders, names, and what each room may know."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.support import house

ROOT = Path(__file__).parents[2]
COMPUTE = "dala.gpu.compute"
ENGINES = f"{COMPUTE}.engines"

#: All that an engine may import, besides other engine modules.
ENGINES_KNOW = {
    "dala.errors",
    "dala.typing",
    f"{COMPUTE}.dtypes",
    f"{COMPUTE}.lang.ir",
}


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
    ],
    ids=lambda rule: rule.__name__,
)
def test_layout(rule):
    assert list(rule()) == []


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


@pytest.mark.parametrize("name", ["buffer", "kernel", "kernels", "pipeline"])
@pytest.mark.parametrize("first", ["module", "function"])
def test_functions_with_the_name_of_a_module(name, first):
    """``dala.gpu.compute.buffer`` is the function, whichever was imported first."""
    lines = [f"import dala.gpu.compute.{name}", f"from dala.gpu.compute import {name}"]
    code = "\n".join(lines if first == "module" else lines[::-1])
    code += f"\nimport dala\nassert callable(dala.gpu.compute.{name}) and callable({name})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
