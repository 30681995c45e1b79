@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read_write> table: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    if (n >= p.count) { return; }
    let at = (p.first + n) * 3u;
    table[n] = vec2<u32>(quantized(lut[at]) | (quantized(lut[at + 1u]) << 16u), quantized(lut[at + 2u]));
}
