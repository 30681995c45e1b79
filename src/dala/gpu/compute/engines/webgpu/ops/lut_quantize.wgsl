// Quantize entries as engines/lookup.py defines it. The products are exact, in parts of 24 bits.

struct Block {
    size: u32,
    count: u32,
    factor: u32,
    bias: i32,
    top: i32,
$more}

fn quantized(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    // At most 255; NaN is larger than infinity.
    let near = select(min(bits & 0x7fffffffu, 0x437f0000u), 0u, (bits & 0x7fffffffu) > 0x7f800000u);
    let negative = bits >> 31u;
    let m = (near & 0x7fffffu) | 0x800000u;
    let shift = 158u - (near >> 23u);  // x * factor / 256 = m * factor / 2**shift; 24 or more
    let mh = m >> 12u;
    let ml = m & 4095u;
    let fh = p.factor >> 12u;
    let fl = p.factor & 4095u;
    let cross = mh * fl + ml * fh;
    let low = ml * fl + ((cross & 4095u) << 12u);
    var high = mh * fh + (cross >> 12u) + (low >> 24u);
    // Halves up: of a negative number, halves of its size down.
    let rest = low & 0xffffffu;
    if (shift == 24u) {
        high += (rest + 0x800000u - negative) >> 24u;
    } else {
        high += (1u << min(shift - 25u, 24u)) - select(0u, negative, rest == 0u);
    }
    let q = i32(select(0u, high >> min(shift - 24u, 31u), shift < 49u));
    return u32(clamp(p.bias + select(q, -q, negative == 1u), 0, p.top));
}
