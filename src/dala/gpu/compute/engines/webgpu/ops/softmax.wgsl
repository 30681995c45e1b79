// Softmax: exp(a - m) / sum(exp(a - m)), where m is the maximum. Items are rows or neighboring
// columns; p.lanes invocations share one. Invocations beyond the last item only take part in
// barriers.

$declarations
@group(0) @binding(2) var<uniform> p: Block;

var<workgroup> shared_m: array<$shared, 256>;
var<workgroup> shared_s: array<$shared, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let items = 256u / p.lanes;
    $places
    let inside = item < p.items;
    let base = (item / p.inner) * p.n * p.inner + item % p.inner;
$begin
    var m0 = $unit($neutral);
    if (inside) {
        var m = m0;
$first
        m0 = m;
    }
    shared_m[t] = $largest;
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half) {
            shared_m[t] = $join(shared_m[t], shared_m[t + half * apart]);
        }
    }
    workgroupBarrier();
    let m = $unit(shared_m[t - lane * apart]);
    var s0 = $unit(0);
    if (inside) {
        var s = s0;
$second
        s0 = s;
    }
    shared_s[t] = $total;
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half) {
            shared_s[t] = shared_s[t] + shared_s[t + half * apart];
        }
    }
    workgroupBarrier();
    let s = $unit(shared_s[t - lane * apart]);
    if (inside) {
$third
    }
}
