fn color(word: u32) -> vec3<f32> {
    return unpack_rgba(word).rgb;
}

fn mixed(found: vec3<f32>, word: u32) -> vec3<f32> {
    return found * p.amount + color(word) * p.keep;
}

// Saturate and round, halves up (see byte_f32 in helpers.wgsl), and keep alpha.
fn store(v: vec3<f32>, word: u32) -> u32 {
    let inside = clamp(v, vec3<f32>(0.0f), vec3<f32>(1.0f));
    let b = bitcast<vec3<u32>>(inside * 255.000030517578f + vec3<f32>(8388608.0f));
    return ((b.x + (b.y << 8u) + (b.z << 16u)) & 0xffffffu) | (word & 0xff000000u);
}

// The same for colors that may be NaN, which the comparison is false for.
fn store_any(found: vec3<f32>, word: u32) -> u32 {
    let v = mixed(found, word);
    return store(select(vec3<f32>(0.0f), v, v > vec3<f32>(0.0f)), word);
}
