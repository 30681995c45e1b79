"""Every call in the right columns of docs/coming-from runs, in order, after the page's block."""

from __future__ import annotations

import os
import pathlib
import re
import shlex

import pytest

import dala
from dala import cli

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "coming-from").glob("*.md"))


def rows(page):
    """Yield the code in the last column of each row; what follows it in the cell is a remark."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) in (2, 3) and cells[-1].startswith("`"):
            code = re.match(r"`([^`]+)`", cells[-1])[1].replace("\\n", "\n")
            yield code.replace('"1\n00:00', '"1\\n00:00').replace("000\nHi", "000\\nHi"), cells[-1]


def setup(page):
    text = page.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.stem not in ("index", "ffmpeg", "isf", "shadertoy")],
    ids=lambda page: page.stem,
)
def test_calls_of_the_right_column(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    found = list(rows(page))
    assert len(found) > 15
    with dala.device("cpu"):
        exec(setup(page), names)
        for code, _ in found:
            for part in _statements(code):
                try:
                    exec(part, names)
                except Exception as error:
                    pytest.fail(f"{page.name}: {code}\n{type(error).__name__}: {error}")
    if hasattr(names.get("scene"), "close"):
        names["scene"].close()


def _statements(code):
    """Split what a cell has on one line; text of kernels stays as it is."""
    if '"def ' in code:
        first, rest = code.rsplit("; ", 1) if "); " in code else (code, "")
        return [first.replace("\n", "\\n"), rest]
    head, colon, rest = code.partition(": ")
    if code.startswith("with ") and colon:
        lines = "\n".join(f"    {line}" for line in rest.split("; "))
        return [f"{head}:\n{lines}"]
    return code.split("; ")


def test_commands_of_the_right_column(tmp_path, monkeypatch):
    page = ROOT / "docs" / "coming-from" / "ffmpeg.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DALA_DEVICE", "cpu")
    with dala.device("cpu"):
        exec(setup(page), {})
        count = 0
        for code, cell in rows(page):
            if cell.endswith("not run here"):
                assert cli.parse(shlex.split(code)[1:])[0]
                continue
            count += 1
            assert cli.main(shlex.split(code)[1:]) == 0, code
            out = re.search(r"(?:-o |in\.mp4 )([\w.]+\.(?:mp4|gif|webm))(?= |$)", code)
            if out and out[1] != "b.mp4":
                assert os.path.getsize(out[1]) > 0
                os.remove(out[1])
    assert count > 15
