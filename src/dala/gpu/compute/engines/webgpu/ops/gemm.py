"""Generate matrix multiplication shaders from the template ``gemm.wgsl``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from string import Template
from typing import Final

from dala.gpu.compute.engines.webgpu.ops.dispatches import read_text
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE

#: The WGSL type to compute with, by dtype; u8 is summed as i32.
WGSL_TYPES: Final = {**WGSL_TYPE, "u8": "i32"}


@dataclass(frozen=True)
class GemmTile:
    """A square tile of the output: its side, and the side that each invocation computes."""

    side: int
    each: int

    @property
    def threads(self) -> int:
        return (self.side // self.each) ** 2

    def count(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the number of tiles across and down."""
        return -(-columns // self.side), -(-rows // self.side)


LARGE: Final = GemmTile(128, 8)
MIDDLE: Final = GemmTile(64, 4)
SMALL: Final = GemmTile(32, 4)

#: The number of workgroups that keeps a large device busy; with fewer, a smaller tile is faster.
ENOUGH_TILES: Final = 128


def choose_tile(rows: int, columns: int, layers: int, wide: bool) -> GemmTile:
    """Return the largest tile that gives enough workgroups; LARGE is too big for 64-bit numbers."""
    for tile in (MIDDLE,) if wide else (LARGE, MIDDLE):
        across, down = tile.count(rows, columns)
        if across * down * layers >= ENOUGH_TILES:
            return tile
    return SMALL


def choose_shares(tiles: int, inner: int) -> tuple[int, int]:
    """Return the number of groups that share the sum over k, and the length of a share.

    The length is a multiple of 16.
    """
    shares = max(1, min(ENOUGH_TILES // tiles, inner // 256, 64))
    share = -(-inner // shares // 16) * 16
    return -(-inner // share), share


@dataclass(frozen=True)
class GemmOperand:
    """The memory layout of an operand.

    ``lines`` is True if k is contiguous in memory, so that four values of k are read at once and
    transposed; otherwise rows (of the left side) or columns (of the right side) are contiguous.
    ``quads`` is True if four numbers can be read as a vec4.
    """

    name: str
    dtype: str
    lines: bool
    quads: bool

    @property
    def element(self) -> str:
        """The element type of the buffer."""
        if self.dtype == "u8":
            return "u32"
        scalar = WGSL_TYPES[self.dtype]
        return f"vec4<{scalar}>" if self.quads else scalar

    def read(self, index: str) -> str:
        """Return the expression that reads one number."""
        if self.dtype == "u8":
            word = f"({self.name}[({index}) >> 2u] >> ((({index}) & 3u) * 8u))"
            return f"i32({word} & 255u)"
        return f"{self.name}[{index}]"


def fetch(side: GemmOperand, extent: str, whole: bool) -> str:
    """Return the function that reads 4 by 4 numbers, with zeros outside the matrix."""
    kind = WGSL_TYPES[side.dtype]
    name = "left" if side.name == "a" else "right"
    along, across = ("k", "row") if side.lines else ("row", "k")
    limit_along, limit_across = ("end", extent) if side.lines else (extent, "end")
    text = [
        f"fn fetch_{name}_line(place: u32, row: u32, k: u32, end: u32) -> vec4<{kind}> {{",
        f"    var v = vec4<{kind}>();",
        f"    let at = place + {across} * p.{name}_step + {along};",
    ]
    if side.quads:
        inside = f"if ({across} < {limit_across} && {along} < {limit_along}) "
        text.append(f"    {'' if whole else inside}{{ v = {side.name}[at / 4u]; }}")
    else:
        text.append(f"    if ({across} < {limit_across}) {{")
        for i, c in enumerate("xyzw"):
            read = side.read(f"at + {i}u")
            text.append(f"        if ({along} + {i}u < {limit_along}) {{ v.{c} = {read}; }}")
        text.append("    }")
    text += ["    return v;", "}"]
    step = ("row + {0}u, k" if side.lines else "row, k + {0}u").format
    text.append(f"fn fetch_{name}(place: u32, row: u32, k: u32, end: u32) -> Four {{")
    text += [
        f"    let v{i} = fetch_{name}_line(place, {step(i)}, end);".replace(" + 0u", "")
        for i in range(4)
    ]
    if side.lines:
        turned = ",\n        ".join(
            f"vec4<{kind}>({', '.join(f'v{i}.{c}' for i in range(4))})" for c in "xyzw"
        )
        text.append(f"    return Four(\n        {turned});")
    else:
        text.append("    return Four(v0, v1, v2, v3);")
    return "\n".join([*text, "}"])


def units(lines: bool, tile: GemmTile) -> tuple[str, str]:
    """Return the part of a slice along k and the four rows or columns that an invocation reads.

    Neighboring invocations read neighboring memory.
    """
    quads = tile.side // 4
    if lines:
        return "unit & 3u", "unit >> 2u"
    return f"unit / {quads}u", f"unit % {quads}u"


def sums(tile: GemmTile, kind: str) -> str:
    """Return the declarations of a tile's sums."""
    return "\n".join(
        f"    var s{r}_{h} = vec4<{kind}>();"
        for r in range(tile.each)
        for h in range(tile.each // 4)
    )


def products(tile: GemmTile) -> str:
    """Return four unrolled steps along k."""
    quads, halves = tile.side // 4, tile.each // 4
    text: list[str] = []
    for j in range(4):
        for h in range(halves):
            at = j * quads + h * tile.side // 8
            text.append(f"let a{j}_{h} = left_tile[y + {at}u];")
            text.append(f"let b{j}_{h} = right_tile[x + {at}u];")
        for r in range(tile.each):
            for h in range(halves):
                text.append(f"s{r}_{h} += a{j}_{r // 4}.{'xyzw'[r % 4]} * b{j}_{h};")
    return "\n".join(f"            {line}" for line in text)


def results(tile: GemmTile, *, quads: bool, whole: bool, value: str, place: str) -> str:
    """Return the stores. ``value`` and ``place`` are WGSL with {sum}, {row} and {column}."""
    text: list[str] = []
    for h in range(tile.each // 4):
        text.append(f"let column{h} = edge + tx * 4u + {h * tile.side // 2}u;")
    for r in range(tile.each):
        text.append(f"let row{r} = top + ty * 4u + {r // 4 * tile.side // 2 + r % 4}u;")
        for h in range(tile.each // 4):
            names = {"sum": f"s{r}_{h}", "row": f"row{r}", "column": f"column{h}"}
            v, at = value.format(**names), place.format(**names)
            if quads:
                inside = f"if (row{r} < p.rows && column{h} < p.columns) "
                text.append(f"{'' if whole else inside}{{ out[{at} / 4u] = {v}; }}")
                continue
            text.append(f"if (row{r} < p.rows) {{")
            text.append(f"    let v = {v};")
            for i, c in enumerate("xyzw"):
                here = place.format(sum="", row=f"row{r}", column=f"(column{h} + {i}u)")
                text.append(f"    if (column{h} + {i}u < p.columns) {{ out[{here}] = v.{c}; }}")
            text.append("}")
    return "\n".join(f"    {line}" for line in text)


def bias_text(kind: str, index: str) -> str:
    """Return the bias term, which the group with the first share adds."""
    return f" + vec4<{kind}>(select({kind}(0), bias[{index}], start == 0u))"


@cache
def _template() -> Template:
    return Template(read_text("gemm.wgsl"))


def write(
    tile: GemmTile,
    kind: str,
    *,
    numbers: str,
    bindings: list[str],
    functions: str,
    prepare: str,
    left: tuple[bool, str],
    right: tuple[bool, str],
    stores: str,
) -> str:
    """Return a shader. ``left`` and ``right`` are (True if k is contiguous, offset)."""
    quads = tile.side // 4
    left_part, left_quad = units(left[0], tile)
    right_part, right_quad = units(right[0], tile)
    access = ["read"] * (len(bindings) - 1) + ["read_write"]
    declared = [
        f"@group(0) @binding({i}) var<storage, {how}> {text};"
        for i, (text, how) in enumerate(zip(bindings, access, strict=True))
    ]
    return _template().substitute(
        T=kind,
        NUMBERS=numbers,
        BINDINGS="\n".join(declared),
        LAST=len(bindings),
        ENTRIES=16 * quads,
        FUNCTIONS=functions,
        THREADS=tile.threads,
        TILEu=f"{tile.side}u",
        TWICEu=f"{tile.side * 2}u",
        QUADSu=f"{quads}u",
        FOUR_QUADSu=f"{quads * 4}u",
        ACROSSu=f"{tile.side // tile.each // 8}u",
        LEFT_PART=left_part,
        LEFT_QUAD=left_quad,
        RIGHT_PART=right_part,
        RIGHT_QUAD=right_quad,
        PREPARE=prepare,
        LEFT_ARGS=left[1],
        RIGHT_ARGS=right[1],
        SUMS=sums(tile, kind),
        PRODUCTS=products(tile),
        RESULTS=stores,
    )
