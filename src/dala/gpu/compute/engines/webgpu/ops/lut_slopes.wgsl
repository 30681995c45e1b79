// Look up bytes with alpha in the tetrahedra that lut_slopes_spread.wgsl wrote: one place in memory a
// pixel, instead of four.

@group(0) @binding(0) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> lut: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<vec2<u32>>;
@group(0) @binding(4) var<uniform> p: Block;

$method
fn entry(i: u32) -> vec4<f32> {
    return vec4<f32>(lut[i * 3u], lut[i * 3u + 1u], lut[i * 3u + 2u], 0.0f);
}

$store
struct Tetrahedron {
    a: vec4<u32>,
    b: vec4<u32>,
    part: vec3<f32>,
}

fn tetrahedron(c: vec3<f32>) -> Tetrahedron {
    let at = place(c);
    let part = at.part;
    // Of the six by the order of the fractions: 0 bgr, 1 gbr, 2 grb, 3 brg, 4 rbg, 5 rgb.
    let six = select(0u, 3u, part.x >= part.y) + select(0u, 1u, part.y >= part.z)
        + select(0u, 1u, part.x >= part.z);
    let i = (number_of(at.cell, p.last) * 6u + six) * 2u;
    return Tetrahedron(table[i], table[i + 1u], part);
}

// The halves of words, less 32768.
fn low(w: vec3<u32>) -> vec3<f32> {
    return bitcast<vec3<f32>>((w & vec3<u32>(0xffffu)) | vec3<u32>(0x4b000000u)) - 8421376.0f;
}

fn high(w: vec3<u32>) -> vec3<f32> {
    return bitcast<vec3<f32>>((w >> vec3<u32>(16u)) | vec3<u32>(0x4b000000u)) - 8421376.0f;
}

fn climb(f: Tetrahedron) -> vec3<f32> {
    let u = f.part * bitcast<f32>(f.b.w & 0xffff0000u);
    let w = vec3<u32>(f.a.w, f.b.xy);
    let third = vec3<u32>(f.b.z, f.b.z >> 16u, f.b.w);
    return bitcast<vec3<f32>>(f.a.xyz) + low(w) * u.x + high(w) * u.y + low(third) * u.z;
}

fn exact(word: u32) -> u32 {
    return store_any(blend(find(color(word))), word);
}

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    // The last one may read and write beyond the image: buffers are multiples of 16 bytes.
    if (n * 2u >= p.width * p.height) { return; }
    let w = source[n];
    let f = tetrahedron(color(w.x));
    let g = tetrahedron(color(w.y));
    var made = vec2<u32>(store(mixed(climb(f), w.x), w.x), store(mixed(climb(g), w.y), w.y));
    if (((f.b.w | g.b.w) >> 31u) != 0u) { made = vec2<u32>(exact(w.x), exact(w.y)); }
    result[n] = made;
}
