"""A fluid that the pointer stirs: the velocity carries itself and a dye along."""

from dala.gpu.compute import (
    Image,
    Pointer,
    Resolution,
    Time,
    clamp,
    cos,
    dot,
    exp,
    position,
    program,
    rgba,
    sin,
    target,
    vec2,
    vec3,
    vec4,
)


@program
def fluid(*, swirl: float = 0.4):
    @target(size=0.5, dtype="f32")
    def flow(flow: Image, *, at: Pointer, time: Time, size: Resolution):
        y, x = position()
        v = flow[0, 0]
        old = flow.sample(x - v.x, y - v.y)
        push = vec2(flow[-1, 0].z - flow[1, 0].z, flow[0, -1].z - flow[0, 1].z)
        spread = flow[1, 0].x - flow[-1, 0].x + flow[0, 1].y - flow[0, -1].y
        pressure = (flow[-1, 0].z + flow[1, 0].z + flow[0, -1].z + flow[0, 1].z - spread * 0.5) / 4
        middle = vec2(size.x * (0.5 + 0.3 * sin(time)), size.y * (0.5 + 0.3 * sin(time * 1.7)))
        place = vec2(at.x / 2, at.y / 2) if at.z > 0.5 else middle
        d = vec2(x - place.x, y - place.y)
        near = exp(-dot(d, d) / 200)
        force = vec2(cos(time * 3), sin(time * 2)) * near * swirl
        return vec4((old.x + push.x * 0.5) * 0.999 + force.x,
                    (old.y + push.y * 0.5) * 0.999 + force.y, pressure, near)  # fmt: skip

    @target(size=0.5, dtype="f32")
    def dye(dye: Image, flow: Image, *, time: Time):
        y, x = position()
        v = flow[0, 0]
        old = dye.sample(x - v.x * 2, y - v.y * 2).rgb * 0.996
        color = 0.5 + 0.5 * sin(time + vec3(0.0, 2.0, 4.0))
        return rgba(clamp(old + color * v.w * 0.15, 0.0, 4.0), 1.0)

    def picture(dye: Image):
        y, x = position()
        c = dye.sample(x / 2 - 0.25, y / 2 - 0.25).rgb
        return rgba(1 - exp(0 - c), 1.0)
