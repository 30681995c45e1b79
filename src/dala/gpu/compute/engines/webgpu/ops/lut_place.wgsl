// Where a color is in a 3D table, blue the innermost axis.

struct Block {
    width: u32,
    height: u32,
    size: u32,
    // The alpha of a color without one, and the factor of an alpha.
    white: f32,
    low: vec3<f32>,
    alpha: f32,
    scale: vec3<f32>,
    // The weights of the table's color and of the original color.
    amount: f32,
    keep: f32,
    // size - 1
    last: f32,
}

struct Place {
    cell: vec3<f32>,
    // The distance from the near corner of the cell, 0 to 1.
    part: vec3<f32>,
}

fn place(c: vec3<f32>) -> Place {
    let raw = (c - p.low) * p.scale;
    let t = min($positive, vec3<f32>(p.last));
    let cell = min(floor(t), vec3<f32>(p.last - 1.0f));
    return Place(cell, t - cell);
}

// The number of a cell where an axis has so many. 2**23 + i has the integer i in its low bits, and
// conversions are slow on many GPUs. Tables have at most 129**3 entries, which is less than 2**23.
fn number_of(cell: vec3<f32>, count: f32) -> u32 {
    return bitcast<u32>((cell.x * count + cell.y) * count + (cell.z + 8388608.0f)) & 0x7fffffu;
}
