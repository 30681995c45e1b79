// One pass of Fourier transforms of $LENGTH numbers each, $ABREAST of them per workgroup, whose
// numbers lie p.count apart. Neighboring invocations work on neighboring transforms. Each keeps
// $EACH numbers in registers and exchanges them through workgroup memory between stages.

var<workgroup> exchanged: array<vec2<$T>, $SIZE>;

fn load(at: u32, inside: bool) -> vec2<$T> {
    if (!inside) { return vec2<$T>(); }
    let read = a[at];
    return $LOAD;
}

fn store(at: u32, inside: bool, v: vec2<$T>) {
    if (inside) { out[at] = $STORE; }
}

fn twiddle(turn: u32) -> vec2<$T> {
    return times(twiddles[turn % ${FINE}u], twiddles[${FINE}u + turn / ${FINE}u]);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let c = id % ${ABREAST}u;
    let u0 = id / ${ABREAST}u;
    let t = number * ${ABREAST}u + c;
    let inside = t < p.transforms;
    let line = t / p.count * p.line;
    let within = t % p.count;
$STAGES
}
