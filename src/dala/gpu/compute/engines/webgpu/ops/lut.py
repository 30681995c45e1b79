"""Color lookup tables: one dispatch writes the entries in another layout, one maps the pixels.

From bytes to bytes all is in integers, as ``engines/lookup.py`` defines it. Curves of floats, and
tables behind them, are lowered to the kernel language.

Bytes with alpha have two forms of their own. In either, an invocation maps several pixels, so that
it waits for memory once. *Entries* reads four or eight entries a pixel. *Tetrahedra* reads the one
that a color is in: one place in memory, but of a table of 24 times the size, which has to be
written first. Milliseconds on an H200, both dispatches, in floats, for a photograph / for noise:

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
from string import Template
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.lookup import (
    ByteLookup,
    byte_lookup,
    byte_places,
    curve_numbers,
    curve_places,
    is_plain,
)
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

_GROUP: Final = 128
_RGBA8: Final = ImageFormat("u8", 4)

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
    place = Template(read_text("lut_place.wgsl")).substitute(
        positive="max(raw, vec3<f32>(0.0f))" if dtype == "u8" else numbers
    )
    return f"{place}\n{read_text(f'lut_{method}.wgsl')}"


@cache
def shader(source: ImageFormat, stored: ImageFormat, method: str) -> str:
    """Return the shader for an image format and an output format, one of them of floats."""
    return Template(read_text("lut.wgsl")).substitute(
        element=source.element,
        stored=stored.element,
        method=_method(source.dtype, method),
        alpha="px.a * p.alpha" if source.channels == 4 else "p.white",
        image_pass=image_pass(source, stored, by_number=True),
    )


#: The positions of bytes: computed, or read.
_PLAIN: Final = """\
    let x = c * (p.size - 1u);
    let at = x * 257u + (((x + 127u) * 32897u) >> vec3<u32>(23u));  // x * 65536 / 255, rounded"""
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
    head = Template(read_text("lut_fixed.wgsl")).substitute(
        element=words if pixels > 1 else source.element,
        stored=words if pixels > 1 else stored.element,
        entry="vec4<u32>" if form == "tetrahedra" else "vec2<u32>",
        bindings="" if plain else "@group(0) @binding(2) var<storage, read> places: array<u32>;",
        result=2 if plain else 3,
        block=3 if plain else 4,
        place=_PLAIN if plain else _PLACED,
    )
    method = f"{head}\n{read_text(f'lut_{form}.wgsl')}"
    if pixels == 1:
        return Template(read_text("lut_fixed_pass.wgsl")).substitute(
            method=method,
            alpha="px.a" if source.channels == 4 else "255.0f",
            image_pass=image_pass(source, stored, by_number=True),
        )
    names = "xyzw"[:pixels]
    return Template(read_text("lut_bytes.wgsl")).substitute(
        group=_GROUP,
        pixels=pixels,
        words=words,
        method=method,
        finds="\n".join(f"    let f{c} = find(color(w.{c}));" for c in names),
        stores=", ".join(f"store(finished(blend(f{c}), color(w.{c})), w.{c})" for c in names),
    )


@cache
def quantizing_shader(name: str, more: tuple[str, ...] = ()) -> str:
    """Return a shader that quantizes entries; ``more`` are members of its block."""
    members = "".join(f"    {member},\n" for member in more)
    head = Template(read_text("lut_quantize.wgsl")).substitute(more=members)
    return f"{head}\n{Template(read_text(name)).substitute(group=_GROUP)}"


@implements("lut_apply")
def make_lut_apply(engine: WebGPUEngine, task: Task) -> Runner | None:
    """Return a runner of dispatches; None for floats through curves."""
    numbers, cube = byte_lookup(task), len(task.inputs[1].shape) == 4
    if numbers is None:
        return _floats(engine, task) if cube else None
    make = _bytes if cube or task["shaper"] else _curves
    return make(engine, task, numbers)


def _formats(task: Task) -> tuple[ImageFormat, ImageFormat, int]:
    """Return the formats of the picture and of the output, and the number of pixels."""
    height, width, channels = task.inputs[0].shape
    stored = ImageFormat(task.output.dtype, task.output.shape[2])
    return ImageFormat(task.inputs[0].dtype, channels), stored, height * width


