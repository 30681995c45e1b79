"""A picture in a kaleidoscope that turns."""

from dala.gpu.compute import (
    Image,
    Time,
    abs,
    atan2,
    cos,
    kernel,
    length,
    mod,
    pi,
    position,
    sin,
    tau,
    vec2,
)


@kernel
def kaleidoscope(img: Image, *, time: Time, mirrors: int = 6, zoom: float = 1.2):
    y, x = position()
    p = vec2(x - img.width / 2, y - img.height / 2)
    wedge = tau / mirrors
    angle = abs(mod(atan2(p.y, p.x) + time * 0.1, wedge) - wedge / 2) + time * 0.07
    r = length(p) / zoom
    u = img.width / 2 + r * cos(angle) + 40 * sin(time * 0.2)
    return img.sample(u, img.height / 2 + r * sin(angle + pi / 5), edge="mirror")
