// Hysteresis. The first part belongs to every shader; each other part is one dispatch.

struct Block {
    width: u32,
    height: u32,
    count: u32,
    spare: u32,
}

fn index_of(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * ${group}u + lane;
}

// ---
// Every pixel is the root of its own component.

@group(0) @binding(0) var<storage, read_write> labels: array<u32>;
@group(0) @binding(1) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = index_of(group, groups, lane);
    if (i < p.count) { labels[i] = i; }
}

// ---
// Join each pixel with those of its left, upper left, upper and upper right neighbors that count.
// A root has the lowest index of its component, so labels only decrease and every search ends.

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> labels: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

fn counts(i: u32) -> bool {
    return ((source[i / 4u] >> (8u * (i % 4u))) & 255u) != 0u;
}

fn root(start: u32) -> u32 {
    var i = start;
    loop {
        let above = atomicLoad(&labels[i]);
        if (above == i) { break; }
        i = above;
    }
    return i;
}

fn join(first: u32, second: u32) {
    var a = root(first);
    var b = root(second);
    loop {
        if (a == b) { break; }
        let high = max(a, b);
        let low = min(a, b);
        let before = atomicMin(&labels[high], low);
        if (before == high) { break; }
        // Another invocation gave the root a label meanwhile: join that one.
        a = root(before);
        b = root(low);
    }
}

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = index_of(group, groups, lane);
    if (i >= p.count) { return; }
    if (!counts(i)) { return; }
    let x = i % p.width;
    if (x > 0u && counts(i - 1u)) { join(i, i - 1u); }
    if (i < p.width) { return; }
    let up = i - p.width;
    if (counts(up)) { join(i, up); }
    if (x > 0u && counts(up - 1u)) { join(i, up - 1u); }
    if (x + 1u < p.width && counts(up + 1u)) { join(i, up + 1u); }
}

// ---
// Mark the components of strong pixels.

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> strong: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = index_of(group, groups, lane);
    if (i >= p.count) { return; }
    if (((source[i / 4u] >> (8u * (i % 4u))) & 255u) != 255u) { return; }
    var at = i;
    while (labels[at] != at) { at = labels[at]; }
    atomicStore(&strong[at], 1u);
}

// ---
// Write four pixels: those that count and whose component is strong.

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read> strong: array<u32>;
@group(0) @binding(3) var<storage, read_write> result: array<u32>;
@group(0) @binding(4) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let word = index_of(group, groups, lane);
    if (word * 4u >= p.count) { return; }
    var made = 0u;
    for (var k = 0u; k < 4u; k++) {
        let i = word * 4u + k;
        if (i < p.count && ((source[word] >> (8u * k)) & 255u) != 0u) {
            var at = i;
            while (labels[at] != at) { at = labels[at]; }
            if (strong[at] != 0u) { made |= 255u << (8u * k); }
        }
    }
    result[word] = made;
}
