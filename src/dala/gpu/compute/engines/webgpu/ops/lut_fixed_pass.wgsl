$method
fn value_at(i: u32) -> vec4<f32> {
    let px = read_pixel(i);
    let c = vec3<u32>(px.rgb);
    return vec4<f32>(vec3<f32>(finished(blend(find(c)), c)), $alpha);
}

$image_pass
