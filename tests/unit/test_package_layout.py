"""Package layout: which packages may import which."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
COMPUTE = "dala.gpu.compute"

#: The modules outside ``engines`` that an engine may import.
ENGINES_KNOW = {"dala.errors", "dala.typing", f"{COMPUTE}.dtypes", f"{COMPUTE}.lang.ir"}


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("dala", exclude_type_checking_imports=True, cache_dir=None)


def test_contracts():
    command = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert command, "lint-imports is not installed: pip install import-linter"
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_engines_know_ir_and_storage_only(graph):
    """Engines import nothing else of the library."""
    room = f"{COMPUTE}.engines"
    found = {
        (module, known)
        for module in graph.modules
        if module.startswith(f"{room}.")
        for known in graph.find_modules_directly_imported_by(module)
        if known not in ENGINES_KNOW and not known.startswith(room)
    }
    assert found == set()


def test_lang_knows_no_engine(graph):
    found = {
        (module, known)
        for module in graph.modules
        if module.startswith(f"{COMPUTE}.lang.")
        for known in graph.find_modules_directly_imported_by(module)
        if known.startswith(f"{COMPUTE}.")
        and not known.startswith((f"{COMPUTE}.lang", f"{COMPUTE}.dtypes"))
    }
    assert found == set()
