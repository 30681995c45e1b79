"""Waves on a picture, from rain and from the pointer."""

from dala.gpu.compute import (
    FrameNumber,
    Image,
    Pointer,
    Resolution,
    exp,
    position,
    program,
    random,
    rgba,
    target,
    vec2,
    vec4,
)


@program
def water(img: Image, *, depth: float = 30.0, rain: float = 0.3):
    @target(size=0.5, dtype="f32")
    def waves(waves: Image, *, n: FrameNumber, at: Pointer, size: Resolution):
        y, x = position()
        now, before = waves[0, 0].r, waves[0, 0].g
        mean = (waves[-1, 0].r + waves[1, 0].r + waves[0, -1].r + waves[0, 1].r) / 4
        after = (now + (now - before) + 0.9 * (mean - now)) * 0.992
        drop = vec2(random(n, 1) * size.x, random(n, 2) * size.y)
        place = vec2(at.x / 2, at.y / 2) if at.z > 0.5 else drop
        force = 0.6 if at.z > 0.5 or random(n, 3) < rain else 0.0
        dx, dy = x - place.x, y - place.y
        return vec4(after + force * exp(-(dx * dx + dy * dy) / 12), now, 0, 1)

    def picture(waves: Image):
        y, x = position()
        a = waves.sample(x / 2 + 0.75, y / 2 - 0.25).r - waves.sample(x / 2 - 1.25, y / 2 - 0.25).r
        b = waves.sample(x / 2 - 0.25, y / 2 + 0.75).r - waves.sample(x / 2 - 0.25, y / 2 - 1.25).r
        return rgba(
            img.sample(x + a * depth, y + b * depth, edge="mirror").rgb + (a + b) * 0.3, 1.0
        )
