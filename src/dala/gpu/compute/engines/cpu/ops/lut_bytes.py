"""3D lookup tables from bytes to bytes, in the integers that ``engines/lookup.py`` defines.

An entry is four numbers of 16 bits, so that it is one vector. Pixels are processed in blocks, as in
``lut.py``.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    f64,
    floor,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    select,
    static,
    store,
    u8,
    u16,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.ops.lut import BLOCK
from dala.gpu.compute.engines.lookup import FARTHEST


@native
def quantize_entries(
    lut: Array[f32], wide: Array[u16], factor: f64, bias: i32, top: i32, start: i64, end: i64
) -> None:
    """Quantize entries of three numbers, and pad them to four."""
    for k in independent(range(start, end)):
        for c in static(range(3)):
            v = lut[3 * k + c]
            known = select(v == v, v, f32(0))
            x = f64(min(max(known, f32(-FARTHEST)), f32(FARTHEST)))
            q = in_range(i32, floor(x * factor + f64(0.5))) + bias
            wide[4 * k + c] = u16(min(max(q, 0), top))
        wide[4 * k + 3] = u16(0)


@native
def byte_place(byte: u32, places: Array[u32], size: i32, *, channel: int, plain: bool) -> u32:
    """Return the position of a byte, with 16 fractional bits."""
    if plain:
        x = byte * u32(size - 1)
        return x * 257 + (((x + 127) * 32897) >> 23)  # x * 65536 / 255, rounded
    else:
        found: u32 = places[256 * channel + i64(byte)]
        return found


@native
def split_weight(w: u32, part: u32) -> u32:
    """Return the share of a weight, both up to 2**16, rounded."""
    found: u32 = select(part == 65536, w, (w * part + 32768) >> 16)
    return found


@native
def find_byte_entries(
    src: Array[u8],
    places: Array[u32],
    near: Array[i32],
    weights: Array[u32],
    size: i32,
    count: i64,
    *,
    channels: int,
    tetrahedral: bool,
    plain: bool,
) -> None:
    """Write the entries and weights of each pixel of a block."""
    step_g = size * 4
    step_r = step_g * size
    end = u32(size - 2)
    for k in independent(range(count)):
        if channels == 4:
            px = view(src, u32)[k]
            cr, cg, cb = px & 255, (px >> 8) & 255, (px >> 16) & 255
        else:
            cr, cg, cb = u32(src[3 * k]), u32(src[3 * k + 1]), u32(src[3 * k + 2])
        r = byte_place(cr, places, size, channel=0, plain=plain)
        g = byte_place(cg, places, size, channel=1, plain=plain)
        b = byte_place(cb, places, size, channel=2, plain=plain)
        i, j, m = min(r >> 16, end), min(g >> 16, end), min(b >> 16, end)
        r, g, b = r - (i << 16), g - (j << 16), b - (m << 16)
        base = i32(i) * step_r + i32(j) * step_g + i32(m) * 4
        near[k] = base
        if tetrahedral:
            up = select(r >= g, select(r >= b, step_r, 4), select(g >= b, step_g, 4))
            off = select(r >= g, select(g >= b, 4, step_g), select(r >= b, 4, step_r))
            near[BLOCK + k] = base + up
            near[2 * BLOCK + k] = base + step_r + step_g + 4 - off
            high = max(r, g)
            less = min(r, g)
            most = max(high, b)
            least = min(less, b)
            middle = max(less, min(high, b))
            weights[k] = 65536 - most
            weights[BLOCK + k] = most - middle
            weights[2 * BLOCK + k] = middle - least
            weights[3 * BLOCK + k] = least
        else:
            both = split_weight(r, g)
            w00, w01, w10 = 65536 + both - r - g, g - both, r - both
            v00, v01 = split_weight(w00, b), split_weight(w01, b)
            v10, v11 = split_weight(w10, b), split_weight(both, b)
            weights[k], weights[BLOCK + k] = w00 - v00, v00
            weights[2 * BLOCK + k], weights[3 * BLOCK + k] = w01 - v01, v01
            weights[4 * BLOCK + k], weights[5 * BLOCK + k] = w10 - v10, v10
            weights[6 * BLOCK + k], weights[7 * BLOCK + k] = both - v11, v11


@native
def sum_byte_entries(
    wide: Array[u16],
    near: Array[i32],
    weights: Array[u32],
    sums: Array[u32],
    size: i64,
    count: i64,
    *,
    tetrahedral: bool,
) -> None:
    """Write the weighted sum of each pixel's entries, four numbers per pixel."""
    step_g = size * 4
    step_r = step_g * size
    for k in range(count):
        base = i64(near[k])
        v = u32(load(wide, base, 4)) * weights[k]
        if tetrahedral:
            v += u32(load(wide, i64(near[BLOCK + k]), 4)) * weights[BLOCK + k]
            v += u32(load(wide, i64(near[2 * BLOCK + k]), 4)) * weights[2 * BLOCK + k]
            v += u32(load(wide, base + step_r + step_g + 4, 4)) * weights[3 * BLOCK + k]
        else:
            v += u32(load(wide, base + 4, 4)) * weights[BLOCK + k]
            v += u32(load(wide, base + step_g, 4)) * weights[2 * BLOCK + k]
            v += u32(load(wide, base + step_g + 4, 4)) * weights[3 * BLOCK + k]
            base += step_r
            v += u32(load(wide, base, 4)) * weights[4 * BLOCK + k]
            v += u32(load(wide, base + 4, 4)) * weights[5 * BLOCK + k]
            v += u32(load(wide, base + step_g, 4)) * weights[6 * BLOCK + k]
            v += u32(load(wide, base + step_g + 4, 4)) * weights[7 * BLOCK + k]
        store(sums, 4 * k, v)


