"""Samples of bytes between pixels, in integers; ``engines/sampling/byte_samples.py`` defines them.

Bilinear samples inside the picture are computed eight at a time: a pixel and the one beside it are
one load. Three channels are expanded to four.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import store_pixel, store_pixels
from dala.gpu.compute.engines.cpu.ops.warp.groups import *
from dala.gpu.compute.engines.cpu.pixels.taps import PAIRS_OF_TAPS

_LEFT: Final = tuple(k + s for g in (0, 8, 16, 24) for s in (0, 32) for k in range(g, g + 4))
_RIGHT: Final = tuple(k + 4 for k in _LEFT)
#: From two pixels of three channels to two of four.
_SPREAD: Final = tuple(g + k for g in (0, 8, 16, 24) for k in (0, 1, 2, 2, 3, 4, 5, 5))
_EACH_FOUR: Final = tuple(k // 4 for k in range(32))
_EACH_EIGHT: Final = tuple(tuple(p for p in order for _ in range(8)) for order in PAIRS_OF_TAPS)
_QUARTERS: Final = tuple(range(4)), tuple(range(4, 8)), tuple(range(8, 12)), tuple(range(12, 16))
_REPEAT_FOUR: Final = tuple(k // 4 for k in range(16))
_THIRDS: Final = (0, 1, 2, 2), (3, 4, 5, 5), (6, 7, 8, 8), (9, 10, 11, 11)
_REPEAT_THREE: Final = (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3)


# groups of eight, bilinear ----------------------------------------------------------------------
@native
def four_pairs(
    source: Array[T], at: Array[i32], k: i64, more: i64,
    *, T: type, n: int, channels: int,  # noqa: N803
) -> Vector:  # fmt: skip
    """Load two adjacent pixels for every second sample of a group."""
    order = static(PAIRS_OF_TAPS[n])
    p = load(source, i64(at[k + static(order[0])]) * channels + more, 8)
    q = load(source, i64(at[k + static(order[1])]) * channels + more, 8)
    r = load(source, i64(at[k + static(order[2])]) * channels + more, 8)
    s = load(source, i64(at[k + static(order[3])]) * channels + more, 8)
    found = join(p, q, r, s)
    taken = i16(found) << 7 if u8 == T else found
    return shuffle(taken, taken, _SPREAD) if channels == 3 else taken


@native
def mix_down(
    source: Array[u8], at: Array[i32], k: i64, pitch: i64, weight: Vector, *, n: int, channels: int
) -> Vector:
    """Interpolate between the rows of every second sample of a group."""
    above = four_pairs(source, at, k, 0)
    below = four_pairs(source, at, k, pitch)
    return between(above, below, shuffle(weight, weight, static(_EACH_EIGHT[n])), T=u8)


@native
def mix_across(even: Vector, odd: Vector, across: Vector) -> Vector:
    """Return the 32 bytes of a group from pairs of pixels that are mixed down."""
    left, right = shuffle(even, odd, _LEFT), shuffle(even, odd, _RIGHT)
    value = between(left, right, shuffle(across, across, _EACH_FOUR), T=u8)
    return u8((value + 64) >> 7)


@native
def sample_byte_group(
    source: Array[u8], at: Array[i32], part_x: Array[i32], part_y: Array[i32], k: i64, pitch: i64,
    *, channels: int,
) -> Vector:  # fmt: skip
    """Return the 32 bytes of a group of samples that are all inside the picture."""
    down = fractions(part_y, k)
    even = mix_down(source, at, k, pitch, down, n=0)
    odd = mix_down(source, at, k, pitch, down, n=1)
    return mix_across(even, odd, fractions(part_x, k))


# rows between the same two rows -----------------------------------------------------------------
@native
def mix_byte_rows(
    source: Array[u8], at: i64, pitch: i64, part_y: i32, mixed: Array[i16], count: i64
) -> None:
    """Interpolate between a row and the one below it; vectors are written beyond the end."""
    weight = splat(i16(part_y), 32)
    for e in range(0, count, 32):
        n = min(count - e, 32)
        above, below = splat(i16(0), 32), splat(i16(0), 32)
        if at + pitch + e + 32 <= len(source):
            above, below = i16(load(source, at + e, 32)), i16(load(source, at + pitch + e, 32))
        else:
            above = i16(load(source, at + e, 32, n))
            below = i16(load(source, at + pitch + e, 32, n))
        above, below = above << 7, below << 7
        store(mixed, e, between(above, below, weight, T=u8))


@native
def sample_bytes_across(
    mixed: Array[i16], first: i64, whole_x: Array[i32], part_x: Array[i32], out: Array[u8],
    count: i64, *, channels: int,
) -> None:  # fmt: skip
    """Sample a mixed row of pixels that begins at a column."""
    at = local(i32, BATCH)
    for i in independent(range(count)):
        at[i] = whole_x[i] - i32(first)
    for i in range(count, (count + GROUP - 1) & ~(GROUP - 1)):
        at[i] = 0
    for k in range(0, count, GROUP):
        even = four_pairs(mixed, at, k, 0, n=0)
        odd = four_pairs(mixed, at, k, 0, n=1)
        pixels = mix_across(even, odd, fractions(part_x, k))
        store_pixels(out, k * channels, pixels, count - k)


# anywhere ---------------------------------------------------------------------------------------
@native
def pixel(source: Array[u8], at: i64, *, channels: int) -> Vector:
    """Return the pixel that starts at an element: a scalar, or a vector of four."""
    if channels == 1:
        return i32(source[at])
    elif channels == 3:
        return vec(i32(source[at]), i32(source[at + 1]), i32(source[at + 2]), i32(0))
    else:
        return i32(load(source, at, 4))


@native
def mix_corners(nw: Vector, ne: Vector, sw: Vector, se: Vector, part_x: i32, part_y: i32) -> Vector:
    """Interpolate between four pixels."""
    left = (nw << 7) + (((sw - nw) * part_y + 128) >> 8)
    right = (ne << 7) + (((se - ne) * part_y + 128) >> 8)
    return (left + (((right - left) * part_x + 16384) >> 15) + 64) >> 7


@native
def cubic_weights(part: Array[i32], out: Array[i32], count: i64) -> None:
    """Write four weights for each fraction of a batch."""
    for i in independent(range(count)):
        t = part[i]
        square, one = t * t, t << 5
        two, three = square >> 10, ((square >> 14) * t) >> 11
        first = (two * 6 - three * 3 - one * 3 + 128) >> 8
        third = (two * 6 - three * 5 + one * 3 + 128) >> 8
        fourth = (three * 3 - two * 3 + 128) >> 8
        out[4 * i] = first
        out[4 * i + 1] = i32(16384) - first - third - fourth
        out[4 * i + 2] = third
        out[4 * i + 3] = fourth


@native
def bicubic_inside(
    source: Array[u8], at: i64, pitch: i64, wx: Vector, wy: Vector, *, channels: int
) -> Vector:
    """Return the sums of 4 x 4 pixels that are inside the picture, rounded, not clamped."""
    if channels == 1:
        rows = wy[0] * i32(load(source, at, 4))
        for k in static((1, 2, 3)):
            rows += wy[k] * i32(load(source, at + k * pitch, 4))
        return (hsum(((rows + 128) >> 8) * wx) + (1 << 19)) >> 20
    rows = wy[0] * i32(load(source, at, 16))
    for k in static((1, 2, 3)):
        rows += wy[k] * i32(load(source, at + k * pitch, 16))
    each = shuffle(wx, wx, _REPEAT_FOUR if channels == 4 else _REPEAT_THREE)
    rows = ((rows + 128) >> 8) * each
    parts = static(_QUARTERS if channels == 4 else _THIRDS)
    total = shuffle(rows, rows, static(parts[0])) + (1 << 19)
    for k in static((1, 2, 3)):
        total += shuffle(rows, rows, static(parts[k]))
    return total >> 20


@native
def bicubic_any(
    source: Array[u8], x: i64, y: i64, width: i64, height: i64, fill: Vector, wx: Vector,
    wy: Vector, *, channels: int, border: int,
) -> Vector:  # fmt: skip
    """Return a bicubic sample at any position, not clamped."""
    beyond = border == CONSTANT and (x < -2 or x > width or y < -2 or y > height)
    if beyond:
        return fill
    inside = x >= 1 and x < width - 2 and y >= 1 and y < height - 2
    at = ((y - 1) * width + x - 1) * channels
    reach = 4 if channels == 1 else 16
    if inside and at + 3 * width * channels + reach <= len(source):
        return bicubic_inside(source, at, width * channels, wx, wy)
    total = fill * 0 + (1 << 19)
    for k in static(range(4)):
        line = fill * 0 + 128
        for j in static(range(4)):
            one = tap(source, x + k - 1, y + j - 1, width, height, fill, pixel=pixel)
            line += wy[j] * one
        total += wx[k] * (line >> 8)
    return total >> 20


@native
def sample_bytes(
    source: Array[u8], of: Batch, fill: Vector, out: Array[u8], begin: i64, end: i64,
    *, channels: int, method: int, border: int,
) -> None:  # fmt: skip
    """Sample pixels [begin, end) of a batch, at any position."""
    wide = static(1 if method == BILINEAR else 4 * BATCH)
    weights_x, weights_y = local(i32, wide), local(i32, wide)
    if method != BILINEAR:
        cubic_weights(of.part_x, weights_x, end)
        cubic_weights(of.part_y, weights_y, end)
    for i in range(begin, end):
        x, y = i64(of.whole_x[i]), i64(of.whole_y[i])
        if method == BILINEAR:
            v = bilinear_any(
                source, x, y, of.part_x[i], of.part_y[i], of.width, of.height, fill,
                pixel=pixel, mix=mix_corners,
            )  # fmt: skip
        else:
            wx, wy = load(weights_x, 4 * i, 4), load(weights_y, 4 * i, 4)
            v = bicubic_any(source, x, y, of.width, of.height, fill, wx, wy)
        store_pixel(out, i * channels, saturate(u8, v))
