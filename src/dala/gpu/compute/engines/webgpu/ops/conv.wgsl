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

fn pixel(o: vec3<i32>, dy: i32, dx: i32, plane: i32) -> $T {
    let y = o.x + dy;
    let x = o.y + dx;
    if (u32(y) >= p.height || u32(x) >= p.width) { return $T(0); }
    return b[o.z + plane + y * i32(p.width) + x];
}

fn fetch_right_line(
    o0: vec3<i32>, o1: vec3<i32>, o2: vec3<i32>, o3: vec3<i32>, k: u32, end: u32
) -> vec4<$T> {
    if (k >= end) { return vec4<$T>(); }
    let channel = k / $WINDOWu;
    let place = k % $WINDOWu;
    let dy = i32(place / $WIDTHu * p.dilation_y);
    let dx = i32(place % $WIDTHu * p.dilation_x);
    let plane = i32(channel * p.height * p.width);
    return vec4<$T>(
        pixel(o0, dy, dx, plane), pixel(o1, dy, dx, plane),
        pixel(o2, dy, dx, plane), pixel(o3, dy, dx, plane));
}

fn fetch_right(
    o0: vec3<i32>, o1: vec3<i32>, o2: vec3<i32>, o3: vec3<i32>, column: u32, k: u32, end: u32
) -> Four {
    return Four(
        fetch_right_line(o0, o1, o2, o3, k, end), fetch_right_line(o0, o1, o2, o3, k + 1u, end),
        fetch_right_line(o0, o1, o2, o3, k + 2u, end), fetch_right_line(o0, o1, o2, o3, k + 3u, end));
}

// The index of a result: images, then outputs, then positions.
fn out_at(row: u32, column: u32, group: u32) -> u32 {
    let output = (column / p.area * p.parts + group) * p.rows + row;
    return output * p.area + column % p.area;
}
