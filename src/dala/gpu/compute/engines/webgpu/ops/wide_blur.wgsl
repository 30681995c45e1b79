// Gaussian blurs of large radii: pixels to a coarse grid, and the blurred grid to pixels.

struct Block {
    // The output and the source, in pixels.
    width: u32,
    height: u32,
    source_width: i32,
    source_height: i32,
}
// ---

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read_write> result: array<$grid>;
@group(0) @binding(2) var<uniform> p: Block;

// The weights of a sample's pixels: 1, 3, 5, ... and back.
fn share(k: i32) -> f32 {
    return f32(2i * min(k, ${taps}i - 1i - k) + 1i);
}

fn value_at(x: u32, y: u32) -> vec4<$samples> {
    let left = ${factor}i * (i32(x) - ${before}i) - ${half}i;
    let top = ${factor}i * (i32(y) - ${before}i) - ${half}i;
    var sum = vec4<f32>(0.0f);
    for (var dy = 0i; dy < ${taps}i; dy++) {
        let row = clamp(top + dy, 0i, p.source_height - 1i) * p.source_width;
        var line = vec4<f32>(0.0f);
        for (var dx = 0i; dx < ${taps}i; dx++) {
            let column = clamp(left + dx, 0i, p.source_width - 1i);
            line += share(dx) * read_pixel(u32(row + column));
        }
        sum += share(dy) * line;
    }
    return $sample;
}

$image_pass
// ---

@group(0) @binding(0) var<storage, read> source: array<$grid>;
@group(0) @binding(1) var<storage, read> picture: array<$element>;
@group(0) @binding(2) var<storage, read_write> result: array<$element>;
@group(0) @binding(3) var<uniform> p: Block;

fn value_at(x: u32, y: u32) -> vec4<f32> {
    let at = vec2<i32>(i32(x), i32(y)) + ${half}i;
    let whole = at / ${factor}i;
    let part = (vec2<f32>(at - whole * ${factor}i) + 0.5f) * (1.0f / ${factor}.0f);
    let first = (whole.y + ${before}i - 1i) * p.source_width + whole.x + ${before}i - 1i;
    let a = u32(first);
    let b = u32(first + p.source_width);
    let upper = mix(read_pixel(a), read_pixel(a + 1u), part.x);
    let lower = mix(read_pixel(b), read_pixel(b + 1u), part.x);
    let mixed = mix(upper, lower, part.y);
    let value = $color;
    return $value;
}

$image_pass
