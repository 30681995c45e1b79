"""Stained glass: cells of random points, each with one color of the picture, in lead."""

from dala.gpu.compute import (
    Image,
    Time,
    abs,
    clamp,
    floor,
    kernel,
    position,
    random,
    rgba,
    sin,
    vec2,
)


@kernel
def glass(img: Image, *, time: Time, cell: float = 28.0, lead: float = 2.0):
    y, x = position()
    p = vec2(x / cell, y / cell)
    first, second, best = 9.0, 9.0, vec2(0.0, 0.0)
    for j in range(3):
        for i in range(3):
            c = floor(p) + vec2(i - 1, j - 1)
            q = (
                c
                + 0.5
                + 0.4 * sin(time * 0.6 + vec2(random(c.x, c.y, 1), random(c.x, c.y, 2)) * 6.3)
            )
            d = abs(p.x - q.x) + abs(p.y - q.y)
            second = min(second, max(d, first))
            best = q if d < first else best
            first = min(first, d)
    line = clamp((second - first) * cell / lead - 0.6, 0.0, 1.0)
    color = img.sample(best.x * cell, best.y * cell).rgb
    return rgba((color * 1.15 + 0.04 * sin(x * 0.3 + y * 0.2)) * line, 1.0)
