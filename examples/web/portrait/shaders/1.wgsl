// denoise+temperature+contrast+vignette: each invocation computes 4 pixels of a column

struct Block {
    out_dim_1: i32,
    out_dim_0: i32,
    width: u32,
    height: u32,
    tiles_across: u32,
    img_size_1: i32,
    img_size_0: i32,
    zero: u32,
    param_radius: i32,
    param_sigma_space: f32,
    param_sigma_color: f32,
    param_value: f32,
    param_tint: f32,
    param_value_2: f32,
    param_amount: f32,
    param_radius_2: f32,
    param_softness: f32,
}

@group(0) @binding(0) var<storage, read> in_img: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> p: Block;

// Return the same number, hidden from the compiler (p.zero is 0): some compilers regroup sums and
// products, which is wrong where rounding or infinities matter.
fn hide_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ p.zero);
}

fn unpack_u8(word: u32) -> vec4<i32> {
    return vec4<i32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

// Conversions run at a quarter of the speed of additions on many GPUs. Instead the byte is placed
// in the mantissa of 256.0. Drivers may distribute a following product over the difference, which
// loses almost no precision with a number this small.
fn from_byte(byte: i32) -> f32 {
    return bitcast<f32>((u32(byte) << 15u) | 0x43800000u) - 256.0f;
}

// Saturate and round, halves up: the factor adds one unit in the last place, so that the sum, which
// rounds halves to even, rounds up. (Some drivers would merge two sums.) NaN gives 0.
fn byte_f32(x: f32) -> i32 {
    let inside = min(select(0.0f, x, x > 0.0f), 255.0f);
    return i32(bitcast<u32>(inside * 1.00000011920929f + 8388608.0f) & 255u);
}

fn pack_u8(bytes: vec4<i32>) -> u32 {
    let b = vec4<u32>(bytes) << vec4<u32>(0u, 8u, 16u, 24u);
    return (b.x | b.y) | (b.z | b.w);
}

// Division is only guaranteed to be accurate if the divisor is neither very large nor very small.
fn div_f32(a: f32, b: f32) -> f32 {
    let size = abs(b);
    let k = select(select(1.0f, 1.8446744e19f, size < 1e-30f), 5.4210109e-20f, size > 1e30f);
    return (a / (b * k)) * k;
}

// exp(r) for |r| <= ln(2) / 2
fn exp_core_f32(r: f32) -> f32 {
    var q = 1.9875691500e-4f;
    q = q * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    return ((q * r) * r + r) + 1.0f;
}

// Results below the smallest normal number are 0. Comparisons keep NaN, which makes the result NaN:
// where the limit is not hidden, Mesa takes them for its own min and max, which drop it.
fn exp_f32(x: f32) -> f32 {
    let below = x < hide_f32(-87.3365f);
    let above = select(x, -87.3365f, below);
    let y = select(above, 89.0f, above > hide_f32(89.0f));
    // The sum with 1.5 * 2^23 rounds to an integer, in the low bits. A conversion would be slower.
    let sum = max(y * 1.44269504f + 12582912.0f, 12582787.0f);
    let bits = bitcast<u32>(sum) ^ p.zero;
    let n = bitcast<f32>(bits) - 12582912.0f;
    let r = hide_f32(y - n * 0.693359375f) - n * -2.12194440e-4f;
    // 2^(n - 1), because there is no 2^128; n is at least -125.
    let half = select(bitcast<f32>((bits << 23u) + 0x3f000000u), 0.0f, below);
    return (exp_core_f32(r) * half) * 2.0f;
}

fn kernel(img_0_0: vec4<i32>, y: i32, x: i32) -> vec4<i32> {
    let t1 = div_f32(-0.5f, (p.param_sigma_color * p.param_sigma_color) * 3.0f);
    let t2 = from_byte(img_0_0.x) * 0.003921569f;
    let t3 = from_byte(img_0_0.y) * 0.003921569f;
    let t4 = from_byte(img_0_0.z) * 0.003921569f;
    let t5 = from_byte(img_0_0.x) * 0.003921569f;
    let t6 = from_byte(img_0_0.y) * 0.003921569f;
    let t7 = from_byte(img_0_0.z) * 0.003921569f;
    let t8 = t5 - t2;
    let t9 = t6 - t3;
    let t10 = t7 - t4;
    let t11 = hide_f32(0.0f) * div_f32(-0.5f, p.param_sigma_space * p.param_sigma_space);
    let t12 = exp_f32(t11 + ((((t8 * t8) + (t9 * t9)) + (t10 * t10)) * t1));
    let t13 = 0.0f + t12;
    let t14 = byte_f32(div_f32((t2 * hide_f32(0.0f)) + (t5 * t12), t13) * 255.0f);
    let t15 = byte_f32(div_f32((t3 * hide_f32(0.0f)) + (t6 * t12), t13) * 255.0f);
    let t16 = byte_f32(div_f32((t4 * hide_f32(0.0f)) + (t7 * t12), t13) * 255.0f);
    let t17 = from_byte(t14);
    let t18 = from_byte(t15);
    let t19 = from_byte(t16);
    let t20 = (t17 * 0.003921569f) * (1.0f + (0.3f * p.param_value));
    let t21 = (t18 * 0.003921569f) * (1.0f - (0.3f * p.param_tint));
    let t22 = (t19 * 0.003921569f) * (1.0f - (0.3f * p.param_value));
    let t23 = ((t20 * 0.299f) + (t21 * 0.587f)) + (t22 * 0.114f);
    let t24 = ((t17 * 0.001172549f) + (t18 * 0.0023019607f)) + (t19 * 0.00044705882f);
    let t25 = select(1.0f, div_f32(t24, t23), (t23 > 0.0f));
    let t26 = (from_byte(byte_f32((t20 * t25) * 255.0f)) * 0.003921569f) - 0.5f;
    let t27 = (from_byte(byte_f32((t21 * t25) * 255.0f)) * 0.003921569f) - 0.5f;
    let t28 = (from_byte(byte_f32((t22 * t25) * 255.0f)) * 0.003921569f) - 0.5f;
    let t29 = 1.0f + p.param_value_2;
    let t30 = from_byte(byte_f32(((t26 * t29) + 0.5f) * 255.0f)) * 0.003921569f;
    let t31 = from_byte(byte_f32(((t27 * t29) + 0.5f) * 255.0f)) * 0.003921569f;
    let t32 = from_byte(byte_f32(((t28 * t29) + 0.5f) * 255.0f)) * 0.003921569f;
    let t33 = div_f32(f32(x) + 0.5f, f32(p.out_dim_1)) - 0.5f;
    let t34 = div_f32(f32(y) + 0.5f, f32(p.out_dim_0)) - 0.5f;
    let t35 = p.param_radius_2 - p.param_softness;
    let t36 = div_f32((sqrt((t33 * t33) + (t34 * t34)) * 1.4142135f) - t35, (p.param_radius_2 + p.param_softness) - t35);
    let t37 = select(t36, 0.0f, t36 < hide_f32(0.0f));
    let t38 = select(t37, 1.0f, t37 > hide_f32(1.0f));
    let t39 = 1.0f - (p.param_amount * ((t38 * t38) * (3.0f - (2.0f * t38))));
    return vec4<i32>(byte_f32((t30 * t39) * 255.0f), byte_f32((t31 * t39) * 255.0f), byte_f32((t32 * t39) * 255.0f), img_0_0.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * groups.x + group.x;
    let column = (tile % p.tiles_across) * 32u + lane % 32u;
    let strip = (tile / p.tiles_across) * 8u + lane / 32u;
    let row = strip * 4u;
    if (column >= p.width || row >= p.height) { return; }
    let e0 = row * p.width + column;
    let e1 = min(row + 1u, p.height - 1u) * p.width + column;
    let e2 = min(row + 2u, p.height - 1u) * p.width + column;
    let e3 = min(row + 3u, p.height - 1u) * p.width + column;
    let img_column_4 = u32(clamp(i32(column) + 0i, 0i, p.img_size_1 - 1i));
    let img_row_4 = u32(clamp(i32(row) + 0i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_5 = u32(clamp(i32(row) + 1i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_6 = u32(clamp(i32(row) + 2i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_7 = u32(clamp(i32(row) + 3i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_at = img_row_4 + img_column_4;
    let img_here = unpack_u8(in_img[img_at]);
    let img_at_2 = img_row_5 + img_column_4;
    let img_here_2 = unpack_u8(in_img[img_at_2]);
    let img_at_3 = img_row_6 + img_column_4;
    let img_here_3 = unpack_u8(in_img[img_at_3]);
    let img_at_4 = img_row_7 + img_column_4;
    let img_here_4 = unpack_u8(in_img[img_at_4]);
    let r0 = kernel(img_here, i32(row), i32(column));
    let r1 = kernel(img_here_2, i32(min(row + 1u, p.height - 1u)), i32(column));
    let r2 = kernel(img_here_3, i32(min(row + 2u, p.height - 1u)), i32(column));
    let r3 = kernel(img_here_4, i32(min(row + 3u, p.height - 1u)), i32(column));
    {
        output[e0] = pack_u8(r0);
    }
    if (row + 1u < p.height) {
        output[e1] = pack_u8(r1);
    }
    if (row + 2u < p.height) {
        output[e2] = pack_u8(r2);
    }
    if (row + 3u < p.height) {
        output[e3] = pack_u8(r3);
    }
}
