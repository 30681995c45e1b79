// Look up colors in a 3D table, blue the innermost axis; numbers are as stored.

struct Block {
    width: u32,
    height: u32,
    size: u32,
    // The factors for entries and for alpha in the output.
    white: f32,
    low: vec3<f32>,
    alpha: f32,
    scale: vec3<f32>,
    // The weights of the table's color and of the original color.
    amount: f32,
    keep: f32,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> result: array<$stored>;
@group(0) @binding(3) var<uniform> p: Block;

fn look_up(c: vec3<f32>) -> vec4<f32> {
    let top = p.size - 1u;
    let raw = (c - p.low) * p.scale;
    // The comparison is false for NaN.
    let t = min(select(vec3<f32>(0.0f), raw, raw > vec3<f32>(0.0f)), vec3<f32>(f32(top)));
    let cell = min(vec3<u32>(t), vec3<u32>(top - 1u));
    let part = t - vec3<f32>(cell);
    let step = vec3<u32>(p.size * p.size, p.size, 1u);
    let base = cell.x * step.x + cell.y * step.y + cell.z;
    let far = base + step.x + step.y + 1u;
$method
}

fn value_at(i: u32) -> vec4<f32> {
    let px = read_pixel(i);
    let found = look_up(px.rgb).rgb * p.white;
    let mixed = found * p.amount + px.rgb * p.keep;
    return vec4<f32>(select(mixed, found, p.keep == 0.0f), $alpha);
}

$image_pass