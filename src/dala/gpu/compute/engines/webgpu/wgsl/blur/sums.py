"""The sums of taps of a blur and their rounding, as WGSL.

A blur of u8 is defined in integers (``sampling.gauss``), and no float operation here rounds. Sums
of columns are floats: integers below 2**24, on which GPUs are faster. Sums of rows are integers of
32 bits. Sums of columns contain the rounding of the result, half a step, as all weights add up to
one. The samples of a coarse grid of u8 (dtype "u32") are integers in both passes.

Finished sums of columns become integers without conversions, which are slow: they are the bits of
a float above 2**23, so that they have 16 bits with 0x4b00 above them. As weights add up to 2**16,
what is above vanishes from sums of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dala.gpu.compute.engines.sampling.gauss import MIDDLE_SHIFT, RESULT_SHIFT
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat


@dataclass(frozen=True)
class Sums:
    """The sums of a blur of pictures of one format: of a Gaussian, or plain ones (``box``)."""

    picture: ImageFormat
    box: bool = False

    def number(self, first: bool) -> str:
        """Return the type of weights and sums: of columns (``first``), or of rows."""
        floats = self.picture.dtype == "f32" or (first and self.picture.dtype == "u8")
        return "f32" if floats else "u32"

    def _color(self, first: bool, value: str) -> str:
        number = self.number(first)
        return f"{number}({value})" if self.picture.channels == 1 else f"vec3<{number}>({value})"

    def start(self, first: bool) -> str:
        """Return the number that a sum starts with."""
        if self.picture.dtype == "u32":
            return "32768u"
        if self.picture.dtype == "f32" or self.box or not first:
            return f"0{'.0f' if self.number(first) == 'f32' else 'u'}"
        return f"{1 << (RESULT_SHIFT - 17 + MIDDLE_SHIFT)}.0f"

    def begin(self, first: bool) -> str:
        """Return a sum without taps."""
        return self._color(first, self.start(first))

    def middle(self, total: str) -> str:
        """Return a finished sum of columns, as the numbers of the intermediate picture."""
        if self.picture.dtype == "f32":
            return total
        if self.picture.dtype == "u32":
            return self._shifted(total, 16)
        return self._color(False, total) if self.box else f"rounded({total})"

    def rounding(self) -> str:
        """Return the function ``rounded`` if :meth:`middle` calls it: halves are rounded up.

        A sum with 2**23 is rounded to an integer. The last bit of the total makes halves larger.
        """
        if self.picture.dtype != "u8" or self.box:
            return ""
        # A blur of radius 0 has one weight, just below 2**16. Of colors, tiles keep 16 bits anyway.
        mask = " & 65535u" if self.picture.channels == 1 else ""
        given, made = (self._color(first, "").removesuffix("()") for first in (True, False))
        return (
            f"fn rounded(total: {given}) -> {made} {{\n"
            f"    let above = bitcast<{given}>(bitcast<{made}>(total) | {made}(1u));\n"
            f"    return bitcast<{made}>(above * {0.5**MIDDLE_SHIFT}f + 8388608.0f){mask};\n}}\n"
        )

    def result(self, total: str, count: str) -> str:
        """Return a finished sum of rows; a box has ``count`` pixels."""
        if self.picture.dtype == "f32":
            return total
        if self.box:
            half, all_ = self._color(False, f"({count}) / 2u"), self._color(False, count)
            return f"({total} + {half}) / {all_}"
        return self._shifted(total, {"u8": RESULT_SHIFT, "u32": 16}[self.picture.dtype])

    def _shifted(self, total: str, shift: int) -> str:
        return f"({total} >> {self._color(False, f'{shift}u')})"

    def weight(self, first: bool, d: int) -> str:
        """Return the weight of a tap, a member of the uniform block."""
        return f"p.{'w' if first or self.picture.dtype == 'f32' else 'v'}{d}"

    def members(self, radius: int) -> list[tuple[str, str]]:
        """Return the names and types of the weights in the uniform block."""
        found = [(f"w{d}", "f32") for d in range(radius + 1)]
        if self.picture.dtype == "u8":
            found += [(f"v{d}", "u32") for d in range(radius + 1)]
        return found


def weight_numbers(picture: ImageFormat, weights: Sequence[float]) -> list[int | float]:
    """Return the numbers of :meth:`Sums.members`, for weights from the center outwards."""
    if picture.dtype == "f32":
        return list(weights)
    return [*(w * 1.0 for w in weights), *weights]
