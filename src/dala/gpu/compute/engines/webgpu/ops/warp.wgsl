// Sample an image at coordinates: an integer and a fraction in units of 2**-24 along x and y, see
// engines/sampling/coordinates.py.

struct Block {
    // The output and the source, in pixels.
    width: u32,
    height: u32,
    source_width: i32,
    source_height: i32,
    // The value outside the border, as stored.
    fill: vec4<f32>,
}

struct Coordinates {
    whole: vec2<i32>,
    part: vec2<i32>,
}

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

$functions
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
