// Fourier transforms of $LENGTH numbers each, one per workgroup, by Bluestein's algorithm: the numbers
// times a chirp are convolved with another chirp, by transforms of $SIZE numbers. The table has the
// chirp, and then the spectrum of the other one.

var<workgroup> x: array<vec2<$T>, $SIZE>;
var<workgroup> y: array<vec2<$T>, $SIZE>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let t = group.y * groups.x + group.x;
    if (t >= p.transforms) { return; }
    let first = t / p.count * p.line + t % p.count;
    for (var e = id; e < ${SIZE}u; e += ${THREADS}u) {
        var v = vec2<$T>();
        if (e < ${LENGTH}u) {
            let read = a[first + p.count * e];
            v = times($LOAD, twiddles[e]);
        }
        x[e] = v;
    }
    workgroupBarrier();
$STAGES
    for (var e = id; e < ${SIZE}u; e += ${THREADS}u) {
        let v = times($SPECTRUM[e], twiddles[${LENGTH}u + e]);
        $SPECTRUM[e] = vec2<$T>(v.x, -v.y);  // the transform of conjugates is the inverse's conjugate
    }
    workgroupBarrier();
$BACK
    for (var e = id; e < ${LENGTH}u; e += ${THREADS}u) {
        let conjugate = $RESULT[e];
        let v = times(vec2<$T>(conjugate.x, -conjugate.y), twiddles[e]);
        out[first + p.count * e] = $STORE;
    }
}
