// Layer normalization of rows. The variance is computed from differences to the mean; their sum
// corrects the rounding error of the mean.

$declarations
@group(0) @binding($block) var<uniform> p: Block;

var<workgroup> shared_a: array<$kind, 256>;
var<workgroup> shared_b: array<$kind, 256>;
var<workgroup> shared_c: array<$kind, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let items = 256u / p.lanes;
    $places
    let inside = item < p.items;
    let base = item * p.n;
    let count = $kind(p.count);
    let epsilon = $kind(bitcast<f32>(p.epsilon)) + $kind(bitcast<f32>(p.rest));
$begin
    var sum = $unit(0);
    if (inside) {
$first
    }
    shared_a[t] = total(sum);
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half) {
            shared_a[t] = shared_a[t] + shared_a[t + half * apart];
        }
    }
    workgroupBarrier();
    let mean = shared_a[t - lane] / count;
    var more = $unit(0);
    var squares = $unit(0);
    if (inside) {
        let m = $unit(mean);
$second
    }
    shared_b[t] = total(more);
    shared_c[t] = total(squares);
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half) {
            shared_b[t] = shared_b[t] + shared_b[t + half * apart];
            shared_c[t] = shared_c[t] + shared_c[t + half * apart];
        }
    }
    workgroupBarrier();
    let left = shared_b[t - lane] / count;
    let variance = max(shared_c[t - lane] / count - left * left, $kind(0));
    let scale = $unit($kind(1) / sqrt(variance + epsilon));
    if (inside) {
        let high = $unit(mean);
        let low = $unit(left);
$third
    }
}
