"""Bright places glow: a pyramid of three smaller pictures, spread and added."""

from dala.gpu.compute import Image, Resolution, clamp, dot, position, program, rgba, target, vec2


@program
def glow(img: Image, *, amount: float = 1.2, threshold: float = 0.55):
    def wide(small: Image, size: vec2):
        y, x = position()
        u, v = (x + 0.5) / size.x, (y + 0.5) / size.y
        dx, dy = 0.75 / small.width, 0.75 / small.height
        total = small.sample_uv(u - dx, v - dy).rgb + small.sample_uv(u + dx, v - dy).rgb
        return (
            total + small.sample_uv(u - dx, v + dy).rgb + small.sample_uv(u + dx, v + dy).rgb
        ) / 4

    @target(size=0.5)
    def half(*, size: Resolution):
        c = wide(img, size)
        return c * clamp((dot(c, (0.3, 0.6, 0.1)) - threshold) * 4, 0.0, 1.0)

    @target(size=0.25)
    def quarter(half: Image, *, size: Resolution):
        return wide(half, size)

    @target(size=0.125)
    def eighth(quarter: Image, *, size: Resolution):
        return wide(quarter, size)

    def picture(half: Image, quarter: Image, eighth: Image, *, size: Resolution):
        light = wide(half, size) + wide(quarter, size) + wide(eighth, size)
        return rgba(img[0, 0].rgb + light * amount / 3, img[0, 0].a)
