// Write the bytes that one curve per channel gives for each byte.

@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> table: array<u32>;
@group(0) @binding(3) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    if (n >= 768u) { return; }
    let cell = min(places[n] >> 16u, p.size - 2u);
    let part = places[n] - (cell << 16u);
    let at = cell * 3u + n / 256u;
    let sum = quantized(lut[at]) * (65536u - part) + quantized(lut[at + 3u]) * part;
    let steps = i32((sum + p.keep * (n & 255u)) >> p.shift) - p.below;
    table[n] = u32(clamp(steps, 0, 255));
}
