// One triangle that covers the viewport, textured with the frame. The viewport is the rectangle of
// the frame in the window; the rest of the window keeps its clear color.

@group(0) @binding(0) var frame: texture_2d<f32>;
@group(0) @binding(1) var reader: sampler;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) at: vec2f,
}

@vertex
fn corner(@builtin(vertex_index) index: u32) -> Corner {
    let at = vec2f(f32((index << 1u) & 2u), f32(index & 2u));
    return Corner(vec4f(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0), at);
}

@fragment
fn pixel(corner: Corner) -> @location(0) vec4f {
    let color = textureSample(frame, reader, corner.at);
    return vec4f(color.rgb * color.a, 1.0);  // straight alpha, over black
}
