// Write the tetrahedra of a 3D table, six a cell. 32 bytes each, which are read at once: red, green and
// blue of the corners along the path from the near one to the far one, 16 bits each.

@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read_write> table: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

fn entry(i: u32) -> vec3<u32> {
    return vec3<u32>(quantized(lut[i * 3u]), quantized(lut[i * 3u + 1u]), quantized(lut[i * 3u + 2u]));
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
    let c2 = entry(far - select(select(1u, step.y, six == 3u || six == 4u), step.x, six <= 1u));
    if ((n & 1u) == 0u) {
        let c0 = entry(base);
        let c1 = entry(base + select(select(1u, step.y, six == 1u || six == 2u), step.x, six >= 4u));
        table[n] = vec4<u32>(c0.x | (c0.y << 16u), c0.z | (c1.x << 16u), c1.y | (c1.z << 16u),
            c2.x | (c2.y << 16u));
    } else {
        let c3 = entry(far);
        table[n] = vec4<u32>(c2.z | (c3.x << 16u), c3.y | (c3.z << 16u), 0u, 0u);
    }
}
