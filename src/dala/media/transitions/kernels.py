"""The kernels of the transitions: two pictures, and the progress ``t`` from 0 to 1.

Pictures have straight alpha; colors are mixed premultiplied. At 0 the result is the first picture
and at 1 the second, bit by bit: where a weight is 0 or 1 there is no arithmetic.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.kernel import Kernel
from dala.media.kernels import kernel_from_text

#: Mixes two pixels by a weight.
_CROSS: Final = """
    def cross(p: vec4, q: vec4, w):
        alpha = mix(p.a, q.a, w)
        mixed = mix(p.rgb * p.a, q.rgb * q.a, w)
        color = mixed / alpha if alpha > 0.0 else mix(p.rgb, q.rgb, w)
        made = rgba(color, alpha)
        if w <= 0.0:
            made = rgba(p.rgb, p.a)
        if w >= 1.0:
            made = rgba(q.rgb, q.a)
        return made
"""

#: The weight of the second picture where a border passes place s, from 0 to 1, softly.
_EDGE: Final = """
    def edge(t, s, soft):
        return clamp((t * (1.0 + soft) - s) / soft, 0.0, 1.0)
"""

#: Head, helpers and body of each kernel.
_TEXTS: Final = {
    "dissolve": ("a: Pixel, b: Pixel, *, t: float", _CROSS, """
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), t)
"""),
    "fade": ("a: Pixel, b: Pixel, *, t: float, color: vec4", _CROSS, """
    p, q = vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a)
    leaving = cross(p, color, min(2.0 * t, 1.0))
    return leaving if t < 0.5 else cross(color, q, 2.0 * t - 1.0)
"""),
    "wipe": ("a: Pixel, b: Pixel, *, t: float, direction: vec2, softness: float",
             _CROSS + _EDGE, """
    y, x = position()
    width, height = float(shape()[1]), float(shape()[0])
    reach = (width * abs(direction.x) + height * abs(direction.y)) * 0.5
    along = (float(x) + 0.5 - width * 0.5) * direction.x
    along += (float(y) + 0.5 - height * 0.5) * direction.y
    s = clamp((along + reach) / (2.0 * reach), 0.0, 1.0)
    w = edge(t, s, max(softness, 0.5 / reach))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "iris": ("a: Pixel, b: Pixel, *, t: float, center: vec2, softness: float", _CROSS + _EDGE, """
    y, x = position()
    width, height = float(shape()[1]), float(shape()[0])
    across = max(center.x, 1.0 - center.x) * width
    down = max(center.y, 1.0 - center.y) * height
    reach = sqrt(across * across + down * down)
    dx = float(x) + 0.5 - center.x * width
    dy = float(y) + 0.5 - center.y * height
    s = min(sqrt(dx * dx + dy * dy) / reach, 1.0)
    w = edge(t, s, max(softness, 1.0 / reach))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "luma": ("a: Pixel, b: Pixel, matte: Pixel, *, t: float, softness: float, invert: bool",
             _CROSS + _EDGE, """
    level = clamp(dot(matte.rgb, (0.2126, 0.7152, 0.0722)), 0.0, 1.0)
    s = 1.0 - level if invert else level
    w = edge(t, s, max(softness, 0.004))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "slide": ("a: Image, b: Image, *, t: float, across: int, down: int", _CROSS, """
    y, x = position()
    # Places along the way of the second picture, which comes from where it is going to leave.
    size = a.width if across != 0 else a.height
    at = x if across != 0 else y
    back = across + down > 0
    at = size - 1 - at if back else at
    u = float(at) - (1.0 - t) * float(size)
    i = int(floor(u))
    f = u - floor(u)
    step = -1 if back else 1
    k, l = (i - at) * step, (i + 1 - at) * step
    here = a[0, 0]
    p = b[k if across != 0 else 0, k if across == 0 else 0] if i >= 0 else here
    q = b[l if across != 0 else 0, l if across == 0 else 0] if i + 1 >= 0 else here
    return cross(p, q, f)
"""),
    "push": ("a: Image, b: Image, *, t: float, across: int, down: int", _CROSS, """
    y, x = position()
    size = a.width if across != 0 else a.height
    at = x if across != 0 else y
    back = across + down > 0
    at = size - 1 - at if back else at
    u = float(at) + t * float(size)
    i = int(floor(u))
    f = u - floor(u)
    step = -1 if back else 1
    j = i + 1
    k = ((i if i < size else i - size) - at) * step
    l = ((j if j < size else j - size) - at) * step
    kx, ky = (k, 0) if across != 0 else (0, k)
    lx, ly = (l, 0) if across != 0 else (0, l)
    p = a[kx, ky] if i < size else b[kx, ky]
    q = a[lx, ly] if j < size else b[lx, ly]
    return cross(p, q, f)
"""),
    "zoom": ("a: Image, b: Image, *, t: float, amount: float, center: vec2", _CROSS + """
    def source(at, middle, scale):
        return float(at) if scale <= 1.0 else (float(at) + 0.5 - middle) / scale + middle - 0.5
""", """
    y, x = position()
    middle_x, middle_y = center.x * float(a.width), center.y * float(a.height)
    # Both are enlarged about the center, and read between four of their pixels.
    one, two = 1.0 + (amount - 1.0) * t, 1.0 + (amount - 1.0) * (1.0 - t)
    u, v = source(x, middle_x, one), source(y, middle_y, one)
    i, j = int(floor(u)) - x, int(floor(v)) - y
    above = cross(a[i, j], a[i + 1, j], u - floor(u))
    below = cross(a[i, j + 1], a[i + 1, j + 1], u - floor(u))
    first = cross(above, below, v - floor(v))
    u, v = source(x, middle_x, two), source(y, middle_y, two)
    i, j = int(floor(u)) - x, int(floor(v)) - y
    above = cross(b[i, j], b[i + 1, j], u - floor(u))
    below = cross(b[i, j + 1], b[i + 1, j + 1], u - floor(u))
    second = cross(above, below, v - floor(v))
    return cross(first, second, t * t * (3.0 - 2.0 * t))
"""),
}  # fmt: skip


@cache
def transition_kernel(name: str) -> Kernel:
    """Return the kernel of a built-in transition."""
    head, helpers, body = _TEXTS[name]
    lines = (f"def transition_{name}({head}):", helpers.strip("\n"), body.strip("\n"))
    return kernel_from_text("\n".join(lines))
