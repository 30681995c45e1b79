"""The game of life on a surface: one kernel, run over the pixels again and again.

python examples/life.py            # out/life.png, after 60 generations
python examples/life.py window     # or browser, terminal: watch it
"""

import random
import sys
import time
from pathlib import Path

from dala.gpu import create_surface
from dala.gpu.compute import Image, kernel, rgba

WIDTH, HEIGHT = 192, 108


@kernel
def life(img: Image):
    """One generation: red is life; green forgets it soon, and blue late."""
    around = (
        img[-1, -1].r + img[0, -1].r + img[1, -1].r + img[-1, 0].r
        + img[1, 0].r + img[-1, 1].r + img[0, 1].r + img[1, 1].r
    )  # fmt: skip
    was = img[0, 0]
    alive = 0.0
    if around > 2.5 and around < 3.5:
        alive = 1.0
    if was.r > 0.5 and around > 1.5 and around < 2.5:
        alive = 1.0
    green = max(alive * 0.9, was.g * 0.93 - 0.004)
    blue = max(alive * 0.65, was.b * 0.992 - 0.002)
    return rgba(alive, green, blue, 1.0)


def start(seed: int = 21) -> list[tuple[int, int]]:
    """Return the first cells: chance in one quarter, and its mirror images in the others."""
    chance, middle_x, middle_y = random.Random(seed), WIDTH // 2, HEIGHT // 2
    some = [(x, y) for x in range(44) for y in range(26) if chance.random() < 0.3]
    sides = [(middle_x + x, y) for x, y in some] + [(middle_x - 1 - x, y) for x, y in some]
    return [(x, middle_y + y) for x, y in sides] + [(x, middle_y - 1 - y) for x, y in sides]


def main(show: str | None = None, generations: int = 60, folder: Path = Path("out")) -> Path:
    """Run the generations, and save the last one as a picture."""
    with create_surface(WIDTH, HEIGHT, show=show, nearest=True) as surface:
        surface.clear("black")
        for x, y in start():
            surface.fill_rect(x, y, 1, 1, "white")
        for _ in range(generations):
            surface.dispatch_compute(life)
            if show:
                surface.present()
                time.sleep(1 / 30)
        folder.mkdir(parents=True, exist_ok=True)
        surface.save(folder / "life.png")
    return folder / "life.png"


if __name__ == "__main__":
    print(main(*sys.argv[1:2], generations=2000 if sys.argv[1:] else 60))
