"""The pictures of docs/media/text.md, set with the bundled fonts alone.

``python -m tests.media.text.text_pictures`` writes docs/images/text again.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from dala.media.text.text import TextStyle, set_text

FOLDER = pathlib.Path(__file__).parents[3] / "docs" / "images" / "text"

NAVY, PAPER = (24, 38, 64), (238, 236, 230)


class Page:
    """A picture that texts are put on, blended in sRGB as a scene does it."""

    def __init__(self, width: int, height: int, color: tuple[int, int, int]) -> None:
        self.image = np.zeros((height, width, 3))
        self.image[:] = color

    def put(self, text: str, x: int, y: int, **style: Any) -> None:
        picture = set_text(text, TextStyle(**style))
        x, y = x + picture.offset[0], y + picture.offset[1]
        alpha = picture.pixels[..., 3:] / 255
        part = self.image[y : y + picture.height, x : x + picture.width]
        assert part.shape[:2] == alpha.shape[:2], f"{text!r} does not fit the page"
        part += (picture.pixels[..., :3] - part) * alpha

    def pixels(self) -> np.ndarray:
        return np.floor(self.image + 0.5).astype(np.uint8)


def weights() -> np.ndarray:
    page = Page(880, 300, NAVY)
    for row, weight in enumerate(("extralight", "light", "regular", "semibold", "bold", "black")):
        page.put(f"{weight}: façade, naïve, Ærøskøbing", 20, 12 + 46 * row, size=34, weight=weight)
        page.put("italic 0123", 660, 12 + 46 * row, size=34, weight=weight, italic=True)
    return page.pixels()


def layout() -> np.ndarray:
    page = Page(880, 350, PAPER)
    box: dict[str, Any] = {
        "size": 22, "width": 270, "padding": 12, "radius": 10,
        "background": "#18264018", "color": "#182640",
    }  # fmt: skip
    words = (
        "Lines are wrapped to a box at spaces, after hyphens of well-known words and else, where "
    )
    words += "a word is too wide: Donaudampfschifffahrtsgesellschaft."
    for column, align in enumerate(("left", "center", "justify")):
        page.put(words, 20 + 285 * column, 16, align=align, **box)
    page.put("to the right\nline by line", 20, 230, align="right", **box)
    page.put(
        "Too much for a box of two lines ends with three dots, not in the middle of a letter",
        305, 230, height=77, overflow="ellipsis", **box,
    )  # fmt: skip
    page.put("spaced out\nand far apart", 590, 230, letter_spacing=4, line_height=1.6, **box)
    return page.pixels()


def effects() -> np.ndarray:
    page = Page(880, 250, (120, 134, 120))
    page.put("Outline", 24, 10, size=72, weight="bold", outline_width=5, outline_color="#182640")
    soft = (5, 6, 10, "#000000c0")
    page.put("Shadow", 330, 10, size=72, weight="bold", color="#ffd23f", shadow=soft)
    page.put("Both", 640, 10, size=72, weight="bold", outline_width=3, shadow=soft)
    caption: dict[str, Any] = {"size": 34, "padding": (24, 8), "radius": 14}
    page.put("Background with round corners", 24, 140, background="#101820d0", **caption)
    page.put("dark on light", 560, 140, background="#f4f4f0", color="#101820", **caption)
    return page.pixels()


def scripts() -> np.ndarray:
    page = Page(880, 350, PAPER)
    ink: dict[str, Any] = {"size": 34, "color": "#182640"}
    page.put("العربية: السلام عليكم ١٢٣", 20, 10, **ink)
    page.put("עברית: שלום עולם (123)", 480, 10, **ink)
    page.put("नमस्ते दुनिया", 20, 66, **ink)
    page.put("สวัสดีชาวโลก", 300, 66, **ink)
    page.put("გამარჯობა", 600, 66, **ink)
    page.put("Ελληνικά, кириллица, Tiếng Việt, q̇ ẍ", 20, 122, **ink)
    page.put("Words like שלום (peace) and سلام in one line: 3 + 4 = 7.", 20, 178, **ink)
    page.put(
        "هذا نص طويل يلتف على عدة أسطر داخل صندوق، with a few English words.",
        20, 236, size=26, color="#182640", width=420, align="start", background="#18264018",
        padding=10, radius=10,
    )  # fmt: skip
    return page.pixels()


PAGES = {"weights": weights, "layout": layout, "effects": effects, "scripts": scripts}


def main() -> None:
    from dala.png import write_png

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        write_png(FOLDER / f"{name}.png", page())


if __name__ == "__main__":
    main()
