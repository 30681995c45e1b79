"""The WGSL functions that generated kernels may call, from ``helpers.wgsl``.

Only the functions a kernel uses are put into its text, and what those use in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files


@cache
def _functions() -> dict[str, str]:
    """Each helper's text by name, with the comment above it, in the file's order."""
    text = files(__package__).joinpath("helpers.wgsl").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for part in re.split(r"\n\s*\n", text):
        match = re.search(r"^fn (\w+)\(", part, re.MULTILINE)
        if match:
            found[match[1]] = part.strip("\n") + "\n"
    return found


@cache
def _uses(name: str) -> frozenset[str]:
    """The helper and every other helper it needs."""
    functions = _functions()
    called = set(re.findall(r"\b(\w+)\(", functions[name])) & functions.keys() - {name}
    return frozenset({name}).union(*(_uses(other) for other in called))


def helper_names() -> frozenset[str]:
    """Every helper's name; kernels must not name anything else so."""
    return frozenset(_functions())


def helper_source(names: Iterable[str]) -> str:
    """The text of the named helpers and of all they use, in the file's order."""
    needed = frozenset().union(*(_uses(name) for name in names))
    return "\n".join(text for name, text in _functions().items() if name in needed)
