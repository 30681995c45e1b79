
// Rows in the order of the weights: window positions within channels.

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
    let channel = k / ${WINDOW}u;
    let place = k % ${WINDOW}u;
    let dy = i32(place / ${WIDTH}u * p.dilation_y);
    let dx = i32(place % ${WIDTH}u * p.dilation_x);
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
