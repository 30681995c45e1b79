// Bytes with alpha: an invocation reads the entries of several pixels before it computes with any, so
// that it waits for memory once.

$method
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
