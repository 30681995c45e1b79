"""The WGSL functions that shaders may call, from ``helpers.wgsl`` and ``pixels.wgsl``.

A shader contains the functions that it uses, directly and indirectly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

#: Functions of f64 that are those of f32 with other types.
_ALIKE: Final = ("min", "max", "sin", "cos", "tan")


@cache
def read_wgsl(name: str, package: str | None = __package__) -> str:
    """Return the text of a shader file, of this package by default."""
    return files(package or "").joinpath(name).read_text(encoding="utf-8")


@cache
def wgsl_parts(name: str, package: str | None = __package__) -> dict[str, str]:
    """Return the parts of a shader file by name: each begins at ``// --- name``.

    Comments just above that line are about the part, and left out.
    """
    _, *found = re.split(r"^(?://(?! ---).*\n)*// --- (.+)\n", read_wgsl(name, package), flags=re.M)
    return {name: text.rstrip("\n") for name, text in zip(found[::2], found[1::2], strict=True)}


@cache
def _functions() -> dict[str, str]:
    """Return the source of each function by name, with the comment above it, in file order."""
    text = "\n\n".join(read_wgsl(name) for name in ("helpers.wgsl", "pixels.wgsl"))
    found: dict[str, str] = {}
    for part in re.split(r"\n\s*\n", text):
        match = re.search(r"^fn (\w+)\(", part, re.MULTILINE)
        if match:
            found[match[1]] = part.strip("\n") + "\n"
    for name in _ALIKE:
        text = found[f"{name}_f32"].replace("f32", "f64")
        found[f"{name}_f64"] = re.sub(r"(\d)f\b", r"\1lf", text)
    return found


@cache
def _uses(name: str) -> frozenset[str]:
    """Return the helper and every other helper it needs."""
    functions = _functions()
    called = set(re.findall(r"\b(\w+)\(", functions[name])) & functions.keys() - {name}
    return frozenset({name}).union(*(_uses(other) for other in called))


def helper_names() -> frozenset[str]:
    """Return the names of all helpers, which kernels must not use."""
    return frozenset(_functions())


def helper_source(names: Iterable[str]) -> str:
    """Return the source of the named helpers and of those they use, in file order."""
    needed = frozenset().union(*(_uses(name) for name in names))
    return "\n".join(text for name, text in _functions().items() if name in needed)
