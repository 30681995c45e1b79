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
    return c.x | (c.y << 8u) | (c.z << 16u) | (word & 0xff000000u);
}
