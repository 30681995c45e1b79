"""A folder of JPEGs through a kernel of your own, to a folder of WebP files.

python examples/jpegs_to_webp.py holiday/ small/
python examples/jpegs_to_webp.py                     # the sample photographs, to out/webp/
"""

import sys
from pathlib import Path

import dala
from dala.gpu.compute import Pixel, kernel, rgba
from dala.media import Frame


@kernel
def faded(px: Pixel, *, strength: float = 0.5):
    """Old film: less color, warmer shadows, paler lights."""
    gray = 0.299 * px.r + 0.587 * px.g + 0.114 * px.b
    old = rgba(0.12 + 0.83 * gray, 0.08 + 0.84 * gray, 0.06 + 0.80 * gray, px.a)
    return px + (old - px) * strength


def convert(source: Path, target: Path, strength: float = 0.5) -> list[Path]:
    """Convert every JPEG of a folder; return the files that were written."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for path in sorted(p for p in source.iterdir() if p.suffix.lower() in (".jpg", ".jpeg")):
        picture = faded(Frame.open(path), strength=strength)  # a Frame gives a Frame
        written.append(target / f"{path.stem}.webp")
        picture.save(written[-1], quality=85)
    return written


if __name__ == "__main__":
    if len(sys.argv) == 3:
        source, target = map(Path, sys.argv[1:])
    else:
        source, target = Path("out/jpegs"), Path("out/webp")
        source.mkdir(parents=True, exist_ok=True)
        for name in ("astronaut", "chelsea", "coffee"):
            dala.samples.photo(name).save(source / f"{name}.jpg")
    for path in convert(source, target):
        print(path)
