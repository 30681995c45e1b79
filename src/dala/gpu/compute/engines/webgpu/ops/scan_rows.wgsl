// Cumulative sums of rows: a workgroup processes a piece of a row, 1024 numbers at a time, four per
// lane.

$declarations
@group(0) @binding($block) var<uniform> p: Block;

var<workgroup> sums: array<$kind, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let item = group.y * groups.x + group.x;
    let inside = item < p.items;
    let first = (item % p.splits) * p.length;
    let base = (item / p.splits) * p.n;
    var carry = $kind(0);
    $before
    for (var start = 0u; start < p.length; start += 1024u) {
        let k = first + start + 4u * t;
        let many = select(0u, min(p.n - min(k, p.n), 4u), inside);
        var x = vec4<$kind>(0);
        $load
        x.y += x.x;
        x.w += x.z;
        x.z += x.y;
        x.w += x.y;
        var own = x.w;
        sums[t] = own;
        for (var far = 1u; far < 256u; far <<= 1u) {
            workgroupBarrier();
            if (t >= far) { own += sums[t - far]; }
            workgroupBarrier();
            sums[t] = own;
        }
        workgroupBarrier();
        x += vec4<$kind>(carry + $ahead);
        carry += sums[255];
        $saturate
        $store
        workgroupBarrier();
    }
}
