"""Every Python block in the README and the guides runs as pasted into a file."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.ml.conftest import FOLDERS

ROOT = pathlib.Path(__file__).parents[2]
GUIDES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "design"]
PAGES = [ROOT / "README.md", *GUIDES]


def blocks():
    for page in PAGES:
        found = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for number, block in enumerate(found, 1):
            yield pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")


def weights():
    """Where the models' weights are; pages that need them are skipped where they are not."""
    for place in FOLDERS:
        if (place / "mobilenet_v2.onnx").is_file():
            return {"DALA_MODELS": str(place)}
    pytest.skip("the models' weights are not on this machine: dala models pull --all")


@pytest.mark.parametrize("block", list(blocks()))
def test_a_block_runs_as_pasted(block, tmp_path):
    models = "dala.ml" in block
    if models:
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "photos").symlink_to(ROOT / "tests" / "photos")
    script = tmp_path / "pasted.py"
    script.write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "DALA_DEVICE": "cpu"} | (weights() if models else {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere():
    missing = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []
