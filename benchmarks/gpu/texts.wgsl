// The shaders of texts.glsl, written by hand: one pixel an invocation, workgroups of 16 by 16.
struct Block { width: u32, height: u32, time: f32, }
@group(0) @binding(0) var<storage, read> film: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> b: Block;

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) at: vec3<u32>) {
    let across = (b.width + 15u) / 16u;
    let x = group.x % across * 16u + at.x;
    let y = group.x / across * 16u + at.y;
    if (x >= b.width || y >= b.height) { return; }
    let color = image(vec2<f32>(f32(x) + 0.5, f32(b.height - 1u - y) + 0.5));
    output[y * b.width + x] = pack4x8unorm(color);
}
//# silk
fn image(p: vec2<f32>) -> vec4<f32> {
    var q = p / 540.0 - vec2(1.78, 1.0);
    for (var i = 0; i < 5; i++) {
        let f = f32(i);
        q += vec2(0.55 * sin(1.7 * q.y + b.time + f), 0.45 * cos(1.9 * q.x - b.time + 0.6 * f));
    }
    let glow = 0.06 / (0.05 + abs(sin(1.5 * q.x + q.y)));
    return vec4(vec3(0.5 + 0.5 * sin(q.x + b.time), 0.5 + 0.5 * sin(q.y), 0.8) + glow, 1.0);
}
//# julia
fn image(p: vec2<f32>) -> vec4<f32> {
    var z = (p - 0.5 * vec2(f32(b.width), f32(b.height))) / 400.0;
    let c = 0.7885 * vec2(cos(b.time), sin(b.time));
    var n = 0;
    while (n < 256 && dot(z, z) < 64.0) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    let v = f32(n) / 256.0;
    return vec4(v, v * v, 1.0 - v, 1.0);
}
//# torus
fn map(p: vec3<f32>) -> f32 {
    let q = vec2(length(p.xz) - 1.0, p.y);
    return length(q) - 0.35;
}
fn normal(p: vec3<f32>) -> vec3<f32> {
    let e = vec2(0.001, 0.0);
    return normalize(vec3(map(p + e.xyy) - map(p - e.xyy), map(p + e.yxy) - map(p - e.yxy), map(p + e.yyx) - map(p - e.yyx)));
}
fn image(p: vec2<f32>) -> vec4<f32> {
    let size = vec2(f32(b.width), f32(b.height));
    let u = (2.0 * p - size) / size.y;
    let ro = vec3(0.0, 2.0, -3.0);
    let rd = normalize(vec3(u.x, u.y - 0.9, 1.4));
    var t = 0.0;
    for (var i = 0; i < 96; i++) {
        let d = map(ro + rd * t);
        if (d < 0.001 || t > 9.0) { break; }
        t += d;
    }
    var c = vec3(0.1);
    if (t < 9.0) {
        let n = normal(ro + rd * t);
        let light = max(dot(n, normalize(vec3(1.0, 2.0, -1.0))), 0.0);
        c = (n * 0.5 + 0.5) * (0.2 + 0.8 * light);
    }
    return vec4(c, 1.0);
}
//# clouds
fn chance(p: vec2<i32>) -> f32 {
    var h = u32(p.x) * 374761393u + u32(p.y) * 668265263u;
    h = (h ^ (h >> 13u)) * 1274126177u;
    return f32((h ^ (h >> 16u)) & 65535u) / 65535.0;
}
fn noise(p: vec2<f32>) -> f32 {
    let f = floor(p);
    let i = vec2<i32>(f);
    var t = p - f;
    t = t * t * (3.0 - 2.0 * t);
    let low = mix(chance(i), chance(i + vec2(1, 0)), t.x);
    let high = mix(chance(i + vec2(0, 1)), chance(i + vec2(1, 1)), t.x);
    return mix(low, high, t.y);
}
fn image(p: vec2<f32>) -> vec4<f32> {
    var u = p / 200.0 + b.time;
    var s = 0.0;
    var a = 0.5;
    for (var i = 0; i < 7; i++) {
        s += a * noise(u);
        u = vec2(1.6 * u.x + 1.2 * u.y, 1.6 * u.y - 1.2 * u.x);
        a *= 0.5;
    }
    return vec4(mix(vec3(0.1, 0.25, 0.6), vec3(1.0), s), 1.0);
}
//# cells
fn chance(p: vec2<i32>) -> f32 {
    var h = u32(p.x) * 374761393u + u32(p.y) * 668265263u;
    h = (h ^ (h >> 13u)) * 1274126177u;
    return f32((h ^ (h >> 16u)) & 65535u) / 65535.0;
}
fn image(p: vec2<f32>) -> vec4<f32> {
    let u = p / 40.0;
    let c = vec2<i32>(floor(u));
    var first = 9.0;
    var second = 9.0;
    for (var y = -1; y <= 1; y++) {
        for (var x = -1; x <= 1; x++) {
            let i = c + vec2(x, y);
            let at = vec2<f32>(i) + vec2(chance(i), chance(i + vec2(57, 131)));
            let d = length(u - at);
            if (d < first) {
                second = first;
                first = d;
            } else if (d < second) {
                second = d;
            }
        }
    }
    let edge = smoothstep(0.0, 0.2, second - first);
    return vec4(edge, edge * first, 1.0 - first, 1.0);
}
//# turned picture
fn pixel(x: i32, y: i32) -> vec4<f32> {
    let column = clamp(x, 0, i32(b.width) - 1);
    let row = i32(b.height) - 1 - clamp(y, 0, i32(b.height) - 1);
    return unpack4x8unorm(film[row * i32(b.width) + column]);
}
fn image(p: vec2<f32>) -> vec4<f32> {
    let size = vec2(f32(b.width), f32(b.height));
    var u = p / size - 0.5;
    u = vec2(0.978 * u.x - 0.208 * u.y, 0.208 * u.x + 0.978 * u.y) + 0.5;
    let at = u * size - 0.5;
    let low = floor(at);
    let t = at - low;
    let x = i32(low.x);
    let y = i32(low.y);
    let below = mix(pixel(x, y), pixel(x + 1, y), t.x);
    let above = mix(pixel(x, y + 1), pixel(x + 1, y + 1), t.x);
    return vec4(mix(below, above, t.y).rgb, 1.0);
}
