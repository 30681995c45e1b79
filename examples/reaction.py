"""Reaction and diffusion: two chemicals on a plate grow a pattern like that of corals.

python examples/reaction.py                 # out/reaction.png and out/reaction.mp4
python examples/reaction.py --show window   # watch it grow
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from running import run

from dala.gpu.compute import buffer
from dala.gpu.compute.language import Image, clamp, kernel, mix, rgba, smoothstep, sqrt
from dala.media import Frame, Scene

SIZE, SECONDS, STEPS = (960, 540), 10.0, 20


@kernel
def react(plate: Image, *, feed: float = 0.0545, kill: float = 0.0620):
    """One step of the model of Gray and Scott: red is the food, green what eats it."""
    here = plate[0, 0]
    around = (
        (plate[-1, 0] + plate[1, 0] + plate[0, -1] + plate[0, 1]) * 0.2
        + (plate[-1, -1] + plate[1, -1] + plate[-1, 1] + plate[1, 1]) * 0.05
        - here
    )
    eaten = here.r * here.g * here.g
    food = here.r + around.r - eaten + feed * (1.0 - here.r)
    eater = here.g + 0.5 * around.g + eaten - (feed + kill) * here.g
    return rgba(food, eater, 0.0, 1.0)


@kernel
def lit(plate: Image):
    """The pattern as a relief, lit from the upper left."""
    v = plate[0, 0].g
    across = plate[-1, 0].g - plate[1, 0].g
    down = plate[0, -1].g - plate[0, 1].g
    steep = sqrt(across * across + down * down + 0.012)
    light = (across * 0.55 + down * 0.65 + 0.06) / steep
    deep = mix((0.02, 0.05, 0.12), (0.03, 0.27, 0.36), smoothstep(0.0, 0.2, v))
    warm = mix(deep, (0.96, 0.48, 0.33), smoothstep(0.17, 0.27, v))
    color = mix(warm, (1.0, 0.89, 0.70), smoothstep(0.28, 0.40, v))
    shine = clamp(light, 0.0, 1.0)
    shine = shine * shine * shine * shine * smoothstep(0.08, 0.25, v)
    return rgba(color * (0.62 + 0.5 * light) + (0.55, 0.5, 0.42) * shine, 1.0)


def seeds(width: int, height: int) -> np.ndarray:
    """Return a plate with some drops."""
    plate = np.zeros((height, width, 4), np.float32)
    plate[..., 0] = 1.0
    y, x = np.mgrid[:height, :width]
    rng = np.random.default_rng(7)
    for at in rng.uniform((0.08, 0.1), (0.92, 0.9), (18, 2)) * (width, height):
        plate[np.hypot(x - at[0], y - at[1]) < height / 60 + 4] = (0.5, 0.25, 0, 1)
    return plate


def pictures(width: int, height: int, device: str | None) -> Iterator[Frame]:
    """Yield the plate, ever again."""
    plate = buffer(seeds(width, height), device=device)
    while True:
        for _ in range(STEPS):
            plate = react(plate)
        yield Frame(lit(plate))


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*size, fps=30, device=device)
    scene.duration = SECONDS
    scene.add_video(pictures(size[0] // 2, size[1] // 2, device), fps=30, size=size)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=9.0, stepwise=True))
