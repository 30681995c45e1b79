// How pixels of each format are read, blurred and stored: the parts of pixels.py.

// The body of read_pixel(i: u32) -> vec4<f32>: pixel i of `source`, missing channels 0.
// --- read f32 1
    return vec4<f32>(source[i], 0.0f, 0.0f, 0.0f);

// --- read f32 3
    let at = i * 3u;
    return vec4<f32>(source[at], source[at + 1u], source[at + 2u], 0.0f);

// --- read f32 4
    return source[i];

// --- read u32 1
    return vec4<f32>(f32(source[i]), 0.0f, 0.0f, 0.0f);

// --- read u32 4
    return vec4<f32>(source[i]);

// --- read u8 1
    let byte = (source[i >> 2u] >> ((i & 3u) << 3u)) & 255u;
    return vec4<f32>(f32(byte), 0.0f, 0.0f, 0.0f);

// Three bytes may start anywhere in a word and continue in the next.
// --- read u8 3
    let at = i * 3u;
    let shift = (at & 3u) * 8u;
    let low = source[at >> 2u] >> shift;
    let high = source[(at + 2u) >> 2u] << ((32u - shift) & 31u);
    let w = select(low, low | high, shift > 8u);
    return vec4<f32>(vec4<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u, 0u));

// --- read u8 4
    return unpack_rgba(source[i]);

// The end of `main`: `n` is the invocation's number, `count` the number of pixels.
// --- one
    if (n >= count) {
        return;
    }
    let v = $value;

// --- four
    if (n * 4u >= count) {
        return;
    }
    var bytes: array<vec4<u32>, 4>;
    for (var k = 0u; k < 4u; k++) {
        let at = min(n * 4u + k, count - 1u);
        bytes[k] = round_bytes($value_of_four);
    }

// --- store f32 1
    result[n] = v.x;

// --- store f32 3
    result[n * 3u] = v.x;
    result[n * 3u + 1u] = v.y;
    result[n * 3u + 2u] = v.z;

// --- store f32 4
    result[n] = v;

// --- store u8 1
    result[n] = bytes[0].x | (bytes[1].x << 8u) | (bytes[2].x << 16u) | (bytes[3].x << 24u);

// --- store u8 3
    let a = bytes[0];
    let b = bytes[1];
    let c = bytes[2];
    let d = bytes[3];
    result[n * 3u] = a.x | (a.y << 8u) | (a.z << 16u) | (b.x << 24u);
    if (n * 12u + 4u < count * 3u) {
        result[n * 3u + 1u] = b.y | (b.z << 8u) | (c.x << 16u) | (c.y << 24u);
    }
    if (n * 12u + 8u < count * 3u) {
        result[n * 3u + 2u] = c.z | (d.x << 8u) | (d.y << 16u) | (d.z << 24u);
    }

// --- store u8 4
    let b = round_bytes(v);
    result[n] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);

// A tensor of three planes.
// --- store planes
    result[n] = v.x;
    result[n + count] = v.y;
    result[n + 2u * count] = v.z;

// A blur does not change alpha: its byte is kept in the low bits of a float, 2**23 + alpha.
// --- fetch
    let w = source[i];
    let c = vec3<f32>(vec3<u32>(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u));
    return vec4<f32>(c, bitcast<f32>((w >> 24u) | 0x4b000000u));

// The body of raw(i: u32) -> u32: the bytes of a u8 pixel, from the lowest on.
// --- raw 1
    return (source[i >> 2u] >> ((i & 3u) << 3u)) & 255u;

// --- raw 3
    let at = i * 3u;
    let shift = (at & 3u) * 8u;
    let low = source[at >> 2u] >> shift;
    let high = source[(at + 2u) >> 2u] << ((32u - shift) & 31u);
    let w = select(low, low | high, shift > 8u);
    return w;

// --- raw 4
    return source[i];

// Functions to_middle and from_middle of u8 pictures: 16 bits per number, in two words.
// --- sixteen
fn to_middle($arguments) -> vec2<u32> {
    return vec2<u32>((c.x & 65535u) | (c.y << 16u), (c.z & 65535u)$kept);
}

fn from_middle(m: vec2<u32>) -> vec$channels<u32> {
    return vec$channels<u32>(m.x & 65535u, m.x >> 16u, m.y & 65535u$alpha);
}

// The same with 17 bits per number, for sums of more than 257 bytes.
// --- seventeen
fn to_middle($arguments) -> vec2<u32> {
    return vec2<u32>(c.x | (c.y << 17u), (c.y >> 15u) | (c.z << 2u)$kept);
}

fn from_middle(m: vec2<u32>) -> vec$channels<u32> {
    let y = (m.x >> 17u) | ((m.y & 3u) << 15u);
    return vec$channels<u32>(m.x & 0x1ffffu, y, (m.y >> 2u) & 0x1ffffu$alpha);
}

// For other pictures: the arguments, the type of the intermediate picture and its value, and what
// is read back.
// --- middle
fn to_middle($arguments) -> $middle {
    return $value;
}

fn from_middle(m: $middle) -> $fetched {
    return m$parts;
}
