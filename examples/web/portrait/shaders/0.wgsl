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
    return i32(min(select(0.0f, x, x > 0.0f), 255.0f) + 0.5f);
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

// The upper half of a number's digits. Products of halves are exact, fused or not.
fn upper_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// Rounded correctly: what is left of a after the driver's quotient corrects it.
fn exact_div_f32(a: f32, b: f32) -> f32 {
    let q = hide_f32(div_f32(a, b));
    let qh = upper_f32(q);
    let ql = q - qh;
    let bh = upper_f32(b);
    let bl = b - bh;
    let rest = ((a - qh * bh) - qh * bl - ql * bh) - ql * bl;
    let ordinary = abs(q) > 1e-25f && abs(q) < 1e25f && abs(b) > 1e-10f && abs(b) < 1e10f;
    return select(q, q + rest / b, ordinary);
}

fn exact_sqrt_f32(x: f32) -> f32 {
    let s = hide_f32(sqrt(x));
    let high = upper_f32(s);
    let low = s - high;
    let rest = ((x - high * high) - 2.0f * (high * low)) - low * low;
    return select(s, s + rest * (0.5f / s), x > 1e-20f && x < 1e20f);
}

// The exponential of programs of bytes: lang/exact/exponential.py, operation by operation.
fn quick_exp_f32(x: f32) -> f32 {
    let t = hide_f32(min(max(x, -87.0f), 88.0f) * 1.4426950408889634f);
    let shifted = hide_f32(t + 12582912.0f);
    let rest = t - (shifted - 12582912.0f);
    var total = hide_f32(rest * 0.009582853183706542f) + 0.05590642514458512f;
    total = hide_f32(total * rest) + 0.2402409861165368f;
    total = hide_f32(total * rest) + 0.6931241933554522f;
    total = hide_f32(total * rest) + 1.0f;
    return total * bitcast<f32>((bitcast<u32>(shifted) << 23u) + 0x3f800000u);
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
    let t2 = hide_f32(p.param_sigma_color * p.param_sigma_color) * 3.0f;
    let t3 = exact_div_f32(-0.5f, t2);
    let t4 = read_img(x, y, 0i, 0i);
    let t5 = f32(t4.x);
    let t6 = f32(t4.y);
    let t7 = f32(t4.z);
    total = hide_f32(t5 * hide_f32(0.0f));
    total_2 = hide_f32(t6 * hide_f32(0.0f));
    total_3 = hide_f32(t7 * hide_f32(0.0f));
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
            let t19 = (hide_f32(t16 * t16) + hide_f32(t17 * t17)) + hide_f32(t18 * t18);
            let t20 = hide_f32(f32((dx * dx) + (dy * dy)) * t1) + hide_f32(t19 * hide_f32(t3 * 1.53787e-05f));
            let t21 = quick_exp_f32(t20);
            let t22 = total_2 + hide_f32(t14 * t21);
            let t23 = total_3 + hide_f32(t15 * t21);
            total = total + hide_f32(t13 * t21);
            total_2 = t22;
            total_3 = t23;
            weights = weights + t21;
        }
    }
    let t24 = weights;
    let t25 = byte_exact(exact_div_f32(total, t24));
    let t26 = byte_exact(exact_div_f32(total_2, t24));
    let t27 = byte_exact(exact_div_f32(total_3, t24));
    let t28 = hide_f32(f32(t25) * (1.0f + hide_f32(0.3f * p.param_value)));
    let t29 = hide_f32(f32(t26) * (1.0f - hide_f32(0.3f * p.param_tint)));
    let t30 = hide_f32(f32(t27) * (1.0f - hide_f32(0.3f * p.param_value)));
    let t31 = (hide_f32(t28 * 0.299f) + hide_f32(t29 * 0.587f)) + hide_f32(t30 * 0.114f);
    let t32 = f32(((t25 * 4899i) + (t26 * 9617i)) + (t27 * 1868i)) * 6.1035156e-05f;
    let t33 = select(1.0f, exact_div_f32(t32, t31), (t31 > 0.0f));
    let t34 = p.param_bias_0 + (byte_exact(hide_f32(t28 * t33)) * p.param_weight_0_0);
    let t35 = p.param_bias_0 + (byte_exact(hide_f32(t29 * t33)) * p.param_weight_0_0);
    let t36 = p.param_bias_0 + (byte_exact(hide_f32(t30 * t33)) * p.param_weight_0_0);
    let t37 = hide_f32((f32(x) + 0.5f) * exact_div_f32(1.0f, f32(p.out_dim_1)));
    let t38 = t37 - 0.5f;
    let t39 = hide_f32((f32(y) + 0.5f) * exact_div_f32(1.0f, f32(p.out_dim_0)));
    let t40 = t39 - 0.5f;
    let t41 = hide_f32(exact_sqrt_f32(hide_f32(t38 * t38) + hide_f32(t40 * t40)) * 1.4142135f);
    let t42 = p.param_radius_2 - p.param_softness;
    let t43 = exact_div_f32(1.0f, (p.param_radius_2 + p.param_softness) - t42);
    let t44 = (t41 - t42) * t43;
    let t45 = select(t44, 0.0f, t44 < hide_f32(0.0f));
    let t46 = select(t45, 1.0f, t45 > hide_f32(1.0f));
    let t47 = hide_f32(hide_f32(t46 * t46) * (3.0f - hide_f32(2.0f * t46)));
    let t48 = 1.0f - hide_f32(p.param_amount * t47);
    let t49 = hide_f32((f32(min(max((t34 >> (u32(p.param_bits) & 31u)), 0i), 255i)) * t48));
    let t50 = hide_f32((f32(min(max((t35 >> (u32(p.param_bits) & 31u)), 0i), 255i)) * t48));
    let t51 = hide_f32((f32(min(max((t36 >> (u32(p.param_bits) & 31u)), 0i), 255i)) * t48));
    return vec4<i32>(byte_exact(t49), byte_exact(t50), byte_exact(t51), t4.w);
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
