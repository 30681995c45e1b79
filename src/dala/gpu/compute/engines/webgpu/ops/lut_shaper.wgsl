// Write the position of each byte in a table behind curves.

@group(0) @binding(0) var<storage, read> lut: array<f32>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> table: array<u32>;
@group(0) @binding(3) var<uniform> p: Block;

@compute @workgroup_size($group)
fn main(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = (group.y * groups.x + group.x) * ${group}u + lane;
    if (n >= 768u) { return; }
    let channel = n / 256u;
    let numbers = vec3<i32>(p.numbers[channel].xyz);  // factor, exponent, bias
    let cell = min(places[n] >> 16u, p.first - 2u);
    let part = i32(places[n] - (cell << 16u));
    let at = cell * 3u + channel;
    let near = scaled(lut[at], u32(numbers.x), numbers.y);
    let grown = scaled(lut[at + 3u], u32(numbers.x), numbers.y) - near;
    // grown * part / 65536, rounded, in two parts.
    let more = ((grown >> 12u) * part + (((grown & 4095) * part + 32768) >> 12u)) >> 4u;
    table[n] = u32(clamp(near + numbers.z + more, 0, i32((p.size - 1u) << 16u)));
}
