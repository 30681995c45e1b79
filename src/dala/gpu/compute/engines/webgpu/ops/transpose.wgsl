// Transpose the last two axes of p.layers matrices: (rows, columns) to (columns, rows). A group
// moves a square of numbers through workgroup memory, so that reads and writes are both
// along lines. Lines of the square are one number longer, so that columns use different banks.
// Loops are unrolled for CUDA.

struct Numbers {
    rows: u32,
    columns: u32,
    across: u32,
    down: u32,
    groups: u32,
}

@group(0) @binding(0) var<storage, read> a: array<$T>;
@group(0) @binding(1) var<storage, read_write> out: array<$T>;
@group(0) @binding(2) var<uniform> p: Numbers;

const SIDE = ${SIDE}u;
var<workgroup> square: array<$T, $ENTRIES>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let left = number % p.across * SIDE;
    let above = number / p.across;
    let top = above % p.down * SIDE;
    let first = above / p.down * p.rows * p.columns;
    let x = id % SIDE;
    for (var y = id / SIDE; y < SIDE; y += 256u / SIDE) {
        if (top + y < p.rows && left + x < p.columns) {
            square[y * (SIDE + 1u) + x] = a[first + (top + y) * p.columns + left + x];
        }
    }
    workgroupBarrier();
    for (var y = id / SIDE; y < SIDE; y += 256u / SIDE) {
        if (left + y < p.columns && top + x < p.rows) {
            out[first + (left + y) * p.rows + top + x] = square[x * (SIDE + 1u) + y];
        }
    }
}
