// Sample an image at coordinates: integer part and fraction in [0, 1) along x and y.

struct Block {
    // The output and the source, in pixels.
    width: u32,
    height: u32,
    source_width: i32,
    source_height: i32,
    // The value outside the border, as stored.
    fill: vec4<f32>,
    matrix_u: vec4<f32>,
    matrix_v: vec4<f32>,
    matrix_w: vec4<f32>,
}

struct Coordinates {
    whole: vec2<i32>,
    part: vec2<f32>,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
$bindings

// The border rule for one axis.
fn fold(i: i32, count: i32) -> i32 {
$fold
}

fn tap(x: i32, y: i32) -> vec4<f32> {
    let at = fold(y, p.source_height) * p.source_width + fold(x, p.source_width);
    let value = read_pixel(u32(at));
    return $bordered;
}

fn split(v: vec2<f32>) -> Coordinates {
    let bits = bitcast<vec2<u32>>(v) & vec2<u32>(0x7fffffffu);
    let number = select(v, vec2<f32>(-536870912.0f), bits > vec2<u32>(0x7f800000u));
    let near = clamp(number, vec2<f32>(-536870912.0f), vec2<f32>(536870912.0f));
    let whole = floor(near);
    return Coordinates(vec2<i32>(whole), near - whole);
}

fn place_of(x: u32, y: u32) -> Coordinates {
$place
}

fn sample(at: Coordinates) -> vec4<f32> {
$sample
}

fn value_at(x: u32, y: u32) -> vec4<f32> {
    return sample(place_of(x, y));
}

$image_pass