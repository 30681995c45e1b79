"""Random kernels of weighted neighbors, and pictures to run them on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Stencil:
    """A kernel ``program(img: Image, px: Pixel, table: Array, *, r: int)`` and images to run it on.

    Weights are multiples of 1/8 and f32 pixels multiples of 1/64, few enough that every sum is
    exact: f32 answers must agree to the last bit, u8 ones to a step.
    """

    source: str
    dtype: str
    image: np.ndarray
    pixels: np.ndarray
    radius: int


@st.composite
def stencils(draw) -> Stencil:
    """Strategy: one kernel of weighted neighbours, over images of any small shape."""
    channels = draw(st.sampled_from([0, 1, 3, 4]))
    size = (draw(st.integers(1, 9)), draw(st.integers(1, 40)))
    shape = (*size, channels) if channels else size
    dtype = draw(st.sampled_from(["u8", "f32"]))
    colour = ".rgb" if channels >= 3 else ""

    def weight() -> float:
        return draw(st.integers(-8, 8)) / 8

    def offset() -> int:
        return draw(st.sampled_from([-50, -3, -2, -1, 0, 1, 2, 3, 50]))

    lines = [
        "def program(img: Image, px: Pixel, table: Array, *, r: int):",
        "    y, x = position()",
    ]
    lines.append(f"    total = px{colour} * ({weight()})")
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["tap", "tap", "row", "box", "if", "place", "table"]))
        read = f"img[{offset()}, {offset()}]{colour} * ({weight()})"
        if kind == "tap":
            lines.append(f"    total += {read}")
        elif kind == "row":
            axis = draw(st.sampled_from(["i, 0", "0, i", "i, i", "i * 2, -i"]))
            bound = draw(st.sampled_from(["-r, r + 1", "-1, 2", "0, 3", "2, -1, -1"]))
            lines.append(f"    for i in range({bound}):")
            lines.append(f"        total += img[{axis}]{colour} * ({weight()})")
        elif kind == "box":
            lines.append("    for j in range(-1, 2):")
            lines.append("        for i in range(-1, 2):")
            skip = draw(st.sampled_from(["i == j", "i + j > 0", "x + i < 0", "j == r"]))
            lines.append(f"            if {skip}:")
            lines.append("                continue")
            lines.append(f"            total += img[i, j]{colour} * ({weight()})")
        elif kind == "if":
            test = draw(
                st.sampled_from(["(x + y) % 2 == 0", "x > 3", "y == 0", "x < img.width - 2"])
            )
            lines.append(f"    if {test}:")
            lines.append(f"        total = total * 0.5 + {read}")
        elif kind == "place":
            lines.append(f"    total += img[x % 3 - 1, y % 2]{colour} * ({weight()})")
        else:
            lines.append("    total = total + table[(x * 3 + y) % 7 - 1]")
    lines.append(
        f"    return rgba(total, {'px.a' if channels == 4 else '1.0'})"
        if colour
        else "    return total"
    )
    images = []
    for seed in (1, 2):
        random = np.random.default_rng(seed + 10 * size[1])
        values = random.integers(0, 256, shape)
        images.append(values.astype("u1") if dtype == "u8" else (values / 64 - 2).astype("<f4"))
    return Stencil("\n".join(lines) + "\n", dtype, *images, radius=draw(st.integers(0, 3)))
