"""A summer night by a lake in Dalarna: a small animated drawing that uses every primitive.

    python examples/paint.py --out night.png              # the first frame as a picture
    python examples/paint.py --frames 90 --out night.png  # the ninetieth
    python examples/paint.py --show window                # until the window is closed

Each frame depends on its number only.
"""

from __future__ import annotations

import argparse
import math
import random
import struct
import sys
import time
from collections.abc import Iterator

import numpy as np

from dala import DalaError, gpu
from dala.gpu import command

WIDTH, HEIGHT = 720, 450
SHORE = 292
RATE = 30

SKY = ((20, 24, 68), (62, 44, 108), (158, 74, 122), (240, 132, 104), (255, 200, 138))
FOREST = (18, 34, 44)
FALU = (150, 36, 32)
CREAM = (250, 240, 220)

CLOUD, HORSE = 1, 2  # images
STAR, GLOW = 1, 4  # sprites: three stars, one glow

#: Mirrors the picture above the shore: darker with depth, distorted by waves.
WATER = """
def water(img: Image, *, seconds=0.0, shore=0):
    y, x = position()
    deep = float(y - shore)
    swell = sin(deep * 0.55 - seconds * 2.1) + sin(deep * 0.19 + x * 0.045 + seconds * 1.3)
    aside = swell * (0.4 + 0.035 * deep)
    whole = floor(aside)
    up = 2 * (shore - y) - 1 + int(-0.35 * deep)
    near = mix(img[int(whole), up], img[int(whole) + 1, up], aside - whole)
    crest = smoothstep(1.2, 2.0, swell) * 0.16
    light = mix(near.rgb * 0.80, (0.07, 0.10, 0.22), min(deep * 0.0042, 0.62)) + crest
    if y < shore:
        return img[0, 0]
    return rgba(light, 1.0)
"""

#: Darkens the corners a little, as a lens does.
LENS = """
def lens(px: Pixel, *, strength=0.45):
    y, x = position()
    across = (x + 0.5) / px.width - 0.5
    down = (y + 0.5) / px.height - 0.5
    dark = strength * smoothstep(0.12, 0.62, across * across + down * down)
    return rgba(px.rgb * (1.0 - dark), px.a)
"""


# pictures that are loaded -----------------------------------------------------------------------
def cloud() -> np.ndarray:
    """A soft cloud, white with alpha."""
    y, x = np.mgrid[0:40, 0:120].astype(np.float64)
    thick = np.zeros((40, 120))
    for cx, cy, r in ((26, 27, 16), (48, 20, 19), (72, 23, 18), (95, 28, 13)):
        thick += np.clip(1.25 - np.hypot((x - cx) / 1.35, y - cy) / r, 0, 1) ** 1.5
    picture = np.empty((40, 120, 4), np.uint8)
    picture[..., :3] = (255, 226, 214)
    picture[..., 3] = np.clip(thick, 0, 1) * np.clip((38 - y) / 14, 0, 1) * 165
    return picture


def spot(size: int, color: tuple[int, int, int], strength: float) -> np.ndarray:
    """A round light that fades outwards."""
    middle = (size - 1) / 2
    y, x = np.mgrid[0:size, 0:size]
    fade = np.clip(1 - np.hypot(x - middle, y - middle) / (middle + 0.5), 0, 1) ** 2
    picture = np.empty((size, size, 4), np.uint8)
    picture[..., :3] = color
    picture[..., 3] = fade * 255 * strength
    return picture


