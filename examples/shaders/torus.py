"""A torus that turns, found by marching along the ray of each pixel."""

from dala.gpu.compute import (
    Resolution,
    Time,
    clamp,
    cos,
    dot,
    exp,
    kernel,
    length,
    mat2,
    max,
    mix,
    normalize,
    position,
    rgba,
    sin,
    vec2,
    vec3,
)


@kernel
def torus(*, time: Time, size: Resolution, radius: float = 0.75, hue: float = 0.1):
    def distance_to(p: vec3, time: float, radius: float):
        c, s = cos(time), sin(time)
        q = mat2(c, s, 0 - s, c) @ vec2(p.y, p.z)
        w = mat2(cos(time * 0.7), sin(time * 0.7), 0 - sin(time * 0.7), cos(time * 0.7)) @ (
            p.x,
            q.y,
        )
        return length(vec2(length(vec2(w.x, q.x)) - radius, w.y)) - 0.32

    y, x = position()
    ray = normalize(vec3((x - size.x / 2) / size.y, (size.y / 2 - y) / size.y, -1.2))
    t, n, d = 1.0, 0, 1.0
    while n < 60 and d > 0.002 and t < 5.0:
        d = distance_to(vec3(0.0, 0.0, 2.6) + ray * t, time, radius)
        t += d
        n += 1
    p = vec3(0.0, 0.0, 2.6) + ray * t
    e, here = 0.003, distance_to(p, time, radius)
    normal = normalize(vec3(
        distance_to(p + vec3(e, 0.0, 0.0), time, radius) - here,
        distance_to(p + vec3(0.0, e, 0.0), time, radius) - here,
        distance_to(p + vec3(0.0, 0.0, e), time, radius) - here,
    ))  # fmt: skip
    light = clamp(dot(normal, normalize(vec3(0.5, 0.8, 0.6))), 0.0, 1.0)
    shine = max(dot(normal, normalize(vec3(0.3, 0.6, 1.0))), 0.0) ** 24
    back = mix(vec3(0.05, 0.06, 0.1), vec3(0.16, 0.18, 0.28), exp(0 - length(ray.xy) * 2))
    color = 0.6 + 0.4 * cos(vec3(0.0, 2.1, 4.2) + hue * 6.3)
    return rgba(color * (0.15 + 0.85 * light) + shine * 0.6 if d < 0.01 else back, 1.0)
