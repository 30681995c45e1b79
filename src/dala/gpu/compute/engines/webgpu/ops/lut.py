"""Color lookup tables: one dispatch writes the entries in another layout, one maps the pixels.

From bytes to bytes all is in integers, as ``engines/lookup.py`` defines it. Curves of floats, and
tables behind them, are lowered to the kernel language.

Bytes with alpha have two forms of their own. In either, an invocation maps several pixels, so that
it waits for memory once. *Entries* reads four or eight entries a pixel. *Tetrahedra* reads the one
that a color is in: one place in memory, but of a table of 24 times the size, which has to be
written first. Milliseconds on an H200, both work, in floats, for a photograph / for noise:

| frame | table | one pixel, entries | entries | tetrahedra |
|---|---|---|---|---|
| 3840 x 2160 | 33 | 0.068 / 0.193 | 0.050 / 0.204 | 0.053 / 0.076 |
| 3840 x 2160 | 17 | 0.068 / 0.075 | 0.043 / 0.062 | 0.044 / 0.073 |
| 1920 x 1080 | 33 | 0.023 / 0.056 | 0.020 / 0.059 | 0.023 / 0.029 |
| 1280 x 720 | 33 | 0.017 / 0.030 | 0.015 / 0.032 | 0.018 / 0.021 |
| 3840 x 2160, trilinear | 17 | 0.076 / 0.109 | 0.059 / 0.104 | |
| 3840 x 2160, trilinear | 33 | 0.083 / 0.311 | 0.077 / 0.329 | |

So tetrahedra are for entries that do not fit the nearest cache, in frames that are so large that
photographs, whose neighbors share entries, hardly pay for the table.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines import lookup
from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    Declined,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

_GROUP: Final = 128
_RGBA8: Final = ImageFormat("u8", 4)
#: The alpha of bytes: without one and with one.
_BYTE_ALPHA: Final = "255.0f", "px.a"

#: Bytes of an entry of bytes, and of the six tetrahedra of a cell.
_ENTRY: Final = 8
_CELL: Final = 6 * 32
#: A table of more bytes does not fit the nearest cache of a GPU.
NEAR_BYTES: Final = 128 << 10
#: The fewest pixels, and the largest table in bytes, that tetrahedra are written for.
TETRAHEDRA_PIXELS: Final = 6_000_000
TETRAHEDRA_BYTES: Final = 8 << 20


def prefers_tetrahedra(engine: WebGPUEngine, size: int, pixels: int, method: str) -> bool:
    """Return whether tetrahedra are faster for bytes with alpha; see the table above."""
    return (
        engine.gpu
        and method == "tetrahedral"
        and size**3 * _ENTRY > NEAR_BYTES
        and (size - 1) ** 3 * _CELL <= TETRAHEDRA_BYTES
        and pixels >= TETRAHEDRA_PIXELS
    )


def pixels_at_once(size: int, method: str) -> int:
    """Return how many bytes with alpha an invocation looks up in entries, at most four."""
    if method == "tetrahedral":
        return 4
    return 2 if size**3 * _ENTRY <= NEAR_BYTES else 1


def _method(dtype: str, method: str) -> str:
    # The comparison is false for NaN.
    numbers = "select(vec3<f32>(0.0f), raw, raw > vec3<f32>(0.0f))"
    place = shader_text(
        "lut_place.wgsl", positive="max(raw, vec3<f32>(0.0f))" if dtype == "u8" else numbers
    )
    return f"{place}\n{shader_text(f'lut_{method}.wgsl')}"


@cache
def shader(
    name: str, source: ImageFormat, stored: ImageFormat, opaque: str, alpha: str, method: str = ""
) -> str:
    """Return the shader of one pixel at a time; alpha is ``opaque`` if pixels have none."""
    return shader_text(
        name,
        element=source.element,
        stored=stored.element,
        method=method,
        alpha=alpha if source.channels == 4 else opaque,
        image_pass=image_pass(source, stored, by_number=True),
    )


#: The positions of bytes: computed, or read.
_PLAIN: Final = """\
    // c * (size - 1) * 65536 / 255, rounded; 65536 is 257 * 255 + 1.
    let whole = (p.size - 1u) * 257u;
    let rest = whole + ((p.size - 1u) >> 7u);
    let at = c * whole + ((c * rest + vec3<u32>(32768u)) >> vec3<u32>(16u));"""
_PLACED: Final = """\
    let at = vec3<u32>(places[c.x], places[256u + c.y], places[512u + c.z]);"""


@cache
def byte_shader(
    source: ImageFormat, stored: ImageFormat, form: str, pixels: int, plain: bool
) -> str:
    """Return the shader from bytes to bytes.

    ``form`` is how entries are read: "tetrahedra" or "fixed" and the method.
    """
    words = f"vec{pixels}<u32>"
    head = shader_text(
        "lut_fixed.wgsl",
        element=words if pixels > 1 else source.element,
        stored=words if pixels > 1 else stored.element,
        entry="vec4<u32>" if form == "tetrahedra" else "vec2<u32>",
        bindings="" if plain else "@group(0) @binding(2) var<storage, read> places: array<u32>;",
        result=2 if plain else 3,
        block=3 if plain else 4,
        place=_PLAIN if plain else _PLACED,
    )
    method = f"{head}\n{shader_text(f'lut_{form}.wgsl')}"
    if pixels == 1:
        return shader("lut_fixed_pass.wgsl", source, stored, *_BYTE_ALPHA, method)
    names = "xyzw"[:pixels]
    return shader_text(
        "lut_bytes.wgsl", group=_GROUP, pixels=pixels, words=words, method=method,
        finds="\n".join(f"    let f{c} = find(color(w.{c}));" for c in names),
        stores=", ".join(f"store(finished(blend(f{c}), color(w.{c})), w.{c})" for c in names),
    )  # fmt: skip


@cache
def quantizing_shader(name: str, more: tuple[str, ...] = (), size: int = 0) -> str:
    """Return a shader that quantizes entries; ``more`` are members of its block.

    Tetrahedra are written for a table of one size.
    """
    members = "".join(f"    {member},\n" for member in more)
    head = shader_text("lut_quantize.wgsl", more=members)
    return f"{head}\n{shader_text(name, group=_GROUP, size=size)}"


@implements("lut_apply")
def add_lut_apply(work: Dispatches, task: Task) -> None:
    """Add two dispatches, three behind a shaper; floats through curves are lowered."""
    numbers, cube = lookup.byte_lookup(task), len(task.inputs[1].shape) == 4
    if numbers is None:
        if not cube:
            raise Declined
        _add_floats(work, task)
    else:
        add = _add_bytes if cube or task["shaper"] else _add_curves
        add(work, task, numbers)


def _formats(task: Task) -> tuple[ImageFormat, ImageFormat, tuple[int, int]]:
    """Return the formats of the picture and of the output, and their width and height."""
    height, width = task.inputs[0].shape[:2]
    return ImageFormat.of(task.inputs[0]), ImageFormat.of(task.output), (width, height)


def _add_bytes(work: Dispatches, task: Task, numbers: lookup.ByteLookup) -> None:
    shaper, method, plain = task["shaper"], task["method"], lookup.is_plain(task)
    size = task.inputs[1].shape[0]
    if shaper:
        size = round((size - shaper) ** (1 / 3))
    source, stored, (width, height) = _formats(task)
    pixels = width * height
    at_once = pixels_at_once(size, method) if source == stored == _RGBA8 else 1
    image, given = work.inputs
    form, count, room = f"fixed_{method}", size**3, size**3 * _ENTRY
    name, groups = "lut_fixed_spread.wgsl", -(-count // _GROUP)
    if at_once > 1 and not shaper and prefers_tetrahedra(work.engine, size, pixels, method):
        form, count, room = "tetrahedra", (size - 1) ** 2, (size - 1) ** 3 * _CELL
        name, groups, at_once = "lut_tetrahedra_spread.wgsl", count, 2
    table = work.temporary(room)
    quantize = (size, count, shaper, *numbers[:3])
    work.add(quantizing_shader(name, size=size), [given], table, quantize, groups)
    reads = [image, table]
    if shaper:
        reads.append(work.temporary(768 * 4))
        curves = work.constant(lookup.curve_places(task))
        own = [n for each in lookup.curve_numbers(task, size) for n in (*each, 0)]
        text = quantizing_shader("lut_shaper.wgsl", ("numbers: array<vec4<i32>, 3>",))
        work.add(text, [given, curves], reads[-1], (*quantize, 0, 0, *own), -(-768 // _GROUP))
    elif not plain:
        reads.append(work.constant(lookup.byte_places(task, size)))
    groups = -(-pixels // (at_once * _GROUP)) if at_once > 1 else image_groups(stored, pixels)
    text = byte_shader(source, stored, form, at_once, plain)
    work.add(text, reads, work.output, (width, height, size, *numbers[3:]), groups)


def _add_curves(work: Dispatches, task: Task, numbers: lookup.ByteLookup) -> None:
    size = task.inputs[1].shape[0]
    source, stored, (width, height) = _formats(task)
    table, places = work.temporary(768 * 4), work.constant(lookup.byte_places(task, size))
    spread = quantizing_shader("lut_curves.wgsl", ("keep: u32", "shift: u32", "below: i32"))
    image, given = work.inputs
    work.add(spread, [given, places], table, (size, 0, 0, *numbers), -(-768 // _GROUP))
    text = shader("lut_map.wgsl", source, stored, *_BYTE_ALPHA)
    groups = image_groups(stored, width * height)
    work.add(text, [image, table], work.output, (width, height), groups)


def _add_floats(work: Dispatches, task: Task) -> None:
    size = task.inputs[1].shape[0]
    source, stored, (width, height) = _formats(task)
    unit, white = (255.0 if dtype == "u8" else 1.0 for dtype in (source.dtype, stored.dtype))
    low, high = task["domain_min"], task["domain_max"]
    numbers = (
        width, height, size, white,
        *(v * unit for v in low), white / unit,
        *((size - 1) / (h - v) / unit for v, h in zip(low, high, strict=True)),
        task["amount"] * white, (1.0 - task["amount"]) * white / unit, float(size - 1), 0, 0,
    )  # fmt: skip
    table, (image, given) = work.temporary(size**3 * 16), work.inputs
    spread = shader_text("lut_spread.wgsl", group=_GROUP)
    work.add(spread, [given], table, (size**3,), -(-(size**3) // _GROUP))
    method = _method(source.dtype, task["method"])
    text = shader("lut.wgsl", source, stored, "p.white", "px.a * p.alpha", method)
    groups = image_groups(stored, width * height)
    work.add(text, [image, table], work.output, numbers, groups)
