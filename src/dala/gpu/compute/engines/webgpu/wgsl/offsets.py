"""Find the fixed offsets at which programs read neighbors, and name the loaded pixels.

The caller of such a program loads the pixels around, so that several positions can share them, or
take them from workgroup memory.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.names import Names
from dala.gpu.compute.lang.ir import Program, values

#: The most neighbors that are kept in registers.
MAX_NEIGHBORS: Final = 25

#: The largest offset of a neighbor.
MAX_OFFSET: Final = 4

#: (dx, dy)
Offset = tuple[int, int]


def fixed_offsets(program: Program) -> dict[int, tuple[Offset, ...]] | None:
    """Return the offsets at which each image argument is read.

    Returns None if offsets are computed at run time, or are too many or too large.
    """
    found: dict[int, set[Offset]] = {}
    for value in values(program.body):
        if value.op == "image":
            dx, dy = value.args
            if dx.op != "const" or dy.op != "const" or max(abs(dx.attr), abs(dy.attr)) > MAX_OFFSET:
                return None
            found.setdefault(value.attr[0], set()).add((dx.attr, dy.attr))
    if sum(map(len, found.values())) > MAX_NEIGHBORS:
        return None
    return {i: tuple(sorted(offsets, key=lambda o: (o[1], o[0]))) for i, offsets in found.items()}


def offset_names(
    names: Names, called: list[str], offsets: dict[int, tuple[Offset, ...]]
) -> dict[tuple[int, int, int], str]:
    """Return a name for each neighbor by argument, dx and dy; ``called`` are argument names."""
    return {
        (i, dx, dy): names.new(f"{called[i]}{side(dx)}{side(dy)}")
        for i, pairs in offsets.items()
        for dx, dy in pairs
    }


def side(n: int) -> str:
    """Return an offset as part of a name."""
    return f"_m{-n}" if n < 0 else f"_{n}"


def plus(n: int) -> str:
    """Return the WGSL that adds an offset."""
    return f"+ {n}i" if n >= 0 else f"- {-n}i"
