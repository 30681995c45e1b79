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
    let blue = vec4<u32>(f.b.x & 0xffffu, f.b.x >> 16u, f.b.y & 0xffffu, f.b.y >> 16u);
    return summed(f.a, blue, f.part);
}
