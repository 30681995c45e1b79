// Cumulative sums of columns, one lane each; neighboring lanes read neighboring columns.

$declarations
@group(0) @binding($block) var<uniform> p: Block;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let item = (group.y * groups.x + group.x) * 64u + t;
    if (item >= p.items) { return; }
    let c = item % p.inner;
    let piece = item / p.inner;
    let first = (piece % p.splits) * p.length;
    let last = min(first + p.length, p.n);
    var i = ((piece / p.splits) * p.n + first) * p.inner + c;
    var carry = $unit(0);
    $before
    for (var k = first; k < last; k++) {
        carry += fetch_a(i);
        $saturate
        output[i] = carry;
        i += p.inner;
    }
}
