// A tiled matrix product: out[row, column] = sum over k of left * right.
//
// A workgroup computes one tile of the output, each invocation a part of it in registers. Slices
// along k go through workgroup memory, stored as [k][four rows or columns] for any order in the
// buffers. The next slice is loaded into registers while one is processed. An entry is at
// column ^ (a number that depends on k), so that a subgroup's accesses use different banks.

struct Numbers {
    rows: u32,
    columns: u32,
    inner: u32,
    // The part of k that one group sums: all of it, or a share if the output is small.
    share: u32,
    shares: u32,
    tiles_x: u32,
    tiles_y: u32,
    groups: u32,
$NUMBERS
}

$BINDINGS

struct Four {
    v0: vec4<$T>,
    v1: vec4<$T>,
    v2: vec4<$T>,
    v3: vec4<$T>,
}

var<workgroup> left_tile: array<vec4<$T>, $LEFT_ENTRIES>;
var<workgroup> right_tile: array<vec4<$T>, $RIGHT_ENTRIES>;

$FUNCTIONS

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let tile_x = number % p.tiles_x;
    let above = number / p.tiles_x;
    let tile_y = above % p.tiles_y;
    let layer = above / p.tiles_y;
    let start = (layer % p.shares) * p.share;
    let end = min(start + p.share, p.inner);
    let matrix = layer / p.shares;
    let top = tile_y * ${HEIGHT}u;
    let edge = tile_x * ${WIDTH}u;
$PREPARE
$PLACES
    // The part that this invocation computes: a subgroup is 8 by 4 invocations.
    let tx = (id & 7u) + 8u * ((id >> 5u) % ${ACROSS}u);
    let ty = ((id >> 3u) & 3u) + 4u * ((id >> 5u) / ${ACROSS}u);
$SUMS

    var k = start;
$FETCH
    for (; k < end; k += ${DEPTH}u) {
        workgroupBarrier();
$STORE
        workgroupBarrier();
        let after = k + ${DEPTH}u;
        if (after < end) {
$FETCH_NEXT
        }
$PRODUCTS
    }
$RESULTS
}
