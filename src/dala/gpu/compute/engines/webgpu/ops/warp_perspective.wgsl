// Products and quotients of 64-bit integers: two words, the lower first.

fn product(a: u32, b: u32) -> vec2<u32> {
    let low = vec2<u32>(a & 65535u, b & 65535u);
    let high = vec2<u32>(a >> 16u, b >> 16u);
    let first = low.x * low.y;
    let second = low.x * high.y;
    let third = high.x * low.y;
    let middle = (first >> 16u) + (second & 65535u) + (third & 65535u);
    return vec2<u32>(
        (first & 65535u) | (middle << 16u),
        high.x * high.y + (second >> 16u) + (third >> 16u) + (middle >> 16u));
}

fn add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn negative(a: vec2<u32>) -> vec2<u32> {
    return add(~a, vec2<u32>(1u, 0u));
}

fn times(n: u32, factor: u32) -> vec2<u32> {
    let made = product(table[n], factor);
    return vec2<u32>(made.x, made.y + table[n + 1u] * factor);
}

// A row of the matrix times (x, y, 1), without the lowest 16 bits.
fn row(n: u32, x: u32, y: u32) -> vec2<u32> {
    let sum = add(add(times(n, x), times(n + 2u, y)), vec2<u32>(table[n + 4u], table[n + 5u]));
    return vec2<u32>((sum.x >> 16u) | (sum.y << 16u), bitcast<u32>(bitcast<i32>(sum.y) >> 16u));
}

// An estimate of a quotient corrected by its remainder, which has less than 32 bits.
fn corrected(u: u32, estimate: f32, w: i32) -> vec2<i32> {
    var q = i32(estimate);
    var r = bitcast<i32>(u - u32(q) * u32(w));
    for (var k = 0; k < 2; k++) {
        let step = select(select(0, 1, r >= w), -1, r < 0);
        q += step;
        r -= step * w;
    }
    return vec2<i32>(q, r);
}

// The integer of u / w, and its fraction.
fn divided(u: vec2<u32>, w: i32) -> vec2<i32> {
    let below = bitcast<i32>(u.y) < 0;
    let size = select(u, negative(u), vec2<bool>(below));
    let limit = vec2<u32>(u32(w) << 20u, u32(w) >> 12u);
    if (size.y > limit.y || (size.y == limit.y && size.x >= limit.x)) {
        return vec2<i32>(select(select(1048576, -1048576, below), 0, w == 0), 0);
    }
    let divisor = f32(w);
    var found = corrected(size.x, (f32(size.y) * 4294967296.0f + f32(size.x)) / divisor, w);
    if (below) {
        found = select(vec2<i32>(-found.x - 1, w - found.y), vec2<i32>(-found.x, 0), found.y == 0);
    }
    let upper = corrected(u32(found.y) << 8u, f32(found.y) * 256.0f / divisor, w);
    let lower = corrected(u32(upper.y) << 8u, f32(upper.y) * 256.0f / divisor, w);
    return vec2<i32>(found.x, (upper.x << 16u) | (lower.x << 8u));
}

