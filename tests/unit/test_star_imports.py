"""Modules that import all names of others: no two of these give one name to different things."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
STARRED = [
    path
    for folder in ("gpu/compute/engines/cpu", "gpu/raster", "gpu/vector")
    for path in sorted((SOURCE / "dala" / folder).rglob("*.py"))
    if " import *\n" in path.read_text()
]


def imported(tree):
    """Yield the names that a module imports from modules of ours, with their values and homes."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("dala"):
            home = import_module(node.module)
            public = getattr(home, "__all__", [n for n in vars(home) if n[0] != "_"])
            for alias in node.names:
                for name in public if alias.name == "*" else [alias.name]:
                    if name in vars(home):
                        yield alias.asname or name, vars(home)[name], node.module


@pytest.mark.parametrize("path", STARRED, ids=lambda p: str(p.relative_to(SOURCE)))
def test_names_are_not_replaced(path):
    tree = ast.parse(path.read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    seen = {}
    for name, value, home in imported(tree):
        if name in used and name in seen:
            before, other = seen[name]
            assert before is value or before == value, f"{name} is in {other} and in {home}"
        seen[name] = value, home


def test_some_modules_do():
    assert len(STARRED) > 40
