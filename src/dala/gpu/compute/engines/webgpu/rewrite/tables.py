"""Find programs that map each byte of a pixel on its own, so that a table can replace them.

A table has 256 entries, which a workgroup computes once for many pixels. It pays for functions that
take longer than a look-up, such as powers.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.lang.ir import For, If, Program, SetSlot, Value, statements

#: Programs shorter than this are computed for each pixel. See ``wgsl.shader.length``.
MIN_LENGTH: Final = 40

#: Operations that do not depend on a pixel.
_SAME_EVERYWHERE: Final = ("param", "dim")


def maps_bytes(program: Program) -> bool:
    """Return True if channels of the result depend only on the same channel of one u8 pixel."""
    if program.out.dtype != "u8" or program.out.channels not in (1, 4) or not program.out.pixels:
        return False
    needs: dict[Value, frozenset[tuple[int, int]]] = {}
    for s in statements(program.body):
        if isinstance(s, If | For | SetSlot):
            return False
        if not isinstance(s, Value):
            continue
        if s.op == "pixel":
            arg = program.args[s.attr[0]]
            if arg.dtype != "u8" or arg.channels != program.out.channels:
                return False
            needs[s] = frozenset({s.attr})
        elif s.args:
            needs[s] = frozenset().union(*(needs.get(a, frozenset()) for a in s.args))
        elif s.op not in _SAME_EVERYWHERE:
            return False
        if s.op in ("image", "array"):
            return False
    used = [needs.get(v, frozenset()) for v in program.result]
    first = {argument for leaves in used for argument, _ in leaves}
    channels = [{channel for _, channel in leaves} for leaves in used]
    return len(first) == 1 and all(found <= {c} for c, found in enumerate(channels))


def copied_channels(program: Program) -> set[int]:
    """Return the channels that a program copies from the pixel."""
    return {c for c, v in enumerate(program.result) if v.op == "pixel" and v.attr[1] == c}
