// Draw onto a picture, back to front, as compositing.py defines it. A group composes one tile, each
// invocation four pixels of it, which stay in registers. First the group finds the draws that touch
// the tile, and the topmost one that hides all below it.
//
// A pixel is a word. Blending is in integers; coverage and sampling are in floats. The line WORDS is
// replaced by the bindings, the function that reads pictures from several buffers, and the constants
// HAS_SHADOWS and HAS_BLENDS, which remove code that no draw needs.

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
    scale: vec2<f32>,
    start: vec2<f32>,
    crop: vec4<f32>,
    taps: vec2<i32>,
    color: u32,
    opacity: u32,  // 16 fractional bits
    arena: u32,
    place: u32,
    size: vec2<i32>,
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

const SHADOW_STEPS = 12;

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

// The length of a vector of multiples of 1/256, rounded down to one: estimated, and corrected by its
// remainder, which fits 32 bits though squares do not.
fn grid_length(q: vec2<f32>) -> f32 {
    if (min(q.x, q.y) <= 0.0f) {
        return max(q.x, q.y);
    }
    let w = vec2<i32>(q * 256.0f);
    let square = w.x * w.x + w.y * w.y;
    var root = i32(length(q) * 256.0f);
    for (var k = 0; k < 4; k++) {
        let rest = square - root * root;
        root += select(0, 1, rest > 2 * root) - select(0, 1, rest < 0);
    }
    return f32(root) * 0.00390625f;
}

fn covered(point: vec2<f32>, extent: vec2<f32>, radius: f32, straight: bool) -> f32 {
    var distance = 0.0f;
    if (straight) {
        let r = min(radius, min(extent.x, extent.y));
        let q = abs(point) - (extent - vec2<f32>(r));
        // Beyond a pixel from the corner nothing is covered, and squares would be too large.
        distance = grid_length(clamp(q, vec2<f32>(0.0f), vec2<f32>(r + 1.0f)))
            + min(max(q.x, q.y), 0.0f) - r;
    } else {
        distance = distance_of(point, extent, radius);
    }
    let inside = clamp(0.5f - distance, 0.0f, 1.0f);
    return select(0.0f, inside, extent.x > 0.0f && extent.y > 0.0f);
}

fn erf(x: f32) -> f32 {
    let a = min(abs(x), 8.0f);  // larger powers would overflow
    let q = 1.0f + a * (0.278393f + a * (0.230389f + a * (0.000972f + a * 0.078108f)));
    let s = q * q;
    return sign(x) * (1.0f - 1.0f / (s * s));
}

fn shadow(point: vec2<f32>, extent: vec2<f32>, round: f32, sigma: f32) -> f32 {
    let radius = min(round, min(extent.x, extent.y));
    let low = point.y - extent.y;
    let high = point.y + extent.y;
    let begin = min(max(-3.0f * sigma, low), high);
    let end = min(max(3.0f * sigma, low), high);
    let step = (end - begin) / f32(SHADOW_STEPS);
    let scale = 0.70710678f / sigma;
    let straight = extent.y - radius;
    var total = 0.0f;
    var last = -1e30f;
    var across = 0.0f;
    for (var k = 0; k < SHADOW_STEPS; k++) {
        let y = begin + (f32(k) + 0.5f) * step;
        let beyond = min(straight - abs(point.y - y), 0.0f);
        let extent_x = extent.x - radius + sqrt(max(radius * radius - beyond * beyond, 0.0f));
        if (extent_x != last) {  // constant along the straight part
            across = 0.5f * (erf((point.x + extent_x) * scale) - erf((point.x - extent_x) * scale));
            last = extent_x;
        }
        let z = y / sigma;
        total += across * exp(-0.5f * z * z);
    }
    return clamp(total * step * 0.39894228f / sigma, 0.0f, 1.0f);
}

fn coverage(d: Draw, point: vec2<f32>) -> f32 {
    if (HAS_SHADOWS && d.kind == SHADOW && d.width > 0.0f) {
        return shadow(point, d.extent, d.radius, d.width);
    }
    let straight = d.turn.x == 1.0f && d.turn.y == 0.0f;
    let outer = covered(point, d.extent, d.radius, straight);
    if (d.kind != RING) {
        return outer;
    }
    let extent = d.extent - vec2<f32>(d.width);
    let inner = covered(point, extent, max(d.radius - d.width, 0.0f), straight);
    return max(outer - inner, 0.0f);
}

// pictures -------------------------------------------------------------------------------------------

