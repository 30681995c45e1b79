"""A zoom into the Mandelbrot set, a hundred million times, with 32-bit floats.

python examples/mandelbrot.py                 # out/mandelbrot.png and out/mandelbrot.mp4
python examples/mandelbrot.py --show window   # dive

A float has 7 digits, and the zoom needs 11. One orbit is computed in Python, with 16 digits; the
kernel follows only how far each pixel is from it, which is a small number and fits a float well.
A processor of two cores takes minutes for the video.
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala.gpu.compute import buffer
from dala.gpu.compute.language import Array, Image, cos, kernel, log, position, rgba, shape
from dala.media import Frame, Scene, gpu

SIZE, SECONDS, FPS = (640, 360), 8.0, 24
CENTER = complex(-0.7766105925997019, 0.13460896167502817)  # the middle of a spiral without end
DEEPEST = 1e8


@kernel
def mandelbrot(picture: Image, orbit: Array, *, scale: float, most: int, last: int):
    """Color a pixel by the iterations after which its orbit leaves."""
    y, x = position()
    height, width = float(shape(picture)[0]), float(shape(picture)[1])
    cx = (float(x) + 0.5 - 0.5 * width) * scale
    cy = (float(y) + 0.5 - 0.5 * height) * scale
    dx, dy = 0.0, 0.0  # from the orbit
    zx, zy, size = 0.0, 0.0, 0.0
    n, at = 0, 0
    for i in range(most):
        ox, oy = orbit[at, 0], orbit[at, 1]
        tx = 2.0 * (ox * dx - oy * dy) + dx * dx - dy * dy + cx
        dy = 2.0 * (ox * dy + oy * dx) + 2.0 * dx * dy + cy
        dx = tx
        at += 1
        n = i
        zx, zy = orbit[at, 0] + dx, orbit[at, 1] + dy
        size = zx * zx + zy * zy
        if size > 256.0:
            break
        # Nearer to the beginning of the orbit than to this place of it, or at its end.
        if size < dx * dx + dy * dy or at == last:
            dx, dy, at = zx, zy, 0
    if size <= 256.0:
        return rgba(0.0, 0.0, 0.0, 1.0)
    smooth = float(n) - log(log(size) * 0.5) * 1.442695
    t = log(smooth + 8.0) * 1.35
    return rgba(
        0.5 - 0.5 * cos(6.2832 * (t + 0.02)),
        0.42 - 0.46 * cos(6.2832 * (t - 0.08)),
        0.46 - 0.46 * cos(6.2832 * (t - 0.24)),
        1.0,
    )


def orbit(most: int) -> np.ndarray:
    """Return the orbit of the center, until rounding drives it out."""
    z, places = 0j, []
    while abs(z) < 4 and len(places) < most:
        places.append((z.real, z.imag))
        z = z * z + CENTER
    return np.array(places, np.float32)


class Zoom:
    """The zoom at any time; four samples for each pixel."""

    def __init__(self, width: int, height: int, device: str | None) -> None:
        self.size = width, height
        self.path = buffer(orbit(2000), device=device)
        self.canvas = buffer(np.zeros((2 * height, 2 * width, 3), np.float32), device=device)

    def __call__(self, seconds: float) -> Frame:
        way = seconds / SECONDS
        scale, most = 1.5 / self.size[1] / DEEPEST**way, round(250 + 800 * way)
        last = len(self.path) - 1
        made = mandelbrot(self.canvas, self.path, scale=scale, most=most, last=last)
        return Frame(gpu.resize(made, *self.size))


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*size, fps=FPS, device=device)
    scene.duration = SECONDS
    scene.add_video(Zoom(*size, device), fps=FPS)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=3.6))
