"""The design page and the code agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dala.studio.commands.registry import commands

PAGE = Path(__file__).parents[3] / "docs" / "design" / "studio.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documents are not installed")


def test_every_command_is_documented():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)(?: \{[^`]*\})?`", text))
    assert sorted(commands()) == sorted(set(commands()) & named)


def test_every_documented_command_exists():
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)`(?:, `([a-z_]+)`)? \|", text, re.M)
    listed = {name for row in rows for name in row if name}
    types = {"number", "int", "bool", "choice", "numbers", "color", "point", "size", "curve",
             "lut", "picture", "text", "any", "type", "do"}  # fmt: skip
    assert listed - types <= set(commands())


def test_the_state_has_the_documented_keys(session):
    import json

    block = next(
        b
        for b in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.S)
        if '"active"' in b and '"tabs"' in b
    )
    documented = json.loads(block)
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "filter", "name": "blur"})
    state = session.state()
    assert state.keys() == documented.keys() - {"version"}
    assert state["tabs"][0].keys() == documented["tabs"][0].keys()
    assert state["chain"][0].keys() == documented["chain"][0].keys()
