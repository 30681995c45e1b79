// denoise+temperature+contrast+vignette: each invocation computes one pixel, in tiles 32 wide

struct Block {
    img_size_1: i32,
    img_size_0: i32,
    out_dim_1: i32,
    out_dim_0: i32,
    width: u32,
    height: u32,
    tiles_across: u32,
    zero: u32,
    param_radius: i32,
    param_sigma_space: f32,
    param_sigma_color: f32,
    param_value: f32,
    param_tint: f32,
    param_value_2: f32,
    param_weight_0_0: i32,
    param_bias_0: i32,
    param_bits: i32,
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

fn exact_sqrt_f32(x: f32) -> f32 {
    let inverse = inverseSqrt(x);
    let s = product_f32(x, inverse);
    let high = upper_f32(s);
    let low = s - high;
    let rest = ((x - high * high) - 2.0f * (high * low)) - low * low;
    return select(sqrt(x), s + rest * (0.5f * inverse), x > 1e-20f && x < 1e20f);
}

fn read_img(x: i32, y: i32, dx: i32, dy: i32) -> vec4<i32> {
    let column = u32(x + clamp(dx, -x, p.img_size_1 - 1i - x));
    let row = u32(y + clamp(dy, -y, p.img_size_0 - 1i - y));
    let i = row * u32(p.img_size_1) + column;
    return unpack_u8(in_img[i]);
}

fn kernel(y: i32, x: i32) -> vec4<i32> {
    var total: f32;
    var total_2: f32;
    var total_3: f32;
    var weights: f32;
    let t1 = exact_div_f32(-0.5f, p.param_sigma_space * p.param_sigma_space);
    let t2 = product_f32(p.param_sigma_color, p.param_sigma_color) * 3.0f;
    let t3 = exact_div_f32(-0.5f, t2);
    let t4 = read_img(x, y, 0i, 0i);
    let t5 = f32(t4.x);
    let t6 = f32(t4.y);
    let t7 = f32(t4.z);
    total = product_f32(t5, hide_f32(0.0f));
    total_2 = product_f32(t6, hide_f32(0.0f));
    total_3 = product_f32(t7, hide_f32(0.0f));
    weights = 0.0f;
    let t8 = -p.param_radius;
    let t9 = p.param_radius + 1i;
    for (var dy = t8; dy < t9; dy += 1i) {
        let t10 = -p.param_radius;
        let t11 = p.param_radius + 1i;
        for (var dx = t10; dx < t11; dx += 1i) {
            let t12 = read_img(x, y, dx, dy);
            let t13 = f32(t12.x);
            let t14 = f32(t12.y);
            let t15 = f32(t12.z);
            let t16 = t13 - t5;
            let t17 = t14 - t6;
            let t18 = t15 - t7;
            let t19 = product_f32(f32((dx * dx) + (dy * dy)), product_f32(t1, 1.442695f));
            let t20 = product_f32(((t16 * t16) + (t17 * t17)) + (t18 * t18), product_f32(product_f32(t3, 1.53787e-05f), 1.442695f));
            let t21 = t19 + 2110.0f;
            let t22 = select(2190.0f, t21, (t21 < 2190.0f)) + t20;
            let t23 = select(2048.0f, t22, (t22 > 2048.0f));
            let t24 = bitcast<i32>(t23) & -4096i;
            let t25 = t23 - bitcast<f32>(t24);
            let t26 = product_f32(t25, (t25 * 1.6709048e-20f) + 4.9365897e-20f) + 1.5072831e-19f;
            let t27 = bitcast<i32>(product_f32(t25, t26) + 2.1684043e-19f) + (t24 << 11u);
            let t28 = bitcast<f32>(t27 & -256i);
            let t29 = total_2 + (t14 * t28);
            let t30 = total_3 + (t15 * t28);
            total = total + (t13 * t28);
            total_2 = t29;
            total_3 = t30;
            weights = weights + t28;
        }
    }
    let t31 = weights;
    let t32 = byte_exact(exact_div_f32(total, t31));
    let t33 = byte_exact(exact_div_f32(total_2, t31));
    let t34 = byte_exact(exact_div_f32(total_3, t31));
    let t35 = product_f32(f32(t32), 1.0f + product_f32(0.3f, p.param_value));
    let t36 = product_f32(f32(t33), 1.0f - product_f32(0.3f, p.param_tint));
    let t37 = product_f32(f32(t34), 1.0f - product_f32(0.3f, p.param_value));
    let t38 = (product_f32(t35, 0.299f) + product_f32(t36, 0.587f)) + product_f32(t37, 0.114f);
    let t39 = ((f32(t32) * 0.29899597f) + (f32(t33) * 0.5870056f)) + (f32(t34) * 0.11399841f);
    let t40 = select(1.0f, exact_div_f32(t39, t38), (t38 > 0.0f));
    let t41 = p.param_bias_0 + (byte_exact(product_f32(t35, t40)) * p.param_weight_0_0);
    let t42 = p.param_bias_0 + (byte_exact(product_f32(t36, t40)) * p.param_weight_0_0);
    let t43 = p.param_bias_0 + (byte_exact(product_f32(t37, t40)) * p.param_weight_0_0);
    let t44 = product_f32(f32(x) + 0.5f, exact_div_f32(1.0f, f32(p.out_dim_1)));
    let t45 = t44 - 0.5f;
    let t46 = product_f32(f32(y) + 0.5f, exact_div_f32(1.0f, f32(p.out_dim_0)));
    let t47 = t46 - 0.5f;
    let t48 = exact_sqrt_f32(product_f32(t45, t45) + product_f32(t47, t47));
    let t49 = p.param_radius_2 - p.param_softness;
    let t50 = exact_div_f32(1.0f, (p.param_radius_2 + p.param_softness) - t49);
    let t51 = (product_f32(t48, 1.4142135f) - t49) * t50;
    let t52 = select(0.0f, t51, (t51 > 0.0f));
    let t53 = select(1.0f, t52, (t52 < 1.0f));
    let t54 = product_f32(p.param_amount, product_f32(product_f32(t53, t53), 3.0f - (2.0f * t53)));
    let t55 = 1.0f - t54;
    let t56 = product_f32(f32(min(max((t41 >> (u32(p.param_bits) & 31u)), 0i), 255i)), t55);
    let t57 = product_f32(f32(min(max((t42 >> (u32(p.param_bits) & 31u)), 0i), 255i)), t55);
    let t58 = product_f32(f32(min(max((t43 >> (u32(p.param_bits) & 31u)), 0i), 255i)), t55);
    return vec4<i32>(byte_exact(t56), byte_exact(t57), byte_exact(t58), t4.w);
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
