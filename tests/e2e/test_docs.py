"""Every Python block in the README and the guides runs as pasted into a file.

The blocks of a page run in one process, one after another, each with names of its own.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from dala.cli import parse
from tests.support import tolerance_table
from tests.support.weights import OFFLINE, missing_reason, weights_folder

ROOT = pathlib.Path(__file__).parents[2]
GUIDES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "design"]
PAGES = [ROOT / "README.md", *GUIDES]


#: Runs the files that it is given, each in its folder; the first one that fails ends it.
RUNNER = """
import os, runpy, sys, warnings
warnings.filterwarnings("ignore", ".*Earlier snapshots took")  # what order sizes have, said once
for path in sys.argv[1:]:
    print(path, flush=True)
    os.chdir(os.path.dirname(path))
    runpy.run_path(path, run_name="__main__")
"""

#: Folders whose pages share a process: starting one takes longer than most pages do.
SHORT = (
    "docs/how-to", "docs/coming-from", "docs/concepts", "docs/compute", "docs/compute/operations",
    "docs/media", "docs/surfaces", "docs/tutorial",
)  # fmt: skip


def pages():
    """Blocks by page: of each page alone, or of a folder of short ones."""
    folders = {}
    for page in PAGES:
        found = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        name = page.relative_to(ROOT).as_posix()
        if found:
            folder = page.parent.relative_to(ROOT).as_posix()
            folders.setdefault(folder if folder in SHORT else name, {})[page.stem] = found
    for name, blocks in folders.items():
        yield pytest.param(blocks, id=name)


def weights():
    """Where the models' weights are; pages that need others are skipped."""
    place = weights_folder()
    return OFFLINE | ({} if place is None else {"DALA_MODELS": str(place)})


@pytest.mark.parametrize("blocks", list(pages()))
def test_blocks_run_as_pasted(blocks, tmp_path):
    scripts = []
    for page, held in blocks.items():
        (tmp_path / page).mkdir()
        for number, block in enumerate(held, 1):
            scripts.append(tmp_path / page / f"block{number}.py")
            scripts[-1].write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER, *scripts],
        cwd=tmp_path,
        env={**os.environ, "DALA_DEVICE": "cpu"} | weights(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lacking = re.search(r"(?:downloads|download) the weights of '(\w+)'", done.stderr)
    if done.returncode and lacking:
        pytest.skip(missing_reason(lacking[1]))
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_links_between_pages_lead_somewhere():
    missing = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []


def linked(page):
    """The files that a page links."""
    found = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in found if "://" not in link}


def test_every_guide_is_linked():
    """By the README, by the home page that it links, or by the ``index.md`` of its folder."""
    home = ROOT / "docs" / "index.md"
    assert home in linked(ROOT / "README.md")
    reached = linked(ROOT / "README.md") | linked(home)
    for index in (page for page in GUIDES if page.name == "index.md" and page in reached):
        if index != home:
            reached |= {page for page in linked(index) if page.parent == index.parent}
    assert [str(p.relative_to(ROOT)) for p in GUIDES if p not in reached] == []


def test_blocks_need_no_clone():
    """Photographs come from dala.samples: a block may be pasted anywhere."""
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            assert "tests/" not in block
            assert "docs/" not in block


def test_the_table_of_tolerances_is_that_of_the_tests():
    """After a change, run python -m tests.support.tolerance_table."""
    text = tolerance_table.PAGE.read_text(encoding="utf-8")
    assert tolerance_table.page(text) == text


#: Pages whose commands are written to be pasted.
TASKS = [page for page in GUIDES if page.parent.name in ("tutorial", "how-to", "coming-from")]


@pytest.mark.parametrize("page", TASKS, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_commands_are_accepted(page):
    """Those that stand on a line of their own; they are parsed, and not run."""
    for line in re.findall(r"^(?: {4})?(dala \S.*)$", page.read_text(encoding="utf-8"), re.M):
        words = shlex.split(line, comments=True)
        try:
            assert parse(words[1:])[0] == words[1]
        except SystemExit:
            pytest.fail(f"dala refuses: {line}")
