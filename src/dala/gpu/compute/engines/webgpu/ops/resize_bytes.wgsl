// One pass of a resize of bytes in integers: sums down, across, or both; see
// engines/sampling/byte_taps.py. Numbers between passes are integers in floats.

struct Block {
    // The output of this pass, in pixels.
    width: u32,
    height: u32,
    // The part of it that is computed from the source; the rest is p.fill.
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
    fill: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
// Both shifts, then for each x and each y the first source position and the weights.
@group(0) @binding(1) var<storage, read> taps: array<i32>;
@group(0) @binding(2) var<storage, read_write> result: array<$stored>;
@group(0) @binding(3) var<uniform> p: Block;

fn half_of(shift: u32) -> vec4<i32> {
    return vec4<i32>(1 << (shift - 1u));
}

fn numbers(at: u32) -> vec4<i32> {
    return vec4<i32>(read_pixel(at));
}

fn down(x: u32, y: u32) -> vec4<i32> {
    let entry = p.table_y + y * (p.taps_y + 1u);
    let shift = u32(taps[0]);
    var at = p.begin + u32(taps[entry]) * p.pitch + x;
    var sum = half_of(shift);
    for (var k = 0u; k < p.taps_y; k++) {
        sum += taps[entry + 1u + k] * numbers(at);
        at += p.pitch;
    }
    return sum >> vec4<u32>(shift);
}

fn across(x: u32, y: u32) -> vec4<i32> {
    let entry = 2u + x * (p.taps_x + 1u);
    let first = u32(taps[entry]);
    let shift = u32(taps[1]);
    var sum = half_of(shift);
$sums
}

fn value_at(x: u32, y: u32) -> vec4<f32> {
    if (x < p.left || x >= p.right || y < p.top || y >= p.bottom) {
        return p.fill;
    }
    return vec4<f32>($value);
}

$image_pass
