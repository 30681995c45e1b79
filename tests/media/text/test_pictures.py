"""The pictures of docs/media/text.md are current."""

from __future__ import annotations

import numpy as np
import pytest

from tests.media.text import text_pictures

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
pytest.importorskip("uharfbuzz")
pytest.importorskip("pymupdf_fonts")
image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("name", text_pictures.PAGES)
def test_page_matches_the_stored_picture(name: str) -> None:
    with image.open(text_pictures.FOLDER / f"{name}.png") as stored:
        expected = np.asarray(stored.convert("RGB")).astype(int)
    drawn = text_pictures.PAGES[name]().astype(int)
    assert drawn.shape == expected.shape
    off = np.abs(drawn - expected)
    # Another version of FreeType may fit edges to the grid a little differently, not more.
    assert off.mean() < 0.2
    assert (off > 32).mean() < 0.001


def test_the_pages_are_in_the_document() -> None:
    page = (text_pictures.FOLDER.parents[1] / "media" / "text.md").read_text(encoding="utf-8")
    for name in text_pictures.PAGES:
        assert f"(../images/text/{name}.png)" in page
    stored = {path.stem for path in text_pictures.FOLDER.glob("*.png")}
    assert stored == set(text_pictures.PAGES)
