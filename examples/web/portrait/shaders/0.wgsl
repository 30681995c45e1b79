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

fn kernel(img_m1_m1: vec4<i32>, img_0_m1: vec4<i32>, img_1_m1: vec4<i32>, img_m1_0: vec4<i32>, img_0_0: vec4<i32>, img_1_0: vec4<i32>, img_m1_1: vec4<i32>, img_0_1: vec4<i32>, img_1_1: vec4<i32>, y: i32, x: i32) -> vec4<i32> {
    let t1 = div_f32(-0.5f, p.param_sigma_space * p.param_sigma_space);
    let t2 = div_f32(-0.5f, (p.param_sigma_color * p.param_sigma_color) * 3.0f);
    let t3 = from_byte(img_0_0.x) * 0.003921569f;
    let t4 = from_byte(img_0_0.y) * 0.003921569f;
    let t5 = from_byte(img_0_0.z) * 0.003921569f;
    let t6 = from_byte(img_m1_m1.x) * 0.003921569f;
    let t7 = from_byte(img_m1_m1.y) * 0.003921569f;
    let t8 = from_byte(img_m1_m1.z) * 0.003921569f;
    let t9 = t6 - t3;
    let t10 = t7 - t4;
    let t11 = t8 - t5;
    let t12 = (2.0f * t1) + ((((t9 * t9) + (t10 * t10)) + (t11 * t11)) * t2);
    let t13 = exp_f32(t12);
    let t14 = from_byte(img_0_m1.x) * 0.003921569f;
    let t15 = from_byte(img_0_m1.y) * 0.003921569f;
    let t16 = from_byte(img_0_m1.z) * 0.003921569f;
    let t17 = t14 - t3;
    let t18 = t15 - t4;
    let t19 = t16 - t5;
    let t20 = (1.0f * t1) + ((((t17 * t17) + (t18 * t18)) + (t19 * t19)) * t2);
    let t21 = exp_f32(t20);
    let t22 = from_byte(img_1_m1.x) * 0.003921569f;
    let t23 = from_byte(img_1_m1.y) * 0.003921569f;
    let t24 = from_byte(img_1_m1.z) * 0.003921569f;
    let t25 = t22 - t3;
    let t26 = t23 - t4;
    let t27 = t24 - t5;
    let t28 = (2.0f * t1) + ((((t25 * t25) + (t26 * t26)) + (t27 * t27)) * t2);
    let t29 = exp_f32(t28);
    let t30 = (((t3 * hide_f32(0.0f)) + (t6 * t13)) + (t14 * t21)) + (t22 * t29);
    let t31 = (((t4 * hide_f32(0.0f)) + (t7 * t13)) + (t15 * t21)) + (t23 * t29);
    let t32 = (((t5 * hide_f32(0.0f)) + (t8 * t13)) + (t16 * t21)) + (t24 * t29);
    let t33 = from_byte(img_m1_0.x) * 0.003921569f;
    let t34 = from_byte(img_m1_0.y) * 0.003921569f;
    let t35 = from_byte(img_m1_0.z) * 0.003921569f;
    let t36 = t33 - t3;
    let t37 = t34 - t4;
    let t38 = t35 - t5;
    let t39 = (1.0f * t1) + ((((t36 * t36) + (t37 * t37)) + (t38 * t38)) * t2);
    let t40 = exp_f32(t39);
    let t41 = from_byte(img_0_0.x) * 0.003921569f;
    let t42 = from_byte(img_0_0.y) * 0.003921569f;
    let t43 = from_byte(img_0_0.z) * 0.003921569f;
    let t44 = t41 - t3;
    let t45 = t42 - t4;
    let t46 = t43 - t5;
    let t47 = (hide_f32(0.0f) * t1) + ((((t44 * t44) + (t45 * t45)) + (t46 * t46)) * t2);
    let t48 = exp_f32(t47);
    let t49 = from_byte(img_1_0.x) * 0.003921569f;
    let t50 = from_byte(img_1_0.y) * 0.003921569f;
    let t51 = from_byte(img_1_0.z) * 0.003921569f;
    let t52 = t49 - t3;
    let t53 = t50 - t4;
    let t54 = t51 - t5;
    let t55 = (1.0f * t1) + ((((t52 * t52) + (t53 * t53)) + (t54 * t54)) * t2);
    let t56 = exp_f32(t55);
    let t57 = from_byte(img_m1_1.x) * 0.003921569f;
    let t58 = from_byte(img_m1_1.y) * 0.003921569f;
    let t59 = from_byte(img_m1_1.z) * 0.003921569f;
    let t60 = t57 - t3;
    let t61 = t58 - t4;
    let t62 = t59 - t5;
    let t63 = (2.0f * t1) + ((((t60 * t60) + (t61 * t61)) + (t62 * t62)) * t2);
    let t64 = exp_f32(t63);
    let t65 = (((t30 + (t33 * t40)) + (t41 * t48)) + (t49 * t56)) + (t57 * t64);
    let t66 = (((t31 + (t34 * t40)) + (t42 * t48)) + (t50 * t56)) + (t58 * t64);
    let t67 = (((t32 + (t35 * t40)) + (t43 * t48)) + (t51 * t56)) + (t59 * t64);
    let t68 = ((((((0.0f + t13) + t21) + t29) + t40) + t48) + t56) + t64;
    let t69 = from_byte(img_0_1.x) * 0.003921569f;
    let t70 = from_byte(img_0_1.y) * 0.003921569f;
    let t71 = from_byte(img_0_1.z) * 0.003921569f;
    let t72 = t69 - t3;
    let t73 = t70 - t4;
    let t74 = t71 - t5;
    let t75 = (1.0f * t1) + ((((t72 * t72) + (t73 * t73)) + (t74 * t74)) * t2);
    let t76 = exp_f32(t75);
    let t77 = from_byte(img_1_1.x) * 0.003921569f;
    let t78 = from_byte(img_1_1.y) * 0.003921569f;
    let t79 = from_byte(img_1_1.z) * 0.003921569f;
    let t80 = t77 - t3;
    let t81 = t78 - t4;
    let t82 = t79 - t5;
    let t83 = (2.0f * t1) + ((((t80 * t80) + (t81 * t81)) + (t82 * t82)) * t2);
    let t84 = exp_f32(t83);
    let t85 = (t68 + t76) + t84;
    let t86 = byte_f32(div_f32((t65 + (t69 * t76)) + (t77 * t84), t85) * 255.0f);
    let t87 = byte_f32(div_f32((t66 + (t70 * t76)) + (t78 * t84), t85) * 255.0f);
    let t88 = byte_f32(div_f32((t67 + (t71 * t76)) + (t79 * t84), t85) * 255.0f);
    let t89 = from_byte(t86);
    let t90 = from_byte(t87);
    let t91 = from_byte(t88);
    let t92 = (t89 * 0.003921569f) * (1.0f + (0.3f * p.param_value));
    let t93 = (t90 * 0.003921569f) * (1.0f - (0.3f * p.param_tint));
    let t94 = (t91 * 0.003921569f) * (1.0f - (0.3f * p.param_value));
    let t95 = ((t92 * 0.299f) + (t93 * 0.587f)) + (t94 * 0.114f);
    let t96 = ((t89 * 0.001172549f) + (t90 * 0.0023019607f)) + (t91 * 0.00044705882f);
    let t97 = select(1.0f, div_f32(t96, t95), (t95 > 0.0f));
    let t98 = (from_byte(byte_f32((t92 * t97) * 255.0f)) * 0.003921569f) - 0.5f;
    let t99 = (from_byte(byte_f32((t93 * t97) * 255.0f)) * 0.003921569f) - 0.5f;
    let t100 = (from_byte(byte_f32((t94 * t97) * 255.0f)) * 0.003921569f) - 0.5f;
    let t101 = 1.0f + p.param_value_2;
    let t102 = from_byte(byte_f32(((t98 * t101) + 0.5f) * 255.0f)) * 0.003921569f;
    let t103 = from_byte(byte_f32(((t99 * t101) + 0.5f) * 255.0f)) * 0.003921569f;
    let t104 = from_byte(byte_f32(((t100 * t101) + 0.5f) * 255.0f)) * 0.003921569f;
    let t105 = div_f32(f32(x) + 0.5f, f32(p.out_dim_1)) - 0.5f;
    let t106 = div_f32(f32(y) + 0.5f, f32(p.out_dim_0)) - 0.5f;
    let t107 = p.param_radius_2 - p.param_softness;
    let t108 = div_f32((sqrt((t105 * t105) + (t106 * t106)) * 1.4142135f) - t107, (p.param_radius_2 + p.param_softness) - t107);
    let t109 = select(t108, 0.0f, t108 < hide_f32(0.0f));
    let t110 = select(t109, 1.0f, t109 > hide_f32(1.0f));
    let t111 = 1.0f - (p.param_amount * ((t110 * t110) * (3.0f - (2.0f * t110))));
    return vec4<i32>(byte_f32((t102 * t111) * 255.0f), byte_f32((t103 * t111) * 255.0f), byte_f32((t104 * t111) * 255.0f), img_0_0.w);
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
    let img_column_3 = u32(clamp(i32(column) - 1i, 0i, p.img_size_1 - 1i));
    let img_column_4 = u32(clamp(i32(column) + 0i, 0i, p.img_size_1 - 1i));
    let img_column_5 = u32(clamp(i32(column) + 1i, 0i, p.img_size_1 - 1i));
    let img_row_3 = u32(clamp(i32(row) - 1i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_4 = u32(clamp(i32(row) + 0i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_5 = u32(clamp(i32(row) + 1i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_6 = u32(clamp(i32(row) + 2i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_7 = u32(clamp(i32(row) + 3i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_row_8 = u32(clamp(i32(row) + 4i, 0i, p.img_size_0 - 1i) * p.img_size_1);
    let img_at = img_row_3 + img_column_3;
    let img_here = unpack_u8(in_img[img_at]);
    let img_at_2 = img_row_3 + img_column_4;
    let img_here_2 = unpack_u8(in_img[img_at_2]);
    let img_at_3 = img_row_3 + img_column_5;
    let img_here_3 = unpack_u8(in_img[img_at_3]);
    let img_at_4 = img_row_4 + img_column_3;
    let img_here_4 = unpack_u8(in_img[img_at_4]);
    let img_at_5 = img_row_4 + img_column_4;
    let img_here_5 = unpack_u8(in_img[img_at_5]);
    let img_at_6 = img_row_4 + img_column_5;
    let img_here_6 = unpack_u8(in_img[img_at_6]);
    let img_at_7 = img_row_5 + img_column_3;
    let img_here_7 = unpack_u8(in_img[img_at_7]);
    let img_at_8 = img_row_5 + img_column_4;
    let img_here_8 = unpack_u8(in_img[img_at_8]);
    let img_at_9 = img_row_5 + img_column_5;
    let img_here_9 = unpack_u8(in_img[img_at_9]);
    let img_at_10 = img_row_6 + img_column_3;
    let img_here_10 = unpack_u8(in_img[img_at_10]);
    let img_at_11 = img_row_6 + img_column_4;
    let img_here_11 = unpack_u8(in_img[img_at_11]);
    let img_at_12 = img_row_6 + img_column_5;
    let img_here_12 = unpack_u8(in_img[img_at_12]);
    let img_at_13 = img_row_7 + img_column_3;
    let img_here_13 = unpack_u8(in_img[img_at_13]);
    let img_at_14 = img_row_7 + img_column_4;
    let img_here_14 = unpack_u8(in_img[img_at_14]);
    let img_at_15 = img_row_7 + img_column_5;
    let img_here_15 = unpack_u8(in_img[img_at_15]);
    let img_at_16 = img_row_8 + img_column_3;
    let img_here_16 = unpack_u8(in_img[img_at_16]);
    let img_at_17 = img_row_8 + img_column_4;
    let img_here_17 = unpack_u8(in_img[img_at_17]);
    let img_at_18 = img_row_8 + img_column_5;
    let img_here_18 = unpack_u8(in_img[img_at_18]);
    let r0 = kernel(img_here, img_here_2, img_here_3, img_here_4, img_here_5, img_here_6, img_here_7, img_here_8, img_here_9, i32(row), i32(column));
    let r1 = kernel(img_here_4, img_here_5, img_here_6, img_here_7, img_here_8, img_here_9, img_here_10, img_here_11, img_here_12, i32(min(row + 1u, p.height - 1u)), i32(column));
    let r2 = kernel(img_here_7, img_here_8, img_here_9, img_here_10, img_here_11, img_here_12, img_here_13, img_here_14, img_here_15, i32(min(row + 2u, p.height - 1u)), i32(column));
    let r3 = kernel(img_here_10, img_here_11, img_here_12, img_here_13, img_here_14, img_here_15, img_here_16, img_here_17, img_here_18, i32(min(row + 3u, p.height - 1u)), i32(column));
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
