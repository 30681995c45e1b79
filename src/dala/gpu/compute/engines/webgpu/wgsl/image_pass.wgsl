fn read_pixel(i: u32) -> vec4<f32> {
$read
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n = (group.y * groups.x + group.x) * 128u + lane;
    let count = p.width * p.height;
$write
}
