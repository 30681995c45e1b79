"""The peers of ``compositing``, each in the fastest way found; text is a picture for all of them.

What does not change from frame to frame (overlays times alpha, surfaces, images) is made before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compositing.scene import HEIGHT, PIP, WIDTH, Array, Material, Places

#: Draws a frame.
Draw = Callable[[Places], Any]
#: Makes a peer: what draws, and its picture as (height, width, 3) bytes.
Made = tuple[Draw, Callable[[], Array]]


def _pictures(m: Material) -> list[Array]:
    return [*m.overlays, m.caption]


def _corners(at: Places) -> list[tuple[int, int]]:
    return [*at.overlays, at.caption]


def opencv(m: Material, channels: int, blend: str) -> Made:
    """A copy, a resize into a part of the picture, and alpha by saturated arithmetic."""
    import cv2

    frames = [np.ascontiguousarray(f[..., :channels]) for f in m.background]
    pips = [np.ascontiguousarray(f[..., :channels]) for f in m.pip]
    out = np.zeros((HEIGHT, WIDTH, channels), np.uint8)
    colours, rests, weights = [], [], []
    for picture in _pictures(m):
        alpha = picture[..., 3:].astype(np.float32) / 255
        full = np.full((*picture.shape[:2], channels), 255, np.uint8)
        full[..., :3] = picture[..., :3]
        wide = np.broadcast_to(alpha, full.shape)
        times = np.rint(full * wide).astype(np.uint8)
        colours.append(full if blend == "blendLinear" else times)
        rests.append(np.ascontiguousarray(np.rint(255 * (1 - wide)).astype(np.uint8)))
        weights.append((np.ascontiguousarray(alpha[..., 0]), 1 - alpha[..., 0]))

    def draw(at: Places) -> None:
        cv2.copyTo(frames[at.frame], None, out)
        x, y = at.pip
        part = out[y : y + PIP[1], x : x + PIP[0]]
        cv2.resize(pips[at.frame], PIP, part, interpolation=cv2.INTER_LINEAR)
        for i, (x, y) in enumerate(_corners(at)):
            front = colours[i]
            part = out[y : y + front.shape[0], x : x + front.shape[1]]
            if blend == "blendLinear":
                cv2.blendLinear(front, part, *weights[i], part)
            else:
                cv2.multiply(part, rests[i], part, 1 / 255)
                cv2.add(part, front, part)

    return draw, lambda: out[..., :3]


def pygame(m: Material) -> Made:
    """Blits; the overlays' colours times alpha beforehand, which is its faster way."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    import pygame as pg

    out = pg.Surface((WIDTH, HEIGHT), 0, 32)

    def surface(picture: Array, alpha: bool) -> Any:
        size = picture.shape[1], picture.shape[0]
        made = pg.Surface(size, pg.SRCALPHA, 32) if alpha else pg.Surface(size, 0, 32)
        made.blit(pg.image.frombuffer(picture.tobytes(), size, "RGBA" if alpha else "RGBX"), (0, 0))
        return made.premul_alpha() if alpha else made

    frames, pips = ([surface(f, False) for f in video] for video in (m.background, m.pip))
    overlays = [surface(p, True) for p in _pictures(m)]
    small = pg.Surface(PIP, 0, 32)

    def draw(at: Places) -> None:
        out.blit(frames[at.frame], (0, 0))
        pg.transform.smoothscale(pips[at.frame], PIP, small)
        out.blit(small, at.pip)
        for picture, corner in zip(overlays, _corners(at), strict=True):
            out.blit(picture, corner, special_flags=pg.BLEND_PREMULTIPLIED)

    return draw, lambda: np.array(pg.surfarray.pixels3d(out)).transpose(1, 0, 2)


