// Add the partial sums of several groups, always in the same order.

struct Numbers {
    count: u32,
    shares: u32,
}

@group(0) @binding(0) var<storage, read> a: array<NUMBER>;
@group(0) @binding(1) var<storage, read_write> out: array<NUMBER>;
@group(0) @binding(2) var<uniform> p: Numbers;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let i = (group.y * groups.x + group.x) * 64u + id;
    if (i >= p.count) { return; }
    var sum = a[i];
    for (var n = 1u; n < p.shares; n++) {
        sum += a[n * p.count + i];
    }
    out[i] = sum;
}
