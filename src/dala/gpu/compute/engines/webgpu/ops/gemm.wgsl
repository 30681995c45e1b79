// A tiled matrix product: out[row, column] = sum over k of left * right.
//
// A workgroup computes one tile of the output, each invocation a square of it in registers. Slices
// of 16 along k go through workgroup memory, stored as [k][four rows or columns] for any order in
// the buffers. The next slice is loaded into registers while one is processed. An entry is at
// column ^ 2 * (k / 4), so that a subgroup's accesses use different banks.

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
@group(0) @binding($LAST) var<uniform> p: Numbers;

struct Four {
    v0: vec4<$T>,
    v1: vec4<$T>,
    v2: vec4<$T>,
    v3: vec4<$T>,
}

var<workgroup> left_tile: array<vec4<$T>, $ENTRIES>;
var<workgroup> right_tile: array<vec4<$T>, $ENTRIES>;

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
    let top = tile_y * $TILEu;
    let edge = tile_x * $TILEu;

    // The part that this invocation loads: 4 by 4 numbers of the left or the right side.
    let unit = id % $TILEu;
    let on_left = id < $TILEu;
    let fetches = id < $TWICEu;
    let part = select($RIGHT_PART, $LEFT_PART, on_left);
    let quad = select($RIGHT_QUAD, $LEFT_QUAD, on_left);
    let entry = part * $FOUR_QUADSu + (quad ^ (part * 2u));
    let first = select(edge, top, on_left) + quad * 4u;
$PREPARE

    // The part that it computes: a subgroup is 8 by 4 invocations.
    let tx = (id & 7u) + 8u * ((id >> 5u) % $ACROSSu);
    let ty = ((id >> 3u) & 3u) + 4u * ((id >> 5u) / $ACROSSu);
$SUMS

    var next = Four();
    if (fetches) {
        if (on_left) { next = fetch_left($LEFT_ARGS, first, start + part * 4u, end); }
        else { next = fetch_right($RIGHT_ARGS, first, start + part * 4u, end); }
    }
    for (var k = start; k < end; k += 16u) {
        workgroupBarrier();
        if (fetches) {
            if (on_left) {
                left_tile[entry] = next.v0;
                left_tile[entry + $QUADSu] = next.v1;
                left_tile[entry + $QUADSu * 2u] = next.v2;
                left_tile[entry + $QUADSu * 3u] = next.v3;
            } else {
                right_tile[entry] = next.v0;
                right_tile[entry + $QUADSu] = next.v1;
                right_tile[entry + $QUADSu * 2u] = next.v2;
                right_tile[entry + $QUADSu * 3u] = next.v3;
            }
        }
        workgroupBarrier();
        let after = k + 16u;
        if (fetches && after < end) {
            if (on_left) { next = fetch_left($LEFT_ARGS, first, after + part * 4u, end); }
            else { next = fetch_right($RIGHT_ARGS, first, after + part * 4u, end); }
        }
        for (var q = 0u; q < 4u; q++) {
            let y = q * $FOUR_QUADSu + (ty ^ (q * 2u));
            let x = q * $FOUR_QUADSu + (tx ^ (q * 2u));
$PRODUCTS
        }
    }
$RESULTS
}
