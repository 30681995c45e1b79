// What all passes of Fourier transforms share: sizes, buffers, and the product of complex numbers.

struct Numbers {
    // All transforms, those of one line, and the numbers of one line.
    transforms: u32,
    count: u32,
    line: u32,
    // The stride of a transform's results, and the table entries for one step.
    step: u32,
    turn: u32,
    groups: u32,
    divisor: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> a: array<$SOURCE>;
@group(0) @binding(1) var<storage, read> turns: array<vec2<$T>>;
@group(0) @binding(2) var<storage, read> twiddles: array<vec2<$T>>;
@group(0) @binding(3) var<storage, read_write> out: array<$TARGET>;
@group(0) @binding(4) var<uniform> p: Numbers;

fn times(a: vec2<$T>, b: vec2<$T>) -> vec2<$T> {
    return vec2<$T>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
