"""A Julia set; the pointer chooses its constant."""

from dala.gpu.compute import (
    Pointer,
    Resolution,
    Time,
    cos,
    dot,
    kernel,
    log2,
    position,
    rgba,
    sin,
    vec2,
)


@kernel
def julia(*, time: Time, at: Pointer, size: Resolution, zoom: float = 1.3):
    y, x = position()
    z = vec2((x - size.x / 2) / size.y, (y - size.y / 2) / size.y) * 2 * zoom
    c = vec2(cos(time * 0.3), sin(time * 0.3)) * 0.7885
    if at.z > 0.5:
        c = vec2(at.x / size.x - 0.5, at.y / size.y - 0.5) * 2.4
    n = 0
    while n < 96 and dot(z, z) < 64.0:
        z = vec2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c
        n += 1
    smooth = (n + 3.0 - log2(log2(dot(z, z) + 1.0) + 1.0)) * 0.12
    inside = 0.0 if n > 95 else 1.0
    return rgba(inside * (0.5 - 0.5 * cos(smooth)), inside * (0.5 - 0.5 * cos(smooth * 1.3)),
                inside * (0.5 - 0.5 * cos(smooth * 1.7 + 0.4)), 1.0)  # fmt: skip
