struct Found {
    near: vec2<u32>,
    first: vec2<u32>,
    second: vec2<u32>,
    far: vec2<u32>,
    part: vec3<u32>,
}

// Go from the near corner to the far one, along the axis with the largest fraction first; among
// equal ones red, then green.
fn find(c: vec3<u32>) -> Found {
    let at = place(c);
    let part = at.part;
    let base = number_of(at.cell, p.size);
    let step = vec2<u32>(p.size * p.size, p.size);
    let far = base + step.x + step.y + 1u;
    let up = select(select(1u, step.y, part.y >= part.z), select(1u, step.x, part.x >= part.z),
        part.x >= part.y);
    let off = select(select(step.x, 1u, part.x >= part.z), select(step.y, 1u, part.y >= part.z),
        part.x >= part.y);
    return Found(table[base], table[base + up], table[far - off], table[far], part);
}

fn blend(f: Found) -> vec3<u32> {
    return summed(vec4<u32>(f.near.x, f.first.x, f.second.x, f.far.x),
        vec4<u32>(f.near.y, f.first.y, f.second.y, f.far.y), f.part);
}
