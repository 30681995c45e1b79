// Count the levels of the tiles of a picture: a workgroup counts some pixels of one tile.

struct Block {
    height: u32,
    width: u32,
    tall: u32,
    wide: u32,
    tiles: u32,
    columns: u32,
    parts: u32,
    length: u32,
}

@group(0) @binding(0) var<storage, read> a: array<$kind>;
@group(0) @binding(1) var<storage, read_write> output: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> p: Block;

var<workgroup> counters: array<atomic<u32>, ${size}>;

fn level(i: u32) -> u32 {
    $level
}

fn mirror(i: u32, size: u32) -> u32 {
    let period = max(2u * size, 3u) - 2u;
    let at = i % period;
    return min(min(at, period - at), size - 1u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    let number = group.y * groups.x + group.x;
    for (var i = t; i < ${size}u; i += 256u) { atomicStore(&counters[i], 0u); }
    workgroupBarrier();
    let tile = number / p.parts;
    if (tile < p.tiles) {
        let first = number % p.parts * p.length;
        let last = min(first + p.length, p.tall * p.wide);
        let top = tile / p.columns * p.tall;
        let left = tile % p.columns * p.wide;
        for (var i = first + t; i < last; i += 256u) {
            let y = mirror(top + i / p.wide, p.height);
            let x = mirror(left + i % p.wide, p.width);
            let at = (y * p.width + x) * ${channels}u;
            $count
        }
    }
    workgroupBarrier();
    if (tile < p.tiles) {
        for (var i = t; i < ${size}u; i += 256u) {
            let n = atomicLoad(&counters[i]);
            if (n > 0u) { atomicAdd(&output[tile * ${size}u + i], n); }
        }
    }
}
