// A convolution over tiles of the image: a workgroup computes $OUTS outputs of $DOWN by $ACROSS
// positions, each invocation a part of them in registers. Slices of $SLICE channels go through
// workgroup memory: the pixels that the tile's windows cover, each once, those that are a stride
// apart next to each other; and the weights, stored as [number of the weight][four outputs]. The next slice is loaded into registers while one is
// processed. Values outside the image are 0.

struct Numbers {
    // Outputs and channels of one part, for grouped convolutions.
    outputs: u32,
    channels: u32,
    // Channels that one workgroup sums: all of them, or a share if the output is small.
    share: u32,
    tiles_x: u32,
    tiles_y: u32,
    tiles_out: u32,
    parts: u32,
    images: u32,
    groups: u32,
    height: u32,
    width: u32,
    out_height: u32,
    out_width: u32,
    pad_y: u32,
    pad_x: u32,
}

$BINDINGS

struct Four {
    v0: vec4<$T>,
    v1: vec4<$T>,
    v2: vec4<$T>,
    v3: vec4<$T>,
}

var<workgroup> pixels: array<vec4<$T>, $PIXEL_ENTRIES>;
var<workgroup> weights: array<vec4<$T>, $WEIGHT_ENTRIES>;

// Four pixels of a row, a stride apart, of those within the image.
fn fetch_pixels(at: i32, inside: u32) -> vec4<$T> {
    var v = vec4<$T>();
    if ((inside & 1u) != 0u) { v.x = b[at]; }
    if ((inside & 2u) != 0u) { v.y = b[at + $STRIDE_X]; }
    if ((inside & 4u) != 0u) { v.z = b[at + $TWO_STRIDES]; }
    if ((inside & 8u) != 0u) { v.w = b[at + $THREE_STRIDES]; }
    return v;
}

fn fetch_line(first: u32, output: u32, k: u32, end: u32) -> vec4<$T> {
    var v = vec4<$T>();
    let at = first + output * p.channels * ${WINDOW}u + k;
$FETCH_LINE
    return v;
}

// Four weights of four outputs, turned.
fn fetch_weights(first: u32, output: u32, k: u32, end: u32) -> Four {
    let v0 = fetch_line(first, output, k, end);
    let v1 = fetch_line(first, output + 1u, k, end);
    let v2 = fetch_line(first, output + 2u, k, end);
    let v3 = fetch_line(first, output + 3u, k, end);
    return Four(
        vec4<$T>(v0.x, v1.x, v2.x, v3.x), vec4<$T>(v0.y, v1.y, v2.y, v3.y),
        vec4<$T>(v0.z, v1.z, v2.z, v3.z), vec4<$T>(v0.w, v1.w, v2.w, v3.w));
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    var number = group.y * groups.x + group.x;
    if (number >= p.groups) { return; }
    let tile_x = number % p.tiles_x;
    number /= p.tiles_x;
    let tile_y = number % p.tiles_y;
    number /= p.tiles_y;
    let top = number % p.tiles_out * ${OUTS}u;
    number /= p.tiles_out;
    let plane_of_outputs = number % (p.parts * p.images);
    let share = number / (p.parts * p.images);
    let part = plane_of_outputs % p.parts;
    let start = share * p.share;
    let end = min(start + p.share, p.channels);
    let plane = i32(p.height * p.width);
    let source = i32(plane_of_outputs * p.channels) * plane;
    let left = part * p.outputs * p.channels * ${WINDOW}u;
    let edge_y = i32(tile_y * ${DOWN}u * ${STRIDE_Y}u) - i32(p.pad_y);
    let edge_x = i32(tile_x * ${ACROSS}u * ${STRIDE_X}u) - i32(p.pad_x);
$PLACES
    // The part that this invocation computes.
    let tx = id % ${THREADS_X}u;
    let ty = id / ${THREADS_X}u % ${THREADS_Y}u;
    let to = id / ${THREADS_XY}u;
    let window = ty * ${THREAD_STEP}u + tx;
$SUMS

    var c = start;
$FETCH
    for (; c < end; c += ${SLICE}u) {
        workgroupBarrier();
$STORE
        workgroupBarrier();
        let after = c + ${SLICE}u;
        if (after < end) {
$FETCH_NEXT
        }
$PRODUCTS
    }
    let first = share * p.images * p.parts * p.outputs * p.out_height * p.out_width;
    let x = tile_x * ${ACROSS}u + tx * 4u;
$RESULTS
}
