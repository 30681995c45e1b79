"""Coverage: the share of each pixel of a row that a draw covers.

Blurred boxes are computed in integers, as ``engines/sampling/shadows.py`` defines it.
"""

from __future__ import annotations

from dala.gpu.compute.engines.compositing import GRID, RING, SHADOW
from dala.gpu.compute.engines.cpu.compose.records import DrawRecord
from dala.gpu.compute.engines.cpu.compose.steps import box_steps, places
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.sampling.shadows import CURVE, ONE, STEPS

_LANES: Final = tuple(float(k) for k in range(16))


@native
def full_share(draw: DrawRecord) -> u32:
    """Return a draw's opacity with 16 fractional bits."""
    return u32(in_range(i32, floor(f64(draw.opacity) * 65536 + 0.5)))


@native
def share_of(coverage: Vector, opacity: f32) -> Vector:
    """Return coverage times opacity with 16 fractional bits."""
    return u32(in_range(i32, coverage * opacity + 0.5))


@native
def spans(draw: DrawRecord, y: i64, x0: i64, x1: i64) -> tuple[i64, i64, i64, i64]:
    """Return the columns of a row that an unrotated box touches, and the columns it fully covers.

    As (first touched, first covered, end of covered, end of touched).
    """
    cx, hw, hh = f64(draw.cx), f64(draw.hw), f64(draw.hh)
    radius = min(min(f64(draw.radius), hw), hh)
    v = abs(f64(y) + 0.5 - f64(draw.cy))
    inner = hw - 0.5
    outer = hw + 0.5
    if v > hh - 0.5:
        inner = f64(-1)
    deep = v - (hh - radius)
    if deep > 0 and radius > 0:
        within = (radius - 0.5) * (radius - 0.5) - deep * deep
        if radius < 0.5 or within < 0:
            inner = f64(-1)
        else:
            inner = min(inner, hw - radius + sqrt(within) - (1 / GRID))
        reach = (radius + 0.5) * (radius + 0.5) - deep * deep
        outer = hw - radius + sqrt(max(reach, 0))
    if v >= hh + 0.5 or hw <= 0 or hh <= 0:
        return x0, x0, x0, x0
    a = min(max(i64(floor(cx - outer - 0.5)), x0), x1)
    d = min(max(i64(ceil(cx + outer - 0.5)) + 1, a), x1)
    if inner < 0:
        return a, d, d, d
    b = min(max(i64(ceil(cx - inner - 0.5)), a), d)
    c = min(max(i64(floor(cx + inner - 0.5)) + 1, b), d)
    return a, b, c, d


@native
def slab(along: f64, across: f64, reach: f64, low: f64, high: f64) -> tuple[f64, f64]:
    """Narrow [low, high] to where ``|d * along + across| <= reach``."""
    if abs(along) < 1e-9:
        if abs(across) > reach:
            return f64(1), f64(0)
        return low, high
    a, b = (-reach - across) / along, (reach - across) / along
    return max(low, min(a, b)), min(high, max(a, b))


@native
def rotated_span(draw: DrawRecord, y: i64, x0: i64, x1: i64) -> tuple[i64, i64]:
    """Return the columns that a rotated box can touch in a row."""
    cx, dy = f64(draw.cx), f64(y) + 0.5 - f64(draw.cy)
    cos, sin = f64(draw.cos), f64(draw.sin)
    more = f64(1)
    if draw.kind == SHADOW:
        more += 3 * f64(draw.width)
    low, high = f64(x0) - cx - 1, f64(x1) - cx + 1
    low, high = slab(cos, dy * sin, f64(draw.hw) + more, low, high)
    low, high = slab(-sin, dy * cos, f64(draw.hh) + more, low, high)
    if low > high:
        return x0, x0
    a = min(max(i64(floor(low + cx)) - 1, x0), x1)
    return a, min(max(i64(ceil(high + cx)) + 1, a), x1)


