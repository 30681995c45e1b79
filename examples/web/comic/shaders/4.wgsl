// blur of radius 5: tiles of 64 by 16
struct Block {
    w0: f32,
    w1: f32,
    w2: f32,
    w3: f32,
    w4: f32,
    w5: f32,
    v0: u32,
    v1: u32,
    v2: u32,
    v3: u32,
    v4: u32,
    v5: u32,
    width: i32,
    height: i32,
    across: u32,
    zero: u32,
    param_1_bits: i32,
    param_1_levels: i32,
    param_1_value: f32,
    param_1_weight_0_0: i32,
    param_1_weight_0_1: i32,
    param_1_weight_0_2: i32,
    param_1_weight_1_0: i32,
    param_1_weight_1_1: i32,
    param_1_weight_1_2: i32,
    param_1_weight_2_0: i32,
    param_1_weight_2_1: i32,
    param_1_weight_2_2: i32,
    param_1_bias_0: i32,
    param_1_bias_1: i32,
    param_1_bias_2: i32,
    param_1_bits_2: i32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;
var<workgroup> middle: array<vec2<u32>, 1216>;
var<workgroup> held: array<u32, 1024>;

fn unpack_u8(word: u32) -> vec4<i32> {
    return vec4<i32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

// The same by its definition, without an error for numbers next to a half.
fn byte_exact(x: f32) -> i32 {
    return i32(u32(min(select(0.0f, x, x > 0.0f) + 0.5f, 255.5f)));
}

fn pack_u8(bytes: vec4<i32>) -> u32 {
    let b = vec4<u32>(bytes);
    return (b.x + (b.y << 8u)) + ((b.z << 16u) + (b.w << 24u));
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

fn fetch(i: u32) -> vec4<f32> {
    let w = source[i];
    let c = vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u));
    return vec4<f32>(c, bitcast<f32>((w >> 24u) | 0x4b000000u));
}

fn rounded(total: vec3<f32>) -> vec3<u32> {
    let above = bitcast<vec3<f32>>(bitcast<vec3<u32>>(total) | vec3<u32>(1u));
    return bitcast<vec3<u32>>(above * 0.0009765625f + 8388608.0f);
}

fn to_middle(c: vec3<u32>, a: f32) -> vec2<u32> {
    return vec2<u32>((c.x & 65535u) | (c.y << 16u), (c.z & 65535u) | (bitcast<u32>(a) << 16u));
}

fn from_middle(m: vec2<u32>) -> vec4<u32> {
    return vec4<u32>(m.x & 65535u, m.x >> 16u, m.y & 65535u, m.y >> 16u);
}

fn word(c: vec3<u32>, a: u32) -> u32 {
    return (c.x + (c.y << 8u)) + ((c.z << 16u) + (a << 24u));
}

fn stage_1(px_1: vec4<i32>) -> vec4<i32> {
    let t1 = f32(px_1.x);
    let t2 = f32(px_1.y);
    let t3 = f32(px_1.z);
    let t4 = 1i << (u32(8i - p.param_1_bits) & 31u);
    let t5 = f32(max(p.param_1_levels - 1i, 1i));
    let t6 = p.param_1_levels > 0i;
    let t7 = select(exact_div_f32(1.0f, f32(t4)), exact_div_f32(t5, 255.0f), t6);
    let t8 = select(0.0f, 0.5f, t6);
    let t9 = select(f32(t4), 1.0f, t6);
    let t10 = select(255.0f, t5, t6);
    let t11 = select(0.0f, t1, (t1 > 0.0f));
    let t12 = select(0.0f, t2, (t2 > 0.0f));
    let t13 = select(0.0f, t3, (t3 > 0.0f));
    let t14 = product_f32(floor(select(255.0f, t11, (t11 < 255.0f)) + 0.5f), t7);
    let t15 = product_f32(floor(select(255.0f, t12, (t12 < 255.0f)) + 0.5f), t7);
    let t16 = product_f32(floor(select(255.0f, t13, (t13 < 255.0f)) + 0.5f), t7);
    let t17 = byte_exact(product_f32(exact_div_f32(floor(t14 + t8) * t9, t10), 255.0f));
    let t18 = byte_exact(product_f32(exact_div_f32(floor(t15 + t8) * t9, t10), 255.0f));
    let t19 = byte_exact(product_f32(exact_div_f32(floor(t16 + t8) * t9, t10), 255.0f));
    let t20 = (p.param_1_bias_0 + (t17 * p.param_1_weight_0_0)) + (t18 * p.param_1_weight_0_1);
    let t21 = (t20 + (t19 * p.param_1_weight_0_2)) >> (u32(p.param_1_bits_2) & 31u);
    let t22 = (p.param_1_bias_1 + (t18 * p.param_1_weight_1_0)) + (t17 * p.param_1_weight_1_1);
    let t23 = (t22 + (t19 * p.param_1_weight_1_2)) >> (u32(p.param_1_bits_2) & 31u);
    let t24 = (p.param_1_bias_2 + (t19 * p.param_1_weight_2_0)) + (t17 * p.param_1_weight_2_1);
    let t25 = (t24 + (t18 * p.param_1_weight_2_2)) >> (u32(p.param_1_bits_2) & 31u);
    return vec4<i32>(min(max(t21, 0i), 255i), min(max(t23, 0i), 255i), min(max(t25, 0i), 255i), px_1.w);
}

fn turn_middle(i: u32) -> u32 {
    return i ^ ((i >> 4u) & 3u);
}

fn turn_held(i: u32) -> u32 {
    return i ^ ((i >> 5u) & 3u);
}

// Where a row begins; beyond the border it is the outermost one.
fn down(y: i32) -> u32 {
    return u32(clamp(y, 0i, p.height - 1i) * p.width);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = group.y * groups.x + group.x;
    let left = i32(number % p.across) * 64i;
    let top = i32(number / p.across) * 16i;
    if (lane < 148u) {
        let item = lane;
        let column = item % 74u;
        let row = (item / 74u) * 8u;
        let x = u32(clamp(left - 5i + i32(column), 0i, p.width - 1i));
        let y = top - 5i + i32(row);
        var a0 = vec3<f32>(32768.0f);
        var a1 = vec3<f32>(32768.0f);
        var a2 = vec3<f32>(32768.0f);
        var a3 = vec3<f32>(32768.0f);
        var a4 = vec3<f32>(32768.0f);
        var a5 = vec3<f32>(32768.0f);
        var a6 = vec3<f32>(32768.0f);
        var a7 = vec3<f32>(32768.0f);
        let t0 = fetch(down(y + 0i) + x);
        a0 += t0.xyz * p.w5;
        let t1 = fetch(down(y + 1i) + x);
        a0 += t1.xyz * p.w4;
        a1 += t1.xyz * p.w5;
        let t2 = fetch(down(y + 2i) + x);
        a0 += t2.xyz * p.w3;
        a1 += t2.xyz * p.w4;
        a2 += t2.xyz * p.w5;
        let t3 = fetch(down(y + 3i) + x);
        a0 += t3.xyz * p.w2;
        a1 += t3.xyz * p.w3;
        a2 += t3.xyz * p.w4;
        a3 += t3.xyz * p.w5;
        let t4 = fetch(down(y + 4i) + x);
        a0 += t4.xyz * p.w1;
        a1 += t4.xyz * p.w2;
        a2 += t4.xyz * p.w3;
        a3 += t4.xyz * p.w4;
        a4 += t4.xyz * p.w5;
        let t5 = fetch(down(y + 5i) + x);
        a0 += t5.xyz * p.w0;
        a1 += t5.xyz * p.w1;
        a2 += t5.xyz * p.w2;
        a3 += t5.xyz * p.w3;
        a4 += t5.xyz * p.w4;
        a5 += t5.xyz * p.w5;
        let t6 = fetch(down(y + 6i) + x);
        a0 += t6.xyz * p.w1;
        a1 += t6.xyz * p.w0;
        a2 += t6.xyz * p.w1;
        a3 += t6.xyz * p.w2;
        a4 += t6.xyz * p.w3;
        a5 += t6.xyz * p.w4;
        a6 += t6.xyz * p.w5;
        let t7 = fetch(down(y + 7i) + x);
        a0 += t7.xyz * p.w2;
        a1 += t7.xyz * p.w1;
        a2 += t7.xyz * p.w0;
        a3 += t7.xyz * p.w1;
        a4 += t7.xyz * p.w2;
        a5 += t7.xyz * p.w3;
        a6 += t7.xyz * p.w4;
        a7 += t7.xyz * p.w5;
        let t8 = fetch(down(y + 8i) + x);
        a0 += t8.xyz * p.w3;
        a1 += t8.xyz * p.w2;
        a2 += t8.xyz * p.w1;
        a3 += t8.xyz * p.w0;
        a4 += t8.xyz * p.w1;
        a5 += t8.xyz * p.w2;
        a6 += t8.xyz * p.w3;
        a7 += t8.xyz * p.w4;
        let t9 = fetch(down(y + 9i) + x);
        a0 += t9.xyz * p.w4;
        a1 += t9.xyz * p.w3;
        a2 += t9.xyz * p.w2;
        a3 += t9.xyz * p.w1;
        a4 += t9.xyz * p.w0;
        a5 += t9.xyz * p.w1;
        a6 += t9.xyz * p.w2;
        a7 += t9.xyz * p.w3;
        let t10 = fetch(down(y + 10i) + x);
        a0 += t10.xyz * p.w5;
        a1 += t10.xyz * p.w4;
        a2 += t10.xyz * p.w3;
        a3 += t10.xyz * p.w2;
        a4 += t10.xyz * p.w1;
        a5 += t10.xyz * p.w0;
        a6 += t10.xyz * p.w1;
        a7 += t10.xyz * p.w2;
        let t11 = fetch(down(y + 11i) + x);
        a1 += t11.xyz * p.w5;
        a2 += t11.xyz * p.w4;
        a3 += t11.xyz * p.w3;
        a4 += t11.xyz * p.w2;
        a5 += t11.xyz * p.w1;
        a6 += t11.xyz * p.w0;
        a7 += t11.xyz * p.w1;
        let t12 = fetch(down(y + 12i) + x);
        a2 += t12.xyz * p.w5;
        a3 += t12.xyz * p.w4;
        a4 += t12.xyz * p.w3;
        a5 += t12.xyz * p.w2;
        a6 += t12.xyz * p.w1;
        a7 += t12.xyz * p.w0;
        let t13 = fetch(down(y + 13i) + x);
        a3 += t13.xyz * p.w5;
        a4 += t13.xyz * p.w4;
        a5 += t13.xyz * p.w3;
        a6 += t13.xyz * p.w2;
        a7 += t13.xyz * p.w1;
        let t14 = fetch(down(y + 14i) + x);
        a4 += t14.xyz * p.w5;
        a5 += t14.xyz * p.w4;
        a6 += t14.xyz * p.w3;
        a7 += t14.xyz * p.w2;
        let t15 = fetch(down(y + 15i) + x);
        a5 += t15.xyz * p.w5;
        a6 += t15.xyz * p.w4;
        a7 += t15.xyz * p.w3;
        let t16 = fetch(down(y + 16i) + x);
        a6 += t16.xyz * p.w5;
        a7 += t16.xyz * p.w4;
        let t17 = fetch(down(y + 17i) + x);
        a7 += t17.xyz * p.w5;
        let place = row * 76u + column;
        middle[turn_middle(place + 0u)] = to_middle(rounded(a0), t5.w);
        middle[turn_middle(place + 76u)] = to_middle(rounded(a1), t6.w);
        middle[turn_middle(place + 152u)] = to_middle(rounded(a2), t7.w);
        middle[turn_middle(place + 228u)] = to_middle(rounded(a3), t8.w);
        middle[turn_middle(place + 304u)] = to_middle(rounded(a4), t9.w);
        middle[turn_middle(place + 380u)] = to_middle(rounded(a5), t10.w);
        middle[turn_middle(place + 456u)] = to_middle(rounded(a6), t11.w);
        middle[turn_middle(place + 532u)] = to_middle(rounded(a7), t12.w);
    }
    workgroupBarrier();
    {
        let item = lane;
        let row = item / 16u;
        let column = (item % 16u) * 4u;
        let g0 = row * 76u + column;
        let g1 = g0 + 4u;
        let g2 = g0 + 8u;
        let g3 = g0 + 12u;
        let turn0 = turn_middle(g0) - g0;
        let turn1 = turn_middle(g1) - g1;
        let turn2 = turn_middle(g2) - g2;
        let turn3 = turn_middle(g3) - g3;
        var b0 = vec3<u32>(0u);
        var b1 = vec3<u32>(0u);
        var b2 = vec3<u32>(0u);
        var b3 = vec3<u32>(0u);
        let t0 = from_middle(middle[g0 + (0u ^ turn0)]);
        b0 += t0.xyz * p.v5;
        let t1 = from_middle(middle[g0 + (1u ^ turn0)]);
        b0 += t1.xyz * p.v4;
        b1 += t1.xyz * p.v5;
        let t2 = from_middle(middle[g0 + (2u ^ turn0)]);
        b0 += t2.xyz * p.v3;
        b1 += t2.xyz * p.v4;
        b2 += t2.xyz * p.v5;
        let t3 = from_middle(middle[g0 + (3u ^ turn0)]);
        b0 += t3.xyz * p.v2;
        b1 += t3.xyz * p.v3;
        b2 += t3.xyz * p.v4;
        b3 += t3.xyz * p.v5;
        let t4 = from_middle(middle[g1 + (0u ^ turn1)]);
        b0 += t4.xyz * p.v1;
        b1 += t4.xyz * p.v2;
        b2 += t4.xyz * p.v3;
        b3 += t4.xyz * p.v4;
        let t5 = from_middle(middle[g1 + (1u ^ turn1)]);
        b0 += t5.xyz * p.v0;
        b1 += t5.xyz * p.v1;
        b2 += t5.xyz * p.v2;
        b3 += t5.xyz * p.v3;
        let t6 = from_middle(middle[g1 + (2u ^ turn1)]);
        b0 += t6.xyz * p.v1;
        b1 += t6.xyz * p.v0;
        b2 += t6.xyz * p.v1;
        b3 += t6.xyz * p.v2;
        let t7 = from_middle(middle[g1 + (3u ^ turn1)]);
        b0 += t7.xyz * p.v2;
        b1 += t7.xyz * p.v1;
        b2 += t7.xyz * p.v0;
        b3 += t7.xyz * p.v1;
        let t8 = from_middle(middle[g2 + (0u ^ turn2)]);
        b0 += t8.xyz * p.v3;
        b1 += t8.xyz * p.v2;
        b2 += t8.xyz * p.v1;
        b3 += t8.xyz * p.v0;
        let t9 = from_middle(middle[g2 + (1u ^ turn2)]);
        b0 += t9.xyz * p.v4;
        b1 += t9.xyz * p.v3;
        b2 += t9.xyz * p.v2;
        b3 += t9.xyz * p.v1;
        let t10 = from_middle(middle[g2 + (2u ^ turn2)]);
        b0 += t10.xyz * p.v5;
        b1 += t10.xyz * p.v4;
        b2 += t10.xyz * p.v3;
        b3 += t10.xyz * p.v2;
        let t11 = from_middle(middle[g2 + (3u ^ turn2)]);
        b1 += t11.xyz * p.v5;
        b2 += t11.xyz * p.v4;
        b3 += t11.xyz * p.v3;
        let t12 = from_middle(middle[g3 + (0u ^ turn3)]);
        b2 += t12.xyz * p.v5;
        b3 += t12.xyz * p.v4;
        let t13 = from_middle(middle[g3 + (1u ^ turn3)]);
        b3 += t13.xyz * p.v5;
        let place = row * 64u + column;
        let turn = turn_held(place) - place;
        held[place + (0u ^ turn)] = word((b0 >> vec3<u32>(22u)), t5.w);
        held[place + (1u ^ turn)] = word((b1 >> vec3<u32>(22u)), t6.w);
        held[place + (2u ^ turn)] = word((b2 >> vec3<u32>(22u)), t7.w);
        held[place + (3u ^ turn)] = word((b3 >> vec3<u32>(22u)), t8.w);
    }
    workgroupBarrier();
    {
        let item = lane;
        let x = left + i32(item % 64u);
        let y = top + i32(item / 64u) * 4i;
        if (x < p.width && y < p.height) {
            let column_0 = u32(clamp(x + 0i, 0i, p.width - 1i) - left + 0i);
            let row_0 = u32(clamp(y + 0i, 0i, p.height - 1i) - top + 0i) * 64u;
            let row_1 = u32(clamp(y + 1i, 0i, p.height - 1i) - top + 0i) * 64u;
            let row_2 = u32(clamp(y + 2i, 0i, p.height - 1i) - top + 0i) * 64u;
            let row_3 = u32(clamp(y + 3i, 0i, p.height - 1i) - top + 0i) * 64u;
            let n_0_0 = unpack_u8(held[turn_held(row_0 + column_0)]);
            let n_0_1 = unpack_u8(held[turn_held(row_1 + column_0)]);
            let n_0_2 = unpack_u8(held[turn_held(row_2 + column_0)]);
            let n_0_3 = unpack_u8(held[turn_held(row_3 + column_0)]);
            let e_0 = u32(y * p.width + x + 0i);
            let e_1 = u32(min(y + 1i, p.height - 1i) * p.width + x + 0i);
            let e_2 = u32(min(y + 2i, p.height - 1i) * p.width + x + 0i);
            let e_3 = u32(min(y + 3i, p.height - 1i) * p.width + x + 0i);
            let s1_0 = stage_1(n_0_0);
            let s1_1 = stage_1(n_0_1);
            let s1_2 = stage_1(n_0_2);
            let s1_3 = stage_1(n_0_3);
            output[e_0] = pack_u8(s1_0);
            if (y + 1i < p.height) { output[e_1] = pack_u8(s1_1); }
            if (y + 2i < p.height) { output[e_2] = pack_u8(s1_2); }
            if (y + 3i < p.height) { output[e_3] = pack_u8(s1_3); }
        }
    }
}
