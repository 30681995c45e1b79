// Bluestein's algorithm for a transform of any length: multiply by a chirp, convolve with a chirp.
// This multiplies the numbers of lines by a table, and changes their layout.

struct Numbers {
    // The output: the number of lines and their length.
    lines: u32,
    size: u32,
    // Numbers of a line to read; the rest are zeros.
    length: u32,
    // Lines that are interleaved in the input and in the output.
    read_inner: u32,
    read_line: u32,
    write_inner: u32,
    write_line: u32,
    divisor: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> a: array<$SOURCE>;
@group(0) @binding(1) var<storage, read> table: array<vec2<$T>>;
@group(0) @binding(2) var<storage, read_write> out: array<$TARGET>;
@group(0) @binding(3) var<uniform> p: Numbers;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) id: u32) {
    let i = (group.y * groups.x + group.x) * 256u + id;
    if (i >= p.lines * p.size) { return; }
    let inner = i % p.write_inner;
    let n = i / p.write_inner % p.size;
    let line = i / p.write_inner / p.size * p.write_inner + inner;
    var v = vec2<$T>();
    if (n < p.length) {
        let at = line / p.read_inner * p.read_line * p.read_inner + line % p.read_inner;
        let read = a[at + n * p.read_inner];
        let w = table[n];
        v = $LOAD;
        v = vec2<$T>(v.x * w.x - v.y * w.y, v.x * w.y + v.y * w.x);
    }
    let to = line / p.write_inner * p.write_line * p.write_inner + line % p.write_inner;
    out[to + n * p.write_inner] = $STORE;
}