@native
def rounded_box(u: Vector, v: Vector, hw: f32, hh: f32, radius: f32) -> Vector:
    """Return the coverage of sixteen pixels by a rounded box around the origin.

    All numbers are multiples of 1/256, so that nothing but the length is rounded.
    """
    r = max(min(min(radius, hw), hh), 0)
    x, y = abs(u) - (hw - r), abs(v) - (hh - r)
    # Beyond a pixel from the corner nothing is covered, and squares would be too large.
    a, b = min(max(x, 0), r + 1), min(max(y, 0), r + 1)
    p, q = in_range(i32, a * GRID), in_range(i32, b * GRID)
    outside = f32(root_of(p * p + q * q, sqrt(a * a + b * b) * GRID)) * (1 / GRID)
    distance = outside + min(max(x, y), 0) - r
    inside = f32(1) if hw > 0 and hh > 0 else f32(0)
    return max(min(0.5 - distance, 1), 0) * inside


@native(inline=False)
def box_coverage(draw: DrawRecord, coverage: Array[u32], x: i64, y: i64, count: i64) -> None:
    """Write coverage times opacity of an unrotated box, for pixels starting at x."""
    lanes, dy = load(table(f32, _LANES), 0, 16), f32(f64(y) + 0.5 - f64(draw.cy))
    hw, hh, radius = draw.hw, draw.hh, draw.radius
    opacity = f32(full_share(draw))
    for k in serial(0, count, 16):
        dx = lanes + f32(f64(x + k) + 0.5 - f64(draw.cx))
        found = rounded_box(dx, splat(dy, 16), hw, hh, radius)
        store(coverage, k, share_of(found, opacity))


@native(inline=False)
def draw_coverage(draw: DrawRecord, coverage: Array[u32], x: i64, y: i64, count: i64) -> None:
    """Write coverage times opacity of any draw, for pixels starting at x."""
    ua, ub, uc, va, vb, vc = box_steps(draw)
    hw, hh, radius = draw.hw, draw.hh, draw.radius
    width, opacity, kind = draw.width, full_share(draw), draw.kind
    for k in serial(0, count, 16):
        u = places(ua, ua * (x + k) + ub * y + uc)
        v = places(va, va * (x + k) + vb * y + vc)
        if kind == SHADOW and width > 0:
            store(coverage, k, blurred_box(draw, u, v, opacity))
            continue
        p, q = f32(u) * (1 / GRID), f32(v) * (1 / GRID)
        found = rounded_box(p, q, hw, hh, radius)
        if kind == RING:
            inner = max(radius - width, 0)
            hole = rounded_box(p, q, hw - width, hh - width, inner)
            found = max(found - hole, 0)
        store(coverage, k, share_of(found, f32(opacity)))


# shadows ----------------------------------------------------------------------------------------
@native
def root_of(square: Vector, guess: Vector) -> Vector:
    """Return the root of a square, rounded down: a guess that is corrected by its remainder.

    The remainder fits 32 bits though squares do not.
    """
    root = in_range(i32, guess)
    rest = square - root * root
    return select(rest < 0, root - 1, select(rest > 2 * root, root + 1, root))


@native
def lengths(draw: DrawRecord) -> tuple[i32, i32, i32, i32]:
    """Return half the width and height, the radius and the deviation of a shadow, in 256ths."""
    hw, hh = i32(f64(draw.hw) * GRID), i32(f64(draw.hh) * GRID)
    radius = min(min(i32(f64(draw.radius) * GRID), hw), hh)
    return hw, hh, radius, i32(f64(draw.width) * GRID)


