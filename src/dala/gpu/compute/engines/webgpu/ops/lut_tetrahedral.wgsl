struct Found {
    near: vec4<f32>,
    first: vec4<f32>,
    second: vec4<f32>,
    far: vec4<f32>,
    part: vec3<f32>,
}

// Go from the near corner to the far one, along the axis with the largest fraction first; among
// equal ones red, then green.
fn find(c: vec3<f32>) -> Found {
    let at = place(c);
    let part = at.part;
    let base = number_of(at.cell, p.last + 1.0f);
    let step = vec2<u32>(p.size * p.size, p.size);
    let far = base + step.x + step.y + 1u;
    let up = select(select(1u, step.y, part.y >= part.z), select(1u, step.x, part.x >= part.z),
        part.x >= part.y);
    let off = select(select(step.x, 1u, part.x >= part.z), select(step.y, 1u, part.y >= part.z),
        part.x >= part.y);
    return Found(entry(base), entry(base + up), entry(far - off), entry(far), part);
}

// An infinite entry counts even where its weight is 0.
fn blend(f: Found) -> vec3<f32> {
    let high = max(f.part.x, f.part.y);
    let less = min(f.part.x, f.part.y);
    let most = max(high, f.part.z);
    let least = min(less, f.part.z);
    let middle = max(less, min(high, f.part.z));
    return (f.near * (1.0f - most) + f.first * (most - middle) + f.second * (middle - least)
        + f.far * least).xyz;
}
