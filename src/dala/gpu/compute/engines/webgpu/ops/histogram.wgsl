// Count numbers in bins, first in counters of the workgroup if they fit.

$declarations
@group(0) @binding(2) var<storage, read_write> output: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> p: Block;

$counters

$bin

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let number = group.y * groups.x + group.x;
    $clear
    let last = min((number + 1u) * p.length, p.total);
    for (var i = number * p.length + t; i < last; i += 256u) {
        $count
    }
    $gather
}
