"""Examples import what they share from their own folder; the site, and a browser to open it in."""

import os
import pathlib
import shutil
import sys

import pytest

from tests.support.site import LIVE, build
from tests.support.web import FLAGS
from website import versions

try:
    import fcntl
except ImportError:  # Windows: a worker may build the site again
    fcntl = None

EXAMPLES = str(pathlib.Path(__file__).parents[2] / "examples")
if EXAMPLES not in sys.path:
    sys.path.append(EXAMPLES)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, as one of two versions; workers of pytest-xdist build it once for all of them."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    built = folder.with_suffix(".built")
    with open(folder.with_suffix(".lock"), "w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        if not built.exists():
            alone = folder.with_suffix(".alone")
            assert build(alone, ",".join(LIVE), "dev") == ""  # no warning
            versions.assemble(folder, {"dev": alone, "0.1.0": alone})
            built.touch()
    return folder / "dev"


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not on this machine (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=list(FLAGS))
        yield found
        found.close()
