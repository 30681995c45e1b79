// Draw onto a picture, back to front, as compositing.py defines it. A group composes one tile, each
// invocation four pixels of it, which stay in registers. First the group finds the draws that touch
// the tile, and the topmost one that hides all below it.
//
// A pixel is a word. Blending, sampling and shadows are in integers; coverage is in floats that are
// multiples of 1/256, so that nothing is rounded. The line WORDS is replaced by the bindings, the
// function that reads pictures from several buffers, and the constants HAS_SHADOWS and HAS_BLENDS,
// which remove code that no draw needs.

struct Draw {
    kind: u32,
    blend: u32,
    flags: u32,
    picture: u32,
    bounds: vec4<i32>,
    center: vec2<f32>,
    turn: vec2<f32>,  // cos, sin
    extent: vec2<f32>,  // half of width and height
    radius: f32,
    width: f32,
    scale: vec2<i32>,  // texels per pixel, 14 bits of fraction
    low: vec2<u32>,  // the lowest 16 bits of the constants of places: two each
    crop: vec4<i32>,  // first and last position, or texel if nearest
    taps: vec2<u32>,  // as powers of two
    color: u32,
    opacity: u32,  // 16 fractional bits
    arena: u32,
    place: u32,
    size: vec2<i32>,
    // Of u and v in the box, s and t in the picture: the factors of x and y and a constant, each
    // without its lowest 16 bits, and those of the factors.
    places: array<vec4<i32>, 4>,
}

struct Block {
    first: u32,  // the first draw's record
    count: u32,
    rects: u32,  // the first rectangle's record: bounds, and its first tile in kind
    rect_count: u32,
    tiles: u32,
    width: u32,
    background: u32,
    fill: u32,  // 1: start with the background, 0: with the target's pixels
TABLES}

WORDS

const PICTURE = 0u;
const FILL = 1u;
const RING = 2u;
const SHADOW = 3u;
const TINT = 4u;

const NEAREST = 1u;
const OPAQUE = 2u;
const LINEAR = 4u;

const STEPS = 12;

// Draws in one dispatch: their flags are bits of 32 words.
var<workgroup> hits: array<atomic<u32>, 32>;
var<workgroup> wholes: array<atomic<u32>, 32>;
var<workgroup> bottom: atomic<u32>;  // one more than the topmost opaque draw over the whole tile

// shapes ---------------------------------------------------------------------------------------------

fn distance_of(point: vec2<f32>, extent: vec2<f32>, radius: f32) -> f32 {
    let r = min(radius, min(extent.x, extent.y));
    let q = abs(point) - (extent - vec2<f32>(r));
    return length(max(q, vec2<f32>(0.0f))) + min(max(q.x, q.y), 0.0f) - r;
}

// The root of a square, rounded down: a guess corrected by its remainder, which fits 32 bits though
// squares may not.
fn root_of(square: i32, guess: f32) -> i32 {
    var root = i32(guess);
    for (var k = 0; k < 4; k++) {
        let rest = square - root * root;
        root += select(0, 1, rest > 2 * root) - select(0, 1, rest < 0);
    }
    return root;
}

// The length of a vector of multiples of 1/256, rounded down to one.
fn grid_length(q: vec2<f32>) -> f32 {
    if (min(q.x, q.y) <= 0.0f) {
        return max(q.x, q.y);
    }
    let w = vec2<i32>(q * 256.0f);
    return f32(root_of(w.x * w.x + w.y * w.y, length(q) * 256.0f)) * 0.00390625f;
}

fn covered(point: vec2<f32>, extent: vec2<f32>, radius: f32) -> f32 {
    let r = min(radius, min(extent.x, extent.y));
    let q = abs(point) - (extent - vec2<f32>(r));
    // Beyond a pixel from the corner nothing is covered, and squares would be too large.
    let distance = grid_length(clamp(q, vec2<f32>(0.0f), vec2<f32>(r + 1.0f)))
        + min(max(q.x, q.y), 0.0f) - r;
    let inside = clamp(0.5f - distance, 0.0f, 1.0f);
    return select(0.0f, inside, extent.x > 0.0f && extent.y > 0.0f);
}

