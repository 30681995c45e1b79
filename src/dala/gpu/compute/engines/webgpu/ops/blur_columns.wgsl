// Blur the columns and store the result transposed: each invocation computes $run pixels of a
// column, which become part of a row. The weights are read in quads, for every four rows.
// Loops are unrolled for CUDA.

struct Block {
    weights: array<vec4<$weight>, $weights>,
    rows: i32,
    columns: i32,
    radius: i32,
    quads: i32,
}

@group(0) @binding(0) var<storage, read> source: array<$source>;
@group(0) @binding(1) var<storage, read_write> output: array<$output>;
@group(0) @binding(2) var<uniform> p: Block;

$functions

fn pixel(y: i32, x: u32) -> $fetched {
    return fetch(u32(clamp(y, 0i, p.rows - 1i) * p.columns) + x);
}

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = group.y * groups.x + group.x;
    let strips = (u32(p.columns) + ${group}u - 1u) / ${group}u;
    let column = (number % strips) * ${group}u + lane;
    let row = i32(number / strips) * ${run}i;
    if (column >= u32(p.columns) || row >= p.rows) { return; }
    let top = row - p.radius;
$sums
    for (var quad = 0i; quad < p.quads; quad += 1i) {
        let at = quad * 4i;
$taps
    }
    let e = column * u32(p.rows) + u32(row);
$stores
}
