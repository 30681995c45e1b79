"""The programs that run on blurred pixels, and the statements that store their results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums, weight_numbers
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings
from dala.gpu.compute.engines.webgpu.wgsl.offsets import Offset
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat
from dala.gpu.compute.engines.webgpu.wgsl.shader import BlockLayout, block_packer

#: The most statements of programs that run on four pixels at once.
MAX_STATEMENTS: Final = 200

#: The function that returns where a row begins.
_DOWN: Final = """// Where a row begins; beyond the border it is the outermost one.
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

    def run(
        self, spots: Sequence[Offset], names: Mapping[Offset, str], x: str, y: str
    ) -> tuple[list[str], list[str]]:
        """Return lines that run the stages on pixels at ``spots``, and their results.

        ``names`` are the blurred pixels by their place. ``x`` and ``y`` are WGSL with {k} (the
        number of a pixel), {kx} and {ky} (its place); the pixel's index is ``e_<k>``.
        """
        lines, results = [], []
        for k, (kx, ky) in enumerate(spots):
            given = {f"{{{dx},{dy}}}": names[kx + dx, ky + dy] for dx, dy in self.offsets}
            given |= {"{x}": x.format(k=k, kx=kx), "{y}": y.format(ky=ky), "{e}": f"e_{k}"}
            result = names[kx, ky] if not self.calls else ""
            for number, call in enumerate(self.calls, 1):
                filled = re.sub(r"\{[^}]*\}", lambda found: given[found[0]], call)  # noqa: B023
                given[f"{{{number}}}"] = result = f"s{number}_{k}"
                lines.append(f"let {result} = {filled};")
            results.append(result)
        return lines, results


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


def blur_shader(
    kind: str,
    size: tuple[int, int, int],
    sums: Sums,
    finish: Finish,
    memory: str,
    workgroup: int,
    head: Sequence[str],
    body: Sequence[str],
) -> BlurShader:
    """Return the shader of a blur in "tiles" or "strips" of a radius, width and height.

    ``memory`` is the output's element. ``head`` are declarations, ``body`` the lines of ``main``
    after the number of the workgroup.
    """
    radius, width, height = size
    members = sums.members(radius)
    members += [("width", "i32"), ("height", "i32"), ("across", "u32"), ("zero", "u32")]
    members += finish.params
    params = tuple((i, type_) for i, (_, type_) in enumerate(finish.params))
    reads = [("source", sums.picture.element), *finish.inputs]
    arrays = [f"{name}: array<{type_}>" for name, type_ in reads]
    text = [
        f"// blur of radius {radius}: {kind} of {width} by {height}",
        "struct Block {",
        *(f"    {name}: {type_}," for name, type_ in members),
        "}",
        *bindings(arrays, [f"output: array<{memory}>"]),
        *head,
        _DOWN,
        f"@compute @workgroup_size({workgroup})",
        "fn main(@builtin(workgroup_id) group: vec3<u32>,",
        "        @builtin(num_workgroups) groups: vec3<u32>,",
        "        @builtin(local_invocation_index) lane: u32) {",
        "    let number = group.y * groups.x + group.x;",
        *body,
        "}",
        "",
    ]
    layout = BlockLayout((), params, 0, block_packer(type_ for _, type_ in members))
    return BlurShader("\n".join(text), sums.picture, width, height, layout)


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
