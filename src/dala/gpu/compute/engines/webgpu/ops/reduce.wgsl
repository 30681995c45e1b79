// One pass of a reduction: (outer, n, inner) to (outer, splits, inner), in units. A group of 256
// invocations works on 256 / lanes items; an item is a piece of p.length units of one result, which
// p.lanes invocations share. Four loads at a time go to separate accumulators.

$declarations
@group(0) @binding(2) var<uniform> p: Block;

var<workgroup> part: array<$partial, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let items = 256u / p.lanes;
    $places
    let nothing = $unit($neutral);
    var r0 = nothing;
    if (item < p.items) {
        let piece = item / p.inner;
        let first = (piece % p.splits) * p.length;
        let last = min(first + p.length, p.n);
        let base = (piece / p.splits) * p.n * p.inner + item % p.inner;
        let step = p.lanes * p.inner;
        var k = first + lane;
        var i = base + k * p.inner;
        var r1 = nothing;
        var r2 = nothing;
        var r3 = nothing;
        let whole = $whole;
        while (k + 3u * p.lanes < whole) {
            let x0 = fetch_a(i);
            let x1 = fetch_a(i + step);
            let x2 = fetch_a(i + 2u * step);
            let x3 = fetch_a(i + 3u * step);
            r0 = combine(r0, x0);
            r1 = combine(r1, x1);
            r2 = combine(r2, x2);
            r3 = combine(r3, x3);
            k += 4u * p.lanes;
            i += 4u * step;
        }
        while (k < last) {
            r0 = combine(r0, $last);
            k += p.lanes;
            i += step;
        }
        r0 = combine(combine(r0, r1), combine(r2, r3));
    }
    part[t] = $folded;
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half) {
            part[t] = $join(part[t], part[t + half * apart]);
        }
    }
    if (lane == 0u && item < p.items) {
        output[item] = $result;
    }
}
