// Look up bytes with alpha in a 3D table: an invocation reads the entries of several pixels before it
// computes with any, so that it waits for memory once.

@group(0) @binding(0) var<storage, read> source: array<$words>;
@group(0) @binding(1) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> result: array<$words>;
@group(0) @binding(3) var<uniform> p: Block;

$method
fn entry(i: u32) -> vec4<f32> {
    return table[i];
}

$store
@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    // The last one may read and write beyond the image: buffers are multiples of 16 bytes.
    if (n * ${pixels}u >= p.width * p.height) { return; }
    let w = source[n];
$finds
    result[n] = $words($stores);
}
