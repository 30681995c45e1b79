"""Outlines of letters as paths, compared with the masks that FreeType renders."""

from __future__ import annotations

import numpy as np
import pytest

from dala.media.text.text import TextStyle, measure_text, set_text, text_outline

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")


@pytest.mark.long
@pytest.mark.parametrize(
    "style",
    [
        TextStyle(size=100),
        TextStyle(size=90, weight="black"),
        TextStyle(size=100, italic=True),
        TextStyle(size=60, width=300, align="right"),
        TextStyle(size=80, letter_spacing=12.5),
    ],
)
def test_points_are_inside_where_the_mask_is_covered(style: TextStyle) -> None:
    text = "Hägar\nfjord &"
    path = text_outline(text, style)
    picture = set_text(text, style)
    cover = picture.pixels[..., 3]
    random = np.random.default_rng(5)
    checked = wrong = 0
    for row, column in random.integers(0, cover.shape, (400, 2)):
        part = cover[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3]
        if part.min() != part.max():
            continue  # near an edge, which hinting moves
        checked += 1
        x, y = column + 0.5 + picture.offset[0], row + 0.5 + picture.offset[1]
        wrong += path.contains(x, y) != (cover[row, column] > 127)
    assert checked > 150
    assert wrong == 0


def test_emboldened_letters_are_heavier() -> None:
    plain = text_outline("l", TextStyle(size=100))
    x0, _, x1, _ = plain.bounds
    assert 5 < x1 - x0 < 15
    assert text_outline(" ", TextStyle(size=100)).verbs == b""
    assert text_outline("", TextStyle()).verbs == b""


def test_measures_are_those_of_the_picture() -> None:
    for text in ("Hello", "a\nlonger line\n", "", "عربي"):
        for style in (TextStyle(size=33), TextStyle(size=20, width=44, padding=(3, 4))):
            width, height = measure_text(text, style)
            box = set_text(text, style).box
            assert box == (max(np.ceil(width - 1e-6), 1), np.ceil(height - 1e-6))
