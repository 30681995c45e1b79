"""Two substances spread, feed on each other and decay: the patterns of Gray and Scott."""

from dala.gpu.compute import (
    FrameNumber,
    Image,
    clamp,
    mix,
    position,
    program,
    random,
    rgba,
    target,
    vec3,
    vec4,
)


@program
def reaction(*, feed: float = 0.037, kill: float = 0.06):
    def turn(s: Image, feed: float, kill: float):
        mean = (s[-1, 0] + s[1, 0] + s[0, -1] + s[0, 1]) / 5
        mean += (s[-1, -1] + s[1, -1] + s[-1, 1] + s[1, 1]) / 20
        u, v = s[0, 0].r, s[0, 0].g
        eaten = u * v * v
        return vec4(
            u + (mean.r - u) - eaten + feed * (1 - u),
            v + (mean.g - v) * 0.5 + eaten - (feed + kill) * v, 0, 1,
        )  # fmt: skip

    @target(size=0.5, dtype="f32")
    def half(cells: Image, *, n: FrameNumber):
        y, x = position()
        seed = vec4(1.0, 1.0 if random(x // 6, y // 6) < 0.05 else 0.0, 0.0, 1.0)
        return seed if n < 1 else turn(cells, feed, kill)

    @target(size=0.5, dtype="f32")
    def cells(half: Image):
        return turn(half, feed, kill)

    def picture(cells: Image):
        y, x = position()
        v = clamp(cells.sample(x / 2 - 0.25, y / 2 - 0.25).g * 3, 0.0, 1.0)
        return rgba(mix(vec3(0.02, 0.03, 0.12), vec3(1.0, 0.75, 0.35), v * v * (3 - 2 * v)), 1.0)
