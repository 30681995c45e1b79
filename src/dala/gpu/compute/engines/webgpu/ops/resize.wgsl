// One pass of a resize: weighted sums of pixels along x, along y, or along both. A row of the table
// is the first source position (as bits) and the weights.

struct Block {
    // The output of this pass, in pixels.
    width: u32,
    height: u32,
    // The part of it that is computed from the source; the rest is p.pad.
    left: u32,
    top: u32,
    right: u32,
    bottom: u32,
    // Pixels in a row of the source, and its first pixel.
    pitch: u32,
    begin: u32,
    // Taps along x and y, and the start of y's table.
    taps_x: u32,
    taps_y: u32,
    table_y: u32,
    spare: u32,
    // Applied to the result.
    gain: vec4<f32>,
    bias: vec4<f32>,
    pad: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read> taps: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<$stored>;
@group(0) @binding(3) var<uniform> p: Block;

fn tap(i: u32) -> f32 {
    return bitcast<f32>(taps[i]);
}

fn along_x(x: u32, row: u32) -> vec4<f32> {
    let entry = x * (p.taps_x + 1u);
    let at = row + taps[entry];
    var sum = vec4<f32>(0.0f);
    for (var k = 0u; k < p.taps_x; k++) {
        sum += tap(entry + 1u + k) * read_pixel(at + k);
    }
    return sum;
}

fn along_y(x: u32, y: u32) -> vec4<f32> {
    let entry = p.table_y + y * (p.taps_y + 1u);
    var at = p.begin + taps[entry] * p.pitch + x;
    var sum = vec4<f32>(0.0f);
    for (var k = 0u; k < p.taps_y; k++) {
        sum += tap(entry + 1u + k) * read_pixel(at);
        at += p.pitch;
    }
    return sum;
}

fn along_both(x: u32, y: u32) -> vec4<f32> {
    let entry = p.table_y + y * (p.taps_y + 1u);
    var row = p.begin + taps[entry] * p.pitch;
    var sum = vec4<f32>(0.0f);
    for (var k = 0u; k < p.taps_y; k++) {
        sum += tap(entry + 1u + k) * along_x(x, row);
        row += p.pitch;
    }
    return sum;
}

fn value_at(x: u32, y: u32) -> vec4<f32> {
    if (x < p.left || x >= p.right || y < p.top || y >= p.bottom) {
        return p.pad;
    }
    let v = $along;
    return $finish;
}

$image_pass