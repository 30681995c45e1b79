"""Coverage: the share of each pixel of a row that a draw covers."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import GRID, RING, SHADOW, SHADOW_STEPS
from dala.gpu.compute.engines.cpu.compose.records import (
    COS,
    CX,
    CY,
    HH,
    HW,
    KIND,
    OPACITY,
    RADIUS,
    SIN,
    WIDTH,
)
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    ceil,
    copysign,
    exp,
    f32,
    f64,
    floor,
    hinted,
    i32,
    i64,
    in_range,
    load,
    local,
    select,
    splat,
    sqrt,
    store,
    table,
    u32,
    view,
)

LANES: Final = tuple(float(k) for k in range(16))
ROOT_HALF: Final = 0.7071067811865476
ROOT_TWO_PI: Final = 2.5066282746310002


@native
def field(draw: Array[i32], at: i64) -> f32:
    """Return a float field of a draw."""
    found: f32 = view(draw, f32, 0)[at]
    return found


@native
def field64(draw: Array[i32], at: i64) -> f64:
    """Return a float field of a draw as f64, for positions in large pictures."""
    return f64(view(draw, f32, 0)[at])


@native
def full_share(draw: Array[i32]) -> u32:
    """Return a draw's opacity with 16 fractional bits."""
    return u32(in_range(i32, floor(field64(draw, OPACITY) * f64(65536) + f64(0.5))))


@native
def share_of(coverage: Vector, opacity: f32) -> Vector:
    """Return coverage times opacity with 16 fractional bits."""
    return u32(in_range(i32, coverage * opacity + f32(0.5)))


@native
def offsets_x(draw: Array[i32], x: i64) -> Vector:
    """Return the horizontal offsets of sixteen pixels, starting at x, from the box's center."""
    return load(table(f32, LANES), 0, 16) + f32(f64(x) + f64(0.5) - field64(draw, CX))


@native
def offset_y(draw: Array[i32], y: i64) -> f32:
    """Return the vertical offset of a row from the box's center."""
    return f32(f64(y) + f64(0.5) - field64(draw, CY))


@native
def spans(draw: Array[i32], y: i64, x0: i64, x1: i64) -> tuple[i64, i64, i64, i64]:
    """Return the columns of a row that an unrotated box touches, and those that it fully covers.

    As (first touched, first covered, end of covered, end of touched).
    """
    cx, hw, hh = field64(draw, CX), field64(draw, HW), field64(draw, HH)
    radius = min(min(field64(draw, RADIUS), hw), hh)
    v = abs(f64(y) + f64(0.5) - field64(draw, CY))
    inner = hw - f64(0.5)
    outer = hw + f64(0.5)
    if v > hh - f64(0.5):
        inner = f64(-1)
    deep = v - (hh - radius)
    if deep > f64(0) and radius > f64(0):
        within = (radius - f64(0.5)) * (radius - f64(0.5)) - deep * deep
        if radius < f64(0.5) or within < f64(0):
            inner = f64(-1)
        else:
            inner = min(inner, hw - radius + sqrt(within) - f64(1 / GRID))
        reach = (radius + f64(0.5)) * (radius + f64(0.5)) - deep * deep
        outer = hw - radius + sqrt(max(reach, f64(0)))
    if v >= hh + f64(0.5) or hw <= f64(0) or hh <= f64(0):
        return x0, x0, x0, x0
    a = min(max(i64(floor(cx - outer - f64(0.5))), x0), x1)
    d = min(max(i64(ceil(cx + outer - f64(0.5))) + 1, a), x1)
    if inner < f64(0):
        return a, d, d, d
    b = min(max(i64(ceil(cx - inner - f64(0.5))), a), d)
    c = min(max(i64(floor(cx + inner - f64(0.5))) + 1, b), d)
    return a, b, c, d


@native
def slab(along: f64, across: f64, reach: f64, low: f64, high: f64) -> tuple[f64, f64]:
    """Narrow [low, high] to where ``|d * along + across| <= reach``."""
    if abs(along) < f64(1e-9):
        if abs(across) > reach:
            return f64(1), f64(0)
        return low, high
    a, b = (-reach - across) / along, (reach - across) / along
    return max(low, min(a, b)), min(high, max(a, b))


