"""A blur and the programs after it over strips of a u8 image, four rows at a time.

A workgroup computes a strip of the output from top to bottom. Each invocation blurs one column:
it adds every pixel that it reads to the sums of all rows that the pixel belongs to, in registers.
Four blurred rows go to ``middle`` in workgroup memory. There each invocation blurs four pixels of
one of the rows. Programs that read neighbors (``Finish``) find them in ``held``, which has the
last blurred rows; others run on the four pixels at once.

Every pixel is read little more than once. The weights are members of
the uniform block, so that every sigma can use the same shader.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import (
    BlurShader,
    Finish,
    blur_shader,
    packed,
    store_one,
    store_quad,
)
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.names import indented
from dala.gpu.compute.engines.webgpu.wgsl.offsets import plus, side
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat

#: Rows between two barriers, and pixels that an invocation stores.
STEP: Final = 4

#: The most sums that an invocation keeps in registers: of 256 invocations, and of 128.
MANY_SUMS: Final = 72
MAX_SUMS: Final = 96


@dataclass(frozen=True)
class BlurStrip:
    """The sizes of a strip."""

    radius: int
    #: The largest offset at which the program after the blur reads neighbors.
    reach: int
    workgroup: int
    #: The number of rows to blur, with those that only programs read: a multiple of ``STEP``.
    rows: int

    @property
    def height(self) -> int:
        """The number of output rows."""
        return self.rows - 2 * self.reach

    @property
    def quads(self) -> int:
        """The number of columns that are read, in fours."""
        return self.workgroup // STEP

    @property
    def margin(self) -> int:
        """The fours at each side that are only read."""
        return -(-(self.radius + self.reach) // 4)

    @property
    def width(self) -> int:
        """The number of output columns."""
        return 4 * (self.quads - 2 * self.margin)

    @property
    def beside(self) -> int:
        """The fours at each side that a blur of four pixels reads."""
        return -(-self.radius // 4)

    @property
    def kept(self) -> int:
        """The number of blurred rows that programs can read."""
        return 2 * self.reach + STEP if self.reach else 0

    def bytes(self, picture: ImageFormat) -> int:
        """Return the bytes of workgroup memory."""
        middle = STEP * colors(picture) * self.quads + 2 * self.beside
        return 16 * (middle + self.kept * self.quads)

    @property
    def work(self) -> float:
        """The approximate work for each output pixel, in the units of ``BlurTile.work``."""
        taps = 2 * self.radius + 1
        down = 4 * self.quads * (self.rows + 2 * self.radius) * (taps + 3)
        across = 4 * self.quads * self.rows * (taps + 3)
        return (down + across) / (self.width * self.height)


def colors(picture: ImageFormat) -> int:
    """Return the number of channels that are blurred."""
    return 1 if picture.channels == 1 else 3


def shapes(radius: int, reach: int, sums: int, size: int) -> list[tuple[int, int]]:
    """Return the invocations of a workgroup and its rows, best first, for a class of sizes.

    Large pictures have enough workgroups if each computes many rows; large radii, whose rows above
    and below are read twice, gain by more rows, as programs do that read neighbors. ``forms`` has
    the figures.
    """
    if size == 1:
        return [(128, 12)] if radius <= 8 else []
    if size == 2:
        return [(128, 36)] if sums <= MANY_SUMS else []
    if radius < 8:
        return [(128, 48 if reach else 20)]
    wide = radius >= 12 and sums <= MANY_SUMS
    return [(256, 72), (128, 72)] if wide else [(128, 72)]


@cache
def choose_strip(
    picture: ImageFormat, radius: int, reach: int, room: int, workgroup: int, size: int
) -> BlurStrip | None:
    """Return the best strip for a device, or None if there is none for this image or radius."""
    sums = 2 * radius * colors(picture)
    if picture.dtype != "u8" or not 0 < sums <= MAX_SUMS:
        return None
    for lanes, rows in shapes(radius, reach, sums, size):
        strip = BlurStrip(radius, reach, lanes, rows)
        # Programs that read further would have too many rows blurred twice.
        fits = lanes <= workgroup and rows >= 8 * reach and strip.width > 0
        if fits and strip.bytes(picture) <= room:
            return strip
    return None


def write_strips(
    sums: Sums, finish: Finish, out: ImageFormat, strip: BlurStrip, *, whole: bool
) -> BlurShader:
    """Return the shader for images of one format; ``out`` is the format of the output.

    ``whole`` is True if the width is a multiple of four: then u8 pixels are stored four at a time.
    """
    picture = sums.picture
    helpers = set(finish.helpers)
    last = _finish(strip, picture, finish, out, whole, helpers)
    quads = whole and out.dtype == "u8"
    memory = "vec4<u32>" if quads and not out.words else "u32" if out.words else out.element
    middle = STEP * colors(picture) * strip.quads + 2 * strip.beside
    held = f"var<workgroup> held: array<vec4<u32>, {strip.kept * strip.quads}>;"
    return blur_shader(
        "strips",
        (strip.radius, strip.width, strip.height),
        sums,
        finish,
        memory,
        strip.workgroup,
        [
            f"var<workgroup> middle: array<vec4<u32>, {middle}>;",
            held if strip.kept else "",
            "",
            helper_source(helpers),
            picture.raw(),
            sums.rounding(),
            picture.holding(),
            finish.functions,
        ],
        [
            f"    let left = i32(number % p.across) * {strip.width}i - {4 * strip.margin}i;",
            f"    let top = i32(number / p.across) * {strip.height}i;",
            f"    let first = top - {strip.radius + strip.reach}i;",
            "    let x = u32(clamp(left + i32(lane), 0i, p.width - 1i));",
            f"    let line = lane / {strip.quads}u;",
            f"    let own = lane % {strip.quads}u;",
            "    let column = left + i32(own) * 4i;",
            f"    let inside = own >= {strip.margin}u && own < {strip.quads - strip.margin}u "
            "&& column < p.width;",
            *indented(_down_columns(strip, sums)),
            f"    let count = min({strip.height}i, p.height - top) + {2 * strip.reach}i;",
            f"    for (var i = 0i; i < count; i += {STEP}i) {{",
            *indented(_four_rows(strip, sums, middle=True), 2),
            "        workgroupBarrier();",
            *indented([*_along_row(strip, sums), *last], 2),
            *([] if strip.kept else ["        workgroupBarrier();"]),
            "    }",
        ],
    )


def _down_columns(strip: BlurStrip, sums: Sums) -> list[str]:
    """Return lines that add the rows above the first blurred one to the sums.

    Then ``n0`` to ``n3`` are the next rows: they are read while others are added.
    """
    before = 2 * strip.radius
    lines = [f"var a{j} = {sums.begin(True)};" for j in range(before)]
    alone = before % STEP
    for k in range(alone):
        lines += ["{", f"    let t = color(raw(down(first + {k}i) + x));"]
        lines += [*indented(_add(strip.radius, sums)), "}"]
    lines += [f"var n{k} = raw(down(first + {alone + k}i) + x);" for k in range(STEP)]
    if before > alone:
        lines.append(f"for (var i = {alone - before}i; i < 0i; i += {STEP}i) {{")
        lines += [*indented(_four_rows(strip, sums, middle=False)), "}"]
    return lines


def _add(radius: int, sums: Sums) -> list[str]:
    """Return lines that add pixel ``t`` to all sums; each moves up by one row."""
    lines = [f"a{j} = a{j + 1} + t * p.w{abs(radius - 1 - j)};" for j in range(2 * radius - 1)]
    return [*lines, f"a{2 * radius - 1} = t * p.w{radius} + {sums.start(True)};"]


def _four_rows(strip: BlurStrip, sums: Sums, *, middle: bool) -> list[str]:
    """Return lines that add four rows to the sums, and store complete ones if ``middle``."""
    n, radius = colors(sums.picture), strip.radius
    lines = []
    for k in range(STEP):
        lines += [
            "{",
            f"    let t = color(n{k});",
            f"    n{k} = raw(down(first + i + {2 * radius + STEP + k}i) + x);",
        ]
        if middle:
            lines.append(f"    let v = {sums.middle(f'a0 + t * p.w{radius}')};")
        lines += indented(_add(radius, sums))
        for c in range(n if middle else 0):
            place = f"(lane >> 2u) + {(k * n + c) * strip.quads + strip.beside}u"
            lines.append(
                f"    middle[{place}][lane & 3u] = v{f'.{chr(120 + c)}' if n > 1 else ''};"
            )
        lines.append("}")
    return lines


def _along_row(strip: BlurStrip, sums: Sums) -> list[str]:
    """Return lines that blur four pixels of a row: ``h0`` to ``h3``, without alpha.

    Taps of equal weight are added first, as multiplications of integers take longest.
    """
    picture = sums.picture
    n, radius, beside, quads = colors(picture), strip.radius, strip.beside, strip.quads
    lines = [f"let at = line * {n * quads}u + own;"]
    for c in range(n):
        name = "xyz"[c]
        for s in range(2 * beside + 1):
            lines.append(f"let {name}{s} = middle[at + {c * quads + s}u];")
        for k in range(4):
            taps = []
            for d in range(-radius, radius + 1):
                quad, part = divmod(4 * beside + k + d, 4)
                taps.append(f"{name}{quad}.{'xyzw'[part]}")
            lines.append(f"var b{k}{name} = {taps[radius]} * {sums.weight(False, 0)};")
            for d in range(1, radius + 1):
                both = f"({taps[radius - d]} + {taps[radius + d]})"
                lines.append(f"b{k}{name} += {both} * {sums.weight(False, d)};")
    for k in range(4):
        parts = [f"b{k}{'xyz'[c]}" for c in range(n)]
        color = parts[0] if n == 1 else f"vec3<u32>({', '.join(parts)})"
        result = sums.result(color, f"{(2 * radius + 1) ** 2}u")
        lines.append(f"let h{k} = {picture.hold(result, '')};")
    return lines


def _finish(
    strip: BlurStrip,
    picture: ImageFormat,
    finish: Finish,
    out: ImageFormat,
    whole: bool,
    helpers: set[str],
) -> list[str]:
    """Return lines that hold the pixels, run the programs on four and store the results."""
    reach = strip.reach
    pixels = [f"h{k}" for k in range(4)]
    alpha = []
    if picture.channels == 4:
        alpha = [f"let below = down(top + i + i32(line) {plus(-reach)});"]
        if whole:
            alpha.append("let same = below + u32(clamp(column, 0i, p.width - 4i));")
            places = [f"same + {k}u" for k in range(4)]
        else:
            places = [f"below + u32(clamp(column + {k}i, 0i, p.width - 1i))" for k in range(4)]
        for k in range(4):
            alpha.append(f"let g{k} = h{k} | (source[{places[k]}] & 0xff000000u);")
        pixels = [f"g{k}" for k in range(4)]
    if reach:
        lines = alpha
        if not whole:  # pixels beyond the border are equal to the outermost one
            for k in range(1, 4):
                inside = f"column + {k}i < p.width"
                lines.append(f"let o{k} = select({pixels[k - 1]}, {pixels[k]}, {inside});")
                pixels[k] = f"o{k}"
        lines += [
            "let j = u32(i) + line;",
            f"held[(j % {strip.kept}u) * {strip.quads}u + own] = vec4<u32>({', '.join(pixels)});",
            "workgroupBarrier();",
        ]
        inner, condition = _held(strip, finish), "inside && y >= top && y < p.height"
        names = {
            (k + dx, dy): f"n{side(k + dx)}{side(dy)}"
            for k in range(4)
            for dx, dy in finish.offsets
        }
    else:
        lines, inner, condition = [], alpha, "inside && y < p.height"
        names = {(k, 0): pixels[k] for k in range(4)}
    lines.append(f"let y = top + i + i32(line) {plus(-2 * reach)};")
    if finish.calls:
        if picture.channels > 1:
            helpers.add("unpack_u8")
        for offset, name in sorted(names.items()):
            inner.append(f"let {name}_stored = {picture.stored(name)};")
            names[offset] = f"{name}_stored"
    for k in range(4):
        spot = f"column + {k}i"
        inner.append(f"let x_{k} = {spot if whole or not k else f'min({spot}, p.width - 1i)'};")
        inner.append(f"let e_{k} = u32(y * p.width + x_{k});")
    more, results = finish.run([(k, 0) for k in range(4)], names, "x_{k}", "y")
    inner += [*more, *_store(out, results, whole, helpers if finish.calls else None)]
    return [*lines, f"if ({condition}) {{", *indented(inner), "}"]


def _held(strip: BlurStrip, finish: Finish) -> list[str]:
    """Return lines that load the blurred pixels that programs read for four pixels."""
    needed = sorted({(dy, k + dx) for k in range(4) for dx, dy in finish.offsets})
    lines = []
    for c in sorted({c for _, c in needed if not 0 <= c < 4}):
        lines.append(
            f"let column{side(c)} = u32(clamp(column {plus(c)}, 0i, p.width - 1i) - left);"
        )
    for r in sorted({r for r, _ in needed}):
        row = f"clamp(y {plus(r)}, 0i, p.height - 1i)" if r else "y"
        lines.append(
            f"let row{side(r)} = (u32({row} - top + {strip.reach}i) % {strip.kept}u) "
            f"* {strip.quads}u;"
        )
        if any(0 <= c < 4 for row, c in needed if row == r):
            lines.append(f"let four{side(r)} = held[row{side(r)} + own];")
    for r, c in needed:
        place = f"row{side(r)} + (column{side(c)} >> 2u)"
        pixel = f"held[{place}][column{side(c)} & 3u]"
        if 0 <= c < 4:
            pixel = f"four{side(r)}.{'xyzw'[c]}"
        lines.append(f"let n{side(c)}{side(r)} = {pixel};")
    return lines


def _store(
    out: ImageFormat, results: list[str], whole: bool, helpers: set[str] | None
) -> list[str]:
    """Return lines that store four pixels; those beyond the border are not stored."""
    if whole and out.words:
        return store_quad(out, "(e_0 / 4u)", results, helpers)
    if whole and out.dtype == "u8":
        words = results if helpers is None else [packed(out, r, helpers) for r in results]
        return [f"output[e_0 / 4u] = vec4<u32>({', '.join(words)});"]
    lines = []
    for k, result in enumerate(results):
        store = " ".join(store_one(out, f"e_{k}", result, helpers))
        lines.append(store if whole or not k else f"if (column + {k}i < p.width) {{ {store} }}")
    return lines
