"""The documented formulas of the filters, in NumPy and double precision.

Each takes and returns (height, width, 4) of 0 to 1.
"""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np

LUMA = np.array([0.299, 0.587, 0.114])


def with_alpha(rgb, image):
    return np.concatenate([rgb, image[..., 3:]], axis=-1)


def luma_of(image):
    return (image[..., :3] @ LUMA)[..., None]


def chroma_of(color):
    """Return BT.601 (Cb, Cr), each from -0.5 to 0.5."""
    luma = color[..., :3] @ LUMA
    return np.stack([(color[..., 2] - luma) / 1.772, (color[..., 0] - luma) / 1.402], axis=-1)


def smoothstep(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def neighbors(image, radius, places=None):
    """Yield dx, dy and the image shifted by them over a square, clamped at the border."""
    height, width = image.shape[:2]
    padded = np.pad(image, [(radius, radius), (radius, radius), (0, 0)], mode="edge")
    places = range(-radius, radius + 1) if places is None else places
    for dy in places:
        for dx in places:
            top, left = radius + dy, radius + dx
            yield dx, dy, padded[top : top + height, left : left + width]


def around(image, radius):
    return np.stack([shifted[..., :3] for _, _, shifted in neighbors(image, radius)])


def bilateral(image, radius, sigma_space, sigma_color, places=None):
    total, weights = np.zeros_like(image[..., :3]), np.zeros_like(image[..., :1])
    for dx, dy, shifted in neighbors(image, radius, places):
        apart = np.mean((shifted[..., :3] - image[..., :3]) ** 2, axis=-1, keepdims=True)
        place = np.exp(-(dx**2 + dy**2) / (2 * sigma_space**2))
        weight = place * np.exp(-apart / (2 * sigma_color**2))
        total += weight * shifted[..., :3]
        weights += weight
    return total / weights


def grayscale(image):
    return with_alpha(np.repeat(luma_of(image), 3, axis=-1), image)


def brightness(image, value):
    return with_alpha(image[..., :3] + value, image)


def contrast(image, value):
    return with_alpha(0.5 + (image[..., :3] - 0.5) * (1 + value), image)


def saturation(image, value):
    luma = luma_of(image)
    return with_alpha(luma + (image[..., :3] - luma) * (1 + value), image)


def gamma(image, value):
    return with_alpha(np.maximum(image[..., :3], 0) ** (1 / value), image)


def hue(image, degrees):
    c, s, third = cos(radians(degrees)), sin(radians(degrees)), 1 / 3
    k = np.full((3, 3), third) * (1 - c) + np.eye(3) * c
    k += s * np.sqrt(third) * np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    turned = image[..., :3] @ k.T
    return with_alpha(turned + luma_of(image) - luma_of(turned), image)


def sepia(image, amount):
    m = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    return with_alpha(image[..., :3] @ (np.eye(3) * (1 - amount) + m * amount).T, image)


def invert(image):
    return with_alpha(1 - image[..., :3], image)


def posterize(image, bits):
    step = 2 ** (8 - bits)
    levels = np.floor(np.clip(image[..., :3], 0, 1) * 255 + 0.5)
    return with_alpha(levels // step * step / 255, image)


def vignette(image, amount=0.5, radius=0.75, softness=0.45):
    height, width = image.shape[:2]
    y, x = np.indices((height, width))
    far = np.sqrt(2) * np.hypot((x + 0.5) / width - 0.5, (y + 0.5) / height - 0.5)
    dark = 1 - amount * smoothstep(radius - softness, radius + softness, far)
    return with_alpha(image[..., :3] * dark[..., None], image)


def sharpen(image, amount):
    shifted = {(dx, dy): p[..., :3] for dx, dy, p in neighbors(image, 1)}
    cross = shifted[-1, 0] + shifted[1, 0] + shifted[0, -1] + shifted[0, 1]
    return with_alpha(shifted[0, 0] * (1 + 4 * amount) - cross * amount, image)


def edge_detect(image, amount=1.0):
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gx = sum(sobel[dy + 1, dx + 1] * luma_of(p) for dx, dy, p in neighbors(image, 1))
    gy = sum(sobel[dx + 1, dy + 1] * luma_of(p) for dx, dy, p in neighbors(image, 1))
    return with_alpha(np.repeat(np.hypot(gx, gy) * amount, 3, axis=-1), image)


def denoise(image, radius=2, sigma_space=2.0, sigma_color=0.1):
    return with_alpha(bilateral(image, radius, sigma_space, sigma_color), image)


def beauty(image, amount=0.7, radius=5):
    places = [round(i * radius / 3) for i in range(-3, 4)] if radius >= 3 else None
    smooth = bilateral(image, radius, (radius + 1) / 2, 0.08, places)
    skin = 1.0
    for axis, (low, high) in enumerate([(-0.19, -0.03), (0.035, 0.17)]):
        v = chroma_of(smooth)[..., axis : axis + 1]
        skin = skin * smoothstep(low - 0.03, low, v) * (1 - smoothstep(high, high + 0.03, v))
    return with_alpha(image[..., :3] + (smooth - image[..., :3]) * amount * skin, image)


def erode(image, radius=1):
    return with_alpha(around(image, radius).min(axis=0), image)


def dilate(image, radius=1):
    return with_alpha(around(image, radius).max(axis=0), image)


def median(image):
    return with_alpha(np.median(around(image, 1), axis=0), image)


def chroma_key(image, key=(0, 1, 0), threshold=0.3, softness=0.1, despill=1.0):
    chroma, wanted = chroma_of(image), chroma_of(np.array(key, float))
    far = np.linalg.norm(chroma - wanted, axis=-1)
    alpha = image[..., 3] * smoothstep(threshold, threshold + softness, far)
    along = wanted / max(np.linalg.norm(wanted), 1e-6)
    across = np.array([along[1], -along[0]])
    spill = np.maximum(chroma @ along - 0.6 * np.abs(chroma @ across), 0) * despill
    cb, cr = np.moveaxis(chroma - spill[..., None] * along, -1, 0)
    luma = image[..., :3] @ LUMA
    red, blue = luma + 1.402 * cr, luma + 1.772 * cb
    return np.stack([red, (luma - 0.299 * red - 0.114 * blue) / 0.587, blue, alpha], axis=-1)


def weighted(first, a, second, b):
    """Return the mean of two pictures with weights a and b; alpha is a + b."""
    whole = a + b
    color = (first[..., :3] * a + second[..., :3] * b) / np.where(whole > 0, whole, 1)
    return np.concatenate([np.where(whole > 0, color, first[..., :3]), whole], axis=-1)


def overlay_alpha(base, over, opacity=1.0):
    s = over[..., 3:] * opacity
    return weighted(base, base[..., 3:] * (1 - s), over, s)


def video_mix(first, second, t=0.5):
    return weighted(first, first[..., 3:] * (1 - t), second, second[..., 3:] * t)


#: Each filter: its formula, parameters to try, parameters that change nothing (or None).
FILTERS = {
    "grayscale": (grayscale, [{}], None),
    "brightness": (brightness, [{"value": 0.2}, {"value": -0.3}], {"value": 0.0}),
    "contrast": (contrast, [{"value": 0.5}, {"value": -0.4}], {"value": 0.0}),
    "saturation": (saturation, [{"value": 0.7}, {"value": -0.5}, {"value": -1.0}], {"value": 0.0}),
    "gamma": (gamma, [{"value": 2.2}, {"value": 0.45}], {"value": 1.0}),
    "hue": (hue, [{"degrees": 30.0}, {"degrees": -120.0}, {"degrees": 540.0}], {"degrees": 360.0}),
    "sepia": (sepia, [{"amount": 1.0}, {"amount": 0.3}], {"amount": 0.0}),
    "invert": (invert, [{}], None),
    "posterize": (posterize, [{"bits": 1}, {"bits": 3}, {"bits": 5}], None),
    "vignette": (vignette, [{}, {"amount": 1.0, "radius": 0.5, "softness": 0.2}], {"amount": 0.0}),
    "sharpen": (sharpen, [{"amount": 0.5}, {"amount": 2.0}], {"amount": 0.0}),
    "edge_detect": (edge_detect, [{}, {"amount": 0.25}], None),
    "denoise": (
        denoise,
        [{}, {"radius": 4, "sigma_space": 3.0, "sigma_color": 0.3}],
        {"radius": 0},
    ),
    "beauty": (
        beauty,
        [{}, {"amount": 1.0, "radius": 4}, {"amount": 1.0, "radius": 1}],
        {"amount": 0.0},
    ),
    "erode": (erode, [{}, {"radius": 3}], {"radius": 0}),
    "dilate": (dilate, [{}, {"radius": 3}], {"radius": 0}),
    "median": (median, [{}], None),
    "chroma_key": (
        chroma_key,
        [{}, {"key": (0.1, 0.3, 0.8), "threshold": 0.1, "softness": 0.3, "despill": 0.5}],
        {"key": (0.0, 0.0, 1.0), "threshold": 0.0, "softness": 0.001, "despill": 0.0},
    ),
    "overlay_alpha": (overlay_alpha, [{}, {"opacity": 0.35}], {"opacity": 0.0}),
    "video_mix": (video_mix, [{}, {"t": 0.2}], {"t": 0.0}),
}
