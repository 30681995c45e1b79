// Convolution of lines: a workgroup computes $SPAN neighboring results, $EACH per invocation. Their
// inputs are in workgroup memory, $TAPS taps at a time; each invocation slides over them.

struct Numbers {
    size: u32,
    length: u32,
    taps: u32,
    first: u32,
    // Groups for one line, and in total.
    across: u32,
    groups: u32,
}

@group(0) @binding(0) var<storage, read> a: array<$T>;
@group(0) @binding(1) var<storage, read> kernel_taps: array<$T>;
@group(0) @binding(2) var<storage, read_write> out: array<$T>;
@group(0) @binding(3) var<uniform> p: Numbers;

var<workgroup> numbers: array<$T, $HELD>;
var<workgroup> taps: array<$T, $TAPS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let line = number / p.across;
    let start = number % p.across * ${SPAN}u;
$SUMS
    for (var tap = 0u; tap < p.taps; tap += ${TAPS}u) {
        // Result n of the full convolution reads a[n - k]; the last of these taps reads the lowest.
        let lowest = i32(start + p.first) - i32(tap) - $LAST_TAP;
        workgroupBarrier();
        for (var e = id; e < ${HELD}u; e += ${THREADS}u) {
            let at = lowest + i32(e);
            var v = $T(0);
            if (at >= 0 && at < i32(p.length)) { v = a[line * p.length + u32(at)]; }
            numbers[e] = v;
        }
        for (var e = id; e < ${TAPS}u; e += ${THREADS}u) {
            var v = $T(0);
            if (tap + e < p.taps) { v = kernel_taps[tap + e]; }
            taps[e] = v;
        }
        workgroupBarrier();
        let many = min(${TAPS}u, p.taps - tap);
        for (var k = 0u; k < many; k++) {
            let w = taps[k];
            let at = id + u32($LAST_TAP) - k;
$PRODUCTS
        }
    }
$RESULTS
}
