// A hundred short texts in the manner of Shadertoy, written for `python -m benchmarks.toys`.
//# circle
void mainImage(out vec4 o, in vec2 p) { vec2 u = (2.0 * p - iResolution.xy) / iResolution.y; o = vec4(vec3(smoothstep(0.5, 0.48, length(u))), 1.0); }
//# gradient
void mainImage(out vec4 o, in vec2 p) { vec2 uv = p / iResolution.xy; o = vec4(0.5 + 0.5 * cos(iTime + uv.xyx + vec3(0, 2, 4)), 1.0); }
//# plasma
void mainImage(out vec4 o, in vec2 p) { vec2 u = p / 20.0; float v = sin(u.x + iTime) + sin(u.y + iTime * 0.5) + sin((u.x + u.y) * 0.5) + sin(length(u - 4.0)); o = vec4(sin(v * 3.14159), sin(v + 2.0), cos(v), 1.0) * 0.5 + 0.5; }
//# checker
void mainImage(out vec4 o, vec2 p) { ivec2 i = ivec2(p) / 16; o = vec4(float((i.x + i.y) & 1)); }
//# stripes
void mainImage(out vec4 o, vec2 p) { o = vec4(step(0.5, fract((p.x + p.y) / 24.0 + iTime * 0.25)), 0.2, 0.4, 1.0); }
//# rings
void mainImage(out vec4 o, vec2 p) { vec2 u = (p * 2. - iResolution.xy) / iResolution.y; float d = length(u); d = abs(sin(d * 8. - iTime) / 8.); o = vec4(smoothstep(0.0, 0.1, d)); }
//# polar
void mainImage(out vec4 o, vec2 p) { vec2 u = p - 0.5 * iResolution.xy; float a = atan(u.y, u.x), r = length(u); o = vec4(0.5 + 0.5 * sin(a * 6.0 + r * 0.2 - iTime), 0.5 + 0.5 * cos(r * 0.1), 0.3, 1.0); }
//# spiral
#define TAU 6.2831853
void mainImage(out vec4 o, vec2 p) { vec2 u = (p - .5 * iResolution.xy) / iResolution.y; float s = sin(log(length(u) + 0.01) * 8.0 + atan(u.y, u.x) * 3.0 - iTime * TAU * .25); o = vec4(smoothstep(-.3, .3, s)); }
//# hexagons
float hex(vec2 p) { p = abs(p); return max(dot(p, normalize(vec2(1.0, 1.7320508))), p.x); }
void mainImage(out vec4 o, vec2 f) { vec2 u = (f - 0.5 * iResolution.xy) / 15.0; vec2 r = vec2(1.0, 1.7320508), h = r * 0.5; vec2 a = mod(u, r) - h, b = mod(u - h, r) - h; vec2 g = dot(a, a) < dot(b, b) ? a : b; o = vec4(vec3(smoothstep(0.4, 0.5, hex(g))), 1.0); }
//# star
void mainImage(out vec4 o, vec2 p) { vec2 u = (2.0 * p - iResolution.xy) / iResolution.y; float a = atan(u.x, u.y) + iTime; float b = 6.28319 / 5.0; o = vec4(vec3(1.0 - smoothstep(0.4, 0.42, cos(floor(0.5 + a / b) * b - a) * length(u))), 1); }
//# box
float box(vec2 p, vec2 b) { vec2 d = abs(p) - b; return length(max(d, 0.0)) + min(max(d.x, d.y), 0.0); }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float d = box(u, vec2(.5, .3)) - .1; o = vec4(vec3(1.0) - sign(d) * vec3(0.1, 0.4, 0.7), 1.0); o.rgb *= 1.0 - exp(-6.0 * abs(d)); }
//# union
float a(vec2 p) { return length(p - vec2(0.3, 0)) - 0.3; } float b(vec2 p) { return length(p + vec2(0.3, 0)) - 0.3; }
float smin(float a, float b, float k) { float h = clamp(0.5 + 0.5 * (b - a) / k, 0., 1.); return mix(b, a, h) - k * h * (1. - h); }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; o = vec4(smoothstep(0.02, -0.02, smin(a(u), b(u), 0.2))); }
//# segment
float sd(vec2 p, vec2 a, vec2 b) { vec2 pa = p - a, ba = b - a; float h = clamp(dot(pa, ba) / dot(ba, ba), 0.0, 1.0); return length(pa - ba * h); }
void mainImage(out vec4 o, vec2 p) { float d = sd(p, iResolution.xy * 0.2, iResolution.xy * vec2(0.8, 0.6)); o = vec4(clamp(4.0 - d, 0.0, 1.0), d / 200.0, 0.0, 1.0); }
//# triangle
void mainImage(out vec4 o, vec2 f) { vec2 p = (2. * f - iResolution.xy) / iResolution.y; const float k = sqrt(3.0); p.x = abs(p.x) - 0.6; p.y += 0.6 / k; if (p.x + k * p.y > 0.0) p = vec2(p.x - k * p.y, -k * p.x - p.y) / 2.0; p.x -= clamp(p.x, -1.2, 0.0); o = vec4(0.5 - 0.5 * sign(-length(p) * sign(p.y))); }
//# rotation
mat2 rot(float a) { float c = cos(a), s = sin(a); return mat2(c, -s, s, c); }
void mainImage(out vec4 o, vec2 p) { vec2 u = (p - .5 * iResolution.xy) / iResolution.y; u *= rot(iTime); o = vec4(vec2(step(0., u)), 0.5, 1.); }
//# tiles
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 20.0, i = floor(u), f = fract(u) - 0.5; o = vec4(vec3(smoothstep(0.3, 0.25, length(f)) * mod(i.x + i.y, 2.0)), 1.0); }
//# brick
void mainImage(out vec4 o, vec2 p) { vec2 u = p / vec2(24, 12); u.x += mod(floor(u.y), 2.) * .5; vec2 f = fract(u); float m = step(.08, f.x) * step(.12, f.y); o = vec4(mix(vec3(.8), vec3(.6, .2, .1), m), 1); }
//# wave line
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; float y = .5 + .3 * sin(u.x * 9. + iTime); o = vec4(vec3(.003 / abs(u.y - y)), 1); o = clamp(o, 0., 1.); }
//# grid
void mainImage(out vec4 o, vec2 p) { vec2 g = abs(fract(p / 16.0 - 0.5) - 0.5) * 16.0; o = vec4(1.0 - clamp(min(g.x, g.y), 0.0, 1.0)); }
//# moire
void mainImage(out vec4 o, vec2 p) { float a = sin(length(p - iResolution.xy * .3) * .8), b = sin(length(p - iResolution.xy * .7) * .8); o = vec4(a * b * .5 + .5); }
//# mandelbrot
void mainImage(out vec4 o, vec2 p) { vec2 c = (p - .5 * iResolution.xy) / iResolution.y * 2.5 - vec2(.5, 0), z = vec2(0); int n = 0; for (int i = 0; i < 64; i++) { z = vec2(z.x * z.x - z.y * z.y, 2. * z.x * z.y) + c; if (dot(z, z) > 16.) break; n++; } o = vec4(vec3(float(n) / 64.), 1); }
//# julia
void mainImage(out vec4 o, vec2 p) { vec2 z = (2. * p - iResolution.xy) / iResolution.y; float n = 0.; for (; n < 40. && dot(z, z) < 9.; n++) z = mat2(z, -z.y, z.x) * z + vec2(-.4, .59); o = .5 + .5 * cos(n * .3 + vec4(0, 1, 2, 0)); }
//# burning ship
void mainImage(out vec4 o, vec2 p) { vec2 c = vec2(p.x / iResolution.x * 3.5 - 2.5, p.y / iResolution.y * 2. - 1.5), z = c; float n = 0.0; for (int i = 0; i < 32; ++i) { z = abs(z); z = vec2(z.x * z.x - z.y * z.y, 2. * z.x * z.y) + c; if (length(z) > 4.) break; n += 1.; } o = vec4(n / 32.); }
//# newton
vec2 cdiv(vec2 a, vec2 b) { return vec2(dot(a, b), a.y * b.x - a.x * b.y) / dot(b, b); } vec2 cmul(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
void mainImage(out vec4 o, vec2 p) { vec2 z = (2. * p - iResolution.xy) / iResolution.y; for (int i = 0; i < 24; i++) { vec2 s = cmul(z, z); z -= cdiv(cmul(s, z) - vec2(1, 0), 3. * s); } o = vec4(step(.5, z.x), step(.5, z.y), step(.5, -z.y), 1); }
//# sierpinski
void mainImage(out vec4 o, vec2 p) { ivec2 i = ivec2(p) + iFrame; o = vec4((i.x & i.y & 63) == 0 ? 1.0 : 0.0); }
//# xor
void mainImage(out vec4 o, vec2 p) { uvec2 u = uvec2(p); o = vec4(float((u.x ^ u.y) & 255u) / 255.0); }
//# carpet
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.y; float c = 1.0; for (int i = 0; i < 4; i++) { u *= 3.0; vec2 f = floor(mod(u, 3.0)); if (f == vec2(1)) { c = 0.0; break; } } o = vec4(c); }
//# koch fold
void mainImage(out vec4 o, vec2 p) { vec2 u = (p - .5 * iResolution.xy) / iResolution.y * 1.3; u.y += .2; u.x = abs(u.x); float s = 1.; for (int i = 0; i < 4; i++) { u *= 3.; s *= 3.; u.x = abs(abs(u.x) - 1.5) - .5; u -= min(0., dot(u, vec2(.5, .866))) * vec2(.5, .866); } o = vec4(smoothstep(2. / iResolution.y, 0., length(u - vec2(clamp(u.x, -1., 1.), 0)) / s)); }
//# kaleido
void mainImage(out vec4 o, vec2 p) { vec2 u = (p - .5 * iResolution.xy) / iResolution.y; for (float i = 0.; i < 5.; i++) { u = abs(u) - .25; u *= 1.3; u *= mat2(.8, .6, -.6, .8); } o = vec4(abs(u), .5, 1); }
//# sphere
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float z = sqrt(max(0.0, 0.64 - dot(u, u))); vec3 n = vec3(u, z) / 0.8; o = vec4(vec3(max(dot(n, normalize(vec3(1, 1, 1))), 0.0)) * step(0.001, z), 1.0); }
//# raymarched sphere
float map(vec3 p) { return length(p) - 1.0; }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 ro = vec3(0, 0, -3), rd = normalize(vec3(u, 1.5)); float t = 0.; for (int i = 0; i < 48; i++) { float d = map(ro + rd * t); if (d < .001 || t > 9.) break; t += d; } vec3 c = vec3(0); if (t < 9.) { vec3 n = normalize(ro + rd * t); c = vec3(.2 + .8 * max(dot(n, vec3(.577)), 0.)); } o = vec4(c, 1); }
//# torus
float map(vec3 p) { vec2 q = vec2(length(p.xz) - 1., p.y); return length(q) - .35; }
vec3 normal(vec3 p) { vec2 e = vec2(.001, 0); return normalize(vec3(map(p + e.xyy) - map(p - e.xyy), map(p + e.yxy) - map(p - e.yxy), map(p + e.yyx) - map(p - e.yyx))); }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 ro = vec3(0, 2, -3), rd = normalize(vec3(u.x, u.y - .9, 1.4)); float t = 0.; for (int i = 0; i < 64; i++) t += map(ro + rd * t); vec3 c = t < 10. ? normal(ro + rd * t) * .5 + .5 : vec3(.1); o = vec4(c, 1); }
//# boxes
float map(vec3 p) { p = mod(p + 2., 4.) - 2.; vec3 q = abs(p) - .6; return length(max(q, 0.)) + min(max(q.x, max(q.y, q.z)), 0.) - .1; }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 ro = vec3(0, 0, iTime), rd = normalize(vec3(u, 1)); float t = 0.; for (int i = 0; i < 40; i++) { float d = map(ro + t * rd); t += d; if (d < .002) break; } o = vec4(vec3(exp(-t * .15)), 1); }
//# plane shadow
float map(vec3 p) { return min(p.y, length(p - vec3(0, 1, 0)) - .7); }
float shadow(vec3 ro, vec3 rd) { float r = 1., t = .05; for (int i = 0; i < 24; i++) { float h = map(ro + rd * t); r = min(r, 8. * h / t); t += clamp(h, .05, .3); } return clamp(r, 0., 1.); }
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 ro = vec3(0, 1.5, -4), rd = normalize(vec3(u, 1.6)); float t = 0.; for (int i = 0; i < 60; i++) t += min(map(ro + rd * t), 1.); o = vec4(t > 30. ? vec3(.5, .7, 1) : vec3(.8) * shadow(ro + rd * t, normalize(vec3(1, 2, -1))), 1); }
//# ambient
struct Ray { vec3 o, d; }; struct Hit { float t; vec3 n; };
Hit sphere(Ray r, vec3 c, float s) { vec3 q = r.o - c; float b = dot(q, r.d), h = b * b - dot(q, q) + s * s; if (h < 0.) return Hit(-1., vec3(0)); float t = -b - sqrt(h); return Hit(t, (q + t * r.d) / s); }
void mainImage(out vec4 o, vec2 p) { Ray r = Ray(vec3(0, 0, -3), normalize(vec3((2. * p - iResolution.xy) / iResolution.y, 2))); Hit h = sphere(r, vec3(.3 * sin(iTime), 0, 0), 1.); o = vec4(h.t > 0. ? h.n * .5 + .5 : vec3(0), 1); }
//# checker floor
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 d = vec3(u, 1); vec2 f = d.xz / (-d.y) + vec2(0, iTime); float m = d.y < -.05 ? mod(floor(f.x) + floor(f.y), 2.) : .5; o = vec4(vec3(m), 1); }
//# tunnel
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float r = length(u); vec2 t = vec2(.5 / r + iTime, atan(u.y, u.x) / 3.14159); o = vec4(vec3(mod(floor(t.x * 4.) + floor(t.y * 8.), 2.)) * min(r * 2., 1.), 1); }
//# metaballs
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float s = 0.; for (int i = 0; i < 6; i++) { float f = float(i); vec2 c = vec2(sin(f * 2.4 + iTime), cos(f * 1.7)) * .6; s += .03 / dot(u - c, u - c); } o = vec4(smoothstep(.9, 1.1, s), s * .3, .2, 1); }
//# lissajous
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float d = 9.; for (float a = 0.; a < 64.; a++) { float t = a * .0982; d = min(d, length(u - .8 * vec2(sin(3. * t), sin(2. * t + iTime)))); } o = vec4(smoothstep(.06, .03, d)); }
//# integer hash
uint h(uint x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ (x >> 16); }
void mainImage(out vec4 o, vec2 p) { uint n = h(uint(p.x) + h(uint(p.y) + h(uint(iFrame)))); o = vec4(float(n & 255u), float(n >> 8 & 255u), float(n >> 24), 255) / 255.; }
//# value noise
uint h(uvec2 v) { v = v * 1664525u + 1013904223u; v.x += v.y * 1664525u; v.y += v.x * 1664525u; v ^= v >> 16u; return v.x ^ v.y; }
float n(vec2 p) { ivec2 i = ivec2(floor(p)); vec2 f = fract(p); f = f * f * (3. - 2. * f); vec4 c = vec4(h(uvec2(i)), h(uvec2(i + ivec2(1, 0))), h(uvec2(i + ivec2(0, 1))), h(uvec2(i + 1))) / 4294967295.; return mix(mix(c.x, c.y, f.x), mix(c.z, c.w, f.x), f.y); }
void mainImage(out vec4 o, vec2 p) { o = vec4(n(p / 12.) * .6 + n(p / 5.) * .4); }
//# fbm
float r(vec2 p) { uvec2 u = uvec2(ivec2(p)); return float((u.x * 73856093u ^ u.y * 19349663u) % 1013u) / 1013.; }
float n(vec2 p) { vec2 i = floor(p), f = smoothstep(0., 1., fract(p)); return mix(mix(r(i), r(i + vec2(1, 0)), f.x), mix(r(i + vec2(0, 1)), r(i + 1.), f.x), f.y); }
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 30.; float s = 0., a = .5; for (int i = 0; i < 5; i++) { s += a * n(u); u *= 2.03; a *= .5; } o = vec4(mix(vec3(.1, .2, .5), vec3(1), s), 1); }
//# voronoi
vec2 r(ivec2 p) { return vec2((p * ivec2(37, 59) + p.yx * ivec2(17, 91)) & 63) / 64.; }
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 20.; ivec2 c = ivec2(floor(u)); float d = 9.; for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) { ivec2 i = c + ivec2(x, y); d = min(d, distance(u, vec2(i) + r(i))); } o = vec4(vec3(d), 1); }
//# cells edge
vec2 r(ivec2 p) { return .5 + .4 * sin(vec2(p.x * 3 + p.y * 7, p.x * 5 - p.y * 2) + iTime); }
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 24.; ivec2 c = ivec2(floor(u)); float a = 9., b = 9.; for (int k = 0; k < 9; k++) { ivec2 i = c + ivec2(k % 3 - 1, k / 3 - 1); float d = length(u - vec2(i) - r(i)); if (d < a) { b = a; a = d; } else if (d < b) b = d; } o = vec4(smoothstep(0., .2, b - a)); }
//# truchet
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 20., i = floor(u), f = fract(u); if (mod(i.x * 3. + i.y * 5. + i.x * i.y, 2.) < 1.) f.x = 1. - f.x; float d = min(abs(length(f) - .5), abs(length(1. - f) - .5)); o = vec4(smoothstep(.15, .1, d)); }
//# dither
const int bayer[16] = int[16](0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5);
void mainImage(out vec4 o, vec2 p) { ivec2 i = ivec2(p) & 3; o = vec4(step(float(bayer[i.y * 4 + i.x]) / 16. + .03, p.x / iResolution.x)); }
//# digits
void mainImage(out vec4 o, vec2 p) { int g[5] = int[5](7, 5, 5, 5, 7); ivec2 c = ivec2(p) / 6; ivec2 i = ivec2(c.x % 4, c.y % 6); o = vec4(i.x < 3 && i.y < 5 ? float(g[i.y] >> i.x & 1) : 0.); }
//# palette
vec3 pal(float t, vec3 a, vec3 b, vec3 c, vec3 d) { return a + b * cos(6.28318 * (c * t + d)); }
void mainImage(out vec4 o, vec2 p) { o = vec4(pal(p.x / iResolution.x + iTime * .1, vec3(.5), vec3(.5), vec3(1, 1, .5), vec3(.8, .9, .3)), 1); }
//# hsv
vec3 hsv(vec3 c) { vec3 r = clamp(abs(mod(c.x * 6. + vec3(0, 4, 2), 6.) - 3.) - 1., 0., 1.); return c.z * mix(vec3(1), r, c.y); }
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; o = vec4(hsv(vec3(u.x, u.y, 1.)), 1); }
//# tonemap
void mainImage(out vec4 o, vec2 p) { vec3 x = vec3(p.xyx / iResolution.xyx) * vec3(4, 2, 1); x = (x * (2.51 * x + .03)) / (x * (2.43 * x + .59) + .14); o = vec4(clamp(x, 0., 1.), 1); }
//# gamma
void mainImage(out vec4 o, vec2 p) { vec3 c = vec3(p.x / iResolution.x); o = vec4(mix(c * 12.92, 1.055 * pow(c, vec3(1. / 2.4)) - .055, step(.0031308, c)), 1); }
//# vignette
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; u *= 1. - u.yx; o = vec4(pow(u.x * u.y * 15., .25)); }
//# photo
void mainImage(out vec4 o, vec2 p) { o = texture(iChannel0, p / iResolution.xy); }
//# gray photo
void mainImage(out vec4 o, vec2 p) { vec3 c = texture(iChannel0, p / iResolution.xy).rgb; o = vec4(vec3(dot(c, vec3(.2126, .7152, .0722))), 1); }
//# invert
void mainImage(out vec4 o, vec2 p) { o = vec4(1. - texture(iChannel0, p / iResolution.xy).rgb, 1.); }
//# wobble
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; u.x += .02 * sin(u.y * 20. + iTime); o = texture(iChannel0, u); }
//# blur
void mainImage(out vec4 o, vec2 p) { o = vec4(0); for (int y = -2; y <= 2; y++) for (int x = -2; x <= 2; x++) o += texture(iChannel0, (p + vec2(x, y)) / iResolution.xy); o /= 25.; }
//# sobel
float l(vec2 p) { return dot(texture(iChannel0, p / iResolution.xy).rgb, vec3(.333)); }
void mainImage(out vec4 o, vec2 p) { float gx = l(p + vec2(1, 0)) - l(p - vec2(1, 0)), gy = l(p + vec2(0, 1)) - l(p - vec2(0, 1)); o = vec4(length(vec2(gx, gy)) * 3.); }
//# emboss
void mainImage(out vec4 o, vec2 p) { o = .5 + texelFetch(iChannel0, ivec2(p), 0) - texelFetch(iChannel0, ivec2(p) + 1, 0); o.a = 1.; }
//# pixelate
void mainImage(out vec4 o, vec2 p) { p = floor(p / 8.) * 8. + 4.; o = texture(iChannel0, p / iResolution.xy); }
//# zoom
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy - .5; o = texture(iChannel0, u * (.6 + .3 * sin(iTime)) + .5); }
//# swirl
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy - .5; float a = 3. * max(0., .5 - length(u)); u = mat2(cos(a), sin(a), -sin(a), cos(a)) * u; o = texture(iChannel0, u + .5); }
//# fisheye
void mainImage(out vec4 o, vec2 p) { vec2 u = 2. * p / iResolution.xy - 1.; float r = dot(u, u); u *= 1. + .3 * r; o = texture(iChannel0, u * .5 + .5) * step(max(abs(u.x), abs(u.y)), 1.); }
//# chroma
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy, d = vec2(.01, 0); o = vec4(texture(iChannel0, u - d).r, texture(iChannel0, u).g, texture(iChannel0, u + d).b, 1); }
//# sepia
void mainImage(out vec4 o, vec2 p) { vec3 c = texture(iChannel0, p / iResolution.xy).rgb; o = vec4(mat3(.393, .349, .272, .769, .686, .534, .189, .168, .131) * c, 1); }
//# thermal
void mainImage(out vec4 o, vec2 p) { float l = texture(iChannel0, p / iResolution.xy).g; vec3 c[3]; c[0] = vec3(0, 0, 1); c[1] = vec3(1, 1, 0); c[2] = vec3(1, 0, 0); o = vec4(l < .5 ? mix(c[0], c[1], l * 2.) : mix(c[1], c[2], l * 2. - 1.), 1); }
//# scanlines
void mainImage(out vec4 o, vec2 p) { o = texture(iChannel0, p / iResolution.xy) * (.7 + .3 * float(int(p.y) % 3 > 0)); }
//# mirror
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; u.x = abs(u.x - .5) + .25; o = texture(iChannel0, u); }
//# split
void mainImage(out vec4 o, vec2 p) { vec4 c = texture(iChannel0, p / iResolution.xy); o = p.x < .5 * iResolution.x ? c : c.bgra; }
//# lens
void mainImage(out vec4 o, vec2 p) { vec2 m = .5 * iResolution.xy, d = p - m; float r = length(d); if (r < 30.) p = m + d * .5; o = texture(iChannel0, p / iResolution.xy) + smoothstep(2., 0., abs(r - 30.)); }
//# glow
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 c = vec3(0); for (int i = 0; i < 3; i++) { float t = iTime + float(i) * .07; c[i] = .02 / abs(length(u + .2 * sin(t)) - .5); } o = vec4(clamp(c, 0., 1.), 1); }
//# bars
void mainImage(out vec4 o, vec2 p) { const vec3 c[8] = vec3[](vec3(1), vec3(1, 1, 0), vec3(0, 1, 1), vec3(0, 1, 0), vec3(1, 0, 1), vec3(1, 0, 0), vec3(0, 0, 1), vec3(0)); o = vec4(c[int(p.x * 8. / iResolution.x)], 1.); }
//# switch
void mainImage(out vec4 o, vec2 p) { int k = int(p.x / 16.) % 4; vec3 c; switch (k) { case 0: c = vec3(1, 0, 0); break; case 1: c = vec3(0, 1, 0); break; case 2: c = vec3(0, 0, 1); default: c += .5; } o = vec4(c, 1); }
//# do while
void mainImage(out vec4 o, vec2 p) { int n = int(p.x) + 1, k = 0; do { n = (n & 1) == 0 ? n / 2 : 3 * n + 1; k++; } while (n != 1 && k < 99); o = vec4(float(k) / 99.); }
//# bits
void mainImage(out vec4 o, vec2 p) { float f = p.x / iResolution.x; int b = floatBitsToInt(f); o = vec4(float(b >> int(p.y / 4.) & 1)); }
//# unpack
void mainImage(out vec4 o, vec2 p) { uint u = packUnorm2x16(p / iResolution.xy); o = vec4(unpackUnorm2x16(u), unpackHalf2x16(packHalf2x16(vec2(.25, .75)))); }
//# matrices
void mainImage(out vec4 o, vec2 p) { mat3 m = mat3(1, .2, 0, -.2, 1, 0, .1, .1, 1); m = inverse(m) * transpose(m); vec3 v = m * vec3(p / iResolution.xy, 1); o = vec4(fract(v.xy * 3.), determinant(m), 1); }
//# macros
#define S(a, b, t) smoothstep(a, b, t)
#define R iResolution.xy
#define rot(a) mat2(cos(a), -sin(a), sin(a), cos(a))
#ifdef FANCY
#error no
#else
void mainImage(out vec4 O, vec2 U) { U = (U + U - R) / R.y; U *= rot(iTime); O = vec4(S(.4, .39, max(abs(U.x), abs(U.y)))); }
#endif
//# golfed
void mainImage(out vec4 o, vec2 u) { o *= 0.; for (float i = 0.; i++ < 9.; o += .002 / abs(length((u + u - iResolution.xy) / iResolution.y + vec2(cos(i), sin(i)) * .4) - .3)); o.a = 1.; }
//# comma
void mainImage(out vec4 o, vec2 p) { float a, b; for (a = 0., b = 1.; a < 5.; a++, b *= .7) ; vec2 q = (p /= iResolution.xy, p * b); o = vec4(q, b, 1); }
//# inout
void turn(inout vec2 p, float a) { float c = cos(a), s = sin(a); p = vec2(c * p.x - s * p.y, s * p.x + c * p.y); }
void mainImage(out vec4 o, in vec2 p) { vec2 u = p / iResolution.y - .5; turn(u, .7); turn(u.yx, .3); o = vec4(fract(u * 6.), 0, 1); }
//# overloads
float f(float x) { return x * x; } vec2 f(vec2 x) { return x * .5; } float f(vec2 a, float b) { return dot(a, a) * b; }
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; o = vec4(f(u.x), f(u).y, f(u, .5), 1); }
//# globals
vec3 light = normalize(vec3(1, 2, 3)); float count = 0.0; void add() { count += 0.125; }
void mainImage(out vec4 o, vec2 p) { for (int i = 0; i < 4; i++) add(); o = vec4(light * count, count); }
//# swizzles
void mainImage(out vec4 o, vec2 p) { vec4 v = vec4(p / iResolution.xy, .5, 1); v.xy = v.yx; v.zw *= vec2(.5, 1); v.r += .1; o = v.stpq.xyzw.bgra; }
//# derivatives
void mainImage(out vec4 o, vec2 p) { float d = length(p - .5 * iResolution.xy) - 30.; o = vec4(smoothstep(fwidth(d), 0., abs(d)), abs(dFdx(d)), abs(dFdy(d)), 1); }
//# normals by derivatives
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 12.; vec3 q = vec3(u, sin(u.x) * cos(u.y)); o = vec4(normalize(cross(dFdx(q), dFdy(q))) * .5 + .5, 1); }
//# early return
void mainImage(out vec4 o, vec2 p) { o = vec4(0, 0, 0, 1); if (p.x < 20.) return; o.r = 1.; if (p.y < 20.) { o.g = 1.; return; } o.b = 1.; }
//# nested loops
void mainImage(out vec4 o, vec2 p) { int n = 0; for (int i = 0; i < 8; i++) { if (i == 3) continue; for (int j = 0; j < 8; j++) { if (j > i) break; n += int(p.x) % (i + j + 1); } } o = vec4(float(n) / 128.); }
//# ternaries
void mainImage(out vec4 o, vec2 p) { float x = p.x / iResolution.x; o = vec4(x < .25 ? 0. : x < .5 ? .3 : x < .75 ? .6 : 1.); }
//# rounding
void mainImage(out vec4 o, vec2 p) { float x = p.x / 16. - 4.; o = vec4(trunc(x), floor(x), ceil(x), 9.) / 9. + .4; }
//# exponentials
void mainImage(out vec4 o, vec2 p) { float x = p.x / iResolution.x; o = vec4(exp2(-x * 4.), log2(1. + x), inversesqrt(1. + x * 3.), 1) + vec4(tanh(x), sinh(x) * .2, acosh(1. + x) * .1, 0) * .1; }
//# refraction
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; vec3 n = normalize(vec3(u, 1)); vec3 r = refract(vec3(0, 0, -1), n, .75), s = reflect(vec3(0, 0, -1), faceforward(n, vec3(0, 0, -1), n)); o = vec4(.5 + .5 * r.xy, .5 + .5 * s.z, 1); }
//# clock hands
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; o = vec4(0, 0, 0, 1); for (int i = 0; i < 3; i++) { float a = iTime * float(i + 1); vec2 d = vec2(sin(a), cos(a)); o[i] = smoothstep(.03, .01, length(u - d * clamp(dot(u, d), 0., .7))); } }
//# heart
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; u.y -= .2; float a = atan(u.x, u.y) / 3.141593, r = length(u), h = abs(a), d = (13. * h - 22. * h * h + 10. * h * h * h) / (6. - 5. * h); o = vec4(mix(vec3(1, .8, .7), vec3(1, 0, .3), smoothstep(-.01, .01, d - r)), 1); }
//# sun
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; vec3 sky = mix(vec3(.9, .6, .4), vec3(.2, .4, .8), u.y); float d = distance(p, iResolution.xy * vec2(.5, .35)) / iResolution.y; o = vec4(sky + vec3(1, .8, .4) * exp(-d * 8.) + step(d, .1), 1); }
//# mountains
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy; vec3 c = vec3(.7, .8, 1); for (float i = 1.; i < 5.; i++) { float h = .7 - i * .13 + .06 * sin(u.x * (3. + i * 2.) + i * 2. + iTime * .1 * i) + .03 * sin(u.x * 17. * i); c = mix(c, vec3(.5, .6, .7) / i, step(u.y, h)); } o = vec4(c, 1); }
//# gears
void mainImage(out vec4 o, vec2 p) { vec2 u = (2. * p - iResolution.xy) / iResolution.y; float a = atan(u.y, u.x) + iTime * .5, r = length(u); float g = .6 + .08 * clamp(sin(a * 12.) * 6., -1., 1.); o = vec4(vec3(step(r, g) * step(.2, r)) * .7, 1); }
//# ripples
void mainImage(out vec4 o, vec2 p) { vec2 u = p / iResolution.xy, c = u - .5; float r = length(c); u += c / max(r, .001) * .02 * cos(r * 40. - iTime * 4.) * exp(-r * 3.); o = texture(iChannel0, u); }
//# marble
void mainImage(out vec4 o, vec2 p) { vec2 u = p / 20.; for (int i = 1; i < 5; i++) { float k = float(i); u += vec2(.6 / k * sin(k * u.y + iTime + .3 * k), .5 / k * cos(k * u.x + .5 * k)); } o = vec4(.5 + .5 * sin(u.x), .5 + .5 * sin(u.y), .5 + .5 * sin(u.x + u.y), 1); }
//# cross hatch
void mainImage(out vec4 o, vec2 p) { float l = dot(texture(iChannel0, p / iResolution.xy).rgb, vec3(.333)); float a = step(1., mod(p.x + p.y, 6.)), b = step(1., mod(p.x - p.y, 6.)); o = vec4((l < .7 ? a : 1.) * (l < .4 ? b : 1.)); }
