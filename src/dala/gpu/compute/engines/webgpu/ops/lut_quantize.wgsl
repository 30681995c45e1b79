// Quantize entries as engines/lookup.py defines it. The products are exact, in parts of 24 bits.

struct Block {
    size: u32,
    count: u32,
    first: u32,  // entries of curves before the table
    factor: u32,
    bias: i32,
    top: i32,
$more}

// x * factor * 2**exponent, rounded, halves up, at most 2**24. NaN is 0.
fn scaled(x: f32, factor: u32, exponent: i32) -> i32 {
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    if (size == 0u || size > 0x7f800000u) { return 0; }
    let negative = bits >> 31u;
    let m = (size & 0x7fffffu) | 0x800000u;
    let shift = 150 - i32(size >> 23u) - exponent;  // the product is m * factor / 2**shift
    let mh = m >> 12u;
    let ml = m & 4095u;
    let fh = factor >> 12u;
    let fl = factor & 4095u;
    let cross = mh * fl + ml * fh;
    let low = ml * fl + ((cross & 4095u) << 12u);
    let high = mh * fh + (cross >> 12u) + (low >> 24u);
    let rest = low & 0xffffffu;
    // Halves up: of a negative number, halves of its size down.
    var q = 0u;
    if (shift < 23) {
        q = 0x1000000u;
    } else if (shift == 23) {
        q = (high << 1u) + ((rest + 0x400000u - negative) >> 23u);
    } else if (shift == 24) {
        q = high + ((rest + 0x800000u - negative) >> 24u);
    } else if (shift < 49) {
        let s = u32(shift - 24);
        q = (high + (1u << (s - 1u)) - select(0u, negative, rest == 0u)) >> s;
    }
    let found = i32(min(q, 0x1000000u));
    return select(found, -found, negative == 1u);
}

// At most 255, as FARTHEST.
fn quantized(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let near = bitcast<f32>((bits & 0x80000000u) | min(bits & 0x7fffffffu, 0x437f0000u));
    let is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    let found = scaled(near, p.factor, -8);
    return u32(clamp(p.bias + select(found, 0, is_nan), 0, p.top));
}