def horse() -> np.ndarray:
    """The painted wooden horse, drawn on its own surface."""
    with gpu.create_surface(160, 160) as s:
        red, dark, white, blue, yellow = (200, 40, 34), (150, 24, 24), CREAM, "#2f6fc0", "#ffc83c"
        for x in (38, 94):  # legs
            s.fill_round_rect(x, 90, 22, 62, 6, red)
            s.fill_rect(x, 144, 22, 8, dark)
        s.fill_round_rect(30, 62, 92, 52, 24, red)  # body
        s.fill_triangle(82, 90, 122, 84, 112, 22, red)  # neck
        s.fill_round_rect(96, 20, 46, 26, 11, red)  # head
        s.fill_triangle(98, 24, 108, 4, 114, 26, red)  # ear
        s.fill_triangle(84, 76, 94, 24, 106, 26, "#26262c")  # mane
        s.fill_triangle(30, 74, 16, 108, 38, 100, "#26262c")  # tail
        s.fill_circle(124, 30, 3, white)
        s.draw_line(134, 22, 126, 45, blue)
        s.draw_line(135, 22, 127, 45, blue)
        s.fill_round_rect(54, 62, 36, 34, 10, white)  # saddle
        s.fill_round_rect(58, 62, 28, 29, 8, blue)
        for turn in range(6):
            x, y = (round(7 * f(turn * math.pi / 3)) for f in (math.cos, math.sin))
            s.fill_circle(72 + x, 76 + y, 3, white)
        s.fill_circle(72, 76, 4, yellow)
        for x in range(38, 120, 9):
            s.fill_circle(x, 105, 2, yellow if x % 2 else white)
        return s.to_array()


def prepare(s: gpu.Surface) -> None:
    """Load the images, sprites and shaders that every frame uses."""
    s.load_image(CLOUD, cloud(), 120, 40)
    s.load_image(HORSE, horse(), 160, 160)
    for n, strength in enumerate((0.5, 0.8, 1.0)):
        s.load_sprite(STAR + n, spot(7, (255, 250, 235), strength), 7, 7)
    s.load_sprite(GLOW, spot(15, (255, 236, 120), 0.9), 15, 15)
    s.load_shader("water", WATER)
    s.load_shader("lens", LENS)


# one frame, from far to near --------------------------------------------------------------------
def sky() -> Iterator[bytes]:
    """Yield the commands of a color gradient, one band for every two rows."""
    for y in range(0, SHORE, 2):
        at = (y / SHORE) ** 1.15 * (len(SKY) - 1)
        n = min(int(at), len(SKY) - 2)
        color = tuple(
            round(a + (b - a) * (at - n)) for a, b in zip(SKY[n], SKY[n + 1], strict=True)
        )
        yield command.encode_fill_rect(0, y, WIDTH, 2, color)


def stars(s: gpu.Surface, t: float) -> None:
    dice = random.Random(11)
    for _ in range(70):
        x, y, phase = dice.random() * WIDTH, dice.random() ** 1.6 * 150, dice.random()
        shine = 0.5 + 0.5 * math.sin(math.tau * (phase + t * (0.2 + phase)))
        s.blit(STAR + min(int(shine * 3), 2), int(x), int(y))


def sun(s: gpu.Surface, t: float) -> None:
    x, y = 470, 262
    for n in range(7):
        s.fill_circle(x, y, 128 - 14 * n, (255, 190, 120, 14))
    for n in range(4):
        grown = (t * 0.12 + n / 4) % 1.0
        s.draw_circle(x, y, round(46 + 110 * grown), (255, 226, 170, round(90 * (1 - grown))))
    s.fill_circle(x, y, 40, (255, 214, 128))
    s.fill_circle(x, y, 36, (255, 226, 150))


def clouds(s: gpu.Surface, t: float) -> None:
    for x, y, w, h, speed in ((30, 62, 230, 64, 5), (330, 28, 170, 46, 3), (540, 104, 270, 62, 8)):
        s.draw_image(CLOUD, round((x + speed * t + 280) % (WIDTH + 280)) - 280, y, w, h)


def hills(s: gpu.Surface) -> None:
    for left, top, right, color in (
        ((-60, 292), (120, 168), (330, 292), (104, 66, 120)),
        ((560, 292), (690, 176), (860, 292), (118, 68, 116)),
        ((170, 292), (290, 206), (440, 292), (86, 58, 112)),
    ):
        s.fill_triangle(*left, *top, *right, color)
        fold = (round(top[0] * 0.92 + left[0] * 0.08), SHORE)
        s.fill_triangle(*left, *top, *fold, (255, 210, 190, 26))
        s.draw_triangle(*left, *top, *right, (255, 214, 196, 70))


