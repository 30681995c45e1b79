// One pass of Fourier transforms of $LENGTH numbers each, $ABREAST of them per workgroup.
//
// A longer transform consists of several passes. A pass transforms every p.count-th number of a
// line and multiplies the results by twiddle factors for the next passes (Stockham's algorithm: the
// last pass leaves everything in order). A workgroup does the same with a few numbers per
// invocation.

var<workgroup> x: array<vec2<$T>, $SIZE>;
var<workgroup> y: array<vec2<$T>, $SIZE>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let first = number * ${ABREAST}u;
    for (var e = id; e < ${SIZE}u; e += ${THREADS}u) {
        let c = $LOAD_COLUMN;
        let j = $LOAD_ROW;
        let t = first + c;
        var v = vec2<$T>();
        if (t < p.transforms) {
            let read = a[$LINE * p.line + $WITHIN + p.count * j];
            v = $LOAD;
        }
        x[j * ${ABREAST}u + c] = v;
    }
    workgroupBarrier();
$STAGES
    for (var e = id; e < ${SIZE}u; e += ${THREADS}u) {
        let c = $STORE_COLUMN;
        let k = $STORE_ROW;
        let t = first + c;
        if (t < p.transforms) {
            let within = $WITHIN;
            let q = $BESIDE;
            let n = $ALONG;
            var v = $RESULT[k * ${ABREAST}u + c];
$FAR
            out[$LINE * p.line + q + p.step * (${LENGTH}u * n + k)] = $STORE;
        }
    }
}