def _bytes(engine: WebGPUEngine, task: Task, numbers: ByteLookup) -> Runner:
    shaper, method, plain = task["shaper"], task["method"], is_plain(task)
    size = task.inputs[1].shape[0]
    if shaper:
        size = round((size - shaper) ** (1 / 3))
    source, stored, pixels = _formats(task)
    at_once = pixels_at_once(size, method) if source == stored == _RGBA8 else 1
    dispatches = Dispatches(engine, task.op)
    given = BufferRef("input", 1)
    quantize = shaper, numbers.factor, numbers.bias, numbers.top
    form, count, room = f"fixed_{method}", size**3, size**3 * _ENTRY
    name = "lut_fixed_spread.wgsl"
    if at_once > 1 and not shaper and prefers_tetrahedra(engine, size, pixels, method):
        form, count, room = "tetrahedra", (size - 1) ** 3 * 12, (size - 1) ** 3 * _CELL
        name, at_once = "lut_tetrahedra_spread.wgsl", 2
    table = dispatches.temporary(room)
    spread = quantizing_shader(name)
    dispatches.add(spread, [given], table, block(size, count, *quantize), -(-count // _GROUP))
    reads = [BufferRef("input"), table]
    if shaper:
        places = dispatches.temporary(768 * 4)
        curves = dispatches.constant(curve_places(task))
        own = [n for each in curve_numbers(task, size) for n in (*each, 0)]
        text = quantizing_shader("lut_shaper.wgsl", ("numbers: array<vec4<i32>, 3>",))
        values = block(size, count, *quantize, 0, 0, *own)
        dispatches.add(text, [given, curves], places, values, -(-768 // _GROUP))
        reads.append(places)
    elif not plain:
        reads.append(dispatches.constant(byte_places(task, size)))
    groups = -(-pixels // (at_once * _GROUP)) if at_once > 1 else image_groups(stored, pixels)
    height, width = task.inputs[0].shape[:2]
    values = block(width, height, size, numbers.keep, numbers.shift, numbers.below)
    text = byte_shader(source, stored, form, at_once, plain)
    dispatches.add(text, reads, OUTPUT, values, groups)
    return dispatches.runner()


def _curves(engine: WebGPUEngine, task: Task, numbers: ByteLookup) -> Runner:
    size = task.inputs[1].shape[0]
    source, stored, pixels = _formats(task)
    dispatches = Dispatches(engine, task.op)
    table = dispatches.temporary(768 * 4)
    places = dispatches.constant(byte_places(task, size))
    spread = quantizing_shader("lut_curves.wgsl", ("keep: u32", "shift: u32", "below: i32"))
    values = block(
        size, 0, 0, numbers.factor, numbers.bias, numbers.top, numbers.keep, numbers.shift,
        numbers.below,
    )  # fmt: skip
    dispatches.add(spread, [BufferRef("input", 1), places], table, values, -(-768 // _GROUP))
    text = Template(read_text("lut_map.wgsl")).substitute(
        element=source.element,
        stored=stored.element,
        alpha="px.a" if source.channels == 4 else "255.0f",
        image_pass=image_pass(source, stored, by_number=True),
    )
    height, width = task.inputs[0].shape[:2]
    groups = image_groups(stored, pixels)
    dispatches.add(text, [BufferRef("input"), table], OUTPUT, block(width, height), groups)
    return dispatches.runner()


def _floats(engine: WebGPUEngine, task: Task) -> Runner:
    image, lut = task.inputs
    size = lut.shape[0]
    height, width = image.shape[:2]
    source, stored, pixels = _formats(task)
    unit = 255.0 if image.dtype == "u8" else 1.0
    white = 255.0 if task.output.dtype == "u8" else 1.0
    low, high = task["domain_min"], task["domain_max"]
    scale = [(size - 1) / (h - v) / unit for v, h in zip(low, high, strict=True)]
    numbers = block(
        width, height, size, white,
        *(v * unit for v in low), white / unit,
        *scale, task["amount"] * white,
        (1.0 - task["amount"]) * white / unit, float(size - 1), 0, 0,
    )  # fmt: skip
    dispatches = Dispatches(engine, task.op)
    table = dispatches.temporary(size**3 * 16)
    spread = Template(read_text("lut_spread.wgsl")).substitute(group=_GROUP)
    given = BufferRef("input", 1)
    dispatches.add(spread, [given], table, block(size**3), -(-(size**3) // _GROUP))
    reads, groups = [BufferRef("input"), table], image_groups(stored, pixels)
    dispatches.add(shader(source, stored, task["method"]), reads, OUTPUT, numbers, groups)
    return dispatches.runner()