// The integral of a Gaussian from 0 to x, of 2**15: see sampling/shadows.py.
fn integral(x: i32, width: i32, inverse: i32) -> i32 {
    let s = 32768 - min((min(abs(x), 3 * width) * inverse) >> 15u, 32768);
    var g = ((61800 * s) >> 15u) - 54952;
    g = ((g * s) >> 15u) - 19825;
    g = ((g * s) >> 15u) - 32408;
    let value = 32768 - s - ((((s * (32768 - s)) >> 15u) * g) >> 15u);
    return select(value, -value, x < 0);
}

// The coverage of a blurred box, of 2**15: see sampling/shadows.py. Lengths are 256ths.
fn blurred(point: vec2<i32>, extent: vec2<i32>, round: i32, width: i32) -> u32 {
    let radius = min(round, min(extent.x, extent.y));
    let inverse = ((1 << 30u) + 3 * width - 1) / (3 * width);
    let low = point.y - extent.y;
    let high = point.y + extent.y;
    let begin = min(max(-3 * width, low), high);
    let size = min(max(3 * width, low), high) - begin;
    var total = 0u;
    var last = -1;
    var across = 0u;
    var a = begin;
    var before = integral(a, width, inverse);
    for (var k = 1; k <= STEPS; k++) {
        let b = begin + size * k / STEPS;
        let beyond = max(abs(point.y - ((a + b) >> 1u)) - (extent.y - radius), 0);
        let rest = f32(max(radius - beyond, 0)) * f32(radius + beyond);
        let inner = select(0, root_of((radius - beyond) * (radius + beyond), sqrt(rest)),
            beyond < radius);
        if (inner != last) {  // constant along the straight part
            let half = extent.x - radius + inner;
            across = u32(max(integral(point.x + half, width, inverse)
                - integral(point.x - half, width, inverse), 0)) >> 1u;
            last = inner;
        }
        let after = integral(b, width, inverse);
        total += u32(max(after - before, 0)) * across;
        a = b;
        before = after;
    }
    return min((total + 32768u) >> 16u, 32768u);
}

// Coverage times opacity, of 65536.
fn share_of(d: Draw, at: vec2<u32>) -> u32 {
    let u = place_of(d.places[0], d.low.x & 0xffffu, at);
    let v = place_of(d.places[1], d.low.x >> 16u, at);
    if (HAS_SHADOWS && d.kind == SHADOW && d.width > 0.0f) {
        let found = blurred(vec2<i32>(u, v), vec2<i32>(d.extent * 256.0f),
            i32(d.radius * 256.0f), i32(d.width * 256.0f));
        return (found * d.opacity + 16384u) >> 15u;
    }
    let point = vec2<f32>(vec2<i32>(u, v)) * 0.00390625f;
    var found = covered(point, d.extent, d.radius);
    if (d.kind == RING) {
        let inner = covered(point, d.extent - vec2<f32>(d.width), max(d.radius - d.width, 0.0f));
        found = max(found - inner, 0.0f);
    }
    return u32(found * f32(d.opacity) + 0.5f);
}

// A position of a pixel: see sampling/draws.py.
fn place_of(step: vec4<i32>, constant: u32, at: vec2<u32>) -> i32 {
    let factors = u32(step.w);
    let low = (factors & 0xffffu) * at.x + (factors >> 16u) * at.y + constant;
    return step.x * i32(at.x) + step.y * i32(at.y) + step.z + i32(low >> 16u);
}

// pictures -------------------------------------------------------------------------------------------

