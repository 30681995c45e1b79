// One pass of Fourier transforms of $LENGTH numbers each, $ABREAST of them per workgroup.
//
// A longer transform consists of several passes. A pass transforms every p.count-th number of a
// line and multiplies the results by twiddle factors for the next passes (Stockham's algorithm: the
// last pass leaves everything in order). A workgroup does the same with a few numbers per
// invocation.

struct Numbers {
    // All transforms, those of one line, and the numbers of one line.
    transforms: u32,
    count: u32,
    line: u32,
    // The stride of a transform's results, and the table entries for one step.
    step: u32,
    turn: u32,
    groups: u32,
    divisor: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> a: array<$SOURCE>;
@group(0) @binding(1) var<storage, read> turns: array<vec2<$T>>;
@group(0) @binding(2) var<storage, read> twiddles: array<vec2<$T>>;
@group(0) @binding(3) var<storage, read_write> out: array<$TARGET>;
@group(0) @binding(4) var<uniform> p: Numbers;

var<workgroup> x: array<vec2<$T>, $SIZE>;
var<workgroup> y: array<vec2<$T>, $SIZE>;

fn times(a: vec2<$T>, b: vec2<$T>) -> vec2<$T> {
    return vec2<$T>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let first = number * $ABREASTu;
    for (var e = id; e < $SIZEu; e += $THREADSu) {
        let c = $LOAD_COLUMN;
        let j = $LOAD_ROW;
        let t = first + c;
        var v = vec2<$T>();
        if (t < p.transforms) {
            let read = a[$LINE * p.line + $WITHIN + p.count * j];
            v = $LOAD;
        }
        x[j * $ABREASTu + c] = v;
    }
    workgroupBarrier();
$STAGES
    for (var e = id; e < $SIZEu; e += $THREADSu) {
        let c = $STORE_COLUMN;
        let k = $STORE_ROW;
        let t = first + c;
        if (t < p.transforms) {
            let within = $WITHIN;
            let q = $BESIDE;
            let n = $ALONG;
            var v = $RESULT[k * $ABREASTu + c];
$FAR
            out[$LINE * p.line + q + p.step * ($LENGTHu * n + k)] = $STORE;
        }
    }
}
