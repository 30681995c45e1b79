// Pack pixels of $channels bytes, each stored in its own word.

struct Block {
    words: u32,
    pixels: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;

fn byte(i: u32) -> u32 {
    let pixel = source[min(i / ${channels}u, p.pixels - 1u)];
    return (pixel >> ((i % ${channels}u) * 8u)) & 255u;
}

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * ${group}u + lane;
    if (i >= p.words) { return; }
    let e = i * 4u;
    output[i] = (byte(e) | (byte(e + 1u) << 8u)) | ((byte(e + 2u) << 16u) | (byte(e + 3u) << 24u));
}