// The texel and the weight of the next one, for a sample of a pixel along one axis.
fn tap_of(place: i32, number: u32, bits: u32, scale: i32, low: i32, high: i32, nearest: bool)
        -> vec2<i32> {
    let step = u32(abs(scale));
    let off = i32(((2u * number + 1u) * step) >> (bits + 1u)) - i32(step >> 1u);
    let s = place + select(off, -off, scale < 0);
    if (nearest) {
        return vec2<i32>(min(max(s >> 14u, low), high), 0);
    }
    let t = min(max(s, low), high) - 8192 + i32((1u << bits) >> 1u);
    return vec2<i32>(t >> 14u, (t & 16383) >> bits);
}

// A texel that counts by its weight alone, or by its alpha too.
fn loaded(d: Draw, x: i32, y: i32, opaque: bool) -> vec4<u32> {
    let inside = clamp(vec2<i32>(x, y), vec2<i32>(0), d.size - vec2<i32>(1));
    let texel = word(d.arena, d.place + u32(inside.y * d.size.x + inside.x));
    let rgb = channels(texel);
    let alpha = texel >> 24u;
    return select(vec4<u32>(rgb * alpha, alpha * 255u), vec4<u32>(rgb, 255u), opaque);
}

// A sum down, with 7 bits of fraction.
fn rounded(sum: vec4<u32>, opaque: bool) -> vec4<u32> {
    if (opaque) {
        return (sum + 64u) >> vec4<u32>(7u);
    }
    return (sum + 16320u) / 32640u;
}

// Straight bytes.
fn sampled(d: Draw, at: vec2<u32>) -> u32 {
    let s = place_of(d.places[2], d.low.y & 0xffffu, at);
    let t = place_of(d.places[3], d.low.y >> 16u, at);
    let bits = d.taps;
    let nearest = (d.flags & NEAREST) != 0u;
    let opaque = (d.flags & OPAQUE) != 0u;
    let x = tap_of(s, 0u, bits.x, d.scale.x, d.crop.x, d.crop.z, nearest);
    let y = tap_of(t, 0u, bits.y, d.scale.y, d.crop.y, d.crop.w, nearest);
    var total = vec4<u32>(0u);
    if (all(bits == vec2<u32>(0u))) {
        if (nearest) {
            let inside = clamp(vec2<i32>(x.x, y.x), vec2<i32>(0), d.size - vec2<i32>(1));
            return word(d.arena, d.place + u32(inside.y * d.size.x + inside.x));
        }
        let wx = u32(x.y);
        let wy = u32(y.y);
        let left = loaded(d, x.x, y.x, opaque) * (16384u - wy)
            + loaded(d, x.x, y.x + 1, opaque) * wy;
        let right = loaded(d, x.x + 1, y.x, opaque) * (16384u - wy)
            + loaded(d, x.x + 1, y.x + 1, opaque) * wy;
        total = rounded(left, opaque) * (16384u - wx) + rounded(right, opaque) * wx;
    } else {
        for (var i = 0u; i < 2u << bits.x; i++) {
            let column = tap_of(s, i >> 1u, bits.x, d.scale.x, d.crop.x, d.crop.z, nearest);
            let wx = select((16384u >> bits.x) - u32(column.y), u32(column.y), (i & 1u) != 0u);
            if (wx == 0u) {
                continue;
            }
            var line = vec4<u32>(0u);
            for (var j = 0u; j < 1u << bits.y; j++) {
                let row = tap_of(t, j, bits.y, d.scale.y, d.crop.y, d.crop.w, nearest);
                let wy = u32(row.y);
                let across = column.x + i32(i & 1u);
                line += loaded(d, across, row.x, opaque) * ((16384u >> bits.y) - wy)
                    + loaded(d, across, row.x + 1, opaque) * wy;
            }
            total += rounded(line, opaque) * wx;
        }
    }
    let p = total >> vec4<u32>(13u);
    let alpha = (p.w + 128u) >> 8u;
    if (opaque) {
        return joined((p.xyz + 128u) >> vec3<u32>(8u), 255u);
    }
    return joined((p.xyz * 255u + (p.w >> 1u)) / max(p.w, 1u), alpha);
}

