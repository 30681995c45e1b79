"""Ink in a fluid: a few small kernels are a solver for a flow that cannot be compressed.

python examples/fluid.py                 # out/fluid.png and out/fluid.mp4
python examples/fluid.py --show window   # watch it
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from running import run

from dala.gpu.compute import Buffer, buffer
from dala.gpu.compute.language import (
    Image,
    exp,
    floor,
    kernel,
    mix,
    position,
    rgba,
    shape,
    sqrt,
    vec2,
    vec4,
)  # fmt: skip
from dala.media import Frame, Scene, gpu

SIZE, SECONDS = (960, 540), 12.0
INKS = (
    (1.00, 0.22, 0.12), (0.05, 0.45, 1.00), (1.00, 0.66, 0.10), (0.55, 0.10, 0.95),
    (0.02, 0.75, 0.62), (1.00, 0.12, 0.45),
)  # fmt: skip


@kernel
def carried(field: Image, flow: Image, *, keep: float = 1.0):
    """What the flow carries here: the field where this place was a moment ago."""
    back = flow[0, 0]
    x, y = -back.r, -back.g
    left, top = floor(x), floor(y)
    dx, dy = int(left), int(top)
    upper = mix(field[dx, dy], field[dx + 1, dy], x - left)
    lower = mix(field[dx, dy + 1], field[dx + 1, dy + 1], x - left)
    return mix(upper, lower, y - top) * keep


@kernel
def poured(field: Image, *, at: vec2, value: vec4, radius: float):
    """The field with something added around a place."""
    y, x = position()
    far = (float(x) - at.x) * (float(x) - at.x) + (float(y) - at.y) * (float(y) - at.y)
    return field[0, 0] + value * exp(-far / (radius * radius))


@kernel
def whirls(flow: Image):
    """How fast the flow turns at each place, and to which side."""
    turn = flow[1, 0].g - flow[-1, 0].g - flow[0, 1].r + flow[0, -1].r
    return rgba(turn, abs(turn), 0.0, 1.0)


@kernel
def whirled(flow: Image, whirl: Image, *, strength: float):
    """The flow with its whirls made stronger: a grid as coarse as ours would lose them."""
    across = whirl[1, 0].g - whirl[-1, 0].g
    down = whirl[0, 1].g - whirl[0, -1].g
    push = strength * whirl[0, 0].r / (sqrt(across * across + down * down) + 1e-5)
    here = flow[0, 0]
    return rgba(here.r + push * down, here.g - push * across, 0.0, 1.0)


@kernel
def pressed(pressure: Image, flow: Image):
    """One step towards the pressure that keeps the flow from gathering anywhere."""
    out = flow[1, 0].r - flow[-1, 0].r + flow[0, 1].g - flow[0, -1].g
    around = pressure[1, 0].r + pressure[-1, 0].r + pressure[0, 1].r + pressure[0, -1].r
    p = (around - 0.5 * out) * 0.25
    return rgba(p, 0.0, 0.0, 1.0)


@kernel
def pushed(flow: Image, pressure: Image):
    """The flow after the pressure has pushed it; it stands still at the walls."""
    y, x = position()
    here = flow[0, 0]
    u = here.r - 0.5 * (pressure[1, 0].r - pressure[-1, 0].r)
    v = here.g - 0.5 * (pressure[0, 1].r - pressure[0, -1].r)
    inside = 1.0
    if x == 0 or y == 0 or x == shape(flow)[1] - 1 or y == shape(flow)[0] - 1:
        inside = 0.0
    return rgba(u * inside, v * inside, 0.0, 1.0)


@kernel
def glowing(ink: Image, blurred: Image):
    """Ink as light: it adds up, and never exceeds white."""
    light = ink[0, 0].rgb * 0.9 + blurred[0, 0].rgb * 0.55
    return rgba(
        1.0 - exp(-1.7 * light.x), 1.0 - exp(-1.7 * light.y), 1.0 - exp(-1.7 * light.z), 1.0
    )


def pictures(width: int, height: int, device: str | None) -> Iterator[Frame]:
    """Yield the ink, ever again."""
    flow = ink = pressure = buffer(np.zeros((height, width, 4), np.float32), device=device)
    unit, number = height / 270, 0
    while True:
        for jet, color in enumerate(INKS):
            turn = jet * math.tau / len(INKS) + number / 90
            x = width * (0.5 + 0.36 * math.cos(turn))
            y = height * (0.5 + 0.36 * math.sin(turn))
            aim = turn + math.pi + 0.9 * math.sin(number / 23 + 2 * jet)  # inwards, to and fro
            push = 1.9 * unit * math.cos(aim), 1.9 * unit * math.sin(aim)
            flow = poured(flow, at=(x, y), value=(*push, 0.0, 0.0), radius=7.0 * unit)
            light = tuple(0.13 * part for part in color)
            ink = poured(ink, at=(x, y), value=(*light, 0.0), radius=6.0 * unit)
        flow = whirled(flow, whirls(flow), strength=0.12 * unit)
        for _ in range(24):
            pressure = pressed(pressure, flow)
        flow = pushed(flow, pressure)
        flow = carried(flow, flow, keep=0.999)
        ink = carried(ink, flow, keep=0.996)
        number += 1
        yield shown(ink)


def shown(ink: Buffer) -> Frame:
    """Return a picture of the ink, which glows."""
    return Frame(glowing(ink, gpu.blur(ink, radius=10)))


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*size, fps=30, device=device)
    scene.duration = SECONDS
    scene.add_video(pictures(size[0] // 2, size[1] // 2, device), fps=30, size=size)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=7.0, stepwise=True))