@native
def byte_of_sum(total: u32, shift: u32, below: i32) -> u8:
    """Return the byte of a sum."""
    return u8(min(max(i32(total >> shift) - below, 0), 255))


@native
def store_bytes(
    src: Array[u8],
    sums: Array[u32],
    out: Array[u8],
    keep: u32,
    shift: u32,
    below: i32,
    count: i64,
    *,
    channels: int,
    stored: int,
    mixing: bool,
) -> None:
    """Store a block's sums as pixels; alpha is kept."""
    if channels == 4 and stored == 4:
        made = local(u8, 4 * BLOCK)
        for k in independent(range(4 * count)):
            v = sums[k]
            if mixing:
                v += u32(src[k]) * keep
            made[k] = byte_of_sum(v, shift, below)
        colors, before, after = view(made, u32), view(src, u32), view(out, u32)
        for k in independent(range(count)):
            after[k] = (colors[k] & 0xFFFFFF) | (before[k] & 0xFF000000)
    else:
        for k in independent(range(count)):
            for c in static(range(3)):
                v = sums[4 * k + c]
                if mixing:
                    v += u32(src[channels * k + c]) * keep
                out[stored * k + c] = byte_of_sum(v, shift, below)
            if stored == 4:
                out[stored * k + 3] = u8(255)


@native
def look_up_bytes(
    src: Array[u8],
    wide: Array[u16],
    places: Array[u32],
    out: Array[u8],
    size: i64,
    keep: u32,
    shift: u32,
    below: i32,
    start: i64,
    end: i64,
    *,
    channels: int,
    stored: int,
    tetrahedral: bool,
    mixing: bool,
    plain: bool,
) -> None:
    """Map pixels through a 3D table."""
    near = local(i32, 3 * BLOCK)
    weights = local(u32, 8 * BLOCK)
    sums = local(u32, 4 * BLOCK)
    at = start
    while at < end:
        count = min(end - at, BLOCK)
        pixels = src[at * channels :]
        find_byte_entries(
            pixels, places, near, weights, i32(size), count,
            channels=channels, tetrahedral=tetrahedral, plain=plain,
        )  # fmt: skip
        sum_byte_entries(wide, near, weights, sums, size, count, tetrahedral=tetrahedral)
        store_bytes(
            pixels, sums, out[at * stored :], keep, shift, below, count,
            channels=channels, stored=stored, mixing=mixing,
        )  # fmt: skip
        at += count