// blending -------------------------------------------------------------------------------------------

fn channels(pixel: u32) -> vec3<u32> {
    return (vec3<u32>(pixel) >> vec3<u32>(0u, 8u, 16u)) & vec3<u32>(255u);
}

fn joined(rgb: vec3<u32>, alpha: u32) -> u32 {
    return rgb.x | (rgb.y << 8u) | (rgb.z << 16u) | (alpha << 24u);
}

BLENDS
// The bytes of a source over those of a pixel, the source's alpha times a share of 65536: exactly
// rounded, with alphas of 16 fractional bits, or of bytes where the share is full.
fn composed(mode: u32, linear: bool, pixel: u32, source: u32, share: u32) -> u32 {
    let full = share == 65536u;
    let alpha = source >> 24u;
    let above = select((alpha * share + 127u) / 255u, alpha, full);
    if (above == 0u) {
        return pixel;
    }
    let rest = select(65536u, 255u, full) - above;
    let below = pixel >> 24u;
    let s = channels(source);
    let b = channels(pixel);
    let total = above * 255u + below * rest;
    let result = select((total + 32768u) >> 16u, (total + 127u) / 255u, full);
    if (HAS_BLENDS && (mode != 0u || linear)) {
        return blended(mode, linear, b, s, above, below, total, result, full);
    }
    if (below == 255u) {
        let sum = s * above + b * rest;
        return joined(select((sum + 32768u) >> vec3<u32>(16u), (sum + 127u) / 255u, full), 255u);
    }
    return joined((s * (above * 255u) + b * (rest * below) + (total >> 1u)) / total, result);
}

fn drawn(d: Draw, whole: bool, at: vec2<u32>, pixel: u32) -> u32 {
    var source = d.color;
    if (d.kind == PICTURE || d.kind == TINT) {
        let texel = sampled(d, at);
        let alpha = ((source >> 24u) * (texel >> 24u) + 127u) / 255u;
        source = select((source & 0xffffffu) | (alpha << 24u), texel, d.kind == PICTURE);
    }
    var share = d.opacity;
    if (!whole) {
        share = share_of(d, at);
    }
    return composed(d.blend, (d.flags & LINEAR) != 0u, pixel, source, share);
}

// tiles ----------------------------------------------------------------------------------------------

// Record whether a draw touches the tile, covers all of it, or hides all below. ``near`` and
// ``far`` bound the distances of the tile's pixels in the draw's coordinates.
fn classify(number: u32, corner: vec2<i32>, end: vec2<i32>) {
    let i = p.first + number;
    let bounds = draws[i].bounds;
    if (any(bounds.xy >= end) || any(bounds.zw <= corner)) {
        return;
    }
    let turn = draws[i].turn;
    let d = 0.5f * vec2<f32>(corner + end) - draws[i].center;
    let mid = abs(vec2<f32>(d.x * turn.x + d.y * turn.y, d.y * turn.x - d.x * turn.y));
    let reach = 0.5f * vec2<f32>(end - corner - vec2<i32>(1));
    let t = abs(turn);
    let around = vec2<f32>(reach.x * t.x + reach.y * t.y, reach.x * t.y + reach.y * t.x);
    let near = max(mid - around, vec2<f32>(0.0f));
    let far = mid + around;
    let kind = draws[i].kind;
    let extent = draws[i].extent;
    let radius = draws[i].radius;
    let width = draws[i].width;
    var whole = false;
    var miss = any(near > extent + vec2<f32>(3.5f * width + 1.0f));
    if (kind != SHADOW || width <= 0.0f) {
        miss = any(extent <= vec2<f32>(0.0f)) || distance_of(near, extent, radius) > 0.51f;
        whole = distance_of(far, extent, radius) < -0.51f;
        if (kind == RING && whole) {
            whole = false;
            let inner = extent - vec2<f32>(width);
            miss = all(inner > vec2<f32>(0.0f))
                && distance_of(far, inner, max(radius - width, 0.0f)) < -0.51f;
        }
    }
    if (miss) {
        return;
    }
    let bit = 1u << (number & 31u);
    atomicOr(&hits[number >> 5u], bit);
    if (!whole) {
        return;
    }
    atomicOr(&wholes[number >> 5u], bit);
    let solid = (kind == PICTURE && (draws[i].flags & OPAQUE) != 0u)
        || (kind != PICTURE && kind != TINT && (draws[i].color >> 24u) == 255u);
    let everywhere = all(bounds.xy <= corner) && all(bounds.zw >= end);
    if (solid && everywhere && draws[i].blend == 0u && draws[i].opacity == 65536u) {
        atomicMax(&bottom, number + 1u);
    }
}

