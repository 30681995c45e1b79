"""Filters that look at neighbouring pixels.

Beyond its border an image goes on with its outermost pixels (clamped). Alpha is kept. Colours are
those of the stored pixels: the colour of a transparent pixel counts like any other.
"""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Image, Within

__all__ = ["beauty", "denoise", "dilate", "edge_detect", "erode", "median", "sharpen"]


def sharpen(img: Image, *, amount: Within[float, -inf, inf] = 0.5):
    """centre * (1 + 4 * amount) - amount * (sum of the four neighbours)"""
    centre = img[0, 0]
    around = img[-1, 0].rgb + img[1, 0].rgb + img[0, -1].rgb + img[0, 1].rgb
    return rgba(centre.rgb * (1.0 + 4.0 * amount) - around * amount, centre.a)


def edge_detect(img: Image, *, amount: Within[float, -inf, inf] = 1.0):
    """Sobel magnitude of the BT.601 luma, amount * sqrt(gx**2 + gy**2), in all three channels

    gx is the 3x3 Sobel sum ``(-1 0 1; -2 0 2; -1 0 1)``, gy its transpose, neither divided: a step
    from black to white gives 4, stored as white. An amount of 0.25 keeps straight edges in range.
    """

    def luma(px):
        return dot(px.rgb, (0.299, 0.587, 0.114))

    nw, n, ne = luma(img[-1, -1]), luma(img[0, -1]), luma(img[1, -1])
    w, e = luma(img[-1, 0]), luma(img[1, 0])
    sw, s, se = luma(img[-1, 1]), luma(img[0, 1]), luma(img[1, 1])
    gx = (ne - nw) + 2.0 * (e - w) + (se - sw)
    gy = (sw - nw) + 2.0 * (s - n) + (se - ne)
    edge = sqrt(gx * gx + gy * gy) * amount
    return rgba(edge, edge, edge, img[0, 0].a)


def denoise(
    img: Image,
    *,
    radius: Within[int, 0, 16] = 2,
    sigma_space: Within[float, 0.001, 1000.0] = 2.0,
    sigma_color: Within[float, 0.001, 1000.0] = 0.1,
):
    """Bilateral filter: the mean of the square around, near places and like colours counting most

    A pixel at (dx, dy) weighs
    ``exp(-(dx**2 + dy**2) / (2 * sigma_space**2) - d / (2 * sigma_color**2))``, where d is the mean
    over r, g and b of its squared difference from the centre. radius within 0..16 (0 changes
    nothing); sigma_space in pixels, sigma_color of 1.0, both within 0.001..1000.
    """
    by_place = -0.5 / (sigma_space * sigma_space)
    by_color = -0.5 / (sigma_color * sigma_color * 3.0)
    centre = img[0, 0]
    total = centre.rgb * 0.0
    weights = 0.0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            c = img[dx, dy].rgb
            off = c - centre.rgb
            weight = exp(float(dx * dx + dy * dy) * by_place + dot(off, off) * by_color)
            total += c * weight
            weights += weight
    return rgba(total / weights, centre.a)


def beauty(img: Image, *, amount: Within[float, 0.0, 1.0] = 0.7, radius: Within[int, 0, 32] = 5):
    """Smooths skin-like colours and keeps edges: mix(c, smooth, amount * skin(smooth))

    smooth is a bilateral mean as in ``denoise``, with sigma_space = (radius + 1) / 2 and
    sigma_color = 0.08. From a radius of 3 on it is taken over 7x7 pixels spread over the square (at
    the nearest of i * radius / 3, i from -3 to 3), so that the work does not grow with the radius.
    skin is 1 where BT.601 chroma lies within Cb -0.19..-0.03 and Cr 0.035..0.17, falling smoothly
    to 0 over 0.03 around; gray pictures do not change. amount within 0..1, radius within 0..32; 0
    changes nothing.
    """

    def window(low, high, v):
        return smoothstep(low - 0.03, low, v) * (1.0 - smoothstep(high, high + 0.03, v))

    near = (float(radius) + 1.0) * 0.5
    by_place = -0.5 / (near * near)
    by_color = -0.5 / (0.08 * 0.08 * 3.0)
    centre = img[0, 0]
    total = centre.rgb * 0.0
    weights = 0.0
    side = min(radius, 3)
    spread = max(radius, 3)
    for j in range(-side, side + 1):
        dy = (j * spread + 1) // 3
        for i in range(-side, side + 1):
            dx = (i * spread + 1) // 3
            c = img[dx, dy].rgb
            off = c - centre.rgb
            weight = exp(float(dx * dx + dy * dy) * by_place + dot(off, off) * by_color)
            total += c * weight
            weights += weight
    smooth = total / weights
    luma = dot(smooth, (0.299, 0.587, 0.114))
    cb = (smooth.b - luma) / 1.772
    cr = (smooth.r - luma) / 1.402
    skin = window(-0.19, -0.03, cb) * window(0.035, 0.17, cr)
    return rgba(mix(centre.rgb, smooth, amount * skin), centre.a)


def erode(img: Image, *, radius: Within[int, 0, 32] = 1):
    """The smallest of each channel within a square, 2 * radius + 1 wide; radius within 0..32"""
    least = img[0, 0].rgb
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            least = min(least, img[dx, dy].rgb)
    return rgba(least, img[0, 0].a)


def dilate(img: Image, *, radius: Within[int, 0, 32] = 1):
    """The largest of each channel within a square, 2 * radius + 1 wide; radius within 0..32"""
    most = img[0, 0].rgb
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            most = max(most, img[dx, dy].rgb)
    return rgba(most, img[0, 0].a)


def median(img: Image):
    """The median of each channel over the 3x3 square: exact, the fifth of the nine values"""

    def middle(a, b, c):
        return max(min(a, b), min(max(a, b), c))

    a = img[-1, -1].rgb
    b = img[-1, 0].rgb
    c = img[-1, 1].rgb
    d = img[0, -1].rgb
    e = img[0, 0].rgb
    f = img[0, 1].rgb
    g = img[1, -1].rgb
    h = img[1, 0].rgb
    i = img[1, 1].rgb
    # With each column of three sorted, the median of all is the middle one of: the largest of the
    # lows, the middle one of the middles, the smallest of the highs.
    lows = max(min(a, b, c), min(d, e, f), min(g, h, i))
    middles = middle(middle(a, b, c), middle(d, e, f), middle(g, h, i))
    highs = min(max(a, b, c), max(d, e, f), max(g, h, i))
    return rgba(middle(lows, middles, highs), img[0, 0].a)
