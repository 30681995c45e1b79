// Look up colors in a 3D table, one pixel at a time; numbers are as stored.

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> result: array<$stored>;
@group(0) @binding(3) var<uniform> p: Block;

$method
fn entry(i: u32) -> vec4<f32> {
    return table[i];
}

fn value_at(i: u32) -> vec4<f32> {
    let px = read_pixel(i);
    let found = blend(find(px.rgb)) * p.amount;
    // A pixel may be infinite.
    return vec4<f32>(select(found + px.rgb * p.keep, found, p.keep == 0.0f), $alpha);
}

$image_pass
