"""3D color lookup tables: one dispatch writes the entries in another layout, one maps the pixels.

1D tables, and tables behind curves, are lowered to the kernel language.

Bytes with alpha have two forms of their own. In either, an invocation maps several pixels, so that
it waits for memory once. *Entries* reads four or eight entries a pixel. *Slopes* reads the
tetrahedron that a color is in: one place in memory, but of a table of eleven times the size, which
has to be written first. Milliseconds on an H200, both dispatches, for a photograph / for noise:

| frame | table | one pixel, entries | entries | slopes |
|---|---|---|---|---|
| 3840 x 2160 | 33 | 0.068 / 0.193 | 0.050 / 0.204 | 0.053 / 0.076 |
| 3840 x 2160 | 17 | 0.068 / 0.075 | 0.043 / 0.062 | 0.044 / 0.073 |
| 1920 x 1080 | 33 | 0.023 / 0.056 | 0.020 / 0.059 | 0.023 / 0.029 |
| 1280 x 720 | 33 | 0.017 / 0.030 | 0.015 / 0.032 | 0.018 / 0.021 |
| 3840 x 2160, trilinear | 17 | 0.076 / 0.109 | 0.059 / 0.104 | |
| 3840 x 2160, trilinear | 33 | 0.083 / 0.311 | 0.077 / 0.329 | |

So slopes are for entries that do not fit the nearest cache, in frames that are so large that
photographs, whose neighbors share entries, hardly pay for the table.
"""

from __future__ import annotations

from functools import cache
from string import Template
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

_GROUP: Final = 128
_RGBA8: Final = ImageFormat("u8", 4)

#: Bytes of an entry, and of the six tetrahedra of a cell.
_ENTRY: Final = 16
_CELL: Final = 6 * 32
#: A table of more bytes does not fit the nearest cache of a GPU.
NEAR_BYTES: Final = 128 << 10
#: The fewest pixels, and the largest table in bytes, that slopes are written for.
SLOPES_PIXELS: Final = 6_000_000
SLOPES_BYTES: Final = 8 << 20


def prefers_slopes(engine: WebGPUEngine, size: int, pixels: int, method: str) -> bool:
    """Return whether slopes are faster for bytes with alpha; see the table above."""
    return (
        engine.gpu
        and method == "tetrahedral"
        and size**3 * _ENTRY > NEAR_BYTES
        and (size - 1) ** 3 * _CELL <= SLOPES_BYTES
        and pixels >= SLOPES_PIXELS
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
    """Return the shader for an image format and an output format."""
    return Template(read_text("lut.wgsl")).substitute(
        element=source.element,
        stored=stored.element,
        method=_method(source.dtype, method),
        alpha="px.a * p.alpha" if source.channels == 4 else "p.white",
        image_pass=image_pass(source, stored, by_number=True),
    )


@cache
def byte_shader(form: str, method: str, pixels: int) -> str:
    """Return the shader for bytes with alpha: "lut_bytes.wgsl" or "lut_slopes.wgsl"."""
    names = "xyzw"[:pixels]
    return Template(read_text(form)).substitute(
        group=_GROUP,
        pixels=pixels,
        words=f"vec{pixels}<u32>",
        method=_method("u8", method),
        store=f"{helper_source(['unpack_rgba'])}\n{read_text('lut_store.wgsl')}",
        finds="\n".join(f"    let f{c} = find(color(w.{c}));" for c in names),
        stores=", ".join(f"store_any(blend(f{c}), w.{c})" for c in names),
    )


@implements("lut_apply")
def make_lut_apply(engine: WebGPUEngine, task: Task) -> Runner | None:
    """Return a runner of two dispatches for a plain 3D table; None for others."""
    image, lut = task.inputs
    if len(lut.shape) != 4 or task["shaper"]:
        return None
    size, method = lut.shape[0], task["method"]
    height, width, channels = image.shape
    pixels = height * width
    source = ImageFormat(image.dtype, channels)
    stored = ImageFormat(task.output.dtype, task.output.shape[2])
    at_once = pixels_at_once(size, method) if source == stored == _RGBA8 else 1
    unit = 255.0 if image.dtype == "u8" else 1.0
    white = 255.0 if task.output.dtype == "u8" else 1.0
    full = white if at_once == 1 else 1.0
    low, high = task["domain_min"], task["domain_max"]
    scale = [(size - 1) / (h - v) / unit for v, h in zip(low, high, strict=True)]
    numbers = block(
        width, height, size, white,
        *(v * unit for v in low), white / unit,
        *scale, task["amount"] * full,
        (1.0 - task["amount"]) * full / unit, float(size - 1), 0, 0,
    )  # fmt: skip
    dispatches = Dispatches(engine, task.op)
    given = BufferRef("input", 1)
    if at_once > 1 and prefers_slopes(engine, size, pixels, method):
        table = dispatches.temporary((size - 1) ** 3 * _CELL)
        count = (size - 1) ** 3 * 12
        spread = Template(read_text("lut_slopes_spread.wgsl")).substitute(group=_GROUP)
        dispatches.add(spread, [given], table, block(size, count), -(-count // _GROUP))
        text = byte_shader("lut_slopes.wgsl", method, 2)
        reads, groups = [BufferRef("input"), table, given], -(-pixels // (2 * _GROUP))
    else:
        table = dispatches.temporary(size**3 * _ENTRY)
        spread = Template(read_text("lut_spread.wgsl")).substitute(group=_GROUP)
        dispatches.add(spread, [given], table, block(size**3), -(-(size**3) // _GROUP))
        reads, groups = [BufferRef("input"), table], -(-pixels // (at_once * _GROUP))
        if at_once > 1:
            text = byte_shader("lut_bytes.wgsl", method, at_once)
        else:
            text, groups = shader(source, stored, method), image_groups(stored, pixels)
    dispatches.add(text, reads, OUTPUT, numbers, groups)
    return dispatches.runner()
