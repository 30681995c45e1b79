// Shaders in the manner of Shadertoy, for `python -m benchmarks.gpu.shaders`; texts.wgsl has the same.
//# silk
void mainImage(out vec4 o, vec2 p) {
    vec2 q = p / 540.0 - vec2(1.78, 1.0);
    for (int i = 0; i < 5; i++) {
        float f = float(i);
        q += vec2(0.55 * sin(1.7 * q.y + iTime + f), 0.45 * cos(1.9 * q.x - iTime + 0.6 * f));
    }
    float glow = 0.06 / (0.05 + abs(sin(1.5 * q.x + q.y)));
    o = vec4(vec3(0.5 + 0.5 * sin(q.x + iTime), 0.5 + 0.5 * sin(q.y), 0.8) + glow, 1.0);
}
//# julia
void mainImage(out vec4 o, vec2 p) {
    vec2 z = (p - 0.5 * iResolution.xy) / 400.0;
    vec2 c = 0.7885 * vec2(cos(iTime), sin(iTime));
    int n = 0;
    while (n < 256 && dot(z, z) < 64.0) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    float v = float(n) / 256.0;
    o = vec4(v, v * v, 1.0 - v, 1.0);
}
//# torus
float map(vec3 p) {
    vec2 q = vec2(length(p.xz) - 1.0, p.y);
    return length(q) - 0.35;
}
vec3 normal(vec3 p) {
    vec2 e = vec2(0.001, 0.0);
    return normalize(vec3(map(p + e.xyy) - map(p - e.xyy), map(p + e.yxy) - map(p - e.yxy), map(p + e.yyx) - map(p - e.yyx)));
}
void mainImage(out vec4 o, vec2 p) {
    vec2 u = (2.0 * p - iResolution.xy) / iResolution.y;
    vec3 ro = vec3(0.0, 2.0, -3.0), rd = normalize(vec3(u.x, u.y - 0.9, 1.4));
    float t = 0.0;
    for (int i = 0; i < 96; i++) {
        float d = map(ro + rd * t);
        if (d < 0.001 || t > 9.0) break;
        t += d;
    }
    vec3 c = vec3(0.1);
    if (t < 9.0) {
        vec3 n = normal(ro + rd * t);
        float light = max(dot(n, normalize(vec3(1.0, 2.0, -1.0))), 0.0);
        c = (n * 0.5 + 0.5) * (0.2 + 0.8 * light);
    }
    o = vec4(c, 1.0);
}
//# clouds
float chance(ivec2 p) {
    uint h = uint(p.x) * 374761393u + uint(p.y) * 668265263u;
    h = (h ^ (h >> 13)) * 1274126177u;
    return float((h ^ (h >> 16)) & 65535u) / 65535.0;
}
float noise(vec2 p) {
    vec2 f = floor(p), t = p - f;
    ivec2 i = ivec2(f);
    t = t * t * (3.0 - 2.0 * t);
    float a = mix(chance(i), chance(i + ivec2(1, 0)), t.x);
    float b = mix(chance(i + ivec2(0, 1)), chance(i + ivec2(1, 1)), t.x);
    return mix(a, b, t.y);
}
void mainImage(out vec4 o, vec2 p) {
    vec2 u = p / 200.0 + iTime;
    float s = 0.0, a = 0.5;
    for (int i = 0; i < 7; i++) {
        s += a * noise(u);
        u = vec2(1.6 * u.x + 1.2 * u.y, 1.6 * u.y - 1.2 * u.x);
        a *= 0.5;
    }
    o = vec4(mix(vec3(0.1, 0.25, 0.6), vec3(1.0), s), 1.0);
}
//# cells
float chance(ivec2 p) {
    uint h = uint(p.x) * 374761393u + uint(p.y) * 668265263u;
    h = (h ^ (h >> 13)) * 1274126177u;
    return float((h ^ (h >> 16)) & 65535u) / 65535.0;
}
void mainImage(out vec4 o, vec2 p) {
    vec2 u = p / 40.0;
    ivec2 c = ivec2(floor(u));
    float first = 9.0, second = 9.0;
    for (int y = -1; y <= 1; y++) {
        for (int x = -1; x <= 1; x++) {
            ivec2 i = c + ivec2(x, y);
            vec2 at = vec2(i) + vec2(chance(i), chance(i + ivec2(57, 131)));
            float d = length(u - at);
            if (d < first) { second = first; first = d; }
            else if (d < second) { second = d; }
        }
    }
    float edge = smoothstep(0.0, 0.2, second - first);
    o = vec4(edge, edge * first, 1.0 - first, 1.0);
}
//# turned picture
void mainImage(out vec4 o, vec2 p) {
    vec2 u = p / iResolution.xy - 0.5;
    u = vec2(0.978 * u.x - 0.208 * u.y, 0.208 * u.x + 0.978 * u.y) + 0.5;
    o = vec4(texture(iChannel0, u).rgb, 1.0);
}
