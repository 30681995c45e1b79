struct Found {
    n000: vec4<f32>,
    n001: vec4<f32>,
    n010: vec4<f32>,
    n011: vec4<f32>,
    n100: vec4<f32>,
    n101: vec4<f32>,
    n110: vec4<f32>,
    n111: vec4<f32>,
    part: vec3<f32>,
}

fn find(c: vec3<f32>) -> Found {
    let at = place(c);
    let n00 = number_of(at.cell, p.last + 1.0f);
    let n01 = n00 + p.size;
    let n10 = n00 + p.size * p.size;
    let n11 = n10 + p.size;
    return Found(entry(n00), entry(n00 + 1u), entry(n01), entry(n01 + 1u), entry(n10), entry(n10 + 1u),
        entry(n11), entry(n11 + 1u), at.part);
}

// Not mix(): some drivers compute a + (b - a) * t, which is NaN for an infinite entry.
fn blend(f: Found) -> vec3<f32> {
    let part = f.part;
    let rest = 1.0f - part;
    let n00 = f.n000 * rest.z + f.n001 * part.z;
    let n01 = f.n010 * rest.z + f.n011 * part.z;
    let n10 = f.n100 * rest.z + f.n101 * part.z;
    let n11 = f.n110 * rest.z + f.n111 * part.z;
    return ((n00 * rest.y + n01 * part.y) * rest.x + (n10 * rest.y + n11 * part.y) * part.x).xyz;
}
