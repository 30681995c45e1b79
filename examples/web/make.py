"""Three exported pages: a portrait look, a comic, and a kernel of one's own.

``python examples/web/make.py FOLDER`` writes them; those beside this file were made so. To see
them: ``dala export --serve`` serves pages that it makes, and any web server those in a folder, such
as ``python -m http.server -d examples/web``.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import dala.web
from dala.gpu.compute import Image, kernel, rgba
from dala.gpu.compute.language import position, sin, sqrt
from dala.media import gpu
from dala.samples import photo


@kernel
def ripple(img: Image, *, height=6.0, length=24.0):
    """Look at a picture through water with round waves."""
    y, x = position()
    dx = float(x) - float(img.shape[1]) * 0.5
    dy = float(y) - float(img.shape[0]) * 0.5
    far = sqrt(dx * dx + dy * dy) + 0.001
    shift = sin(far / length * 6.2831853) * height
    seen = img[int(dx / far * shift), int(dy / far * shift)]
    return rgba(seen.rgb, seen.a)


#: The pages: what each applies, to which photograph, its title, and the ranges of its sliders.
PAGES = {
    "portrait": (
        [
            ("denoise", {"radius": 1, "sigma_color": 0.1}),
            ("temperature", {"value": 0.2}),
            ("contrast", {"value": 0.15}),
            ("vignette", {"amount": 0.6}),
        ],
        "astronaut",
        "A portrait",
        None,
    ),
    "comic": (
        [
            ("gaussian_blur", {"sigma": 0.8}),
            ("posterize", {"bits": 3}),
            ("saturation", {"value": 0.6}),
        ],
        "chelsea",
        "A comic",
        {"sigma": (0.3, 1.6)},  # every radius of a blur has a shader of its own
    ),
    "ripple": ([(ripple, {})], "coffee", "Through water", {"height": (0, 12), "length": (4, 60)}),
}


def small(name: str) -> bytes:
    """Return a photograph, 240 pixels wide, as a JPEG file."""
    frame = photo(name, device="cpu")
    file = io.BytesIO()
    gpu.resize(frame, width=240).save(file, format="jpeg", quality=80)
    return file.getvalue()


def main(folder: Path) -> None:
    for name, (filters, picture, title, sliders) in PAGES.items():
        page = folder / name
        shutil.rmtree(page, ignore_errors=True)  # shaders that are no longer written
        page.mkdir(parents=True)
        source = folder / f"{name}.jpg"
        source.write_bytes(small(picture))
        dala.web.export(filters, page, title=title, picture=source, sliders=sliders)
        source.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
