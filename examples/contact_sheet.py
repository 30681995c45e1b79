"""A contact sheet: twelve frames of a video with their times, on one page.

python examples/contact_sheet.py              # out/contact_sheet.png, of a sample video
python examples/contact_sheet.py film.mp4     # of a video of yours
"""

from __future__ import annotations

import sys
from pathlib import Path

from dala import samples
from dala.media import Scene, video

SIZE, COLUMNS, ROWS = (1200, 860), 4, 3


def build(path: str | Path, size: tuple[int, int] = SIZE, device: str | None = None) -> Scene:
    """Return the sheet; the caller closes it."""
    width, height = size
    unit = width / 1200
    scene = Scene(width, height, background="#f4f1ea", device=device)
    with video.open(path, device=device) as film:
        count, length = COLUMNS * ROWS, float(film.duration or 0)
        rate = float(film.fps or 0)
        facts = f"{film.width} x {film.height}   {rate:g} fps   {length:.1f} s   {film.codec}"
        tiles, times = [], []
        for number in range(count):
            times.append(length * (number + 0.5) / count)
            film.seek(times[-1])
            tiles.append(scene.add_image(next(film), radius=6 * unit))
    margin, top = 44 * unit, 132 * unit
    area = (margin, top, width - 2 * margin, height - top - margin)
    cells = scene.grid(tiles, 18 * unit, columns=COLUMNS, area=area, fit="cover")
    for time, (left, upper, wide, high) in zip(times, cells, strict=True):
        scene.add_text(
            f"{int(time) // 60:02}:{time % 60:04.1f}", size=17 * unit, weight="semibold",
            color="white", background=(20, 18, 16, 190), padding=(8 * unit, 3 * unit),
            radius=5 * unit, anchor="bottom-right",
            position=(left + wide - 10 * unit, upper + high - 10 * unit),
        )  # fmt: skip
    scene.add_text(Path(path).name, size=44 * unit, weight="bold", color="#1d1a16",
                   position=(margin, 30 * unit))  # fmt: skip
    scene.add_text(facts, size=20 * unit, color="#7a7166", position=(margin + 2 * unit, 84 * unit))
    return scene


def film(folder: Path) -> Path:
    """Write a little film of the sample videos, with dissolves between them."""
    with Scene(480, 270, fps=25) as scene:
        line = scene.add_timeline(fill="cover")
        for name in ("coffee", "astronaut", "chelsea"):
            line.add(samples.video(name), transition=("dissolve", 0.5))
        scene.render_to(folder / "morning.mp4", progress=False)
    return folder / "morning.mp4"


def main(path: str | None = None, folder: Path = Path("out")) -> Path:
    """Save the sheet and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    with build(path or film(folder)) as scene:
        scene.render().save(folder / "contact_sheet.png")
    return folder / "contact_sheet.png"


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
