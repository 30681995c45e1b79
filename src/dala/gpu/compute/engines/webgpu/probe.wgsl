struct Block { turns: u32, }
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> p: Block;
@compute @workgroup_size(1)
fn main() {
    var made = 0u;
    for (var i = 0u; i < p.turns; i += 1u) {
        made = made * 3u + i;
        output[1] = made;
        output[0] = i;
    }
}
