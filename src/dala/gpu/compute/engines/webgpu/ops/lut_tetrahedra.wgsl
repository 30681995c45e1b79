// Look up a color in the tetrahedra that lut_tetrahedra_spread.wgsl wrote: one place in memory a
// pixel, instead of four.

struct Found {
    a: vec4<u32>,
    b: vec4<u32>,
    part: vec3<u32>,
}

fn find(c: vec3<u32>) -> Found {
    let at = place(c);
    let part = at.part;
    // Of the six by the order of the fractions: 0 bgr, 1 gbr, 2 grb, 3 brg, 4 rbg, 5 rgb.
    let six = select(0u, 3u, part.x >= part.y) + select(0u, 1u, part.y >= part.z)
        + select(0u, 1u, part.x >= part.z);
    let i = (number_of(at.cell, p.size - 1u) * 6u + six) * 2u;
    return Found(table[i], table[i + 1u], part);
}

fn blend(f: Found) -> vec3<u32> {
    let high = max(f.part.x, f.part.y);
    let less = min(f.part.x, f.part.y);
    let most = max(high, f.part.z);
    let least = min(less, f.part.z);
    let middle = max(less, min(high, f.part.z));
    let low = vec3<u32>(0xffffu);
    let near = vec3<u32>(f.a.x, f.a.x >> 16u, f.a.y) & low;
    let first = vec3<u32>(f.a.y >> 16u, f.a.z, f.a.z >> 16u) & low;
    let second = vec3<u32>(f.a.w, f.a.w >> 16u, f.b.x) & low;
    let far = vec3<u32>(f.b.x >> 16u, f.b.y, f.b.y >> 16u) & low;
    return near * (65536u - most) + first * (most - middle) + second * (middle - least) + far * least;
}
