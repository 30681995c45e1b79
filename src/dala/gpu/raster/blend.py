"""Spans, single pixels and blocks of pixels, composited over a framebuffer.

The arithmetic is that of ``cpu/pixels/over.py``; results are exactly rounded.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    any_of,
    hinted,
    i32,
    i64,
    load,
    local,
    prefetch,
    select,
    splat,
    static,
    store,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.over import (
    OPAQUE,
    VISIBLE,
    fill_row,
    over_any,
    over_opaque,
    over_opaque_pixel,
    over_translucent_pixel,
)

#: Spans that are collected before they are drawn.
SPANS: Final = 64


@native(inline=False)
def cover_spans(
    pixels: Array[u32], places: Array[i32], counts: Array[i32], first: i64, last: i64, color: u32
) -> tuple[i64, i64]:
    """Composite spans [first, last) of one translucent color over opaque or transparent pixels.

    Return the span and the pixel of the first vector with translucent pixels, or ``last``. Calls
    nothing, so that constants stay in registers.
    """
    plain = splat(color, 16)
    for k in hinted(range(first, last), scalar=True):
        at = i64(places[k])
        end = at + i64(counts[k])
        for i in hinted(range(at, end, 16), scalar=True):
            n = min(end - i, 16)
            d = load(pixels, i, 16, n)
            if any_of((d < OPAQUE) & (d >= VISIBLE)):
                return k, i
            store(pixels, i, select(d < VISIBLE, plain, over_opaque(d, plain)), n)
    return last, 0


@native(inline=False)
def over_spans(
    pixels: Array[u32], places: Array[i32], counts: Array[i32], count: i64, color: u32
) -> None:
    """Composite spans of one translucent color over any pixels."""
    k = 0
    while k < count:
        k, at = cover_spans(pixels, places, counts, k, count, color)
        if k < count:
            end = i64(places[k]) + i64(counts[k])
            for i in hinted(range(at, end, 16), scalar=True):
                n = min(end - i, 16)
                store(pixels, i, over_any(load(pixels, i, 16, n), splat(color, 16)), n)
            k += 1


@native(inline=False)
def over_span(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Composite a single span of one color."""
    if color >= OPAQUE:
        fill_row(pixels, at, count, color)
    else:
        places, counts = local(i32, 1), local(i32, 1)
        places[0], counts[0] = i32(at), i32(count)
        over_spans(pixels, places, counts, 1, color)


@native(inline=False)
def over_pixels(pixels: Array[u32], places: Array[i32], count: i64, color: u32) -> None:
    """Composite single pixels of one color."""
    if color >= OPAQUE:
        for k in hinted(range(count), scalar=True):
            pixels[places[k]] = color
        return
    a = color >> 24
    for k in hinted(range(count), scalar=True):
        d = pixels[places[k]]
        mixed = color
        if d >= OPAQUE:
            mixed = over_opaque_pixel(d, color, a)
        elif d >= VISIBLE:
            mixed = over_translucent_pixel(d, color)
        pixels[places[k]] = mixed


@native(inline=False)
def over_block(
    pixels: Array[u32],
    at: i64,
    width: i64,
    source: Array[u32],
    first: i64,
    stride: i64,
    count: i64,
    rows: i64,
    ahead: i64,
) -> i64:
    """Composite rows of whole vectors over opaque pixels; return how many pixels were opaque.

    Stops at the first vector with other pixels. Calls nothing, so that constants stay in registers.
    Prefetches from the pixel ``ahead`` on, where the next block will be drawn.
    """
    for row in hinted(range(rows), scalar=True):
        for part in static((0, 16, 31)):
            prefetch(pixels, ahead + row * width + part)
        for k in hinted(range(0, count, 16), scalar=True):
            d = load(pixels, at + row * width + k, 16)
            if any_of(d < OPAQUE):
                return row * count + k
            s = load(source, first + row * stride + k, 16)
            store(pixels, at + row * width + k, over_opaque(d, s))
    return rows * count
