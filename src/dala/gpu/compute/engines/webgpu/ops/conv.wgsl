// Read an image as the right side of a matrix product: row k is the channel and window position of
// one weight, a column is an output position in one image. Values outside the image are 0.

// The start of a column's window, and its channels in memory; far outside if there is none.
fn origin(column: u32, group: u32) -> vec3<i32> {
    if (column >= p.columns) { return vec3<i32>(-1073741824, -1073741824, 0); }
    let image = column / p.area;
    let within = column % p.area;
    let y = i32(within / p.out_width * p.stride_y) - i32(p.pad_y);
    let x = i32(within % p.out_width * p.stride_x) - i32(p.pad_x);
    return vec3<i32>(y, x, i32(image * p.image + group * p.part));
}

// The index of a result: images, then outputs, then positions.
fn out_at(row: u32, column: u32, group: u32) -> u32 {
    let output = (column / p.area * p.parts + group) * p.rows + row;
    return output * p.area + column % p.area;
}
