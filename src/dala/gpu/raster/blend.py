"""Spans, single pixels and blocks of pixels, composited over a framebuffer.

The arithmetic is that of ``cpu/pixels/over.py``; results are exactly rounded.
"""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import *

#: Spans that are collected before they are drawn.
SPANS: Final = 64


class Spans(NamedTuple):
    """Room for SPANS spans of one color: the first pixel and the number of pixels of each."""

    pixels: Array[u32]
    places: Array[i32]
    counts: Array[i32]
    color: u32


@native(inline=False)
def cover_spans(spans: Spans, first: i64, last: i64) -> tuple[i64, i64]:
    """Composite spans [first, last) of one translucent color over opaque or transparent pixels.

    Return the span and the pixel of the first vector with translucent pixels, or ``last``. Calls
    nothing, so that constants stay in registers.
    """
    plain = splat(spans.color, 16)
    for k in serial(first, last):
        at = i64(spans.places[k])
        end = at + i64(spans.counts[k])
        for i in serial(at, end, 16):
            n = min(end - i, 16)
            d = load(spans.pixels, i, 16, n)
            if any_of((d < OPAQUE) & (d >= VISIBLE)):
                return k, i
            store(spans.pixels, i, select(d < VISIBLE, plain, over_opaque(d, plain)), n)
    return last, 0


@native(inline=False)
def over_spans(spans: Spans, count: i64) -> None:
    """Composite spans of a translucent color over any pixels."""
    pixels, color, k = spans.pixels, spans.color, 0
    while k < count:
        k, at = cover_spans(spans, k, count)
        if k < count:
            end = i64(spans.places[k]) + i64(spans.counts[k])
            for i in serial(at, end, 16):
                n = min(end - i, 16)
                store(pixels, i, over_any(load(pixels, i, 16, n), splat(color, 16)), n)
            k += 1


@native
def add_span(spans: Spans, n: i64, at: i64, count: i64) -> i64:
    """Fill an opaque span. Collect a translucent one; draw those collected when there are many.

    Return how many are collected.
    """
    if spans.color >= OPAQUE:
        if count > 0:
            fill_row(spans.pixels, at, count, spans.color)
        return n
    spans.places[n], spans.counts[n] = i32(at), i32(count)
    n += i64(count > 0)
    if n == SPANS:
        over_spans(spans, n)
        n = 0
    return n


@native(inline=False)
def over_span(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Composite a single span of one color."""
    if color >= OPAQUE:
        fill_row(pixels, at, count, color)
    else:
        places, counts = local(i32, 1), local(i32, 1)
        places[0], counts[0] = i32(at), i32(count)
        over_spans(Spans(pixels, places, counts, color), 1)


@native(inline=False)
def over_pixels(pixels: Array[u32], places: Array[i32], count: i64, color: u32) -> None:
    """Composite single pixels of one color."""
    if color >= OPAQUE:
        for k in serial(count):
            pixels[places[k]] = color
        return
    for k in serial(count):
        pixels[places[k]] = over_pixel(pixels[places[k]], color)


@native(inline=False)
def over_block(
    pixels: Array[u32], at: i64, width: i64, source: Array[u32], first: i64, stride: i64,
    count: i64, rows: i64,
) -> i64:  # fmt: skip
    """Composite rows of whole vectors over opaque pixels; return how many pixels were opaque.

    Stops at the first vector with other pixels. Calls nothing, so that constants stay in registers.
    """
    for row in serial(rows):
        for k in serial(0, count, 16):
            d = load(pixels, at + row * width + k, 16)
            if any_of(d < OPAQUE):
                return row * count + k
            s = load(source, first + row * stride + k, 16)
            store(pixels, at + row * width + k, over_opaque(d, s))
    return rows * count