def skia(m: Material) -> Made:
    """A raster surface and images; the videos' say that they are opaque."""
    import skia as sk

    out = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    canvas = sk.Canvas(out, colorType=sk.kRGBA_8888_ColorType)

    def image(picture: Array, alpha: bool) -> Any:
        kind = sk.kUnpremul_AlphaType if alpha else sk.kOpaque_AlphaType
        info = sk.ImageInfo.Make(*picture.shape[1::-1], sk.kRGBA_8888_ColorType, kind)
        made = sk.Image.fromarray(picture, colorType=sk.kRGBA_8888_ColorType, copy=False)
        if not alpha:
            return sk.Image.MakeRasterData(info, sk.Data(picture), 4 * picture.shape[1])
        target = sk.Surface.MakeRasterN32Premul(*picture.shape[1::-1])
        target.getCanvas().drawImage(made, 0, 0)
        return target.makeImageSnapshot()

    frames, pips = ([image(f, False) for f in video] for video in (m.background, m.pip))
    overlays = [image(p, True) for p in _pictures(m)]
    replace = sk.Paint(BlendMode=sk.BlendMode.kSrc)
    linear = sk.SamplingOptions(sk.FilterMode.kLinear)

    def draw(at: Places) -> None:
        canvas.drawImage(frames[at.frame], 0, 0, sk.SamplingOptions(), replace)
        box = sk.Rect.MakeXYWH(*at.pip, *PIP)
        canvas.drawImageRect(pips[at.frame], box, linear)
        for picture, (x, y) in zip(overlays, _corners(at), strict=True):
            canvas.drawImage(picture, x, y)

    return draw, lambda: out[..., :3]


def pillow(m: Material) -> Made:
    """Pastes, with the overlays' alpha as the mask; RGBX, its form without alpha."""
    from PIL import Image

    def image(picture: Array) -> Any:
        return Image.frombytes("RGBX", picture.shape[1::-1], picture.tobytes())

    frames, pips = ([image(f) for f in video] for video in (m.background, m.pip))
    overlays = [(image(p), Image.fromarray(p[..., 3])) for p in _pictures(m)]
    out = Image.new("RGBX", (WIDTH, HEIGHT))

    def draw(at: Places) -> None:
        out.paste(frames[at.frame], (0, 0))
        out.paste(pips[at.frame].reduce(2), at.pip)
        for (picture, mask), corner in zip(overlays, _corners(at), strict=True):
            out.paste(picture, corner, mask)

    return draw, lambda: np.asarray(out)[..., :3]


def moviepy(m: Material) -> Made:
    """A composite of clips whose places are functions of time; asked for a frame at a time."""
    from moviepy import CompositeVideoClip, ImageClip, VideoClip

    state: dict[str, Any] = {}

    def video(frames: list[Array]) -> Any:
        plain = [np.ascontiguousarray(f[..., :3]) for f in frames]
        return VideoClip(lambda t: plain[state["at"].frame], duration=1e6)

    def overlay(i: int, picture: Array) -> Any:
        clip = ImageClip(picture, transparent=True, duration=1e6)
        return clip.with_position(lambda t: _corners(state["at"])[i])

    def draw(at: Places) -> None:
        state["at"] = at
        if "clip" not in state:
            pip = video(m.pip).resized(PIP).with_position(lambda t: state["at"].pip)
            laid = [overlay(i, p) for i, p in enumerate(_pictures(m))]
            state["clip"] = CompositeVideoClip([video(m.background), pip, *laid], (WIDTH, HEIGHT))
        state["time"] = state.get("time", 0.0) + 1 / 30
        state["out"] = state["clip"].get_frame(state["time"])

    return draw, lambda: np.asarray(state["out"])[..., :3].astype(np.uint8)


#: Every peer, and the mean distance in steps from our picture that is still the same one.
PEERS: dict[str, tuple[Callable[[Material], Made], float]] = {
    "opencv": (lambda m: opencv(m, 4, "multiply"), 0.5),
    "opencv, blendLinear": (lambda m: opencv(m, 4, "blendLinear"), 0.5),
    "opencv, 3 channels": (lambda m: opencv(m, 3, "multiply"), 0.5),
    "opencv, 3 channels, blendLinear": (lambda m: opencv(m, 3, "blendLinear"), 0.5),
    "pygame-ce": (pygame, 1.0),
    "skia": (skia, 1.0),
    "pillow": (pillow, 1.0),
    "moviepy": (moviepy, 1.0),
}