def firs(s: gpu.Surface, t: float) -> None:
    dice = random.Random(4)
    s.fill_rect(0, SHORE - 14, 330, 14, FOREST)
    s.fill_triangle(330, SHORE - 14, 330, SHORE, 392, SHORE, FOREST)
    for n in range(26):
        x, tall = 6 + n * 12 + dice.randrange(8), 34 + dice.randrange(44)
        bend = round(1.6 * math.sin(t * 1.1 + n))
        tint = dice.randrange(16)
        foot = SHORE - 8
        for part in range(3):
            low, wide = foot - part * tall // 4, tall // 4 - part * tall // 16
            top = low - tall // 2
            lean = bend * (part + 1) // 2
            green = (FOREST[0] + tint, FOREST[1] + tint + 5 * part, FOREST[2] + tint)
            s.fill_triangle(x - wide, low, x + lean, top, x + wide, low, green)
            s.draw_line(x + lean, top, x + wide, low, (255, 170, 130, 60))


def cottage(s: gpu.Surface, t: float) -> None:
    x, y = 196, 226
    for n in range(9):  # smoke
        age = (t * 0.22 + n / 9) % 1.0
        drift = round(26 * age + 5 * math.sin(t + 9 * age))
        s.fill_circle(x + 66 + drift, round(y - 42 - 84 * age), round(3 + 11 * age),
                      (236, 222, 224, round(70 * (1 - age))))  # fmt: skip
    s.fill_rect(x + 60, y - 40, 13, 30, (92, 44, 44))
    s.fill_rect(x, y, 96, 58, FALU)
    for k in range(6, 58, 6):
        s.draw_line(x, y + k, x + 95, y + k, (100, 20, 22))
    s.fill_triangle(x - 10, y + 2, x + 48, y - 38, x + 106, y + 2, (58, 38, 52))
    s.draw_triangle(x - 10, y + 2, x + 48, y - 38, x + 106, y + 2, (255, 190, 150, 150))
    for k in (0, 91):
        s.fill_rect(x + k, y + 2, 5, 56, CREAM)
    s.fill_round_rect(x + 40, y + 20, 18, 38, 3, (46, 74, 92))
    s.fill_circle(x + 54, y + 40, 1, "gold")
    for k in (10, 66):
        window(s, x + k, y + 16, t)


def window(s: gpu.Surface, x: int, y: int, t: float) -> None:
    """Draw a lit window; the clip keeps everything behind it inside the frame."""
    s.fill_round_rect(x - 2, y - 2, 24, 28, 4, CREAM)
    s.set_clip(x, y, 20, 24)
    s.clear((255, 196, 92))
    flame = 10 + round(2 * math.sin(5 * t + x))
    s.fill_circle(x + 10, y + 22, flame, (255, 238, 170, 150))
    s.fill_triangle(x, y, x + 9, y, x, y + 15, (255, 250, 235, 190))  # curtains
    s.fill_triangle(x + 20, y, x + 11, y, x + 20, y + 15, (255, 250, 235, 190))
    walk = x - 14 + round((t * 9 + 1.3 * x) % 44)  # someone is at home
    s.fill_circle(walk, y + 12, 4, (92, 50, 44))
    s.fill_round_rect(max(walk - 5, 0), y + 16, 11, 20, 4, (92, 50, 44))
    s.reset_clip()
    s.draw_line(x + 10, y, x + 10, y + 23, CREAM)
    s.draw_line(x, y + 12, x + 19, y + 12, CREAM)
    s.draw_round_rect(x - 2, y - 2, 24, 28, 4, (120, 70, 60))


def birds(s: gpu.Surface, t: float) -> None:
    for n in range(7):
        x = round((n * 23 + 40 * t + 380 + 9 * math.sin(n * 2.4)) % (WIDTH + 60)) - 30
        y = 96 + abs(n - 3) * 9 + round(3 * math.sin(2 * t + n))
        wing = round(5 * math.sin(7 * t + n))
        for side in (-9, 9):
            s.draw_line(x, y, x + side, y - wing, (40, 26, 56))
            s.draw_line(x, y + 1, x + side, y - wing, (40, 26, 56))


