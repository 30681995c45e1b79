"""Shaping: against HarfBuzz, and without it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from dala.media.text import layout as text_wrap
from dala.media.text import shaping as text_shape
from dala.media.text.fonts import faces as fonts
from dala.media.text.layout import LineBreaker, TextLine, breaks
from dala.media.text.shaping import ShapingOptions, clusters
from dala.media.text.text import TextStyle, set_text

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
hb = pytest.importorskip("uharfbuzz")
pytest.importorskip("pymupdf_fonts")

SIZE = 50.0


def breaker(font: str = "FiraGO", direction: str = "auto", spacing: float = 0.0) -> LineBreaker:
    found = fonts.font_set(font, 400, False)
    return LineBreaker(found, ShapingOptions(SIZE, spacing, False), direction)


def line(text: str, font: str = "FiraGO", direction: str = "auto") -> TextLine:
    (found,) = breaker(font, direction).lines(text, None, 10)
    return found


def glyphs(found: TextLine) -> list[int]:
    return [glyph for piece in found.runs for glyph in piece.shaped.glyphs]


def harfbuzz(text: str, font: str = "FiraGO", **properties: str) -> tuple[list[int], float]:
    """Glyphs from left to right and their width, by a buffer of the whole text."""
    face = fonts.font_set(font, 400, False).first
    buffer = hb.Buffer()
    buffer.add_str(text)
    buffer.guess_segment_properties()
    for name, value in properties.items():
        setattr(buffer, name, value)
    hb.shape(face.hb, buffer)
    advance = sum(one.x_advance for one in buffer.glyph_positions)
    return [one.codepoint for one in buffer.glyph_infos], advance * SIZE / face.upem


@pytest.mark.parametrize(
    "text",
    [
        "السلام",
        "عليكم",
        "لا",
        "مُحَمَّد",
        "שָׁלוֹם",
        "नमस्ते",
        "दुनिया",
        "สวัสดี",
        "Avatar",
        "office",
        "q\u0307x\u0308",
    ],
)
def test_shaping_agrees_with_harfbuzz(text: str) -> None:
    found = line(text)
    expected, width = harfbuzz(text)
    assert glyphs(found) == expected
    assert found.width == pytest.approx(width, abs=0.01)


def test_arabic_letters_are_joined() -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    alone = [face.glyph(letter) for letter in reversed("عليكم")]
    joined = glyphs(line("عليكم"))
    assert len(joined) == len(alone)
    assert all(one != other for one, other in zip(joined, alone, strict=True))


def test_two_words_of_arabic_run_from_the_right() -> None:
    first, second = harfbuzz("سلام")[0], harfbuzz("عليكم")[0]
    space = harfbuzz(" ")[0]
    assert glyphs(line("سلام عليكم")) == second + space + first


def test_hebrew_runs_from_the_right_and_brackets_are_mirrored() -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    assert glyphs(line("(אב)")) == [face.glyph(one) for one in "(בא)"]
    assert glyphs(line("אב 12")) == [face.glyph(one) for one in "12 בא"]


def test_directions_mix_in_a_line() -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    expected = [face.glyph(one) for one in "ab דג בא cd"]
    assert glyphs(line("ab אב גד cd")) == expected


def test_wrapped_lines_are_ordered_each_for_itself() -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    width = line("אב גד").width + 1
    found = breaker().lines("אב גד הו", width, 10)
    assert [one.text.strip() for one in found] == ["אב גד", "הו"]
    assert glyphs(found[0]) == [face.glyph(one) for one in "דג בא"]
    assert found[0].rtl
    assert found[0].wrapped
    assert not found[1].wrapped


def test_kerning_brings_letters_together() -> None:
    apart = line("T", "Source Sans Pro").width + line("o", "Source Sans Pro").width
    assert line("To", "Source Sans Pro").width < apart - 3


def test_decomposed_accents_are_set_as_composed_ones() -> None:
    style = TextStyle(size=60)
    for composed, apart in (("é", "e\u0301"), ("ộ", "o\u0323\u0302"), ("Å", "A\u030a")):
        assert np.array_equal(set_text(composed, style).pixels, set_text(apart, style).pixels)


def test_marks_without_a_composed_letter_stand_over_theirs() -> None:
    base = set_text("q", TextStyle(size=80)).pixels[..., 3]
    marked = set_text("q\u0307", TextStyle(size=80)).pixels[..., 3]
    assert marked.shape == base.shape
    _, columns = np.nonzero((marked > 127) & (base < 10))
    _, letter = np.nonzero(base > 127)
    assert columns.size > 20
    assert abs(columns.mean() - letter.mean()) < 8


def test_letter_spacing_disables_ligatures() -> None:
    plain, wide = breaker(), breaker(spacing=5.0)
    (near,), (far,) = plain.lines("abc", None, 9), wide.lines("abc", None, 9)
    assert far.width == pytest.approx(near.width + 10, abs=0.01)
    face = fonts.font_set("FiraGO", 400, False).first
    assert len(glyphs(wide.lines("ffi", None, 9)[0])) == 3
    assert glyphs(wide.lines("ffi", None, 9)[0]) == [face.glyph(one) for one in "ffi"]


def test_clusters_stay_whole() -> None:
    def parts(text: str) -> list[str]:
        return [text[a:b] for a, b in clusters(text)]

    assert parts("ae\u0301\u0323b") == ["a", "e\u0301\u0323", "b"]
    assert parts("👨\u200d👩\u200d👧x") == ["👨\u200d👩\u200d👧", "x"]
    assert parts("🇩🇪🇫🇷") == ["🇩🇪", "🇫🇷"]
    assert parts("👍🏽!") == ["👍🏽", "!"]
    assert parts("") == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("plain", ["plain"]),
        ("well-known", ["well-", "known"]),
        ("-5", ["-5"]),
        ("1990-2000", ["1990-2000"]),
        ("a\u200bb", ["a\u200b", "b"]),
        ("a\u00adb", ["a\u00ad", "b"]),
        ("a\u00a0b", ["a\u00a0b"]),
        ("漢字かな", ["漢", "字", "か", "な"]),
        ("「漢字」。", ["「漢", "字」。"]),
        ("ABC漢字", ["ABC", "漢", "字"]),
        ("きゃっと", ["きゃっ", "と"]),
        ("한글", ["한", "글"]),
        ("this—that", ["this", "—", "that"]),
    ],
)
def test_where_lines_may_break(word: str, expected: list[str]) -> None:
    ends = breaks(word)
    assert [word[a:b] for a, b in zip([0, *ends], ends, strict=False)] == expected


@pytest.fixture
def unshaped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As without the text extra."""
    monkeypatch.setattr(fonts, "harfbuzz", lambda: None)
    monkeypatch.setattr(text_shape, "_warned", False)
    text_wrap._shape_token.cache_clear()
    yield
    text_wrap._shape_token.cache_clear()


def test_without_harfbuzz_letters_are_placed_in_order(unshaped: None) -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    found = line("fish")
    assert glyphs(found) == [face.glyph(one) for one in "fish"]
    advances = sum(face.advance(face.glyph(one)) for one in "fish")
    kerned = sum(face.kerning(face.glyph(a), face.glyph(b)) for a, b in ("fi", "is", "sh"))
    assert found.width == pytest.approx((advances + kerned) * SIZE / face.upem, abs=0.01)


def test_without_harfbuzz_hebrew_runs_from_the_right(unshaped: None) -> None:
    face = fonts.font_set("FiraGO", 400, False).first
    assert glyphs(line("(אב) 12")) == [face.glyph(one) for one in "12 (בא)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        set_text("שלום é ö", TextStyle(font="FiraGO"))


def test_without_harfbuzz_complex_text_warns_once(unshaped: None) -> None:
    with pytest.warns(
        UserWarning, match=r"ARABIC LETTER SEEN needs shaping.*dala-gpu\[media\]"
    ) as reported:
        set_text("سلام नमस्ते", TextStyle())
    set_text("नमस्ते", TextStyle())  # a second warning would be an error
    assert len(reported) == 1
    assert reported[0].filename == __file__
