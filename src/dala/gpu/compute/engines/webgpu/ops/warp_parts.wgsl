// The parts of warp.wgsl that depend on the operation, the method and the border.

// --- fold clamp
    return clamp(i, 0, count - 1);

// Drivers differ in the remainder of negative numbers.
// --- fold wrap
    let r = i - (i / count) * count;
    return select(r, r + count, r < 0);

// --- fold reflect
    let period = max(2 * (count - 1), 1);
    let r = abs(i) % period;
    return min(min(r, period - r), count - 1);

// --- sample nearest
    let near = at.whole + (at.part >> vec2<u32>(23u));
    return tap(near.x, near.y);

// --- sample bilinear
    let x = at.whole.x;
    let y = at.whole.y;
    return weighted_sum(tap(x, y), tap(x + 1, y), tap(x, y + 1), tap(x + 1, y + 1),
        bilinear_weights(vec2<f32>(at.part) * 5.9604644775390625e-8f));

// --- sample bicubic
    let part = vec2<f32>(at.part) * 5.9604644775390625e-8f;
    let wx = cubic_weights(part.x);
    let wy = cubic_weights(part.y);
    var sum = vec4<f32>(0.0f);
    for (var k = 0; k < 4; k++) {
        let y = at.whole.y + k - 1;
        let row = wx.x * tap(at.whole.x - 1, y) + wx.y * tap(at.whole.x, y)
            + wx.z * tap(at.whole.x + 1, y) + wx.w * tap(at.whole.x + 2, y);
        sum += wy[k] * row;
    }
    return sum;

// In integers: see engines/sampling/byte_samples.py.
// --- bytes bilinear
    let place = rounded(at);
    let left = mixed(place.whole, place.part.y);
    let right = mixed(place.whole + vec2<i32>(1, 0), place.part.y);
    let value = left + (((right - left) * place.part.x + 16384) >> vec4<u32>(15u));
    return vec4<f32>((value + 64) >> vec4<u32>(7u));

// --- bytes bicubic
    let place = rounded(at);
    var rows = byte_weights(place.part.y);
    var columns = byte_weights(place.part.x);
    var sum = vec4<i32>(524288);
    for (var k = 0; k < 4; k++) {
        let x = place.whole.x + k - 1;
        var line = vec4<i32>(128);
        for (var j = 0; j < 4; j++) {
            line += rows[j] * vec4<i32>(tap(x, place.whole.y + j - 1));
        }
        sum += columns[k] * (line >> vec4<u32>(8u));
    }
    return vec4<f32>(clamp(sum >> vec4<u32>(20u), vec4<i32>(0), vec4<i32>(255)));

// --- rounded
fn rounded(at: Coordinates) -> Coordinates {
    let part = at.part + 256;
    let kept = part & vec2<i32>(16777215);
    return Coordinates(at.whole + (part >> vec2<u32>(24u)), kept >> vec2<u32>(9u));
}

// --- mixed
fn mixed(at: vec2<i32>, part: i32) -> vec4<i32> {
    let above = vec4<i32>(tap(at.x, at.y));
    let below = vec4<i32>(tap(at.x, at.y + 1));
    return (above << vec4<u32>(7u)) + (((below - above) * part + 128) >> vec4<u32>(8u));
}

// --- byte_weights
fn byte_weights(t: i32) -> array<i32, 4> {
    let square = t * t;
    let one = t << 5u;
    let two = square >> 10u;
    let three = ((square >> 14u) * t) >> 11u;
    let first = (6 * two - 3 * three - 3 * one + 128) >> 8u;
    let third = (6 * two - 5 * three + 3 * one + 128) >> 8u;
    let fourth = (3 * three - 3 * two + 128) >> 8u;
    return array<i32, 4>(first, 16384 - first - third - fourth, third, fourth);
}

// --- split
fn split(v: vec2<f32>) -> Coordinates {
    let bits = bitcast<vec2<u32>>(v) & vec2<u32>(0x7fffffffu);
    let number = select(v, vec2<f32>(-536870912.0f), bits > vec2<u32>(0x7f800000u));
    let near = clamp(number, vec2<f32>(-536870912.0f), vec2<f32>(536870912.0f));
    let small = trunc(near * 16777216.0f) * 5.9604644775390625e-8f;
    let exact = select(near, small, abs(near) < vec2<f32>(1.0f));
    let whole = floor(exact);
    return Coordinates(vec2<i32>(whole), vec2<i32>((exact - whole) * 16777216.0f));
}

// --- place warp_affine
    let c = bitcast<vec4<i32>>(table[x]);
    let r = bitcast<vec4<i32>>(table[p.width + y]);
    let sum = c + r;
    return Coordinates(
        sum.xz + (sum.yw >> vec2<u32>(24u)), sum.yw & vec2<i32>(16777215));

// --- place warp_perspective
    let w = bitcast<i32>(row(12u, x, y).x);
    let turn = vec2<bool>(w < 0);
    let u = row(0u, x, y);
    let v = row(6u, x, y);
    let across = divided(select(u, negative(u), turn), abs(w));
    let down = divided(select(v, negative(v), turn), abs(w));
    return Coordinates(vec2<i32>(across.x, down.x), vec2<i32>(across.y, down.y));

// --- place remap
    return split(table[y * p.width + x]);