@native
def rotated_span(draw: Array[i32], y: i64, x0: i64, x1: i64) -> tuple[i64, i64]:
    """Return the columns that a rotated box can touch in a row."""
    cx, dy = field64(draw, CX), f64(y) + f64(0.5) - field64(draw, CY)
    cos, sin = field64(draw, COS), field64(draw, SIN)
    low, high = f64(x0) - cx - f64(1), f64(x1) - cx + f64(1)
    low, high = slab(cos, dy * sin, field64(draw, HW) + f64(1), low, high)
    low, high = slab(-sin, dy * cos, field64(draw, HH) + f64(1), low, high)
    if low > high:
        return x0, x0
    a = min(max(i64(floor(low + cx)) - 1, x0), x1)
    return a, min(max(i64(ceil(high + cx)) + 1, a), x1)


@native
def grid_length(a: Vector, b: Vector) -> Vector:
    """Return sqrt(a * a + b * b), rounded down to a multiple of 1/256, as a and b are.

    The root is estimated, and corrected by its remainder, which fits 32 bits though squares do not.
    """
    p, q = in_range(i32, a * f32(GRID)), in_range(i32, b * f32(GRID))
    root = in_range(i32, sqrt(a * a + b * b) * f32(GRID))
    rest = p * p + q * q - root * root
    root = select(rest < 0, root - 1, select(rest > 2 * root, root + 1, root))
    return f32(root) * f32(1 / GRID)


@native
def rounded_box(u: Vector, v: Vector, hw: f32, hh: f32, radius: f32, straight: bool) -> Vector:
    """Return the coverage of sixteen pixels by a rounded box around the origin."""
    zero = splat(f32(0), 16)
    r = max(min(min(radius, hw), hh), f32(0))
    x, y = abs(u) - (hw - r), abs(v) - (hh - r)
    # Beyond a pixel from the corner nothing is covered, and squares would be too large.
    far = splat(r + f32(1), 16)
    a, b = min(max(x, zero), far), min(max(y, zero), far)
    outside = sqrt(a * a + b * b)
    if straight:
        outside = grid_length(a, b)
    distance = outside + min(max(x, y), zero) - r
    inside = f32(1) if hw > f32(0) and hh > f32(0) else f32(0)
    return max(min(f32(0.5) - distance, splat(f32(1), 16)), zero) * inside


@native(fast=True)
def erf_tail(a: Vector) -> Vector:
    """Return 1 / (1 - erf(a)) for a >= 0, approximately."""
    q = f32(1) + a * (f32(0.278393) + a * (f32(0.230389) + a * (f32(0.000972) + a * f32(0.078108))))
    q = q * q
    return q * q


@native(fast=True)
def erf_difference(a: Vector, b: Vector) -> Vector:
    """Return erf(a) - erf(b), with the approximation of the reference engine.

    Beyond 6, erf is 1 in f32. Both points share one division.
    """
    far = splat(f32(6), 16)
    p, q = erf_tail(min(abs(a), far)), erf_tail(min(abs(b), far))
    inverse = f32(1) / (p * q)
    one = splat(f32(1), 16)
    return copysign(one - inverse * q, a) - copysign(one - inverse * p, b)


@native(fast=True)
def blurred_box(u: Vector, v: Vector, hw: f32, hh: f32, radius: f32, sigma: f32) -> Vector:
    """Return the coverage of sixteen pixels by a rounded box blurred with a Gaussian."""
    r = min(min(radius, hw), hh)
    zero = splat(f32(0), 16)
    start = min(max(splat(f32(-3) * sigma, 16), v - hh), v + hh)
    end = min(max(splat(f32(3) * sigma, 16), v - hh), v + hh)
    step = (end - start) / f32(SHADOW_STEPS)
    scale = f32(ROOT_HALF) / sigma
    total = zero
    for k in range(SHADOW_STEPS):
        y = start + (f32(k) + f32(0.5)) * step
        beyond = min(hh - r - abs(v - y), zero)
        half = hw - r + sqrt(max(r * r - beyond * beyond, zero))
        weight = exp(-(y * y) / (f32(2) * sigma * sigma))
        total += erf_difference((u + half) * scale, (u - half) * scale) * weight
    total = total * step * (f32(0.5) / (f32(ROOT_TWO_PI) * sigma))
    return max(min(total, splat(f32(1), 16)), zero)


