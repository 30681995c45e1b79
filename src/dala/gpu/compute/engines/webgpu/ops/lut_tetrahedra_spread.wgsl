// Write the tetrahedra of a 3D table, six a cell. 32 bytes each, which are read at once: red and green of
// the corners along the path from the near one to the far one, and their blue, 16 bits each. A
// workgroup writes a row of cells, from four rows of entries.

@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read_write> table: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Block;
var<workgroup> corners: array<vec2<u32>, 4 * $size>;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= p.count) { return; }
    let top = p.size - 1u;
    let base = row / top * p.size * p.size + row % top * p.size;
    for (var i = lane; i < 4u * p.size; i += ${group}u) {
        let line = i / p.size;
        let at = 3u * (base + (line >> 1u) * p.size * p.size + (line & 1u) * p.size + i % p.size);
        let words = quantized(lut[at]) | (quantized(lut[at + 1u]) << 16u);
        corners[i] = vec2<u32>(words, quantized(lut[at + 2u]));
    }
    workgroupBarrier();
    let step = vec2<u32>(2u * p.size, p.size);
    for (var i = lane; i < 12u * top; i += ${group}u) {
        let near = i / 12u;
        let far = near + step.x + step.y + 1u;
        // By the order of the fractions: 0 bgr, 1 gbr, 2 grb, 3 brg, 4 rbg, 5 rgb.
        let six = i / 2u % 6u;
        let c0 = corners[near];
        let c1 = corners[near + select(select(1u, step.y, six == 1u || six == 2u), step.x, six >= 4u)];
        let c2 = corners[far - select(select(1u, step.y, six == 3u || six == 4u), step.x, six <= 1u)];
        let c3 = corners[far];
        let colors = vec4<u32>(c0.x, c1.x, c2.x, c3.x);
        let blue = vec4<u32>(c0.y | (c1.y << 16u), c2.y | (c3.y << 16u), 0u, 0u);
        table[row * 12u * top + i] = select(colors, blue, (i & 1u) == 1u);
    }
}
