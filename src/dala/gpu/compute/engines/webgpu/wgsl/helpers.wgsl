// Functions that generated kernels call by name; a shader contains those that it uses. They exist
// because WGSL leaves some results open (NaN, division by zero, conversions out of range, 64-bit
// functions), and because drivers differ in the accuracy of others. A name is the operation and its
// type: s32 is i32, s64 is i64. Where a function of f64 differs in its types alone, it is derived.

// bits ---------------------------------------------------------------------------------------------

// Infinities and NaN. No compiler may fold them (p.zero is 0): WGSL forbids such constants, and
// drivers fold what is computed from them with other results.
fn bits_f32(bits: u32) -> f32 {
    return bitcast<f32>(bits ^ p.zero);
}

fn bits_f64(bits: u64) -> f64 {
    return bitcast<f64>(bits ^ u64(p.zero));
}

// Return the same number, hidden from the compiler (p.zero is 0): some compilers regroup sums and
// products, which is wrong where rounding or infinities matter.
fn hide_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ p.zero);
}

fn hide_f64(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) ^ u64(p.zero));
}

// NVIDIA's compiler gets some comparisons of i64 with constants wrong, as in (x + x) > 3 and
// (x & 1) == 0 between other branches: it was seen in 6 of 10,081 random programs.
fn hide_s64(x: i64) -> i64 {
    return x + i64(p.zero);
}

