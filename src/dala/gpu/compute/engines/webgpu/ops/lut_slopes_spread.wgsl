// Write the tetrahedra of a 3D table, six a cell, for bytes. 32 bytes each, which are read at once:
//
//     a  the near corner's color, three f32; how much x grows along red and along green
//     b  y along red and green; z along red and green; x and y along blue; z along blue and the unit
//
// Growth is of 16 bits each, 32768 added, the first in the low half. It is in units of the upper half
// of an f32, the largest growth / 32766, so colors are off by at most 0.008 steps of a byte. Where an
// entry is not finite, or grows by more than 2, the sign of the unit is the mark for the exact path.

struct Block {
    size: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read_write> table: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

fn entry(i: u32) -> vec3<f32> {
    return vec3<f32>(lut[i * 3u], lut[i * 3u + 1u], lut[i * 3u + 2u]);
}

// Comparisons of numbers may take it for granted that they are finite.
fn size_bits(v: vec3<f32>) -> vec3<u32> {
    return bitcast<vec3<u32>>(v) & vec3<u32>(0x7fffffffu);
}

// 2**23 + 32768 + q has the integer 32768 + q in its low bits.
fn sixteen(q: vec3<f32>) -> vec3<u32> {
    return bitcast<vec3<u32>>(q + 8421376.0f) & vec3<u32>(0xffffu);
}

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    // Two invocations write the halves of a tetrahedron, so that neighbors write next to each other.
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    if (n >= p.count) { return; }
    let top = p.size - 1u;
    let step = vec2<u32>(p.size * p.size, p.size);
    let cell = n / 12u;
    let base = cell / (top * top) * step.x + cell / top % top * step.y + cell % top;
    let far = base + step.x + step.y + 1u;
    // By the order of the fractions: 0 bgr, 1 gbr, 2 grb, 3 brg, 4 rbg, 5 rgb.
    let six = n / 2u % 6u;
    let red_first = six >= 4u;
    let red_last = six <= 1u;
    let green_first = six == 1u || six == 2u;
    let green_last = six == 3u || six == 4u;
    let c0 = entry(base);
    let c1 = entry(base + select(select(1u, step.y, green_first), step.x, red_first));
    let c2 = entry(far - select(select(1u, step.y, green_last), step.x, red_last));
    let c3 = entry(far);
    let grown = max(max(abs(c1 - c0), abs(c2 - c1)), abs(c3 - c2));
    let most = max(max(grown.x, grown.y), grown.z);
    let bits = max(max(size_bits(c0), size_bits(c1)), max(size_bits(c2), size_bits(c3)));
    let good = max(max(bits.x, bits.y), bits.z) < 0x7f800000u && most <= 2.0f;
    let unit = (bitcast<u32>(max(select(1.0f, most, good), 1e-20f) / 32766.0f) + 0xffffu)
        & 0xffff0000u;
    // Corners are rounded, and growth is what is between them, so that errors do not add up.
    let units = 1.0f / bitcast<f32>(unit);
    let q1 = floor((c1 - c0) * units + 0.5f);
    let q2 = floor((c2 - c0) * units + 0.5f);
    let q3 = floor((c3 - c0) * units + 0.5f);
    let red = sixteen(select(select(q2 - q1, q3 - q2, red_last), q1, red_first));
    let green = sixteen(select(select(q2 - q1, q3 - q2, green_last), q1, green_first));
    let blue = sixteen(select(select(q2 - q1, q3 - q2, six == 2u || six == 5u), q1,
        six == 0u || six == 3u));
    let both = red | (green << vec3<u32>(16u));
    let a = vec4<u32>(bitcast<vec3<u32>>(c0), both.x);
    let b = vec4<u32>(both.yz, blue.x | (blue.y << 16u), blue.z | select(0x80000000u, unit, good));
    table[n] = select(a, b, (n & 1u) != 0u);
}
