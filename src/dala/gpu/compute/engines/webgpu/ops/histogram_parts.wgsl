// The parts of histogram.wgsl.

// --- clear
for (var i = t; i < ${size}u; i += 256u) { atomicStore(&counters[i], 0u); }
    workgroupBarrier();

// --- gather
workgroupBarrier();
    for (var i = t; i < p.bins; i += 256u) {
        var sum = 0u;
        for (var c = i; c < ${size}u; c += ${stride}u) { sum += atomicLoad(&counters[c]); }
        if (sum > 0u) { atomicAdd(&output[i], sum); }
    }

// --- by table
fn bin(x: u32) -> u32 {
    return edges[x];
}

// --- by guess
fn bin(x: $kind) -> u32 {
    if ($nan!(x >= edges[0] && x <= edges[p.used])) { return 0xffffffffu; }
    var g = u32(clamp($distance * bitcast<f32>(p.scale), 0.0f, f32(p.used - 1u)));
    g = min(g, p.used - 1u);
    while (x < edges[g]) { g -= 1u; }
    while (g + 1u < p.used && x >= edges[g + 1u]) { g += 1u; }
    return g;
}

// A guess in f32 may be too far off for 64-bit numbers, so these use a binary search.
// --- by halves
fn bin(x: $kind) -> u32 {
    if ($nan!(x >= edges[0] && x <= edges[p.used])) { return 0xffffffffu; }
    var low = 0u;
    var high = p.used;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (x >= edges[middle]) { low = middle; } else { high = middle; }
    }
    return low;
}
