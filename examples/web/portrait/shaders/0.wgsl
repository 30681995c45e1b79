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

// exp(y) / 2^n for the integer n next to y / ln(2)
fn exp_rest_f32(y: f32, n: f32) -> f32 {
    return exp_core_f32(hide_f32(y - n * 0.693359375f) - n * -2.12194440e-4f);
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
    // 2^(n - 1), because there is no 2^128; n is at least -125. Doubling comes first: some GPUs make
    // numbers below the smallest normal one 0, also between two steps.
    let half = select(bitcast<f32>((bits << 23u) + 0x3f000000u), 0.0f, below);
    return (exp_rest_f32(y, n) * 2.0f) * half;
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
    let t1 = div_f32(-0.5f, p.param_sigma_space * p.param_sigma_space);
    let t2 = div_f32(-0.5f, (p.param_sigma_color * p.param_sigma_color) * 3.0f);
    let t3 = read_img(x, y, 0i, 0i);
    let t4 = from_byte(t3.x) * 0.003921569f;
    let t5 = from_byte(t3.y) * 0.003921569f;
    let t6 = from_byte(t3.z) * 0.003921569f;
    total = t4 * hide_f32(0.0f);
    total_2 = t5 * hide_f32(0.0f);
    total_3 = t6 * hide_f32(0.0f);
    weights = 0.0f;
    let t7 = -p.param_radius;
    let t8 = p.param_radius + 1i;
    for (var dy = t7; dy < t8; dy += 1i) {
        let t9 = -p.param_radius;
        let t10 = p.param_radius + 1i;
        for (var dx = t9; dx < t10; dx += 1i) {
            let t11 = read_img(x, y, dx, dy);
            let t12 = from_byte(t11.x) * 0.003921569f;
            let t13 = from_byte(t11.y) * 0.003921569f;
            let t14 = from_byte(t11.z) * 0.003921569f;
            let t15 = t12 - t4;
            let t16 = t13 - t5;
            let t17 = t14 - t6;
            let t18 = (f32((dx * dx) + (dy * dy)) * t1) + ((((t15 * t15) + (t16 * t16)) + (t17 * t17)) * t2);
            let t19 = exp_f32(t18);
            let t20 = total_2 + (t13 * t19);
            let t21 = total_3 + (t14 * t19);
            total = total + (t12 * t19);
            total_2 = t20;
            total_3 = t21;
            weights = weights + t19;
        }
    }
    let t22 = weights;
    let t23 = from_byte(byte_f32(div_f32(total, t22) * 255.0f));
    let t24 = from_byte(byte_f32(div_f32(total_2, t22) * 255.0f));
    let t25 = from_byte(byte_f32(div_f32(total_3, t22) * 255.0f));
    let t26 = (t23 * 0.003921569f) * (1.0f + (0.3f * p.param_value));
    let t27 = (t24 * 0.003921569f) * (1.0f - (0.3f * p.param_tint));
    let t28 = (t25 * 0.003921569f) * (1.0f - (0.3f * p.param_value));
    let t29 = ((t26 * 0.299f) + (t27 * 0.587f)) + (t28 * 0.114f);
    let t30 = ((t23 * 0.001172549f) + (t24 * 0.0023019607f)) + (t25 * 0.00044705882f);
    let t31 = select(1.0f, div_f32(t30, t29), (t29 > 0.0f));
    let t32 = (from_byte(byte_f32((t26 * t31) * 255.0f)) * 0.003921569f) - 0.5f;
    let t33 = (from_byte(byte_f32((t27 * t31) * 255.0f)) * 0.003921569f) - 0.5f;
    let t34 = (from_byte(byte_f32((t28 * t31) * 255.0f)) * 0.003921569f) - 0.5f;
    let t35 = 1.0f + p.param_value_2;
    let t36 = from_byte(byte_f32(((t32 * t35) + 0.5f) * 255.0f)) * 0.003921569f;
    let t37 = from_byte(byte_f32(((t33 * t35) + 0.5f) * 255.0f)) * 0.003921569f;
    let t38 = from_byte(byte_f32(((t34 * t35) + 0.5f) * 255.0f)) * 0.003921569f;
    let t39 = div_f32(f32(x) + 0.5f, f32(p.out_dim_1)) - 0.5f;
    let t40 = div_f32(f32(y) + 0.5f, f32(p.out_dim_0)) - 0.5f;
    let t41 = p.param_radius_2 - p.param_softness;
    let t42 = div_f32((sqrt((t39 * t39) + (t40 * t40)) * 1.4142135f) - t41, (p.param_radius_2 + p.param_softness) - t41);
    let t43 = select(t42, 0.0f, t42 < hide_f32(0.0f));
    let t44 = select(t43, 1.0f, t43 > hide_f32(1.0f));
    let t45 = 1.0f - (p.param_amount * ((t44 * t44) * (3.0f - (2.0f * t44))));
    return vec4<i32>(byte_f32((t36 * t45) * 255.0f), byte_f32((t37 * t45) * 255.0f), byte_f32((t38 * t45) * 255.0f), t3.w);
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
