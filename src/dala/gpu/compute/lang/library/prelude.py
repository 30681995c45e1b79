"""Functions of the kernel language that are written in it; ``*.kernel`` has their texts.

A call is inlined, as those of a user's own helpers are, so every engine computes the same. A
function with forms for 1, 2, 3 or 4 numbers has them under its name and the count: ``noise2``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.source import KernelSource

#: The name of the prelude in errors, which are shown at the call instead.
NAME: Final = "the prelude"

_TEXTS: Final = ("functions", "noise", "levels")


def find(name: str, count: int) -> KernelDecl | None:
    """Return the declaration of a function, for so many numbers, or None."""
    known = _declared()
    return known.get(name) or known.get(f"{name}{count}")


@cache
def _declared() -> dict[str, KernelDecl]:
    from dala.gpu.compute.lang.parser import declare_all  # which knows the names of this module

    found: dict[str, KernelDecl] = {}
    for each in _TEXTS:
        text = files(__package__).joinpath(f"{each}.kernel").read_text(encoding="utf-8")
        found |= declare_all(KernelSource(text, NAME), found)
    return found
