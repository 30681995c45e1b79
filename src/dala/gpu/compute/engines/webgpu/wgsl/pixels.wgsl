// Pixels and sampling: functions shared by operations (ops/*.wgsl) and the compositor
// (compose/compose.wgsl). A pixel is a vec4<f32> with numbers as stored (u8: 0 to 255).

// Integer to float conversions run at a fraction of the speed of additions on many GPUs. See
// from_byte in helpers.wgsl.
fn unpack_rgba(word: u32) -> vec4<f32> {
    let bits = ((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)) << vec4<u32>(15u);
    return bitcast<vec4<f32>>(bits | vec4<u32>(0x43800000u)) - vec4<f32>(256.0f);
}

// Saturate and round, halves up. See byte_f32 in helpers.wgsl.
fn pack_rgba(pixel: vec4<f32>) -> u32 {
    let inside = clamp(pixel, vec4<f32>(0.0f), vec4<f32>(255.0f));
    let rounded = inside * 1.00000011920929f + vec4<f32>(8388608.0f);
    let b = bitcast<vec4<u32>>(rounded) & vec4<u32>(255u);
    return (b.x | (b.y << 8u)) | ((b.z << 16u) | (b.w << 24u));
}

// Saturate and round to integers, halves up; NaN gives 0. Exact for every f32.
fn round_bytes(v: vec4<f32>) -> vec4<u32> {
    let up = v + 0.5f;
    let kept = select(vec4<f32>(0.0f), up, up > vec4<f32>(0.0f));
    return vec4<u32>(min(kept, vec4<f32>(255.0f)));
}

// The weights of four neighbors: at (0, 0), (1, 0), (0, 1) and (1, 1).
fn bilinear_weights(part: vec2<f32>) -> vec4<f32> {
    let rest = vec2<f32>(1.0f) - part;
    return vec4<f32>(rest.x * rest.y, part.x * rest.y, rest.x * part.y, part.x * part.y);
}

fn weighted_sum(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, w: vec4<f32>) -> vec4<f32> {
    return (a * w.x + b * w.y) + (c * w.z + d * w.w);
}

// The weights of four neighbors along an axis, at -1, 0, 1 and 2: Keys' kernel with a = -0.75.
fn cubic_weights(part: f32) -> vec4<f32> {
    let d = vec4<f32>(part + 1.0f, part, 1.0f - part, 2.0f - part);
    let near = (1.25f * d - 2.25f) * d * d + 1.0f;
    let far = (((d - 5.0f) * d + 8.0f) * d - 4.0f) * -0.75f;
    return vec4<f32>(far.x, near.y, near.z, far.w);
}