@native(inline=False)
def box_coverage(draw: Array[i32], coverage: Array[u32], x: i64, y: i64, count: i64) -> None:
    """Write coverage times opacity of an unrotated box, for pixels starting at x."""
    dy = offset_y(draw, y)
    hw, hh, radius = field(draw, HW), field(draw, HH), field(draw, RADIUS)
    opacity = f32(full_share(draw))
    for k in hinted(range(0, count, 16), scalar=True):
        found = rounded_box(offsets_x(draw, x + k), splat(dy, 16), hw, hh, radius, True)
        store(coverage, k, share_of(found, opacity))


@native(inline=False)
def draw_coverage(draw: Array[i32], coverage: Array[u32], x: i64, y: i64, count: i64) -> None:
    """Write coverage times opacity of any draw, for pixels starting at x."""
    dy, cos, sin = offset_y(draw, y), field(draw, COS), field(draw, SIN)
    hw, hh, radius = field(draw, HW), field(draw, HH), field(draw, RADIUS)
    width, opacity, kind = field(draw, WIDTH), f32(full_share(draw)), draw[KIND]
    straight = cos == f32(1) and sin == f32(0)
    for k in hinted(range(0, count, 16), scalar=True):
        dx = offsets_x(draw, x + k)
        u, v = dx * cos + dy * sin, dy * cos - dx * sin
        found = splat(f32(0), 16)
        if kind == SHADOW and width > f32(0):
            found = blurred_box(u, v, hw, hh, radius, width)
        else:
            found = rounded_box(u, v, hw, hh, radius, straight)
            if kind == RING:
                inner = max(radius - width, f32(0))
                hole = rounded_box(u, v, hw - width, hh - width, inner, straight)
                found = max(found - hole, splat(f32(0), 16))
        store(coverage, k, share_of(found, opacity))


@native(inline=False, fast=True)
def shadow_coverage(draw: Array[i32], coverage: Array[u32], x: i64, y: i64, count: i64) -> None:
    """Write coverage times opacity of an unrotated shadow, for pixels starting at x.

    Integrates vertically in steps. The width of the box at each step is computed once per row, and
    all steps at full width are summed as one.
    """
    v, hw, hh = offset_y(draw, y), field(draw, HW), field(draw, HH)
    sigma = field(draw, WIDTH)
    r = min(min(field(draw, RADIUS), hw), hh)
    start = min(max(f32(-3) * sigma, v - hh), v + hh)
    end = min(max(f32(3) * sigma, v - hh), v + hh)
    step = (end - start) / f32(SHADOW_STEPS)
    scale = f32(ROOT_HALF) / sigma
    unit = step * (f32(0.5) / (f32(ROOT_TWO_PI) * sigma))
    halfs = local(f32, SHADOW_STEPS + 1)
    weights = local(f32, SHADOW_STEPS + 1)
    halfs[0], weights[0] = hw, f32(0)
    count_steps = 1
    for k in hinted(range(SHADOW_STEPS), scalar=True):
        y_at = start + (f32(k) + f32(0.5)) * step
        beyond = min(hh - r - abs(v - y_at), f32(0))
        weight = exp(-(y_at * y_at) / (f32(2) * sigma * sigma)) * unit
        if beyond < f32(0):
            halfs[count_steps] = hw - r + sqrt(max(r * r - beyond * beyond, f32(0)))
            weights[count_steps] = weight
            count_steps += 1
        else:
            weights[0] += weight
    first = 0 if weights[0] > f32(0) else 1
    opacity = f32(full_share(draw))
    for k in hinted(range(0, count, 16), scalar=True):
        u = offsets_x(draw, x + k)
        total = splat(f32(0), 16)
        for j in hinted(range(first, count_steps), scalar=True):
            half = halfs[j]
            total += erf_difference((u + half) * scale, (u - half) * scale) * weights[j]
        total = max(min(total, splat(f32(1), 16)), splat(f32(0), 16))
        store(coverage, k, share_of(total, opacity))
