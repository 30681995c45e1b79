// Blend modes, of numbers of 16 bits: 257 times a byte, or linear light.

fn entry(table: u32, bytes: vec3<u32>) -> vec3<u32> {
    return vec3<u32>(table_value(table + bytes.x), table_value(table + bytes.y),
        table_value(table + bytes.z));
}

fn table_value(i: u32) -> u32 {
    return (p.tables[i >> 3u][(i >> 1u) & 3u] >> ((i & 1u) * 16u)) & 0xffffu;
}

// x / 65535, rounded, for x up to 65535 * 65535.
fn quotient(x: vec3<u32>) -> vec3<u32> {
    let t = x + 32768u;
    return (t + (t >> vec3<u32>(16u))) >> vec3<u32>(16u);
}

// a * 65536 / b, rounded, for a up to b up to 2**24: estimated, then corrected by the remainder.
fn ratio(a: u32, b: u32) -> u32 {
    let q = u32(f32(a) * 65536.0f / f32(b));
    let r = i32((a << 16u) + (b >> 1u) - q * b);
    return select(select(q, q + 1u, r >= i32(b)), q - 1u, r < 0);
}

fn overlaid(b: vec3<u32>, s: vec3<u32>) -> vec3<u32> {
    let dark = quotient(2u * b * s);
    return select(65535u - quotient(2u * (65535u - b) * (65535u - s)), dark, 2u * b <= vec3<u32>(65535u));
}

fn dodged(b: vec3<u32>, s: vec3<u32>) -> vec3<u32> {
    let rest = max(65535u - s, vec3<u32>(1u));
    let made = select((b * 65535u + (rest >> vec3<u32>(1u))) / rest, vec3<u32>(65535u), b >= 65535u - s);
    return select(made, vec3<u32>(0u), b == vec3<u32>(0u));
}

fn softened(b: vec3<u32>, s: vec3<u32>, d: vec3<u32>) -> vec3<u32> {
    let less = b - quotient((65535u - 2u * s) * quotient(b * (65535u - b)));
    return select(b + quotient((2u * s - 65535u) * (d - b)), less, 2u * s <= vec3<u32>(65535u));
}

fn luminance(c: vec3<u32>) -> u32 {
    return (c.x * 19661u + c.y * 38666u + c.z * 7209u + 32768u) >> 16u;
}

fn spread(c: vec3<u32>) -> u32 {
    return max(max(c.x, c.y), c.z) - min(min(c.x, c.y), c.z);
}

fn saturated(c: vec3<u32>, wanted: u32) -> vec3<u32> {
    let low = min(min(c.x, c.y), c.z);
    let whole = max(spread(c), 1u);
    let shares = vec3<u32>(ratio(c.x - low, whole), ratio(c.y - low, whole), ratio(c.z - low, whole));
    return (shares * wanted + 32768u) >> vec3<u32>(16u);
}

fn lit(color: vec3<u32>, light: u32) -> vec3<u32> {
    let l = i32(light);
    let c = vec3<i32>(color) + (l - i32(luminance(color)));
    let least = min(min(c.x, c.y), c.z);
    let most = max(max(c.x, c.y), c.z);
    var part = 65536u;
    if (least < 0) {
        part = ratio(light, u32(l - least));
    } else if (most > 65535) {
        part = ratio(65535u - light, u32(most - l));
    }
    let near = vec3<i32>((vec3<u32>(abs(c - l)) * part + 32768u) >> vec3<u32>(16u));
    return vec3<u32>(clamp(l + select(near, -near, c < vec3<i32>(l)), vec3<i32>(0), vec3<i32>(65535)));
}

fn mixed(mode: u32, b: vec3<u32>, s: vec3<u32>, soft: vec3<u32>) -> vec3<u32> {
    switch mode {
        case 2u: { return quotient(b * s); }
        case 3u: { return b + s - quotient(b * s); }
        case 4u: { return overlaid(b, s); }
        case 5u: { return min(b, s); }
        case 6u: { return max(b, s); }
        case 7u: { return dodged(b, s); }
        case 8u: { return 65535u - dodged(65535u - b, 65535u - s); }
        case 9u: { return overlaid(s, b); }
        case 10u: { return softened(b, s, soft); }
        case 11u: { return max(b, s) - min(b, s); }
        case 12u: { return b + s - 2u * quotient(b * s); }
        case 13u: { return lit(saturated(s, spread(b)), luminance(b)); }
        case 14u: { return lit(saturated(b, spread(s)), luminance(b)); }
        case 15u: { return lit(s, luminance(b)); }
        case 16u: { return lit(b, luminance(s)); }
        default: { return s; }
    }
}

// How many bytes begin at or below linear light: a binary search.
fn byte_of_light(x: u32) -> u32 {
    var found = 0u;
    for (var step = 128u; step > 0u; step >>= 1u) {
        found += select(0u, step, table_value(767u + found + step) <= x);
    }
    return found;
}

fn blended(mode: u32, linear: bool, back: vec3<u32>, source: vec3<u32>, above: u32, below: u32,
        total: u32, result: u32, full: bool) -> u32 {
    var b = back * 257u;
    var s = source * 257u;
    if (linear) {
        b = entry(0u, back);
        s = entry(0u, source);
    }
    var alpha = result;
    var w = 0u;
    var m = s;
    var found = vec3<u32>(0u);
    if (mode == 1u) {
        let over = select(above, (above * 65536u + 127u) / 255u, full);
        let under = (below * 65536u + 127u) / 255u;
        alpha = (min(over + under, 65536u) * 255u + 32768u) >> 16u;
        w = ratio(over, over + under);
        let sum = ((s * over) >> vec3<u32>(16u)) + ((b * under + 32768u) >> vec3<u32>(16u));
        found = select(vec3<u32>(0u), min(sum, vec3<u32>(65535u)), over + under > 65536u);
        if (over + under <= 65536u) {
            found = (s * w + b * (65536u - w) + 32768u) >> vec3<u32>(16u);
        }
    } else {
        let soft = entry(select(256u, 512u, linear), back);
        w = ratio(above * 255u, total);
        m = quotient(((255u - below) * s + below * mixed(mode, b, s, soft)) * 257u);
        found = (m * w + b * (65536u - w) + 32768u) >> vec3<u32>(16u);
    }
    if (!linear) {
        return joined(quotient(found * 255u), alpha);
    }
    return joined(vec3<u32>(byte_of_light(found.x), byte_of_light(found.y), byte_of_light(found.z)),
        alpha);
}