def boat(s: gpu.Surface, t: float) -> None:
    x, y = 520 + round(14 * math.sin(0.35 * t)), 352 + round(2 * math.sin(1.7 * t))
    lean = round(3 * math.sin(0.9 * t))
    mast = (x + lean, y - 92)
    s.fill_triangle(x + 3, y + 14, x - lean, y + 78, x + 46, y + 14, (255, 236, 214, 44))
    s.fill_triangle(x - 4, y + 14, x - 2 - lean, y + 66, x - 32, y + 14, (255, 236, 214, 36))
    s.fill_triangle(x + 3, y - 8, *mast, x + 54, y - 12, (255, 244, 226))
    s.fill_triangle(x + 3, y - 8, x + 28 + lean // 2, y - 50, x + 54, y - 12, (244, 206, 178))
    s.fill_triangle(x - 4, y - 10, mast[0] - 2, mast[1] + 12, x - 36, y - 10, (236, 196, 172))
    s.draw_triangle(x + 3, y - 8, *mast, x + 54, y - 12, (120, 80, 80))
    for k in (0, 1):
        s.draw_line(x + k, y, mast[0] + k, mast[1] - 6, (70, 40, 40))
    s.set_clip(0, y - 4, WIDTH, 18)  # the hull is the lower part of a long round shape
    s.fill_round_rect(x - 52, y - 22, 116, 36, 17, FALU)
    s.fill_rect(x - 52, y - 4, 116, 4, CREAM)
    s.reset_clip()
    for k in range(6):
        far = 20 + 9 * k
        s.draw_line(x - 40 - k * 3, y + 15 + 3 * k, x - 40 + far, y + 15 + 3 * k,
                    (255, 236, 214, 110 - 16 * k))  # fmt: skip


def jetty(s: gpu.Surface) -> None:
    for x in range(18, 240, 44):
        s.fill_rect(x, 392, 8, 58, (40, 28, 36))
    s.fill_rect(0, 384, 252, 12, (96, 66, 62))
    for x in range(0, 252, 14):
        s.draw_line(x, 384, x, 395, (58, 38, 42))
    s.draw_line(0, 384, 251, 384, (255, 196, 160, 140))
    s.draw_image(HORSE, 78, 262, 128, 128)


def fireflies(s: gpu.Surface, t: float) -> None:
    for n in range(18):
        x = 20 + n * 19 + 16 * math.sin(0.7 * t + 2.1 * n)
        y = 356 + 34 * math.sin(1.9 * n + 0.5 * t)
        if math.sin(2.3 * t + 1.7 * n) > -0.4:
            s.blit(GLOW, round(x), round(y))


def paint(s: gpu.Surface, frame: int) -> None:
    """Draw and present one frame."""
    t = frame / RATE
    s.clear(SKY[-1])
    s.batch(sky())
    stars(s, t)
    sun(s, t)
    clouds(s, t)
    hills(s)
    firs(s, t)
    cottage(s, t)
    birds(s, t)
    s.dispatch_compute("water", struct.pack("<fi", t, SHORE))
    boat(s, t)
    jetty(s)
    fireflies(s, t)
    s.dispatch_compute("lens")
    s.draw_round_rect(6, 6, WIDTH - 12, HEIGHT - 12, 14, (255, 240, 220, 90))
    s.present()


def run(frames: int | None, out: str | None, show: str | None) -> None:
    """Paint frames, in real time if they are shown, and save the last one."""
    with gpu.create_surface(WIDTH, HEIGHT, show=show, title="dala: a summer night") as s:
        prepare(s)
        start, frame = time.monotonic(), 0
        while frames is None or frame < frames:
            paint(s, frame)
            frame += 1
            if show is not None:
                if gpu.wait_closed(s, 0):
                    break
                time.sleep(max(start + frame / RATE - time.monotonic(), 0))
        if out is not None:
            s.save(out)
            print(f"frame {frame} is in {out}")
        s.synchronize()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A summer night by a lake.")
    parser.add_argument(
        "--frames", type=int, help="number of frames (default: 1, or endless with --show)"
    )
    parser.add_argument("--out", metavar="FILE", help="save the last frame as PNG")
    parser.add_argument("--show", choices=("window", "browser", "notebook", "terminal"))
    given = parser.parse_args(arguments)
    if given.frames is not None and given.frames < 1:
        parser.error(f"--frames must be at least 1, got {given.frames}")
    try:
        run(given.frames or (None if given.show else 1), given.out, given.show)
    except (DalaError, OSError) as error:
        print(f"paint: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
