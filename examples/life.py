"""The game of life on a surface: one kernel, run over the pixels again and again.

python examples/life.py            # out/life.png, after 200 generations
python examples/life.py window     # or browser, terminal: watch it
"""

import sys
import time
from pathlib import Path

from dala.gpu import create_surface
from dala.gpu.compute import Image, kernel, rgba

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


@kernel
def life(img: Image):
    """One generation: red is life, blue remembers it for a while."""
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
    return rgba(alive, alive * 0.85, max(alive * 0.6, was.b * 0.96), 1.0)


def main(show: str | None = None, generations: int = 200, folder: Path = Path("out")) -> Path:
    """Run the generations, and save the last one as a picture."""
    with create_surface(120, 80, show=show, nearest=True) as surface:
        surface.clear("black")
        for y, row in enumerate(GUN.split()):
            for x, cell in enumerate(row):
                if cell == "O":
                    surface.fill_rect(8 + x, 8 + y, 1, 1, "white")
        for _ in range(generations):
            surface.dispatch_compute(life)
            if show:
                surface.present()
                time.sleep(1 / 30)
        folder.mkdir(parents=True, exist_ok=True)
        surface.save(folder / "life.png")
    return folder / "life.png"


if __name__ == "__main__":
    print(main(*sys.argv[1:2], generations=2000 if sys.argv[1:] else 200))
