"""Programs with more inputs than a device binds: some inputs are copied into one buffer.

Devices of the GLES 3.1 class bind four storage buffers, of which one is the output. Inputs of 32
bits and less share one buffer of words; 64-bit ones, which cannot be made from words in WGSL, one
of their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.lang.ir import Program

#: Inputs start at multiples of this in a joined buffer, in bytes: one vec4 of words.
ALIGN: Final = 16

#: The element type of a joined buffer by the dtype of its inputs; of words for all others.
_ELEMENTS: Final = {"f64": "f64", "s64": "i64"}
_WORDS: Final = "vec4<u32>"


@dataclass(frozen=True, slots=True)
class JoinedInputs:
    """Inputs that share a buffer, in order."""

    #: The WGSL type of the buffer's elements.
    element: str
    #: Numbers of arguments.
    args: tuple[int, ...]

    def starts(self, program: Program, geometry: Geometry) -> tuple[int, ...]:
        """Return the first byte of each input, and the size of the buffer as the last number."""
        found = [0]
        for i in self.args:
            nbytes = prod(geometry.shapes[i]) * ITEMSIZE[program.args[i].dtype]
            found.append(found[-1] + max(-(-nbytes // ALIGN), 1) * ALIGN)
        return tuple(found)

    def fetch(self, buffer: str, start: str, stored: str) -> str:
        """Return WGSL that reads element ``i`` of an input, of type ``stored``.

        ``start`` is where the input starts, in units of ``ALIGN``.

        >>> JoinedInputs("vec4<u32>", (1, 2)).fetch("joined", "p.x_start", "f32")
        'bitcast<f32>(joined[p.x_start + (i >> 2u)][i & 3u])'
        """
        if self.element != _WORDS:
            return f"{buffer}[{start} * {ALIGN // 8}u + i]"
        if stored.startswith("vec4"):
            word = f"{buffer}[{start} + i]"
        else:
            word = f"{buffer}[{start} + (i >> 2u)][i & 3u]"
        return word if stored in ("u32", _WORDS) else f"bitcast<{stored}>({word})"


def join_inputs(
    program: Program, free: Sequence[int], most: int
) -> tuple[tuple[int, ...], tuple[JoinedInputs, ...]]:
    """Return the arguments with a binding of their own, and the groups that share one.

    As few as possible are joined, the last ones first. If there are too many types for ``most``
    bindings, all are joined and there are still too many.
    """
    alone = list(free)
    kinds: dict[str, list[int]] = {}
    for i in free:
        kinds.setdefault(_ELEMENTS.get(program.args[i].dtype, _WORDS), []).append(i)
    joined: dict[str, list[int]] = {}
    for element, args in sorted(kinds.items(), key=lambda item: -len(item[1])):
        # The first one that moves makes room for none.
        while args and len(alone) + len(joined) > most and (element in joined or len(args) > 1):
            alone.remove(args[-1])
            joined.setdefault(element, []).insert(0, args.pop())
    return tuple(alone), tuple(JoinedInputs(e, tuple(args)) for e, args in joined.items())
