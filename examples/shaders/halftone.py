"""A picture as the dots of a newspaper: each ink has a screen of its own angle."""

from dala.gpu.compute import (
    Image,
    cos,
    floor,
    kernel,
    length,
    position,
    rgba,
    sin,
    smoothstep,
    vec2,
)


@kernel
def halftone(img: Image, *, dot_size: float = 6.0, turn: float = 0.0):
    def ink(img: Image, angle: float, dot_size: float, channel: int):
        y, x = position()
        c, s = cos(angle), sin(angle)
        p = vec2(c * x + s * y, c * y - s * x) / dot_size
        q = (floor(p) + 0.5) * dot_size
        color = img.sample(c * q.x - s * q.y, s * q.x + c * q.y).rgb
        dark = 1 - (color.r if channel < 1 else color.g if channel < 2 else color.b)
        d = length(vec2(p.x - floor(p.x) - 0.5, p.y - floor(p.y) - 0.5))
        return smoothstep(-0.08, 0.08, d - dark**0.5 * 0.68)

    return rgba(ink(img, 0.26 + turn, dot_size, 0), ink(img, 1.31 + turn, dot_size, 1),
                ink(img, turn, dot_size, 2), 1.0)  # fmt: skip