@compute @workgroup_size(16, 4)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * groups.x + group.x;
    var low = 0u;
    var high = p.rect_count;
    while (high - low > 1u) {
        let middle = (low + high) >> 1u;
        if (draws[p.rects + middle].kind <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let rect = draws[p.rects + low].bounds;
    let number = tile - draws[p.rects + low].kind;
    let left = rect.x & ~7;  // tiles start at aligned memory
    let across = u32(rect.z - left + 15) >> 4u;
    let top_left = vec2<i32>(left + i32(number % across) * 16, rect.y + i32(number / across) * 16);
    let corner = max(top_left, rect.xy);
    let end = min(top_left + vec2<i32>(16), rect.zw);

    if (lane < 32u) {  // not every driver clears workgroup memory
        atomicStore(&hits[lane], 0u);
        atomicStore(&wholes[lane], 0u);
    }
    if (lane == 0u) {
        atomicStore(&bottom, 0u);
    }
    workgroupBarrier();
    for (var i = lane; i < p.count; i += 64u) {
        classify(i, corner, end);
    }
    workgroupBarrier();

    let x = top_left.x + i32(local.x);
    let y = top_left.y + i32(local.y);  // and the rows 4, 8 and 12 below
    if (tile < p.tiles && x >= corner.x && x < end.x) {
        let hidden = atomicLoad(&bottom);
        let start = max(hidden, 1u) - 1u;
        var pixels = vec4<u32>(p.background);
        var changed = p.fill != 0u;
        if (p.fill == 0u && hidden == 0u) {
            for (var k = 0; k < 4; k++) {
                let row = min(y + 4 * k, end.y - 1);
                pixels = vec4<u32>(pixels.yzw, result[u32(row) * p.width + u32(x)]);
            }
        }
        let words = (p.count + 31u) >> 5u;
        for (var w = start >> 5u; w < words; w++) {
            var bits = atomicLoad(&hits[w]);
            if (w == start >> 5u) {
                bits &= 0xffffffffu << (start & 31u);
            }
            let full = atomicLoad(&wholes[w]);
            while (bits != 0u) {
                let bit = firstTrailingBit(bits);
                bits &= bits - 1u;
                let d = draws[p.first + w * 32u + bit];
                let whole = ((full >> bit) & 1u) != 0u;
                if (x >= d.bounds.x && x < d.bounds.z) {
                    changed = true;
                    for (var k = 0; k < 4; k++) {  // four rotations restore the order
                        var pixel = pixels.x;
                        let row = y + 4 * k;
                        if (row >= d.bounds.y && row < min(d.bounds.w, end.y)) {
                            pixel = drawn(d, whole, vec2<u32>(vec2<i32>(x, row)), pixel);
                        }
                        pixels = vec4<u32>(pixels.yzw, pixel);
                    }
                }
            }
        }
        if (changed) {
            for (var k = 0; k < 4; k++) {
                let row = y + 4 * k;
                if (row < end.y) {
                    result[u32(row) * p.width + u32(x)] = pixels.x;
                }
                pixels = vec4<u32>(pixels.yzw, 0u);
            }
        }
    }
}
