"""Paint glyph masks: letters, outline, shadow and background.

Coverage is the fraction of a pixel that a letter covers, which is proportional to light. Blending
in sRGB by coverage would make light letters thin and dark ones bold, so coverage is first corrected
(:func:`coverage_to_alpha`): a half covered pixel then shows half the light.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dala.media.text.glyphs import Mask
from dala.typing import NDArray

_LEVELS: Final = 4096


class ColorLayer(NamedTuple):
    """A color and its alpha over the picture, f32 from 0 to 1, with the color's own alpha."""

    cover: NDArray
    color: bytes


class PlacedMask(NamedTuple):
    """A mask and the position of its corner."""

    mask: Mask
    x: int
    y: int


def to_linear(value: float | NDArray) -> NDArray:
    """Return the linear light of sRGB values from 0 to 1."""
    value = np.asarray(value, np.float64)
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def to_srgb(light: float | NDArray) -> NDArray:
    """Return the sRGB values of linear light from 0 to 1."""
    light = np.asarray(light, np.float64)
    return np.where(
        light <= 0.0031308, light * 12.92, 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055
    )


def luminance(color: bytes) -> float:
    """Return the luminance of a color as an sRGB value from 0 to 1."""
    red, green, blue = to_linear(np.array(list(color[:3])) / 255)
    return float(to_srgb(0.2126 * red + 0.7152 * green + 0.0722 * blue))


@lru_cache(maxsize=512)
def coverage_to_alpha(color: bytes, behind: bytes | None, blend: str) -> NDArray:
    """Return the alpha from 0 to 1 for each coverage from 0 to 255, with the color's own alpha.

    ``behind`` is the color behind, if it is known. Otherwise the opposite is assumed: black behind
    white letters, white behind black ones.
    """
    cover = np.arange(256) / 255
    if blend == "srgb":
        front = luminance(color)
        back = 1.0 - front if behind is None or behind[3] < 255 else luminance(behind)
        if abs(front - back) > 1 / 64:
            light = cover * to_linear(front) + (1 - cover) * to_linear(back)
            cover = np.clip((to_srgb(light) - back) / (front - back), 0.0, 1.0)
    found = (cover * (color[3] / 255)).astype(np.float32)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=256)
def letter_table(color: bytes, behind: bytes | None = None) -> NDArray:
    """Return the pixel, as one u32, for each coverage of letters alone."""
    table = coverage_to_alpha(color, behind, "srgb").reshape(1, 256)
    return merge([ColorLayer(table, color)], "srgb").view(np.uint32).ravel()


@lru_cache(maxsize=64)
def two_layer_table(upper: bytes, lower: bytes, kind: str, behind: bytes | None = None) -> NDArray:
    """Return the pixel, as one u32, for each lower coverage (times 256) plus upper coverage.

    ``kind`` is letters on an "outline", letters on a "box", or a "shadow" on a box.
    """
    sharp = kind != "shadow"
    above = (
        coverage_to_alpha(upper, lower, "srgb")
        if sharp
        else coverage_to_alpha(upper, None, "linear")
    )
    below = coverage_to_alpha(lower, behind, "srgb" if kind == "outline" else "linear")
    layers = [
        ColorLayer(np.broadcast_to(above, (256, 256)), upper),
        ColorLayer(np.broadcast_to(below[:, None], (256, 256)), lower),
    ]
    return merge(layers, "srgb").view(np.uint32).ravel()


def draw_color_glyphs(pixels: NDArray, placed: list[PlacedMask], opacity: float) -> None:
    """Draw color glyphs over a picture, in place."""
    height, width = pixels.shape[:2]
    for (glyph, _, _, across, down), x, y in placed:
        part = pixels[max(y, 0) : max(y + down, 0), max(x, 0) : max(x + across, 0)]
        glyph = glyph[max(-y, 0) : max(height - y, 0), max(-x, 0) : max(width - x, 0)] * opacity
        if not part.size:
            continue
        below = part / np.float32(255)
        below[..., :3] *= below[..., 3:]
        below *= 1 - glyph[..., 3:]
        below += glyph
        below[..., :3] /= np.maximum(below[..., 3:], 1e-6)
        part[:] = np.minimum(below, 1) * 255 + 0.5


def over(upper: NDArray, lower: NDArray) -> NDArray:
    """Return one picture over another; both straight RGBA with pixels as u32.

    Only pixels at edges need arithmetic; the others are copied from one of the pictures.
    """
    alpha = upper.view(np.uint8)[..., 3::4]
    found = np.where(alpha == 255, upper, lower)
    (edges,) = np.nonzero(((alpha + np.uint8(1)) > 1).ravel())  # neither 0 nor 255
    above = upper.ravel()[edges].view(np.uint8).reshape(-1, 4) / np.float32(255)
    below = lower.ravel()[edges].view(np.uint8).reshape(-1, 4) / np.float32(255)
    share = above[:, 3:]
    below[:, 3:] *= 1 - share
    total = share + below[:, 3:]
    mixed = np.empty((len(edges), 4), np.uint8)
    mixed[:, :3] = (below[:, :3] + (above - below)[:, :3] * (share / total)) * 255 + 0.5
    mixed[:, 3:] = total * 255 + 0.5
    found.ravel()[edges] = mixed.view(np.uint32).ravel()
    return found