@native
def inverse_of(width: i32) -> i32:
    """Return 2**30 over three standard deviations."""
    return i32(((1 << 30) + 3 * i64(width) - 1) // (3 * i64(width)))


@native
def integral(x: Vector, width: i32, inverse: i32) -> Vector:
    """Return the integral of the Gaussian from 0 to positions."""
    z = (min(abs(x), 3 * width) * inverse) >> 15
    value = curve(min(z, ONE))
    return select(x < 0, -value, value)


@native
def curve(z: Vector) -> Vector:
    """Return the integral of the Gaussian from 0 to positions of 0 to ONE."""
    s = ONE - z
    g = ((s * CURVE[0]) >> 15) + CURVE[1]
    g = ((g * s) >> 15) + CURVE[2]
    g = ((g * s) >> 15) + CURVE[3]
    return ONE - s - ((((s * (ONE - s)) >> 15) * g) >> 15)


@native
def span(u: Vector, half: Vector, width: i32, inverse: i32) -> Vector:
    """Return the share, of 2**15, of a Gaussian around sixteen positions inside of a width."""
    both = integral(u + half, width, inverse) - integral(u - half, width, inverse)
    return u32(max(both, 0)) >> 1


@native
def share_of_sum(total: Vector, opacity: u32) -> Vector:
    """Return coverage times opacity with 16 fractional bits."""
    return (min((total + 32768) >> 16, ONE) * opacity + 16384) >> 15


@native(inline=False)
def blurred_box(draw: DrawRecord, u: Vector, v: Vector, opacity: u32) -> Vector:
    """Return coverage times opacity of sixteen pixels by a blurred box."""
    hw, hh, radius, width = lengths(draw)
    inverse = inverse_of(width)
    begin = min(max(-3 * width, v - hh), v + hh)
    size = u32(min(max(3 * width, v - hh), v + hh) - begin)
    total, a = splat(u32(0), 16), begin
    before = integral(a, width, inverse)
    for k in serial(1, STEPS + 1):
        b = begin + i32(size * u32(k) // 12)
        beyond = min(max(abs(v - ((a + b) >> 1)) - (hh - radius), 0), radius)
        rest = f32(radius - beyond) * f32(radius + beyond)
        half = root_of((radius - beyond) * (radius + beyond), sqrt(rest)) + (hw - radius)
        after = integral(b, width, inverse)
        part = u32(max(after - before, 0))
        total += part * span(u, half, width, inverse)
        a, before = b, after
    return share_of_sum(total, opacity)


@native(inline=False)
def straight_spans(draw: DrawRecord, x: i64, count: i64, spans: Array[u32]) -> None:
    """Write, for pixels starting at x, the share of a Gaussian along x in an unrotated box."""
    ua, _, uc, _, _, _ = box_steps(draw)
    hw, _hh, _radius, width = lengths(draw)
    for k in serial(0, count, 16):
        u = places(ua, ua * (x + k) + uc)
        store(spans, k, span(u, hw, width, inverse_of(width)))


@native(inline=False)
def shadow_coverage(
    draw: DrawRecord, opacity: u32, spans: Array[u32], coverage: Array[u32], x: i64, y: i64,
    count: i64,
) -> None:  # fmt: skip
    """Write coverage times opacity of an unrotated shadow, for pixels starting at x.

    The width of the box at each step is computed once per row. All steps at full width are summed
    as one, with the spans that all rows have.
    """
    ua, _, uc, _, vb, vc = box_steps(draw)
    hw, hh, radius, width = lengths(draw)
    inverse, v = inverse_of(width), i32((vb * y + vc) >> 16)
    begin = min(max(-3 * width, v - hh), v + hh)
    size = min(max(3 * width, v - hh), v + hh) - begin
    halfs, weights = local(i32, STEPS), local(u32, STEPS)
    full, steps, a = u32(0), 0, begin
    before = integral(a, width, inverse)
    for k in serial(1, STEPS + 1):
        b = begin + i32(i64(size) * k // STEPS)
        beyond = abs(v - ((a + b) >> 1)) - (hh - radius)
        after = integral(b, width, inverse)
        weight = u32(max(after - before, 0))
        if beyond > 0:
            rest = i64(radius) * i64(radius) - i64(beyond) * i64(beyond)
            root = i64(sqrt(f64(max(rest, 0))))
            halfs[steps] = hw - radius + i32(root)
            weights[steps] = weight
            steps += 1
        else:
            full += weight
        a, before = b, after
    reach = 3 * width
    for k in serial(0, count, 16):
        u = places(ua, ua * (x + k) + uc)
        total = load(spans, k, 16) * full
        for j in serial(steps):
            half = halfs[j]
            if all_of((u + half >= reach) & (half - u >= reach)):
                total += weights[j] * ONE
            elif not all_of((u - half >= reach) | (u + half <= -reach)):
                total += span(u, half, width, inverse) * weights[j]
        store(coverage, k, share_of_sum(total, opacity))
