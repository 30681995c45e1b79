// Look up bytes in a 3D table, in the integers that engines/lookup.py defines. An entry is two words:
// red and green, blue.

struct Block {
    width: u32,
    height: u32,
    size: u32,
    keep: u32,
    shift: u32,
    below: i32,
}

@group(0) @binding(0) var<storage, read> source: array<$element>;
@group(0) @binding(1) var<storage, read> table: array<$entry>;
$bindings
@group(0) @binding($result) var<storage, read_write> result: array<$stored>;
@group(0) @binding($block) var<uniform> p: Block;

struct Place {
    cell: vec3<u32>,
    part: vec3<u32>,  // up to 65536
}

fn place(c: vec3<u32>) -> Place {
$place
    let cell = min(at >> vec3<u32>(16u), vec3<u32>(p.size - 2u));
    return Place(cell, at - (cell << vec3<u32>(16u)));
}

fn number_of(cell: vec3<u32>, count: u32) -> u32 {
    return (cell.x * count + cell.y) * count + cell.z;
}

fn finished(sum: vec3<u32>, c: vec3<u32>) -> vec3<u32> {
    let steps = vec3<i32>((sum + p.keep * c) >> vec3<u32>(p.shift)) - vec3<i32>(p.below);
    return vec3<u32>(clamp(steps, vec3<i32>(0), vec3<i32>(255)));
}

fn color(word: u32) -> vec3<u32> {
    return (vec3<u32>(word) >> vec3<u32>(0u, 8u, 16u)) & vec3<u32>(255u);
}

fn store(c: vec3<u32>, word: u32) -> u32 {
    return (c.x + (c.y << 8u)) + ((c.z << 16u) + (word & 0xff000000u));
}

// Add the corners of a tetrahedron, from the near one to the far one; red and green share words. The
// sum of whole words is that of red, plus that of green where it is in them.
fn summed(words: vec4<u32>, blue: vec4<u32>, part: vec3<u32>) -> vec3<u32> {
    let high = max(part.x, part.y);
    let less = min(part.x, part.y);
    let most = max(high, part.z);
    let least = min(less, part.z);
    let middle = max(less, min(high, part.z));
    let w = vec4<u32>(65536u - most, most - middle, middle - least, least);
    let over = words >> vec4<u32>(16u);
    let green = over.x * w.x + over.y * w.y + over.z * w.z + over.w * w.w;
    let both = words.x * w.x + words.y * w.y + words.z * w.z + words.w * w.w;
    return vec3<u32>(both - (green << 16u), green,
        blue.x * w.x + blue.y * w.y + blue.z * w.z + blue.w * w.w);
}
