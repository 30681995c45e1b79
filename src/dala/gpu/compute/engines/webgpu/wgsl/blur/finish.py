"""The programs that run on blurred pixels, and the statements that store their results."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums, weight_numbers
from dala.gpu.compute.engines.webgpu.wgsl.offsets import Offset
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat
from dala.gpu.compute.engines.webgpu.wgsl.shader import PACK, BlockLayout

#: The most statements of programs that run on four pixels at once.
MAX_STATEMENTS: Final = 200

#: The function that returns where a row begins.
DOWN: Final = """// Where a row begins; beyond the border it is the outermost one.
fn down(y: i32) -> u32 {
    return u32(clamp(y, 0i, p.height - 1i) * p.width);
}
"""


@dataclass(frozen=True)
class Finish:
    """The programs that run on blurred pixels."""

    #: Offsets of the blurred pixels that they read.
    offsets: tuple[Offset, ...] = ((0, 0),)
    #: WGSL functions, and the helpers that they call.
    functions: str = ""
    helpers: frozenset[str] = frozenset()
    #: Calls of the stages; the last result is stored, or the blurred pixel if there are none.
    #: Arguments are written ``{x}``, ``{y}``, ``{e}`` (the pixel's index), ``{-1,0}`` (the blurred
    #: pixel at dx, dy) or ``{1}`` (the result of stage 1). Pixels are in their stored numbers.
    calls: tuple[str, ...] = ()
    #: Names and WGSL types of the parameters, and of further images to read.
    params: tuple[tuple[str, str], ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    #: The number of statements.
    length: int = 0

    @property
    def reach(self) -> int:
        """The largest offset."""
        return max(max(abs(dx), abs(dy)) for dx, dy in self.offsets)

    def run(self, k: int, given: dict[str, str]) -> list[str]:
        """Return lines that run the stages on pixel ``k``; the last result is ``s<calls>_<k>``."""
        lines = []
        for number, call in enumerate(self.calls, 1):
            filled = re.sub(r"\{[^}]*\}", lambda found: given[found[0]], call)
            given[f"{{{number}}}"] = f"s{number}_{k}"
            lines.append(f"let s{number}_{k} = {filled};")
        return lines


@dataclass(frozen=True)
class BlurShader:
    """A generated shader, the pixels that a workgroup computes, and its uniform block."""

    source: str
    picture: ImageFormat
    width: int
    height: int
    block: BlockLayout

    def groups(self, height: int, width: int) -> int:
        """Return the number of workgroups that cover an image."""
        return -(-width // self.width) * -(-height // self.height)

    def numbers(self, weights: Sequence[float], height: int, width: int) -> tuple[int | float, ...]:
        """Return the members of the block except parameters; ``weights`` start at the center."""
        numbers = weight_numbers(self.picture, weights)
        return (*numbers, width, height, -(-width // self.width), 0)


def block_members(radius: int, sums: Sums, finish: Finish) -> list[tuple[str, str]]:
    """Return the names and types of the uniform block: the weights, sizes and parameters."""
    members = sums.members(radius)
    members += [("width", "i32"), ("height", "i32"), ("across", "u32"), ("zero", "u32")]
    return members + list(finish.params)


def block_layout(members: Sequence[tuple[str, str]], finish: Finish) -> BlockLayout:
    """Return how the uniform block is packed."""
    form = "<" + "".join(PACK[type_] for _, type_ in members)
    form += "x" * (-struct.calcsize(form) % 16)
    params = tuple((i, type_) for i, (_, type_) in enumerate(finish.params))
    return BlockLayout((), params, 0, struct.Struct(form))


def bindings(
    picture: ImageFormat, finish: Finish, memory: str, members: Sequence[tuple[str, str]]
) -> list[str]:
    """Return the declarations of the buffers and the block; ``memory`` is the output's element."""
    after = 1 + len(finish.inputs)
    return [
        "struct Block {",
        *(f"    {name}: {type_}," for name, type_ in members),
        "}",
        f"@group(0) @binding(0) var<storage, read> source: array<{picture.element}>;",
        *(
            f"@group(0) @binding({k}) var<storage, read> {name}: array<{type_}>;"
            for k, (name, type_) in enumerate(finish.inputs, 1)
        ),
        f"@group(0) @binding({after}) var<storage, read_write> output: array<{memory}>;",
        f"@group(0) @binding({after + 1}) var<uniform> p: Block;",
    ]


def entry(workgroup: int) -> list[str]:
    """Return the first lines of ``main``, up to the number of the workgroup."""
    return [
        f"@compute @workgroup_size({workgroup})",
        "fn main(@builtin(workgroup_id) group: vec3<u32>,",
        "        @builtin(num_workgroups) groups: vec3<u32>,",
        "        @builtin(local_invocation_index) lane: u32) {",
        "    let number = group.y * groups.x + group.x;",
    ]


def store_one(out: ImageFormat, place: str, result: str, helpers: set[str] | None) -> list[str]:
    """Return statements that store one pixel; u8 with fewer than four channels in its own word.

    ``result`` is a held pixel, or its stored numbers if ``helpers`` is given.
    """
    if out.dtype == "u8" and helpers is not None:
        return [f"output[{place}] = {packed(out, result, helpers)};"]
    if out.dtype == "f32" and out.channels == 3:
        return [f"output[({place}) * 3u + {c}u] = {result}.{'xyz'[c]};" for c in range(3)]
    return [f"output[{place}] = {result};"]


def packed(out: ImageFormat, result: str, helpers: set[str]) -> str:
    """Return a u8 pixel in one word, from its stored numbers."""
    helpers.add("pack_u8")
    if out.channels != 4:
        result = f"vec4<i32>({result}, {', '.join(['0i'] * (4 - out.channels))})"
    return f"pack_u8({result})"


def store_quad(
    out: ImageFormat, quad: str, results: Sequence[str], helpers: set[str] | None
) -> list[str]:
    """Return statements that store four neighboring pixels of one or three bytes."""
    n = out.channels
    places = [quad if n == 1 else f"{quad} * 3u + {k}u" for k in range(n)]
    a, b, c, d = results
    if helpers is not None:
        helpers.add("pack_u8")
        parts = [r if n == 1 else f"{r}.{channel}" for r in results for channel in "xyz"[:n]]
        fours = [", ".join(parts[4 * k : 4 * k + 4]) for k in range(n)]
        words = [f"pack_u8(vec4<i32>({four}))" for four in fours]
    elif n == 1:
        words = [f"({a} | ({b} << 8u)) | (({c} << 16u) | ({d} << 24u))"]
    else:
        words = [
            f"({a} & 0xffffffu) | ({b} << 24u)",
            f"(({b} >> 8u) & 0xffffu) | ({c} << 16u)",
            f"(({c} >> 16u) & 0xffu) | ({d} << 8u)",
        ]
    return [f"output[{place}] = {word};" for place, word in zip(places, words, strict=True)]


def plus(n: int) -> str:
    """Return the WGSL that adds an offset."""
    return f"+ {n}i" if n >= 0 else f"- {-n}i"


def side(n: int) -> str:
    """Return an offset as part of a name."""
    return f"_m{-n}" if n < 0 else f"_{n}"
