// One result per invocation, for groups with few channels, where a matrix product would be idle.

struct Numbers {
    count: u32,
    outputs: u32,
    // Outputs and channels of one group.
    part_outputs: u32,
    part_channels: u32,
    channels: u32,
    height: u32,
    width: u32,
    out_height: u32,
    out_width: u32,
    stride_y: u32,
    stride_x: u32,
    pad_y: u32,
    pad_x: u32,
    dilation_y: u32,
    dilation_x: u32,
}

$BINDINGS

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let i = (group.y * groups.x + group.x) * 256u + id;
    if (i >= p.count) { return; }
    let x = i % p.out_width;
    let y = i / p.out_width % p.out_height;
    let above = i / (p.out_width * p.out_height);
    let output = above % p.outputs;
    let image = above / p.outputs;
    let first = image * p.channels + output / p.part_outputs * p.part_channels;
    let top = i32(y * p.stride_y) - i32(p.pad_y);
    let left = i32(x * p.stride_x) - i32(p.pad_x);
    var sum = $START;
    for (var c = 0u; c < p.part_channels; c++) {
        let plane = (first + c) * p.height * p.width;
        let weights = (output * p.part_channels + c) * ${WINDOW}u;
        for (var r = 0u; r < ${HEIGHT}u; r++) {
            let yy = u32(top + i32(r * p.dilation_y));
            if (yy >= p.height) { continue; }
            for (var s = 0u; s < ${WIDTH}u; s++) {
                let xx = u32(left + i32(s * p.dilation_x));
                if (xx < p.width) {
                    sum += a[weights + r * ${WIDTH}u + s] * b[plane + yy * p.width + xx];
                }
            }
        }
    }
    out[i] = sum;
}