// Compilers may evaluate x != x as false, but not a comparison of bits.
fn isnan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn isnan_f64(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

fn min_f32(a: f32, b: f32) -> f32 {
    return select(a, b, b < a || isnan_f32(b));
}

fn max_f32(a: f32, b: f32) -> f32 {
    return select(a, b, a < b || isnan_f32(b));
}

// Round, halves to even. Mesa's llvmpipe rounds some halves of f64 down where the processor has no
// AVX-512. From 2^52 on all f64 are whole; the sum with 2^52 rounds exactly as asked for.
fn round_f64(x: f64) -> f64 {
    let bits = bitcast<u64>(x);
    let size = bits & 0x7ffffffffffffffflu;
    if (size >= 0x4330000000000000lu) { return x; }
    let whole = hide_f64(bitcast<f64>(size) + 4503599627370496.0lf) - 4503599627370496.0lf;
    return bitcast<f64>(bitcast<u64>(whole) | (bits ^ size));
}

// bytes --------------------------------------------------------------------------------------------

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

// The same by its definition, without an error for numbers next to a half.
fn byte_exact(x: f32) -> i32 {
    return i32(u32(min(select(0.0f, x, x > 0.0f) + 0.5f, 255.5f)));
}

// The same for numbers that are not NaN.
fn byte_exact_of_number(x: f32) -> i32 {
    return i32(u32(clamp(x + 0.5f, 0.0f, 255.5f)));
}

// The same for numbers that are not NaN, and for 0 to 1.
fn byte_of_number(x: f32) -> i32 {
    return i32(bitcast<u32>(clamp(x, 0.0f, 255.0f) * 1.00000011920929f + 8388608.0f) & 255u);
}

fn byte_of_unit(x: f32) -> i32 {
    return i32(bitcast<u32>(clamp(x, 0.0f, 1.0f) * 255.000030517578f + 8388608.0f) & 255u);
}

fn pack_u8(bytes: vec4<i32>) -> u32 {
    let b = vec4<u32>(bytes);
    return (b.x + (b.y << 8u)) + ((b.z << 16u) + (b.w << 24u));
}

// integers -----------------------------------------------------------------------------------------

fn idiv_s32(a: i32, b: i32) -> i32 {
    if (b == 0i) { return 0i; }
    if (b == -1i) { return -a; }
    let q = a / b;
    let r = a - q * b;
    return select(q, q - 1i, r != 0i && (r ^ b) < 0i);
}

fn mod_s32(a: i32, b: i32) -> i32 {
    if (b == 0i || b == -1i) { return 0i; }
    let r = a - (a / b) * b;
    return select(r, r + b, r != 0i && (r ^ b) < 0i);
}

fn idiv_u32(a: u32, b: u32) -> u32 {
    if (b == 0u) { return 0u; }
    return a / b;
}

fn mod_u32(a: u32, b: u32) -> u32 {
    if (b == 0u) { return 0u; }
    return a % b;
}

fn idiv_s64(a: i64, b: i64) -> i64 {
    let zero = hide_s64(0li);
    if (b == zero) { return 0li; }
    if (b == hide_s64(-1li)) { return -a; }
    let q = a / b;
    let r = a - q * b;
    return select(q, q - 1li, r != zero && (r ^ b) < zero);
}

fn mod_s64(a: i64, b: i64) -> i64 {
    let zero = hide_s64(0li);
    if (b == zero || b == hide_s64(-1li)) { return 0li; }
    let r = a - (a / b) * b;
    return select(r, r + b, r != zero && (r ^ b) < zero);
}

// conversions: to an integer truncates and saturates, NaN gives 0 ------------------------------------

fn f32_to_s32(x: f32) -> i32 {
    if (isnan_f32(x)) { return 0i; }
    if (x >= 2147483648.0f) { return 2147483647i; }
    if (x <= -2147483648.0f) { return i32(-2147483648); }
    return i32(x);
}

fn f32_to_u32(x: f32) -> u32 {
    if (isnan_f32(x) || x <= 0.0f) { return 0u; }
    if (x >= 4294967296.0f) { return 4294967295u; }
    return u32(x);
}

fn f32_to_s64(x: f32) -> i64 {
    if (isnan_f32(x)) { return 0li; }
    if (x >= 9223372036854775808.0f) { return 9223372036854775807li; }
    if (x <= -9223372036854775808.0f) { return -9223372036854775807li - 1li; }
    return i64(x);
}

fn f64_to_s32(x: f64) -> i32 {
    if (isnan_f64(x)) { return 0i; }
    if (x >= 2147483647.0lf) { return 2147483647i; }
    if (x <= -2147483648.0lf) { return i32(-2147483648); }
    return i32(x);
}

fn f64_to_u32(x: f64) -> u32 {
    if (isnan_f64(x) || x <= 0.0lf) { return 0u; }
    if (x >= 4294967295.0lf) { return 4294967295u; }
    return u32(x);
}

fn f64_to_s64(x: f64) -> i64 {
    if (isnan_f64(x)) { return 0li; }
    if (x >= 9223372036854775808.0lf) { return 9223372036854775807li; }
    if (x <= -9223372036854775808.0lf) { return -9223372036854775807li - 1li; }
    return i64(x);
}

// i64(u32) extends the sign on some compilers.
fn u32_to_s64(x: u32) -> i64 {
    return i64(u64(x));
}

// f32 functions: drivers' own are off by up to 1e-2 (sin of large numbers), 4e-4 (log near 1) and
// 2e-5 (atan) ----------------------------------------------------------------------------------------

// Division is only guaranteed to be accurate if the divisor is neither very large nor very small.
fn div_f32(a: f32, b: f32) -> f32 {
    let size = abs(b);
    let k = select(select(1.0f, 1.8446744e19f, size < 1e-30f), 5.4210109e-20f, size > 1e30f);
    return (a / (b * k)) * k;
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

// x * 2^n, in two steps to cover the whole range.
fn scale_f32(x: f32, n: i32) -> f32 {
    let half = n >> 1u;
    let low = bitcast<f32>((half << 23u) + 0x3f800000i);
    let high = bitcast<f32>(((n - half) << 23u) + 0x3f800000i);
    return (x * low) * high;
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

// a / (1 + exp(x)) for a constant up to 3: no step can overflow, which takes a third less time.
fn over_power_f32(a: f32, x: f32) -> f32 {
    let y = clamp(x, -30.0f, 88.7f);
    let sum = hide_f32(y * 1.44269504f + 12582912.0f);
    let n = sum - 12582912.0f;
    let quarter = exp_rest_f32(y, n) * bitcast<f32>((bitcast<i32>(sum) << 23u) + 0x3e800000i);
    let found = select((a * 0.25f) / (0.25f + quarter), 0.0f, x > 88.7f);
    return select(found, x, isnan_f32(x));
}

// exp(x) for x <= 0 that is not NaN, without the guards; results below 2e-38 become that.
fn exp_below_zero(x: f32) -> f32 {
    let y = max(x, -86.9f);
    let bits = bitcast<u32>(y * 1.44269504f + 12582912.0f) ^ p.zero;
    let n = bitcast<f32>(bits) - 12582912.0f;
    return exp_rest_f32(y, n) * bitcast<f32>((bits << 23u) + 0x3f800000u);
}

fn log_f32(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits << 1u) == 0u) { return bits_f32(0xff800000u); }
    if (bits > 0x80000000u) { return bits_f32(0x7fc00000u); }
    if (bits >= 0x7f800000u) { return x; }
    var m = x;
    var e = -127i;
    if (bits < 0x00800000u) {
        m = x * 8388608.0f;
        e = -150i;
    }
    let b = bitcast<u32>(m);
    e += i32(b >> 23u);
    m = bitcast<f32>((b & 0x007fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m *= 0.5f;
        e += 1i;
    }
    let f = m - 1.0f;
    let z = f * f;
    var q = 7.0376836292e-2f;
    q = q * f - 1.1514610310e-1f;
    q = q * f + 1.1676998740e-1f;
    q = q * f - 1.2420140846e-1f;
    q = q * f + 1.4249322787e-1f;
    q = q * f - 1.6668057665e-1f;
    q = q * f + 2.0000714765e-1f;
    q = q * f - 2.4999993993e-1f;
    q = q * f + 3.3333331174e-1f;
    let n = f32(e);
    let y = (q * f) * z + n * -2.12194440e-4f - 0.5f * z;
    return (f + y) + n * 0.693359375f;
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

fn cos_f32(x: f32) -> f32 {
    let a = quadrant_f32(x);
    let odd = a.y == 1.0f || a.y == 3.0f;
    let y = select(cos_core_f32(a.x), sin_core_f32(a.x), odd);
    return select(y, -y, a.y == 1.0f || a.y == 2.0f);
}

fn tan_f32(x: f32) -> f32 {
    let a = quadrant_f32(x);
    let s = sin_core_f32(a.x);
    let c = cos_core_f32(a.x);
    if (a.y == 1.0f || a.y == 3.0f) { return -c / s; }
    return select(s / c, x, x == 0.0f);
}

// atan(x) for 0 <= x <= tan(pi/8)
fn atan_core_f32(x: f32) -> f32 {
    let z = x * x;
    var q = 8.05374449538e-2f;
    q = q * z - 1.38776856032e-1f;
    q = q * z + 1.99777106478e-1f;
    q = q * z - 3.33329491539e-1f;
    return x + (q * z) * x;
}

fn atan_f32(x: f32) -> f32 {
    let a = abs(x);
    var y: f32;
    if (a > 2.414213562f) {
        y = 1.57079633f - atan_core_f32(1.0f / a);
    } else if (a > 0.4142135624f) {
        y = 0.785398163f + atan_core_f32((a - 1.0f) / (a + 1.0f));
    } else {
        y = atan_core_f32(a);
    }
    return bitcast<f32>(bitcast<u32>(y) | (bitcast<u32>(x) & 0x80000000u));
}

fn atan2_f32(y: f32, x: f32) -> f32 {
    if (isnan_f32(x) || isnan_f32(y)) { return bits_f32(0x7fc00000u); }
    let ax = abs(x);
    let ay = abs(y);
    let big = max(ax, ay);
    // Division is only guaranteed to be accurate away from the ends of the range.
    let k = select(select(1.0f, 16777216.0f, big < 1e-30f), 5.9604645e-8f, big > 1e37f);
    var t = (min(ax, ay) * k) / (big * k);
    if (big == 0.0f) { t = 0.0f; }
    if (bitcast<u32>(min(ax, ay)) == 0x7f800000u) { t = 1.0f; }
    var r = atan_f32(t);
    if (ay > ax) { r = 1.57079633f - r; }
    if (bitcast<u32>(x) >= 0x80000000u) { r = 3.14159265f - r; }
    return bitcast<f32>(bitcast<u32>(r) | (bitcast<u32>(y) & 0x80000000u));
}

// x^y for finite x > 0 and finite y. The logarithm and its product with y are sums of two numbers,
// else the error of the product would be magnified a hundredfold.
fn pow_core_f32(x: f32, y: f32) -> f32 {
    var m = x;
    var e = -127i;
    if (x < 1.17549435e-38f) {
        m = x * 16777216.0f;
        e = -151i;
    }
    let b = bitcast<u32>(m);
    e += i32(b >> 23u);
    m = bitcast<f32>((b & 0x007fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m *= 0.5f;
        e += 1i;
    }
    let f = m - 1.0f;
    let sum = m + 1.0f;
    let inverse = 1.0f / sum;
    let s = f * inverse;
    let sh = upper_f32(s);
    let th = upper_f32(sum);
    let tl = m - hide_f32(th - 1.0f);
    let sl = (hide_f32(f - sh * th) - sh * tl) * inverse;
    let z = s * s;
    var q = 1.1111111e-1f;
    q = q * z + 1.42857143e-1f;
    q = q * z + 2.0e-1f;
    q = q * z + 3.33333333e-1f;
    let n = f32(e);
    let low = 6.2445681e-4f * sh + 2.88539008f * (sl + s * (q * z));
    let high = 2.884765625f * sh;
    let t1 = upper_f32((n + high) + low);
    let t2 = (hide_f32(n - t1) + high) + low;
    let y1 = upper_f32(y);
    let wl = (y - y1) * t1 + y * t2;
    let wh = y1 * t1;
    // Beyond the bounds the scaled result is infinite or zero by itself.
    let whole = clamp(round(wh + wl), -160.0f, 130.0f);
    let rest = clamp(hide_f32(wh - whole) + wl, -1.0f, 1.0f);
    return scale_f32(exp_core_f32(rest * 0.693147181f), i32(whole));
}

// Special cases are chosen at the end: a branch would cost more than computing both sides.
fn pow_f32(x: f32, y: f32) -> f32 {
    let infinite = 0x7f800000u;
    let a = abs(x);
    let large = bitcast<u32>(a) == infinite;
    let whole = floor(y) == y;
    let odd = whole && abs(y) < 16777216.0f && !(floor(y * 0.5f) * 2.0f == y);
    var r = pow_core_f32(a, y);
    r = select(r, bits_f32(select(0u, infinite, large == (y > 0.0f))), a == 0.0f || large);
    let boundless = bitcast<u32>(abs(y)) == infinite;
    r = select(r, bits_f32(select(0u, infinite, (a > 1.0f) == (y > 0.0f))), boundless);
    r = select(r, 1.0f, a == 1.0f);
    r = select(r, -r, odd && bitcast<u32>(x) >= 0x80000000u);
    let undefined = (x < 0.0f && !whole && !large) || isnan_f32(x) || isnan_f32(y);
    r = select(r, bits_f32(0x7fc00000u), undefined);
    return select(r, 1.0f, y == 0.0f || x == 1.0f);
}

// f64 functions: the hardware has none ---------------------------------------------------------------

fn scale_f64(x: f64, n: i32) -> f64 {
    let half = n >> 1u;
    let low = bitcast<f64>(u64(u32(half + 1023i)) << 52u);
    let high = bitcast<f64>(u64(u32(n - half + 1023i)) << 52u);
    return (x * low) * high;
}

fn exp_f64(x: f64) -> f64 {
    if (isnan_f64(x)) { return x; }
    if (x > 709.8lf) { return bits_f64(0x7ff0000000000000lu); }
    if (x < -745.2lf) { return 0.0lf; }
    let n = round(x * 1.4426950408889634lf);
    let high = hide_f64(x - n * 6.93147180369123816490e-01lf);
    let low = n * 1.90821492927058770002e-10lf;
    let r = high - low;
    let z = r * r;
    var q = 4.13813679705723846039e-08lf;
    q = q * z - 1.65339022054652515390e-06lf;
    q = q * z + 6.61375632143793436117e-05lf;
    q = q * z - 2.77777777770155933842e-03lf;
    q = q * z + 1.66666666666666019037e-01lf;
    let c = r - z * q;
    return scale_f64(1.0lf - ((low - (r * c) / (2.0lf - c)) - high), i32(n));
}

fn log_f64(x: f64) -> f64 {
    let bits = bitcast<u64>(x);
    if ((bits << 1u) == 0lu) { return bits_f64(0xfff0000000000000lu); }
    if (bits > 0x8000000000000000lu) { return bits_f64(0x7ff8000000000000lu); }
    if (bits >= 0x7ff0000000000000lu) { return x; }
    var m = x;
    var e = -1023i;
    if (bits < 0x0010000000000000lu) {
        m = x * 18014398509481984.0lf;
        e = -1077i;
    }
    let b = bitcast<u64>(m);
    e += i32(b >> 52u);
    m = bitcast<f64>((b & 0x000ffffffffffffflu) | 0x3ff0000000000000lu);
    if (m > 1.4142135623730951lf) {
        m *= 0.5lf;
        e += 1i;
    }
    let f = m - 1.0lf;
    let s = f / (2.0lf + f);
    let z = s * s;
    var q = 1.479819860511658591e-01lf;
    q = q * z + 1.531383769920937332e-01lf;
    q = q * z + 1.818357216161805012e-01lf;
    q = q * z + 2.222219843214978396e-01lf;
    q = q * z + 2.857142874366239149e-01lf;
    q = q * z + 3.999999999940941908e-01lf;
    q = q * z + 6.666666666666735130e-01lf;
    let h = 0.5lf * f * f;
    let n = f64(e);
    let low = s * (h + q * z) + n * 1.90821492927058770002e-10lf;
    return n * 6.93147180369123816490e-01lf - ((h - low) - f);
}

// The 160 bits of 2/pi that matter to x, times its 53 bits: the remaining fraction of a turn.
fn quadrant_large_f64(x: f64) -> vec2<f64> {
    let bits = bitcast<u64>(x);
    let m = (bits & 0x000ffffffffffffflu) | 0x0010000000000000lu;
    let k = u32(i32((bits >> 52u) & 2047lu) - 1013i);
    var table = array<u32, 42>(
        0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu,
        0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u,
        0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu,
        0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
        0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du);
    let ml = m & 0xfffffffflu;
    let mh = m >> 32u;
    // Columns of 32 bits, from the lowest; each partial product adds to two of them.
    var word: array<u64, 6>;
    for (var i = 0u; i < 5u; i++) {
        let at = (k >> 5u) + 4u - i;
        let pair = (u64(table[at]) << 32u) | u64(table[at + 1u]);
        let w = (pair >> (32u - (k & 31u))) & 0xfffffffflu;
        let low = ml * w;
        let high = mh * w;
        word[i] += low & 0xfffffffflu;
        word[i + 1u] += (word[i] >> 32u) + (low >> 32u) + (high & 0xfffffffflu);
        word[i] = word[i] & 0xfffffffflu;
        if (i < 4u) { word[i + 2u] += (word[i + 1u] >> 32u) + (high >> 32u); }
        word[i + 1u] = word[i + 1u] & 0xfffffffflu;
    }
    let top = (word[4] << 32u) | word[3];
    let rest = (word[2] << 32u) | word[1];
    let part = (top << 2u) | (rest >> 62u);
    let turn = u32(top >> 62u) + u32(part >> 63u);
    let r = (f64(bitcast<i64>(part)) * 5.421010862427522e-20lf
        + f64(rest << 2u) * 2.938735877055719e-39lf) * 1.5707963267948966lf;
    if (x < 0.0lf) { return vec2<f64>(-r, f64((4u - turn) & 3u)); }
    return vec2<f64>(r, f64(turn & 3u));
}

fn quadrant_f64(x: f64) -> vec2<f64> {
    let size = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    if (size >= 0x7ff0000000000000lu) {
        return vec2<f64>(bits_f64(0x7ff8000000000000lu), 0.0lf);
    }
    if (size >= 0x40f0000000000000lu) { return quadrant_large_f64(x); }
    if (size < 0x3fe921fb54442d18lu) { return vec2<f64>(x, 0.0lf); }
    let n = round(x * 0.6366197723675814lf);
    var r = hide_f64(x - n * 1.57079632673412561417e+00lf);
    r = hide_f64(r - n * 6.07710050630396597660e-11lf);
    r -= n * 2.02226624879595063154e-21lf;
    return vec2<f64>(r, n - 4.0lf * floor(n * 0.25lf));
}

fn sin_core_f64(r: f64) -> f64 {
    let z = r * r;
    var q = 1.58969099521155010221e-10lf;
    q = q * z - 2.50507602534068634195e-08lf;
    q = q * z + 2.75573137070700676789e-06lf;
    q = q * z - 1.98412698298579493134e-04lf;
    q = q * z + 8.33333333332248946124e-03lf;
    q = q * z - 1.66666666666666324348e-01lf;
    return r + (q * z) * r;
}

fn cos_core_f64(r: f64) -> f64 {
    let z = r * r;
    var q = -1.13596475577881948265e-11lf;
    q = q * z + 2.08757232129817482790e-09lf;
    q = q * z - 2.75573143513906633035e-07lf;
    q = q * z + 2.48015872894767294178e-05lf;
    q = q * z - 1.38888888888741095749e-03lf;
    q = q * z + 4.16666666666666019037e-02lf;
    return 1.0lf + ((q * z) * z - 0.5lf * z);
}

fn atan_f64(x: f64) -> f64 {
    let a = abs(x);
    var t = a;
    var high = 0.0lf;
    var low = 0.0lf;
    if (a >= 2.4375lf) {
        t = -1.0lf / a;
        high = 1.57079632679489655800e+00lf;
        low = 6.12323399573676603587e-17lf;
    } else if (a >= 1.1875lf) {
        t = (a - 1.5lf) / (1.0lf + 1.5lf * a);
        high = 9.82793723247329054082e-01lf;
        low = 1.39033110312309984516e-17lf;
    } else if (a >= 0.6875lf) {
        t = (a - 1.0lf) / (a + 1.0lf);
        high = 7.85398163397448278999e-01lf;
        low = 3.06161699786838301793e-17lf;
    } else if (a >= 0.4375lf) {
        t = (2.0lf * a - 1.0lf) / (2.0lf + a);
        high = 4.63647609000806093515e-01lf;
        low = 2.26987774529616870924e-17lf;
    }
    let z = t * t;
    var q = 1.62858201153657823623e-02lf;
    q = q * z - 3.65315727442169155270e-02lf;
    q = q * z + 4.97687799461593236017e-02lf;
    q = q * z - 5.83357013379057348645e-02lf;
    q = q * z + 6.66107313738753120669e-02lf;
    q = q * z - 7.69187620504482999495e-02lf;
    q = q * z + 9.09088713343650656196e-02lf;
    q = q * z - 1.11111104054623557880e-01lf;
    q = q * z + 1.42857142725034663711e-01lf;
    q = q * z - 1.99999999998764832476e-01lf;
    q = q * z + 3.33333333333329318027e-01lf;
    let y = high - (((q * z) * t - low) - t);
    return select(y, -y, bitcast<u64>(x) >= 0x8000000000000000lu);
}

fn atan2_f64(y: f64, x: f64) -> f64 {
    if (isnan_f64(x) || isnan_f64(y)) { return bits_f64(0x7ff8000000000000lu); }
    let ax = abs(x);
    let ay = abs(y);
    let big = select(ax, ay, ay > ax);
    let small = select(ay, ax, ay > ax);
    var t = small / big;
    if (big == 0.0lf) { t = 0.0lf; }
    if (bitcast<u64>(small) == 0x7ff0000000000000lu) { t = 1.0lf; }
    var r = atan_f64(t);
    if (ay > ax) { r = 1.5707963267948966lf - (r - 6.123233995736766e-17lf); }
    if (bitcast<u64>(x) >= 0x8000000000000000lu) {
        r = 3.141592653589793lf - (r - 1.2246467991473532e-16lf);
    }
    return select(r, -r, bitcast<u64>(y) >= 0x8000000000000000lu);
}

fn pow_f64(x: f64, y: f64) -> f64 {
    if (y == 0.0lf || x == 1.0lf) { return 1.0lf; }
    if (isnan_f64(x) || isnan_f64(y)) { return bits_f64(0x7ff8000000000000lu); }
    let infinite = 0x7ff0000000000000lu;
    let a = abs(x);
    let large = bitcast<u64>(a) == infinite;
    let whole = floor(y) == y;
    let odd = whole && abs(y) < 9007199254740992.0lf && !(floor(y * 0.5lf) * 2.0lf == y);
    if (x < 0.0lf && !whole && !large) { return bits_f64(0x7ff8000000000000lu); }
    var r: f64;
    if (a == 1.0lf) {
        r = 1.0lf;
    } else if (bitcast<u64>(abs(y)) == infinite) {
        r = bits_f64(select(0lu, infinite, (a > 1.0lf) == (y > 0.0lf)));
    } else if (a == 0.0lf || large) {
        r = bits_f64(select(0lu, infinite, large == (y > 0.0lf)));
    } else {
        r = exp_f64(y * log_f64(a));
    }
    return select(r, -r, odd && bitcast<u64>(x) >= 0x8000000000000000lu);
}
