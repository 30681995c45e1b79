"""The shader of the compositor: ``compose.wgsl`` with the parts that the draws of a frame need."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.engines.blending import TABLES
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings

#: What stands for blends.wgsl where no draw needs it.
_NO_BLENDS: Final = """\
fn blended(mode: u32, linear: bool, back: vec3<u32>, source: vec3<u32>, above: u32, below: u32,
        total: u32, result: u32, full: bool) -> u32 {
    return 0u;
}

"""


@cache
def shader_text(arenas: int, shadows: bool, blends: bool) -> str:
    """Return the shader for a number of arenas, with or without shadows and blend modes."""
    reads = [*(f"arena_{i}: array<u32>" for i in range(arenas)), "draws: array<Draw>"]
    lines = [
        *bindings(reads, ["result: array<u32>"]),
        "",
        "fn word(arena: u32, i: u32) -> u32 {",
        *(f"    if (arena == {i}u) {{ return arena_{i}[i]; }}" for i in range(1, arenas)),
        "    return arena_0[i];",
        "}",
        "",
        f"const HAS_SHADOWS = {str(shadows).lower()};",
        f"const HAS_BLENDS = {str(blends).lower()};",
    ]
    tables = f"    tables: array<vec4<u32>, {TABLES.nbytes // 16}>,\n" if blends else ""
    modes = read_wgsl("blends.wgsl", __package__) if blends else _NO_BLENDS
    text = read_wgsl("compose.wgsl", __package__).replace("WORDS\n", "\n".join(lines))
    return text.replace("TABLES}", tables + "}").replace("BLENDS\n", modes, 1)
