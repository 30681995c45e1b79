// Map the bytes of each channel by a table.

struct Block {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<$stored>;
@group(0) @binding(3) var<uniform> p: Block;

fn value_at(i: u32) -> vec4<f32> {
    let px = read_pixel(i);
    let c = vec3<u32>(px.rgb);
    return vec4<f32>(vec3<f32>(vec3<u32>(table[c.x], table[256u + c.y], table[512u + c.z])), $alpha);
}

$image_pass
