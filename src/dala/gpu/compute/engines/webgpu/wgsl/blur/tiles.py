"""A blur and the programs after it over tiles in workgroup memory, with few barriers.

A workgroup computes one tile of the output. It blurs the columns of the tile and a margin from
memory into ``middle``, then the rows of ``middle`` into ``held``. Then each invocation runs the
programs that follow (``Finish``) on a few pixels of ``held`` and stores the results. Programs read
neighbors from ``held``.

Both passes compute several neighboring pixels at once and read each pixel once for all of them. The
weights are members of the uniform block, so that every sigma can use the same shader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import (
    MAX_STATEMENTS,
    BlurShader,
    Finish,
    blur_shader,
    store_one,
    store_quad,
)
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.names import indented
from dala.gpu.compute.engines.webgpu.wgsl.offsets import Offset, plus, side
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat

#: Pixels that an invocation stores if the programs are not long.
STRIP: Final = 4

_SIZES: Final = [
    (width, height)
    for width in (16, 32, 64, 128)
    for height in (4, 8, 12, 16, 20, 24, 28, 32)
    if width * height <= 1024
]


@dataclass(frozen=True)
class BlurTile:
    """The sizes of a tile: output pixels, blurred pixels and pixels that are read."""

    width: int
    height: int
    radius: int
    #: The largest offset at which the program after the blur reads neighbors.
    reach: int
    #: The number of rows that an invocation blurs at once.
    run: int

    @property
    def rows(self) -> int:
        """The number of rows to blur."""
        return self.height + 2 * self.reach

    @property
    def columns(self) -> int:
        """The number of columns to read."""
        return self.width + 2 * self.reach + 2 * self.radius

    @property
    def held_pitch(self) -> int:
        """The row stride of the blurred pixels, in whole quads."""
        return -(-(self.width + 2 * self.reach) // 4) * 4

    @property
    def middle_pitch(self) -> int:
        """The row stride of the pixels blurred along columns."""
        return -(-(self.held_pitch + 2 * self.radius) // 4) * 4

    def bytes(self, picture: ImageFormat) -> int:
        """Return the bytes of workgroup memory."""
        middle, held = self.middle_pitch * picture.middle[1], self.held_pitch * picture.held[1]
        return (middle + held) * self.rows

    @property
    def work(self) -> float:
        """The approximate work for each output pixel."""
        taps, runs = 2 * self.radius + 1, -(-self.rows // self.run)
        down = -(-self.columns * runs // 32) * 32 * (self.run * taps + 3 * (self.run + taps))
        across = -(-self.held_pitch * self.rows // 128) * 128 * (taps + 3)
        return (down + across) / (self.width * self.height)


@cache
def choose_tile(picture: ImageFormat, radius: int, reach: int, room: int) -> BlurTile | None:
    """Return the best tile that fits, or None; there is always one for a reach of 0."""
    fitting = [
        tile
        for width, height in _SIZES
        for run in (4, 5, 6, 7, 8)
        if (tile := BlurTile(width, height, radius, reach, run)).bytes(picture) <= room
    ]
    return min(fitting, key=lambda tile: tile.work, default=None)


def write_tiles(
    sums: Sums,
    finish: Finish,
    out: ImageFormat,
    tile: BlurTile,
    *,
    apart: bool = False,
    workgroup: int = 256,
) -> BlurShader:
    """Return the shader for images of one format; ``out`` is the format of the output.

    Pixels that share words are stored four at a time if the width is a multiple of four. Otherwise
    (``apart``) each is stored in its own word.
    """
    picture = sums.picture
    workgroup = min(workgroup, -(-tile.width * tile.height // (64 * STRIP)) * 64)
    quads = out.words and not apart
    helpers = set(finish.helpers)
    last = _finish(tile, picture, finish, out, quads, helpers, workgroup)
    middle, held = picture.middle, picture.held
    return blur_shader(
        "tiles",
        (tile.radius, tile.width, tile.height),
        sums,
        finish,
        "u32" if apart else out.element,
        workgroup,
        [
            f"var<workgroup> middle: array<{middle[0]}, {tile.middle_pitch * tile.rows}>;",
            f"var<workgroup> held: array<{held[0]}, {tile.held_pitch * tile.rows}>;",
            "",
            helper_source(helpers),
            picture.fetch(),
            sums.rounding(),
            picture.middles(),
            picture.holding(),
            finish.functions,
            _turning("turn_middle", middle[1]),
            _turning("turn_held", held[1]),
        ],
        [
            f"    let left = i32(number % p.across) * {tile.width}i;",
            f"    let top = i32(number / p.across) * {tile.height}i;",
            *_down_columns(tile, sums, workgroup),
            "    workgroupBarrier();",
            *_along_rows(tile, sums, workgroup),
            "    workgroupBarrier();",
            *last,
        ],
    )


def _turning(name: str, size: int) -> str:
    """Permute the entries of a quad, so that invocations access different memory banks."""
    shift = {4: 5, 8: 4, 16: 3}[size]
    return f"fn {name}(i: u32) -> u32 {{\n    return i ^ ((i >> {shift}u) & 3u);\n}}\n"


def _sum(
    sums: Sums, first: bool, made: int, radius: int, letter: str, value: Callable[[int], str]
) -> list[str]:
    """Return lines that add weighted pixels t0, t1, ... to ``made`` sums; ``value`` loads one."""
    lines = [f"var {letter}{j} = {sums.begin(first)};" for j in range(made)]
    for k in range(made + 2 * radius):
        lines.append(f"let t{k} = {value(k)};")
        for j in range(max(0, k - 2 * radius), min(made, k + 1)):
            weight = sums.weight(first, abs(k - j - radius))
            lines.append(f"{letter}{j} += t{k}{sums.picture.parts} * {weight};")
    return lines


def _each(items: int, workgroup: int, lines: list[str]) -> list[str]:
    """Return lines that run for each ``item``: a loop if there are more items than invocations."""
    if items > workgroup:
        head = f"    for (var item = lane; item < {items}u; item += {workgroup}u) {{"
        return [head, *indented(lines, 2), "    }"]
    head = f"    if (lane < {items}u) {{" if items < workgroup else "    {"
    return [head, *indented(["let item = lane;", *lines], 2), "    }"]


def _down_columns(tile: BlurTile, sums: Sums, workgroup: int) -> list[str]:
    radius, before = tile.radius, tile.radius + tile.reach
    runs = -(-tile.rows // tile.run)
    lines = [
        f"let column = item % {tile.columns}u;",
        f"let row = (item / {tile.columns}u) * {tile.run}u;",
        f"let x = u32(clamp(left - {before}i + i32(column), 0i, p.width - 1i));",
        f"let y = top - {before}i + i32(row);",
        *_sum(sums, True, tile.run, radius, "a", lambda k: f"fetch(down(y + {k}i) + x)"),
        f"let place = row * {tile.middle_pitch}u + column;",
    ]
    for j in range(tile.run):
        alpha = f", t{j + radius}.w" if sums.picture.channels == 4 else ""
        place = f"turn_middle(place + {j * tile.middle_pitch}u)"
        line = f"middle[{place}] = to_middle({sums.middle(f'a{j}')}{alpha});"
        if j >= tile.rows - (runs - 1) * tile.run:
            line = f"if (row + {j}u < {tile.rows}u) {{ {line} }}"
        lines.append(line)
    return _each(tile.columns * runs, workgroup, lines)


def _along_rows(tile: BlurTile, sums: Sums, workgroup: int) -> list[str]:
    def load(k: int) -> str:  # the entries of a quad are permuted
        return f"from_middle(middle[g{k // 4} + ({k % 4}u ^ turn{k // 4})])"

    quads, groups = tile.held_pitch // 4, -(-(4 + 2 * tile.radius) // 4)
    picture, count = sums.picture, f"{(2 * tile.radius + 1) ** 2}u"
    lines = [
        f"let row = item / {quads}u;",
        f"let column = (item % {quads}u) * 4u;",
        f"let g0 = row * {tile.middle_pitch}u + column;",
        *(f"let g{q} = g0 + {4 * q}u;" for q in range(1, groups)),
        *(f"let turn{q} = turn_middle(g{q}) - g{q};" for q in range(groups)),
        *_sum(sums, False, 4, tile.radius, "b", load),
        f"let place = row * {tile.held_pitch}u + column;",
        "let turn = turn_held(place) - place;",
    ]
    for j in range(4):
        alpha = f"t{j + tile.radius}.w" if picture.channels == 4 else ""
        value = picture.hold(sums.result(f"b{j}", count), alpha)
        lines.append(f"held[place + ({j}u ^ turn)] = {value};")
    return _each(quads * tile.rows, workgroup, lines)


def _finish(
    tile: BlurTile,
    picture: ImageFormat,
    finish: Finish,
    out: ImageFormat,
    quads: bool,
    helpers: set[str],
    workgroup: int,
) -> list[str]:
    """Return lines that run the programs on the held pixels of a tile and store the results."""
    strip = STRIP if quads or finish.length <= MAX_STATEMENTS else 1
    across = tile.width // (strip if quads else 1)
    spots = [(k, 0) if quads else (0, k) for k in range(strip)]
    needed = sorted(
        {(kx + dx, ky + dy) for kx, ky in spots for dx, dy in finish.offsets},
        key=lambda offset: (offset[1], offset[0]),
    )
    reach = tile.reach
    lines = []
    for c in sorted({x for x, _ in needed}):
        lines.append(
            f"let column{side(c)} = u32(clamp(x {plus(c)}, 0i, p.width - 1i) - left + {reach}i);"
        )
    for r in sorted({y for _, y in needed}):
        lines.append(
            f"let row{side(r)} = u32(clamp(y {plus(r)}, 0i, p.height - 1i) - top + {reach}i) "
            f"* {tile.held_pitch}u;"
        )
    names: dict[Offset, str] = {}
    for c, r in needed:
        held = f"held[turn_held(row{side(r)} + column{side(c)})]"
        names[c, r] = f"n{side(c)}{side(r)}"
        lines.append(f"let {names[c, r]} = {picture.stored(held) if finish.calls else held};")
    if finish.calls and picture.dtype == "u8" and picture.channels > 1:
        helpers.add("unpack_u8")
    for k, (kx, ky) in enumerate(spots):
        row = f"min(y + {ky}i, p.height - 1i)" if ky else "y"
        lines.append(f"let e_{k} = u32({row} * p.width + x + {kx}i);")
    # Compute all results before storing any, so that the compiler can share common work.
    more, results = finish.run(spots, names, "x + {kx}i", "min(y + {ky}i, p.height - 1i)")
    lines += more
    packing = helpers if finish.calls else None
    if quads:
        lines += store_quad(out, "(e_0 / 4u)", results, packing)
    else:
        for k, result in enumerate(results):
            store = " ".join(store_one(out, f"e_{k}", result, packing))
            lines.append(f"if (y + {k}i < p.height) {{ {store} }}" if k else store)
    head = [
        f"let x = left + i32(item % {across}u){' * 4i' if quads else ''};",
        f"let y = top + i32(item / {across}u){'' if quads else f' * {strip}i'};",
    ]
    inside = ["if (x < p.width && y < p.height) {", *indented(lines), "}"]
    return _each(across * tile.height // (1 if quads else strip), workgroup, head + inside)
