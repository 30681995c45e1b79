// One pass of argmax: (outer, n, inner) to (outer, splits, inner) indices along the axis. Items and
// lanes are as in reduce.wgsl. A lane reads numbers in order, so that the first of equal ones is
// kept. Later passes choose among the indices of the previous one. A unit is one number or, in the
// first pass over rows, four.

$declarations
@group(0) @binding($block) var<uniform> p: Block;

var<workgroup> best: array<$kind, 256>;
var<workgroup> places: array<u32, 256>;

struct Best {
    x: $kind,
    place: u32,
}

fn better(x: $kind, y: $kind) -> bool {
    return $better;
}

// Keep the better of the best so far and a number at an index along the axis.
fn keep(so_far: Best, x: $kind, place: u32) -> Best {
    if (better(x, so_far.x)) { return Best(x, place); }
    return so_far;
}

$consider
fn place_of(from_here: u32, k: u32) -> u32 {
    return $place;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let items = 256u / p.lanes;
    $places
    if (item < p.items) {
        let c = item % p.inner;
        let piece = item / p.inner;
        let outer = piece / p.splits;
        let first = (piece % p.splits) * p.length;
        let last = min(first + p.length, p.n);
        let base = outer * $alongs * p.inner + c;
        let from_here = outer * p.n * p.inner + c;
        var k = min(first + lane, last - 1u);
        let start = place_of(from_here, k);
        let whole = $whole;
        var found = Best($first, start * ${width}u);
        found = consider_last(found, fetch_a(base + start * p.inner), start);
        k += p.lanes;
        while (k + 3u * p.lanes < whole) {
            let p0 = place_of(from_here, k);
            let p1 = place_of(from_here, k + p.lanes);
            let p2 = place_of(from_here, k + 2u * p.lanes);
            let p3 = place_of(from_here, k + 3u * p.lanes);
            let x0 = fetch_a(base + p0 * p.inner);
            let x1 = fetch_a(base + p1 * p.inner);
            let x2 = fetch_a(base + p2 * p.inner);
            let x3 = fetch_a(base + p3 * p.inner);
            found = consider(found, x0, p0);
            found = consider(found, x1, p1);
            found = consider(found, x2, p2);
            found = consider(found, x3, p3);
            k += 4u * p.lanes;
        }
        while (k < last) {
            let p0 = place_of(from_here, k);
            found = consider_last(found, fetch_a(base + p0 * p.inner), p0);
            k += p.lanes;
        }
        best[t] = found.x;
        places[t] = found.place;
    }
    for (var half = p.lanes >> 1u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if (lane < half && item < p.items) {
            let o = t + half * apart;
            let more = better(best[o], best[t]);
            if (more || (!better(best[t], best[o]) && places[o] < places[t])) {
                best[t] = best[o];
                places[t] = places[o];
            }
        }
    }
    if (lane == 0u && item < p.items) {
        output[item] = $result;
    }
}
