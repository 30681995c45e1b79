"""3D lookup tables from bytes to bytes, in the integers that ``engines/lookup.py`` defines.

Products of 16-bit numbers are added in pairs, which is one instruction on most processors. So an
entry is four numbers with sign, 32767 less the quantized ones. Weights sum to 2**16 and are given
negative: they fit 16 bits, except one over 2**15, which is 2**16 too large there. Then its entry is
subtracted, shifted by 16 bits; else the entry of zeros behind the table. Pixels are processed in
blocks, as in ``lut.py``.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.lut import BLOCK, tetrahedron
from dala.gpu.compute.engines.lookup import FARTHEST

#: Shuffles two entries so that their numbers alternate.
_ALTERNATE: Final = (0, 4, 1, 5, 2, 6, 3, 7)


@native
def quantize_entries(
    lut: Array[f32], wide: Array[i16], factor: f64, bias: i32, top: i32, start: i64, end: i64
) -> None:
    """Quantize entries of three numbers, and pad them to four; an entry of zeros follows."""
    store(wide, len(lut) // 3 * 4, splat(i16(0), 4))
    for k in independent(range(start, end)):
        for c in static(range(3)):
            v = lut[3 * k + c]
            known = select(v == v, v, f32(0))
            x = f64(min(max(known, f32(-FARTHEST)), f32(FARTHEST)))
            q = in_range(i32, floor(x * factor + f64(0.5))) + bias
            wide[4 * k + c] = i16(32767 - min(max(q, 0), top))
        wide[4 * k + 3] = i16(0)


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
def pair(a: u32, b: u32) -> u32:
    """Return two weights, negative, in a word."""
    return ((0 - a) & 65535) | ((0 - b) << 16)


@native
def find_byte_entries(
    src: Array[u8], places: Array[u32], near: Array[i32], weights: Array[u32], size: i32,
    count: i64, *, channels: int, tetrahedral: bool, plain: bool,
) -> None:  # fmt: skip
    """Write the entries of each pixel of a block, and its weights in pairs."""
    step_g = size * 4
    step_r = step_g * size
    end, zeros = u32(size - 2), step_r * size
    for k in independent(range(count)):
        if channels == 4:
            px = view(src, u32)[k]
            cr, cg, cb = px & 255, (px >> 8) & 255, (px >> 16) & 255
        else:
            cr, cg, cb = u32(src[3 * k]), u32(src[3 * k + 1]), u32(src[3 * k + 2])
        r = byte_place(cr, places, size, channel=0)
        g = byte_place(cg, places, size, channel=1)
        b = byte_place(cb, places, size, channel=2)
        i, j, m = min(r >> 16, end), min(g >> 16, end), min(b >> 16, end)
        r, g, b = r - (i << 16), g - (j << 16), b - (m << 16)
        base = i32(i) * step_r + i32(j) * step_g + i32(m) * 4
        near[k] = base
        if tetrahedral:
            second, third, last, w0, w1, w2, w3 = tetrahedron(
                r, g, b, base, step_r, step_g, u32(65536)
            )
            near[BLOCK + k], near[2 * BLOCK + k] = second, third
            weights[k], weights[BLOCK + k] = pair(w0, w1), pair(w2, w3)
            heavy = select(w0 > 32768, base, zeros)
            heavy = select(w1 > 32768, second, heavy)
            heavy = select(w2 > 32768, third, heavy)
            near[3 * BLOCK + k] = select(w3 > 32768, last, heavy)
        else:
            both = split_weight(r, g)
            w00, w01, w10 = 65536 + both - r - g, g - both, r - both
            v00, v01 = split_weight(w00, b), split_weight(w01, b)
            v10, v11 = split_weight(w10, b), split_weight(both, b)
            weights[k], weights[BLOCK + k] = pair(w00 - v00, v00), pair(w01 - v01, v01)
            weights[2 * BLOCK + k] = pair(w10 - v10, v10)
            weights[3 * BLOCK + k] = pair(both - v11, v11)
            most = max(max(w00 - v00, v00), max(w01 - v01, v01))
            most = max(most, max(max(w10 - v10, v10), max(both - v11, v11)))
            close = base + select(r > 32768, step_r, 0) + select(g > 32768, step_g, 0)
            close += select(b > 32768, i32(4), 0)
            near[3 * BLOCK + k] = select(most > 32768, close, zeros)


@native
def weighed(entries: Vector, weights: Array[u32], at: i64) -> Vector:
    """Return the sums of two entries, whose numbers alternate."""
    return u32(multiply_pairs(entries, bits(i16, splat(weights[at], 4))))


@native
def neighbors(wide: Array[i16], at: i64) -> Vector:
    """Return an entry and the next one; their numbers alternate."""
    both = load(wide, at, 8)
    return shuffle(both, both, _ALTERNATE)


@native
def two_entries(wide: Array[i16], p: i64, q: i64) -> Vector:
    """Return two entries; their numbers alternate."""
    return shuffle(load(wide, p, 4), load(wide, q, 4), _ALTERNATE)


@native
def sum_byte_entries(
    wide: Array[i16], near: Array[i32], weights: Array[u32], sums: Array[u32], size: i64,
    count: i64, *, tetrahedral: bool,
) -> None:  # fmt: skip
    """Write the weighted sum of each pixel's entries, four numbers per pixel."""
    step_g = size * 4
    step_r = step_g * size
    for k in range(count):
        base = i64(near[k])
        if tetrahedral:
            far = base + step_r + step_g + 4
            v = weighed(two_entries(wide, base, i64(near[BLOCK + k])), weights, k)
            v += weighed(two_entries(wide, i64(near[2 * BLOCK + k]), far), weights, BLOCK + k)
        else:
            v = weighed(neighbors(wide, base), weights, k)
            v += weighed(neighbors(wide, base + step_g), weights, BLOCK + k)
            base += step_r
            v += weighed(neighbors(wide, base), weights, 2 * BLOCK + k)
            v += weighed(neighbors(wide, base + step_g), weights, 3 * BLOCK + k)
        store(sums, 4 * k, v - (u32(load(wide, i64(near[3 * BLOCK + k]), 4)) << 16))


@native
def byte_of_sum(total: u32, shift: u32, below: i32) -> u8:
    """Return the byte of a sum of entries as they are stored."""
    made: u8 = saturate(u8, i32((total + static(32767 << 16)) >> shift) - below)
    return made


@native
def store_bytes(
    src: Array[u8], sums: Array[u32], out: Array[u8], keep: u32, shift: u32, below: i32, count: i64,
    *, channels: int, stored: int, mixing: bool,
) -> None:  # fmt: skip
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
    src: Array[u8], wide: Array[i16], places: Array[u32], out: Array[u8], size: i64, keep: u32,
    shift: u32, below: i32, start: i64, end: i64, *, channels: int, stored: int, tetrahedral: bool,
    mixing: bool, plain: bool,
) -> None:  # fmt: skip
    """Map pixels through a 3D table."""
    near = local(i32, 4 * BLOCK)
    weights = local(u32, 4 * BLOCK)
    sums = local(u32, 4 * BLOCK)
    for at in range(start, end, BLOCK):
        count = min(end - at, BLOCK)
        pixels = src[at * channels :]
        find_byte_entries(pixels, places, near, weights, i32(size), count)
        sum_byte_entries(wide, near, weights, sums, size, count)
        store_bytes(pixels, sums, out[at * stored :], keep, shift, below, count)
