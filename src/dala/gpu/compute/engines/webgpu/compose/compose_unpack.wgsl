// Convert a picture of 1 or 3 bytes per pixel to RGBA in an arena, four pixels per invocation.

struct Block {
    quads: u32,
    channels: u32,
    source_start: u32,  // in words
    start: u32,  // in quads
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 128u + lane;
    if (i >= p.quads) { return; }
    let first = p.source_start + i * p.channels;
    let a = source[first];
    var pixels: vec4<u32>;
    if (p.channels == 1u) {
        pixels = ((vec4<u32>(a) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)) * 0x010101u;
    } else {
        let last = arrayLength(&source) - 1u;  // the last quad may be incomplete
        let b = source[min(first + 1u, last)];
        let c = source[min(first + 2u, last)];
        pixels = vec4<u32>(a, (a >> 24u) | (b << 8u), (b >> 16u) | (c << 16u), c >> 8u);
    }
    result[p.start + i] = pixels | vec4<u32>(0xff000000u);
}
