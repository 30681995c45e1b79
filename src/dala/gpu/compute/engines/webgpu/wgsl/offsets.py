"""Programs that look at neighbours at fixed distances: which, and names for what is loaded.

Such a program needs no reading of its own: whoever calls it loads the pixels around, which lets
several positions share them, or take them from workgroup memory.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.names import Names
from dala.gpu.compute.lang.ir import Program, values

#: More neighbours than this are not held at once.
MOST: Final = 25

#: And none further away than this.
FARTHEST: Final = 4

#: (dx, dy)
Offset = tuple[int, int]


def fixed_offsets(program: Program) -> dict[int, tuple[Offset, ...]] | None:
    """The neighbours that each image argument is read at; None if some are found at run time.

    None too if they are too many or too far to be held.
    """
    found: dict[int, set[Offset]] = {}
    for value in values(program.body):
        if value.op == "image":
            dx, dy = value.args
            if dx.op != "const" or dy.op != "const" or max(abs(dx.attr), abs(dy.attr)) > FARTHEST:
                return None
            found.setdefault(value.attr[0], set()).add((dx.attr, dy.attr))
    if sum(map(len, found.values())) > MOST:
        return None
    return {i: tuple(sorted(offsets, key=lambda o: (o[1], o[0]))) for i, offsets in found.items()}


def offset_names(
    names: Names, called: list[str], offsets: dict[int, tuple[Offset, ...]]
) -> dict[tuple[int, int, int], str]:
    """A name for each neighbour, by argument, dx and dy; ``called`` are the arguments' names."""
    return {
        (i, dx, dy): names.new(f"{called[i]}_{_side(dx)}_{_side(dy)}")
        for i, pairs in offsets.items()
        for dx, dy in pairs
    }


def _side(distance: int) -> str:
    return f"m{-distance}" if distance < 0 else str(distance)
