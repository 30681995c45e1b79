// ripple: each invocation computes one pixel, in tiles 32 wide

struct Block {
    img_size_1: i32,
    img_size_0: i32,
    img_dim_1: i32,
    img_dim_0: i32,
    width: u32,
    height: u32,
    tiles_across: u32,
    zero: u32,
    param_height: f32,
    param_length: f32,
}

@group(0) @binding(0) var<storage, read> in_img: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;

// Infinities and NaN. No compiler may fold them (p.zero is 0): WGSL forbids such constants, and
// drivers fold what is computed from them with other results.
fn bits_f32(bits: u32) -> f32 {
    return bitcast<f32>(bits ^ p.zero);
}

// Return the same number, hidden from the compiler (p.zero is 0): some compilers regroup sums and
// products, which is wrong where rounding or infinities matter.
fn hide_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ p.zero);
}

// Compilers may evaluate x != x as false, but not a comparison of bits.
fn isnan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn unpack_u8(word: u32) -> vec4<i32> {
    return vec4<i32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

fn pack_u8(bytes: vec4<i32>) -> u32 {
    let b = vec4<u32>(bytes);
    return (b.x + (b.y << 8u)) + ((b.z << 16u) + (b.w << 24u));
}

fn f32_to_s32(x: f32) -> i32 {
    if (isnan_f32(x)) { return 0i; }
    if (x >= 2147483648.0f) { return 2147483647i; }
    if (x <= -2147483648.0f) { return i32(-2147483648); }
    return i32(x);
}

// The product, rounded, whatever is added to it: compilers join products and sums, but not this sum
// with another one (p.zero is 0, so that -0 is added). GPUs compute it in one operation.
fn product_f32(a: f32, b: f32) -> f32 {
    return fma(a, b, bitcast<f32>(p.zero | 0x80000000u));
}

// The upper half of a number's digits. Products of halves are exact, fused or not.
fn upper_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// Rounded correctly: what is left of a after an approximate quotient corrects it.
fn exact_div_f32(a: f32, b: f32) -> f32 {
    let inverse = 1.0f / b;
    let q = product_f32(a, inverse);
    let qh = upper_f32(q);
    let ql = q - qh;
    let bh = upper_f32(b);
    let bl = b - bh;
    let rest = ((a - qh * bh) - qh * bl - ql * bh) - ql * bl;
    let ordinary = abs(q) > 1e-25f && abs(q) < 1e25f && abs(b) > 1e-10f && abs(b) < 1e10f;
    return select(q, q + rest * inverse, ordinary);
}

fn exact_sqrt_f32(x: f32) -> f32 {
    let inverse = inverseSqrt(x);
    let s = product_f32(x, inverse);
    let high = upper_f32(s);
    let low = s - high;
    let rest = ((x - high * high) - 2.0f * (high * low)) - low * low;
    return select(sqrt(x), s + rest * (0.5f * inverse), x > 1e-20f && x < 1e20f);
}

fn multiply_high(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let t = ah * bl + ((al * bl) >> 16u);
    let u = al * bh + (t & 0xffffu);
    return ah * bh + (t >> 16u) + (u >> 16u);
}

// An array in a variable would be copied to memory in each call, and takes compilers long.
fn one_of_five(at: u32, a: u32, b: u32, c: u32, d: u32, e: u32) -> u32 {
    return select(select(select(select(a, b, at == 1u), c, at == 2u), d, at == 3u), e, at >= 4u);
}

// The angle minus its nearest multiple of pi/2, and that multiple modulo 4. Large angles are
// multiplied by the 96 bits of 2/pi that matter to them.
fn quadrant_large_f32(x: f32) -> vec2<f32> {
    let bits = bitcast<u32>(x);
    let m = (bits & 0x007fffffu) | 0x00800000u;
    let k = u32(i32((bits >> 23u) & 255u) - 120i);
    let at = k >> 5u;
    let s = k & 31u;
    let t0 = one_of_five(at, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u);
    let t1 = one_of_five(at, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u);
    let t2 = one_of_five(at, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u);
    let t3 = one_of_five(at, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    let w0 = select((t0 << s) | (t1 >> ((32u - s) & 31u)), t0, s == 0u);
    let w1 = select((t1 << s) | (t2 >> ((32u - s) & 31u)), t1, s == 0u);
    let w2 = select((t2 << s) | (t3 >> ((32u - s) & 31u)), t2, s == 0u);
    let low = m * w1;
    let mid = low + multiply_high(m, w2);
    let high = m * w0 + multiply_high(m, w1) + select(0u, 1u, mid < low);
    let part = (high << 2u) | (mid >> 30u);
    let turn = (high >> 30u) + (part >> 31u);
    let r = (f32(i32(part)) * 2.3283064e-10f + f32(mid << 2u) * 5.4210109e-20f) * 1.57079633f;
    let negative = x < 0.0f;
    return vec2<f32>(select(r, -r, negative), f32(select(turn, 4u - turn, negative) & 3u));
}

fn quadrant_f32(x: f32) -> vec2<f32> {
    let size = bitcast<u32>(x) & 0x7fffffffu;
    if (size >= 0x7f800000u) { return vec2<f32>(bits_f32(0x7fc00000u), 0.0f); }
    if (size >= 0x46000000u) { return quadrant_large_f32(x); }
    if (size < 0x3f490fdbu) { return vec2<f32>(x, 0.0f); }
    let n = round(x * 0.636619772f);
    var r = hide_f32(x - n * 1.5703125f);
    r = hide_f32(r - n * 4.837512969970703125e-4f);
    r -= n * 7.549789948768648e-8f;
    return vec2<f32>(r, n - 4.0f * floor(n * 0.25f));
}

fn sin_core_f32(r: f32) -> f32 {
    let z = r * r;
    let q = (-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f;
    return r + (q * z) * r;
}

fn cos_core_f32(r: f32) -> f32 {
    let z = r * r;
    let q = (2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f;
    return 1.0f + ((q * z) * z - 0.5f * z);
}

fn sin_f32(x: f32) -> f32 {
    let a = quadrant_f32(x);
    let odd = a.y == 1.0f || a.y == 3.0f;
    let y = select(sin_core_f32(a.x), cos_core_f32(a.x), odd);
    return select(select(y, -y, a.y >= 2.0f), x, x == 0.0f);
}

fn read_img(x: i32, y: i32, dx: i32, dy: i32) -> vec4<i32> {
    let column = u32(x + clamp(dx, -x, p.img_size_1 - 1i - x));
    let row = u32(y + clamp(dy, -y, p.img_size_0 - 1i - y));
    let i = row * u32(p.img_size_1) + column;
    return unpack_u8(in_img[i]);
}

fn kernel(y: i32, x: i32) -> vec4<i32> {
    let t1 = f32(x) - (f32(p.img_dim_1) * 0.5f);
    let t2 = f32(y) - (f32(p.img_dim_0) * 0.5f);
    let t3 = exact_sqrt_f32(product_f32(t1, t1) + product_f32(t2, t2)) + 0.001f;
    let t4 = product_f32(sin_f32(exact_div_f32(t3, p.param_length) * 6.2831855f), p.param_height);
    let t5 = f32_to_s32(exact_div_f32(t1, t3) * t4);
    let t6 = f32_to_s32(exact_div_f32(t2, t3) * t4);
    let t7 = read_img(x, y, t5, t6);
    return vec4<i32>(t7.x, t7.y, t7.z, t7.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * groups.x + group.x;
    let column = (tile % p.tiles_across) * 32u + lane % 32u;
    let row = (tile / p.tiles_across) * 8u + lane / 32u;
    if (column >= p.width || row >= p.height) { return; }
    let e = row * p.width + column;
    let y = i32(row);
    let x = i32(column);
    output[e] = pack_u8(kernel(y, x));
}
