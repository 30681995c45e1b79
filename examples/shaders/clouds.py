"""Clouds that drift: two layers of noise, lit from above."""

from dala.gpu.compute import Resolution, Time, clamp, fbm, kernel, mix, position, rgba, vec3


@kernel
def clouds(*, time: Time, size: Resolution, cover: float = 0.5, speed: float = 0.3):
    y, x = position()
    u, v = x / size.y * 3 + time * speed, y / size.y * 3
    warp = fbm(u * 0.7, v * 0.7, octaves=3)
    thick = fbm(u + warp, v - time * speed * 0.2 + warp) * 0.8 + cover
    lit = thick - (fbm(u + warp + 0.1, v - 0.15 + warp) * 0.8 + cover)
    sky = mix(vec3(0.25, 0.5, 0.85), vec3(0.75, 0.87, 0.98), y / size.y)
    white = clamp(0.82 + lit * 1.2, 0.4, 1.0)
    return rgba(mix(sky, vec3(white, white, white * 1.02), clamp(thick * 1.5, 0.0, 1.0)), 1.0)