def combine_masks(masks: list[PlacedMask], height: int, width: int, *, add: bool) -> NDArray:
    """Return all masks as one, (height, width) u16; 255 and more is fully covered.

    Letters are added, so that joined ones show no seam. Outlines overlap, so their maximum counts.
    """
    canvas = np.zeros((height, width), np.uint16)
    join = np.add if add else np.maximum
    for (pixels, _, _, across, down), x, y in masks:
        if x >= 0 and y >= 0 and x + across <= width and y + down <= height:
            part = canvas[y : y + down, x : x + across]
        else:
            left, top = max(-x, 0), max(-y, 0)
            pixels = pixels[top : max(height - y, 0), left : max(width - x, 0)]
            part = canvas[max(y, 0) : max(y + down, 0), max(x, 0) : max(x + across, 0)]
            if not pixels.size:
                continue
        join(part, pixels, out=part)
    return canvas


def blur(cover: NDArray, sigma: float) -> NDArray:
    """Return a Gaussian blur of a u8 mask."""
    if sigma < 0.1:
        return cover
    from dala.media import gpu

    found: NDArray = gpu.blur(cover, radius=math.ceil(3 * sigma), sigma=sigma, device="cpu")
    return found


def shift_mask(cover: NDArray, dx: float, dy: float) -> NDArray:
    """Return a u8 mask shifted by a distance, with linear interpolation of fractions."""
    for axis, distance in ((1, dx), (0, dy)):
        whole = math.floor(distance)
        part = distance - whole
        there = _shifted(cover, axis, whole)
        if part:
            mixed = there * (1 - part) + _shifted(cover, axis, whole + 1) * part
            there = (mixed + 0.5).astype(np.uint8)
        cover = there
    return cover


def _shifted(cover: NDArray, axis: int, by: int) -> NDArray:
    if not by:
        return cover
    found = np.zeros_like(cover)
    size = cover.shape[axis]
    to, source = [slice(None)] * 2, [slice(None)] * 2
    to[axis] = slice(min(by, size), size) if by > 0 else slice(0, max(size + by, 0))
    source[axis] = slice(0, max(size - by, 0)) if by > 0 else slice(min(-by, size), size)
    found[tuple(to)] = cover[tuple(source)]
    return found


@lru_cache(maxsize=16)
def rounded_box(width: int, height: int, radius: float) -> NDArray:
    """Return the coverage of a box with rounded corners, (height, width) u8."""
    radius = min(radius, width / 2, height / 2)
    cover = np.full((height, width), 255, np.uint8)
    if radius > 0:
        reach = math.ceil(radius)
        at = np.maximum(radius - (np.arange(reach) + 0.5), 0)
        inside = np.clip(radius + 0.5 - np.hypot(at[:, None], at[None, :]), 0, 1)
        corner = np.floor(inside * 255 + 0.5).astype(np.uint8)
        cover[:reach, :reach] = corner
        cover[:reach, width - reach :] = corner[:, ::-1]
        cover[height - reach :, :reach] = corner[::-1]
        cover[height - reach :, width - reach :] = corner[::-1, ::-1]
    cover.setflags(write=False)
    return cover


@lru_cache(maxsize=1)
def _encoded() -> NDArray:
    tones: NDArray = to_srgb(np.arange(_LEVELS) / (_LEVELS - 1))
    return np.floor(tones * 255 + 0.5).astype(np.uint8)


def merge(layers: list[ColorLayer], blend: str) -> NDArray:
    """Return layers, the topmost first, as straight RGBA (height, width, 4) u8.

    The weight of a layer is the part of the pixel that the layers above leave uncovered, so colors
    are mixed only once.
    """
    rest = 1.0 - layers[0].cover
    shares = [layers[0].cover]
    for layer in layers[1:]:
        share = layer.cover * rest
        shares.append(share)
        rest -= share
    alpha = 1.0 - rest
    pixels = np.empty((*alpha.shape, 4), np.uint8)
    pixels[..., 3] = alpha * 255 + 0.5
    scale = 1.0 / np.maximum(alpha, 1e-6)
    for channel in range(3):
        tones = [layer.color[channel] / 255 for layer in layers]
        if min(tones) == max(tones):
            pixels[..., channel] = layers[0].color[channel]
            continue
        if blend == "linear":
            tones = [float(to_linear(tone)) for tone in tones]
        mixed: NDArray | float = sum(
            (share * tone for share, tone in zip(shares, tones, strict=True) if tone), 0.0
        )
        mixed = np.minimum(mixed * scale, 1.0)
        if blend == "linear":
            pixels[..., channel] = _encoded()[(mixed * (_LEVELS - 1) + 0.5).astype(np.uint16)]
        else:
            pixels[..., channel] = mixed * 255 + 0.5
    pixels[pixels[..., 3] == 0] = 0
    return pixels
