struct Found {
    n000: vec2<u32>,
    n001: vec2<u32>,
    n010: vec2<u32>,
    n011: vec2<u32>,
    n100: vec2<u32>,
    n101: vec2<u32>,
    n110: vec2<u32>,
    n111: vec2<u32>,
    part: vec3<u32>,
}

fn find(c: vec3<u32>) -> Found {
    let at = place(c);
    let n00 = number_of(at.cell, p.size);
    let n01 = n00 + p.size;
    let n10 = n00 + p.size * p.size;
    let n11 = n10 + p.size;
    return Found(table[n00], table[n00 + 1u], table[n01], table[n01 + 1u], table[n10], table[n10 + 1u],
        table[n11], table[n11 + 1u], at.part);
}

// The share of a weight, both up to 65536, rounded.
fn split(weight: u32, part: u32) -> u32 {
    return select((weight * part + 32768u) >> 16u, weight, part == 65536u);
}

fn pair(near: vec2<u32>, far: vec2<u32>, weight: u32, part: u32) -> vec3<u32> {
    let w = split(weight, part);
    return vec3<u32>(near.x & 0xffffu, near.x >> 16u, near.y) * (weight - w)
        + vec3<u32>(far.x & 0xffffu, far.x >> 16u, far.y) * w;
}

fn blend(f: Found) -> vec3<u32> {
    let r = f.part.x;
    let g = f.part.y;
    let b = f.part.z;
    let both = split(r, g);
    return pair(f.n000, f.n001, 65536u + both - r - g, b) + pair(f.n010, f.n011, g - both, b)
        + pair(f.n100, f.n101, r - both, b) + pair(f.n110, f.n111, both, b);
}
