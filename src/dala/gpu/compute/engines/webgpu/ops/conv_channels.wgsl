
// Rows by window position, then channel; the channels of a group are a multiple of four.

fn window_at(o: vec3<i32>, place: u32, plane: u32) -> i32 {
    let y = o.x + i32(place / ${WIDTH}u * p.dilation_y);
    let x = o.y + i32(place % ${WIDTH}u * p.dilation_x);
    if (u32(y) >= p.height || u32(x) >= p.width) { return -1; }
    return o.z + i32(plane) + y * i32(p.width) + x;
}

fn pixel(at: i32, plane: i32) -> $T {
    if (at < 0) { return $T(0); }
    return b[at + plane];
}

fn fetch_right(
    o0: vec3<i32>, o1: vec3<i32>, o2: vec3<i32>, o3: vec3<i32>, column: u32, k: u32, end: u32
) -> Four {
    if (k >= end) { return Four(); }
    let place = k / p.channels;
    let step = i32(p.height * p.width);
    let plane = k % p.channels * p.height * p.width;
    let a0 = window_at(o0, place, plane);
    let a1 = window_at(o1, place, plane);
    let a2 = window_at(o2, place, plane);
    let a3 = window_at(o3, place, plane);
    return Four(
        vec4<$T>(pixel(a0, 0), pixel(a1, 0), pixel(a2, 0), pixel(a3, 0)),
        vec4<$T>(pixel(a0, step), pixel(a1, step), pixel(a2, step), pixel(a3, step)),
        vec4<$T>(
            pixel(a0, 2 * step), pixel(a1, 2 * step), pixel(a2, 2 * step), pixel(a3, 2 * step)),
        vec4<$T>(
            pixel(a0, 3 * step), pixel(a1, 3 * step), pixel(a2, 3 * step), pixel(a3, 3 * step)));
}

fn fetch_left_line(first: u32, row: u32) -> vec4<$T> {
    if (row >= p.rows) { return vec4<$T>(); }
    let at = first + row * p.inner;
    return vec4<$T>(a[at], a[at + ${WINDOW}u], a[at + 2u * ${WINDOW}u], a[at + 3u * ${WINDOW}u]);
}

fn fetch_left(place: u32, row: u32, k: u32, end: u32) -> Four {
    if (k >= end) { return Four(); }
    let first = place + k % p.channels * ${WINDOW}u + k / p.channels;
    let r0 = fetch_left_line(first, row);
    let r1 = fetch_left_line(first, row + 1u);
    let r2 = fetch_left_line(first, row + 2u);
    let r3 = fetch_left_line(first, row + 3u);
    return Four(
        vec4<$T>(r0.x, r1.x, r2.x, r3.x), vec4<$T>(r0.y, r1.y, r2.y, r3.y),
        vec4<$T>(r0.z, r1.z, r2.z, r3.z), vec4<$T>(r0.w, r1.w, r2.w, r3.w));
}
