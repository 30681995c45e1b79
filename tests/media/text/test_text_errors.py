"""Text: errors and cleaning."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import ColorError, DtypeError, MissingPackage, ParameterError
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.freetype import freetype
from dala.media.text.text import TextStyle, clean, set_text

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("size", 0, "size must be a number from 1 to 1000, got 0."),
        ("size", 1001, "size"),
        ("size", float("nan"), "size must be a number"),
        ("size", "big", "size must be a number from 1 to 1000, got 'big'."),
        ("size", True, "size"),
        ("weight", "fat", "weight must be one of thin, .*, got 'fat'."),
        ("weight", 0, "weight"),
        ("italic", "yes", "italic must be True or False"),
        ("align", "middle", "align must be one of 'left'"),
        ("direction", "up", "direction"),
        ("overflow", "scroll", "overflow"),
        ("blend", "gamma", "blend"),
        ("width", 0, "width"),
        ("height", -1, "height"),
        ("line_height", 0, "line_height"),
        ("outline_width", -1, "outline_width"),
        ("padding", (1, 2, 3), r"padding must be a number, \(horizontal, vertical\)"),
        ("padding", -1, "padding"),
        ("shadow", (1, 2), r"shadow must be \(dx, dy, blur, color\)"),
        ("shadow", (1, 2, 300, "red"), "blur of shadow"),
        ("font", "", "font"),
        ("font", 3, "font"),
        ("font", (), "font"),
        ("letter_spacing", float("inf"), "letter_spacing"),
    ],
)
def test_invalid_styles(field: str, value: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        TextStyle(**{field: value})


def test_padding_leaves_room_for_text() -> None:
    with pytest.raises(ParameterError, match="padding must be narrower than the width 20"):
        TextStyle(width=20, padding=10)
    with pytest.raises(ParameterError, match="padding must be lower than the height 20"):
        TextStyle(height=20, padding=(0, 10))


@pytest.mark.parametrize("field", ["color", "outline_color", "background"])
def test_invalid_colors(field: str) -> None:
    with pytest.raises(
        ColorError, match=f"TextStyle: {field} must be .*, got 'redd'. Did you mean 'red'"
    ):
        TextStyle(**{field: "redd"})
    with pytest.raises(ColorError, match="color of shadow"):
        TextStyle(shadow=(1, 1, 1, "redd"))


def test_lists_become_tuples() -> None:
    style = TextStyle(color=[1, 2, 3], padding=[4, 5], shadow=[1, 2, 3, [4, 5, 6]])  # type: ignore[arg-type]
    assert style == TextStyle(color=(1, 2, 3), padding=(4, 5), shadow=(1, 2, 3, (4, 5, 6)))
    assert hash(style)
    assert dataclasses.replace(style, size=20).padding == (4, 5)


def test_invalid_text() -> None:
    with pytest.raises(DtypeError, match=r"text must be a str, got 3. Use str\(value\)"):
        set_text(3)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match=r"style must be a TextStyle, got \{\}"):
        set_text("a", {})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="at most 100000 characters, got 100001"):
        set_text("x" * 100_001)
    with pytest.raises(ParameterError, match=r"picture must have at most .* x 39\."):
        set_text("x" * 5000)
    with pytest.raises(ParameterError, match="picture must have at most"):
        set_text("x\n" * 5000)
    with pytest.raises(ParameterError, match="picture must have at most"):
        set_text("x" * 50_000, TextStyle(width=100))
    style = TextStyle(width=100, height=60, overflow="ellipsis")
    assert set_text("x" * 50_000, style).box == (100, 60)


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_family", lambda name: [])
    monkeypatch.setattr(fonts.fonts_scan, "system_fonts", tuple)
    with pytest.raises(MissingPackage, match=r'no font .*pip install "dala-gpu\[media\]"'):
        fonts.find(None)
    monkeypatch.setitem(sys.modules, "freetype", None)
    with pytest.raises(MissingPackage, match=r"freetype-py.*pip install \"dala-gpu\[media\]\""):
        freetype()


def test_control_characters_and_surrogates() -> None:
    assert clean("a\tb\x00\x07\x1b\x7f\x9fc") == "a    bc"
    assert clean("\ud800x\udfff") == "\ufffdx\ufffd"
    assert np.array_equal(set_text("a\ud83d").pixels, set_text("a\ufffd").pixels)
    assert np.array_equal(set_text("a\x08b").pixels, set_text("ab").pixels)


@pytest.mark.filterwarnings("ignore:set_text.*needs shaping")
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.none() | st.integers(10, 200), st.sampled_from(("auto", "rtl")))
def test_any_text_renders(text: str, width: int | None, direction: str) -> None:
    picture = set_text(text, TextStyle(size=14, width=width, direction=direction))
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.shape[0] >= 16
    assert len(picture.lines) >= 1
