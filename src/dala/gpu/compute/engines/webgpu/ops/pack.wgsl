// Pack 32-bit numbers up to 255 to bytes.

struct Block {
    words: u32,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let i = (group.y * groups.x + group.x) * 256u + t;
    if (i >= p.words) { return; }
    let b = a[i] << vec4<u32>(0u, 8u, 16u, 24u);
    output[i] = (b.x | b.y) | (b.z | b.w);
}
