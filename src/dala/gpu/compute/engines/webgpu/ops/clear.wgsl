// Fill a buffer with zeros.

struct Block {
    count: u32,
}

@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> p: Block;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let i = (group.y * groups.x + group.x) * 256u + t;
    if (i < p.count) { output[i] = 0u; }
}