fn texel_at(d: Draw, at: vec2<i32>) -> u32 {
    let size = d.size;
    let inside = clamp(at, vec2<i32>(0), size - vec2<i32>(1));
    return word(d.arena, d.place + u32(inside.y * size.x + inside.x));
}

// Premultiplied color, and alpha.
fn weighted(texel: u32) -> vec4<f32> {
    let px = unpack_rgba(texel);
    let alpha = px.w * 0.0039215686f;
    return vec4<f32>(px.xyz * alpha, alpha);
}

fn sample_bilinear(d: Draw, spot: vec2<f32>) -> vec4<f32> {
    let crop = d.crop;
    let low = crop.xy + vec2<f32>(0.5f);
    let high = max(low, crop.zw - vec2<f32>(0.5f));
    let place = clamp(spot, low, high) - vec2<f32>(0.5f);
    let corner = floor(place);
    let f = place - corner;
    let size = d.size;
    let arena = d.arena;
    let a = vec2<i32>(corner);
    let p0 = clamp(a, vec2<i32>(0), size - vec2<i32>(1));
    let p1 = clamp(a + vec2<i32>(1), vec2<i32>(0), size - vec2<i32>(1));
    let upper = d.place + u32(p0.y * size.x);
    let lower = d.place + u32(p1.y * size.x);
    let t00 = unpack_rgba(word(arena, upper + u32(p0.x)));
    let t10 = unpack_rgba(word(arena, upper + u32(p1.x)));
    let t01 = unpack_rgba(word(arena, lower + u32(p0.x)));
    let t11 = unpack_rgba(word(arena, lower + u32(p1.x)));
    let w = bilinear_weights(f);
    if ((d.flags & OPAQUE) != 0u) {
        return vec4<f32>(weighted_sum(t00, t10, t01, t11, w).xyz, 1.0f);
    }
    let share = w * (vec4<f32>(t00.w, t10.w, t01.w, t11.w) * 0.0039215686f);
    let rgb = weighted_sum(t00, t10, t01, t11, share).xyz;
    return vec4<f32>(rgb, (share.x + share.y) + (share.z + share.w));
}

fn nearest_texel(d: Draw, spot: vec2<f32>) -> u32 {
    let crop = d.crop;
    let low = floor(crop.xy);
    let high = max(low, ceil(crop.zw) - vec2<f32>(1.0f));
    return texel_at(d, vec2<i32>(clamp(floor(spot), low, high)));
}

// Straight bytes.
fn sampled(d: Draw, point: vec2<f32>) -> u32 {
    let scale = d.scale;
    let taps = max(d.taps, vec2<i32>(1));
    let first = (point + d.extent) * scale + d.start;
    let nearest = (d.flags & NEAREST) != 0u;
    if (nearest && all(taps == vec2<i32>(1))) {
        return nearest_texel(d, first);
    }
    let step = vec2<f32>(1.0f) / vec2<f32>(taps);
    var total = vec4<f32>(0.0f);
    for (var y = 0; y < taps.y; y++) {
        for (var x = 0; x < taps.x; x++) {
            let off = (vec2<f32>(vec2<i32>(x, y)) + vec2<f32>(0.5f)) * step - vec2<f32>(0.5f);
            let spot = first + off * scale;
            if (nearest) {
                total += weighted(nearest_texel(d, spot));
            } else {
                total += sample_bilinear(d, spot);
            }
        }
    }
    total *= step.x * step.y;
    return pack_rgba(vec4<f32>(total.xyz / max(total.w, 1e-20f), total.w * 255.0f));
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

fn drawn(d: Draw, whole: bool, at: vec2<f32>, pixel: u32) -> u32 {
    let off = at - d.center;
    let point = vec2<f32>(off.x * d.turn.x + off.y * d.turn.y, off.y * d.turn.x - off.x * d.turn.y);
    var source = d.color;
    if (d.kind == PICTURE || d.kind == TINT) {
        let texel = sampled(d, point);
        let alpha = ((source >> 24u) * (texel >> 24u) + 127u) / 255u;
        source = select((source & 0xffffffu) | (alpha << 24u), texel, d.kind == PICTURE);
    }
    var share = d.opacity;
    if (!whole) {
        share = u32(coverage(d, point) * f32(share) + 0.5f);
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
    var miss = any(near > extent + vec2<f32>(4.5f * width));
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
                            let center = vec2<f32>(vec2<i32>(x, row)) + vec2<f32>(0.5f);
                            pixel = drawn(d, whole, center, pixel);
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
