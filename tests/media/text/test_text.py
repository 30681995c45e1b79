"""Text: layout, pixels, glyphs."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.media.text import glyphs as text_glyphs
from dala.media.text import painting as text_paint
from dala.media.text import text as text_module
from dala.media.text.fonts import faces as fonts
from dala.media.text.glyphs import GlyphAtlas, GlyphStyle
from dala.media.text.text import TextStyle, atlas_report, set_text
from dala.notices import MediaNotice

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")


def alpha(text: str, **style: Any) -> np.ndarray:
    return set_text(text, TextStyle(**style)).pixels[..., 3].astype(int)


def extent(mask: np.ndarray, axis: int, over: int = 127) -> tuple[int, int]:
    """The first and last row (0) or column (1) with ink."""
    (found,) = np.nonzero((mask > over).any(axis=1 - axis))
    return int(found[0]), int(found[-1])


# layout -------------------------------------------------------------------------------------------


def test_size_of_a_line() -> None:
    picture = set_text("Hxp", TextStyle(size=50, line_height=1.5))
    assert picture.box[1] == 75
    assert picture.pixels.shape == (picture.height, picture.width, 4)
    rows = extent(picture.pixels[:, :20, 3], 0)  # the H
    assert rows[1] == picture.baseline - 1
    assert rows[1] - rows[0] + 1 == pytest.approx(0.66 * 50, abs=1.5)  # its height by the design
    assert extent(picture.pixels[..., 3], 0)[1] > picture.baseline + 5  # the p goes below


def test_newlines() -> None:
    for newline in ("\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"):
        assert set_text(f"a{newline}b").lines == ("a", "b")
    assert set_text("\na\n").lines == ("", "a", "")


def test_lines_are_a_line_height_apart() -> None:
    mask = alpha("H\nH\nH", size=40, line_height=1.3)
    (rows,) = np.nonzero((mask > 127).any(axis=1))
    starts = rows[np.r_[True, np.diff(rows) > 1]]
    assert list(np.diff(starts)) == [52, 52]


@pytest.mark.parametrize(("align", "share"), [("left", 0.0), ("center", 0.5), ("right", 1.0)])
def test_lines_are_aligned_in_their_box(align: str, share: float) -> None:
    alone = extent(alpha("HH"), 1)
    first, last = extent(alpha("HH", width=300, align=align), 1)
    assert last - first == pytest.approx(alone[1] - alone[0], abs=1)
    room = 300 - set_text("HH").box[0]
    assert first == pytest.approx(alone[0] + share * room, abs=1)


def test_start_and_end_follow_the_direction() -> None:
    for text, sides in (("abc", ("left", "right")), ("אבג", ("right", "left"))):
        for align, side in zip(("start", "end"), sides, strict=True):
            expected = alpha(text, width=200, align=side)
            assert np.array_equal(alpha(text, width=200, align=align), expected)
    found = alpha("abc", width=200, align="start", direction="rtl")
    assert np.array_equal(found, alpha("abc", width=200, align="right"))


def test_justified_lines_reach_both_edges_but_the_last() -> None:
    words = "HH HH HH HH HH HH HH HH HH"
    picture = set_text(words, TextStyle(size=30, width=210, align="justify"))
    assert len(picture.lines) > 1
    first = picture.pixels[:36, :, 3]
    left = extent(alpha("H", size=30), 1)[0]
    assert extent(first, 1)[0] == left
    assert extent(first, 1)[1] == pytest.approx(210 - left, abs=1.5)
    last = picture.pixels[36 * (len(picture.lines) - 1) :, :, 3]
    unjustified = set_text(words, TextStyle(size=30, width=210)).pixels[..., 3]
    assert np.array_equal(last, unjustified[36 * (len(picture.lines) - 1) :])


WORDS = st.lists(
    st.text("abcdefgWil.,", min_size=1, max_size=14) | st.just("漢字かな") | st.just("שלום"),
    min_size=1,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(WORDS, st.integers(20, 300))
def test_wrapped_lines_fit_and_keep_the_text(words: list[str], width: int) -> None:
    text = " ".join(words)
    style = TextStyle(size=20, width=width)
    picture = set_text(text, style)
    assert "".join(picture.lines).replace(" ", "") == text.replace(" ", "")
    assert picture.box == (width, math.ceil(len(picture.lines) * 24))
    for line in picture.lines:
        wide = set_text(line, TextStyle(size=20)).box[0]
        assert wide <= width + 1 or len(line) == 1
        assert line == line.rstrip(" ")
    for line, following in zip(picture.lines, picture.lines[1:], strict=False):
        first = following.split(" ")[0]
        if first in words and line.split(" ")[-1] in words and first.isascii():
            joined = set_text(f"{line} {first}", TextStyle(size=20)).box[0]
            assert joined > width - 1  # it would not have fitted


def test_a_soft_hyphen_shows_where_a_line_breaks() -> None:
    style = TextStyle(size=30, width=110)
    assert set_text("semi\u00adcircle", TextStyle(size=30)).lines == ("semi\u00adcircle",)
    broken = set_text("semi\u00adcircle", style)
    assert len(broken.lines) == 2
    expected = set_text("semi-\ncircle", style)
    assert np.array_equal(broken.pixels, expected.pixels)


def test_negative_letter_spacing() -> None:
    crowded = set_text("a bb ccc", TextStyle(size=20, width=30, letter_spacing=-1000))
    assert "".join(crowded.lines).replace(" ", "") == "abbccc"
    tight, plain = (set_text("abc", TextStyle(letter_spacing=n)).box[0] for n in (-2, 0))
    assert plain - tight in (3, 4, 5)


def test_padding_moves_the_text_and_grows_the_box() -> None:
    plain, padded = set_text("Hg"), set_text("Hg", TextStyle(padding=(3, 5, 7, 11)))
    assert padded.box == (plain.box[0] + 10, plain.box[1] + 16)
    height, width = plain.pixels.shape[:2]
    assert np.array_equal(padded.pixels[5 : 5 + height, 3 : 3 + width], plain.pixels)
    assert padded.baseline == plain.baseline + 5
    assert set_text("Hg", TextStyle(padding=(4, 6))).box == (plain.box[0] + 8, plain.box[1] + 12)


def test_lines_that_are_not_wrapped_are_aligned_in_the_width() -> None:
    words = "one two three four"
    style = TextStyle(size=20, width=80, wrap=False, align="center")
    assert set_text(words, style).lines == (words,)
    assert len(set_text(words, replace(style, wrap=True)).lines) > 1
    wide = set_text("Hi", replace(style, width=100))
    columns = np.nonzero(wide.pixels[..., 3].any(axis=0))[0]
    assert abs((columns[0] + columns[-1]) / 2 - 49.5) < 1.5


def test_text_that_is_cut_is_reported() -> None:
    words = "one two three four five six"
    style = TextStyle(size=20, width=60, height=50)
    with pytest.warns(MediaNotice, match=r"'one two three four five six' is cut: .* for 2 lines"):
        set_text(words, style)
    set_text(words, replace(style, overflow="ellipsis"))  # a warning would be an error
    set_text("one two", style)


def test_overflow() -> None:
    words = "one two three four five six seven"
    with pytest.warns(MediaNotice):
        cut = set_text(words, TextStyle(size=20, width=80, height=60))
    assert cut.pixels.shape[:2] == (60, 80)
    whole = set_text(words, TextStyle(size=20, width=80))
    assert np.array_equal(cut.pixels, whole.pixels[:60])
    dots = set_text(words, TextStyle(size=20, width=80, height=60, overflow="ellipsis"))
    assert len(dots.lines) == 2
    assert dots.lines[0] == whole.lines[0]
    assert dots.lines[1].endswith("…")
    assert whole.lines[1].startswith(dots.lines[1][:-1].strip())
    assert set_text(dots.lines[1], TextStyle(size=20)).box[0] <= 80
    fits = TextStyle(size=20, width=80, height=300, overflow="ellipsis")
    assert set_text(words, fits).lines == whole.lines


def test_empty_text() -> None:
    for text in ("", " ", "\u200b", "\x00"):
        picture = set_text(text)
        assert picture.pixels.shape[0] == 39
        assert not picture.pixels.any()


@pytest.mark.parametrize("subpixel", [False, True])
def test_subpixel_false(subpixel: bool) -> None:
    mask = alpha("iiiiiiii", size=21, subpixel=subpixel)
    inked = (mask > 0).any(axis=0)
    (starts,) = np.nonzero(inked & ~np.r_[False, inked[:-1]])
    assert len(starts) == 8
    looks = {mask[:, start : start + 3].tobytes() for start in starts}
    assert len(looks) > 1 if subpixel else len(looks) == 1


# pixels -------------------------------------------------------------------------------------------


def coverage(character: str, size: float) -> np.ndarray:
    """Return a glyph as FreeType renders it directly."""
    import freetype

    face = freetype.Face(fonts.find(None).path)
    face.set_char_size(round(size * 64))
    face.load_char(character, freetype.FT_LOAD_RENDER | freetype.FT_LOAD_TARGET_LIGHT)
    bitmap = face.glyph.bitmap
    return np.array(bitmap.buffer, np.uint8).reshape(bitmap.rows, bitmap.pitch)[:, : bitmap.width]


def test_a_letter_is_the_mask_that_freetype_draws() -> None:
    expected = coverage("g", 47)
    mask = alpha("g", size=47, blend="linear")
    rows, columns = extent(mask, 0, 0), extent(mask, 1, 0)
    found = mask[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("color", "behind"), [("white", 0), ("black", 255), ("#c8c8c8", 55)])
def test_edges_look_as_if_blended_in_linear_light(color: str, behind: int) -> None:
    share = coverage("g", 47) / 255
    pixels = set_text("g", TextStyle(size=47, color=color)).pixels
    rows, columns = extent(pixels[..., 3], 0, 0), extent(pixels[..., 3], 1, 0)
    pixels = pixels[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1].astype(float)
    front = pixels[..., 0].max()
    shown = behind + (front - behind) * pixels[..., 3] / 255
    light = share * text_paint.to_linear(front / 255) + (1 - share) * text_paint.to_linear(
        behind / 255
    )
    assert np.abs(shown - 255 * text_paint.to_srgb(light)).max() < 1.5


def test_color_is_constant_and_alpha_multiplies() -> None:
    pixels = set_text("Color", TextStyle(color=(10, 200, 90, 128))).pixels
    assert set(map(tuple, pixels[pixels[..., 3] > 0][:, :3])) == {(10, 200, 90)}
    assert pixels[..., 3].max() == 128
    assert not pixels[pixels[..., 3] == 0].any()


@pytest.mark.parametrize("width", [1, 2.5, 8])
def test_width_of_the_outline(width: float) -> None:
    plain = set_text("O", TextStyle(size=60, blend="linear"))
    lined = set_text(
        "O", TextStyle(size=60, outline_width=width, outline_color="red", blend="linear")
    )
    for axis in (0, 1):
        inner = [n + plain.offset[1 - axis] for n in extent(plain.pixels[..., 3], axis)]
        outer = [n + lined.offset[1 - axis] for n in extent(lined.pixels[..., 3], axis)]
        assert inner[0] - outer[0] == pytest.approx(width, abs=1)
        assert outer[1] - inner[1] == pytest.approx(width, abs=1)
    assert lined.box == plain.box
    solid = lined.pixels[lined.pixels[..., 3] == 255]
    assert (solid[:, 0] == 255).all()
    assert (solid[:, 1] == solid[:, 2]).all()  # from white to red
    assert solid[:, 1].min() < 60
    assert solid[:, 1].max() == 255


def gaussian(mask: np.ndarray, sigma: float) -> np.ndarray:
    reach = math.ceil(3 * sigma)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    taps /= taps.sum()
    for axis in (0, 1):
        mask = np.apply_along_axis(lambda row: np.convolve(row, taps, "same"), axis, mask)
    return mask


def moved(text: str, dx: int, dy: int, like: Any) -> np.ndarray:
    """Return the coverage of a text shifted into another picture."""
    plain = set_text(text, TextStyle(size=60, blend="linear"))
    canvas = np.zeros((400, 400))
    x, y = 150 + dx + plain.offset[0], 150 + dy + plain.offset[1]
    canvas[y : y + plain.height, x : x + plain.width] = plain.pixels[..., 3]
    top, left = 150 + like.offset[1], 150 + like.offset[0]
    return canvas[top : top + like.height, left : left + like.width]


def test_a_shadow_is_the_letters_blurred_and_moved() -> None:
    shadow = set_text("S", TextStyle(size=60, color="transparent", shadow=(7, -4, 6, "#102030")))
    expected = gaussian(moved("S", 7, -4, shadow), 3.0)
    assert expected.max() > 100
    assert np.abs(shadow.pixels[..., 3] - expected).max() < 2
    solid = shadow.pixels[shadow.pixels[..., 3] > 8][:, :3].astype(int)
    assert np.abs(solid - (0x10, 0x20, 0x30)).max() <= 1
    edges = shadow.pixels[..., 3]
    assert max(edges[0].max(), edges[-1].max(), edges[:, 0].max(), edges[:, -1].max()) <= 2


def test_shadow_at_fractions_of_a_pixel() -> None:
    found = set_text("I", TextStyle(size=60, color="transparent", shadow=(2.5, 0, 0, "black")))
    expected = (moved("I", 2, 0, found) + moved("I", 3, 0, found)) / 2
    assert expected.max() == 255
    assert np.abs(found.pixels[..., 3] - expected).max() <= 1


def test_background_with_rounded_corners() -> None:
    style = TextStyle(size=30, background="#11223380", padding=20, radius=12, color="transparent")
    picture = set_text("box", style)
    mask = picture.pixels[..., 3].astype(int)
    assert mask.shape == picture.box[::-1]
    assert (mask[12:-12] == 128).all()
    assert (mask[:, 12:-12] == 128).all()
    y, x = np.mgrid[:12, :12] + 0.5
    expected = 128 * np.clip(12.5 - np.hypot(12 - x, 12 - y), 0, 1)
    for corner in (mask[:12, :12], mask[:12, ::-1][:, :12], mask[::-1][:12, :12]):
        assert np.abs(corner - expected).max() <= 1
    assert tuple(picture.pixels[20, 20, :3]) == (0x11, 0x22, 0x33)


COLORS = st.tuples(*[st.integers(0, 255)] * 4)


@settings(max_examples=40, deadline=None)
@given(COLORS, COLORS, COLORS, COLORS, st.booleans(), st.booleans(), st.booleans())
def test_tables_are_as_good_as_arithmetic(
    color: Any, outline: Any, shadow: Any, background: Any, lined: bool, dark: bool, boxed: bool
) -> None:
    style = TextStyle(
        size=24, color=color, outline_color=outline, outline_width=2 * lined, padding=6, radius=5,
        shadow=(2, 3, 4, shadow) if dark else None, background=background if boxed else None,
    )  # fmt: skip
    found = set_text("Rg", style).pixels.astype(float)
    plan = text_module._plan(style, fonts.generation)
    lines = text_module._lines(plan, "Rg")
    seen: list[Any] = []
    original = text_module._paint_with_tables
    try:
        text_module._paint_with_tables = lambda *args: seen.append(args) or original(*args)  # type: ignore[func-returns-value]
        text_module._paint(plan, lines)
    finally:
        text_module._paint_with_tables = original
    (_, fill, stroke, box) = seen[0]
    layers = text_module._layers(plan, fill, stroke, box)
    exact = text_paint.merge(layers, "srgb").astype(float)
    assert np.abs(found[..., 3] - exact[..., 3]).max() <= 2
    weighted = np.abs(found[..., :3] - exact[..., :3]) * np.minimum(found, exact)[..., 3:] / 255
    assert weighted.max() <= 2.5


def test_layers_mix_in_linear_light_on_request() -> None:
    half = np.full((1, 1), 0.5, np.float32)
    full = np.ones((1, 1), np.float32)
    layers = [
        text_paint.ColorLayer(half, b"\xff\xff\xff\xff"),
        text_paint.ColorLayer(full, b"\0\0\0\xff"),
    ]
    assert text_paint.merge(layers, "srgb")[0, 0].tolist() == [128, 128, 128, 255]
    assert text_paint.merge(layers, "linear")[0, 0].tolist() == [188, 188, 188, 255]


# glyph atlas --------------------------------------------------------------------------------------


def test_the_atlas_draws_a_glyph_once_and_keeps_to_its_budget() -> None:
    face = fonts.font_set(None, 400, False).first
    look = GlyphStyle(face, 33.0)
    wanted = [(face.glyph(c), quarter) for c in "abcdefgh" for quarter in range(4)]
    store = GlyphAtlas(1 << 20)
    first = store.gather(look, wanted)
    again = store.gather(look, wanted)
    assert all(a is b for a, b in zip(first, again, strict=True))
    report = store.report()
    assert (report.misses, report.hits, report.evictions, report.masks) == (32, 32, 0, 32)
    assert report.bytes == sum(m.pixels.nbytes + store.OVERHEAD for m in first)
    small = GlyphAtlas(10 * (report.bytes // 32))
    for number, one in enumerate(wanted):
        small.gather(look, [wanted[0], one])
        assert small.report().bytes <= small.budget, number
    held = small.report()
    assert held.evictions == held.misses - held.masks > 0
    hits = held.hits
    small.gather(look, [wanted[0]])  # used all along, so still there
    assert small.report().hits == hits + 1
    small.clear()
    assert (small.report().bytes, small.report().masks) == (0, 0)


def test_cached_letters_are_not_rendered_again() -> None:
    style = TextStyle(size=37)
    set_text("0123456789:", style)
    for number in range(30):  # every letter at every quarter
        set_text(f"{number:02d}:{59 - number:02d}:{number * 7:03d}", style)
    before = atlas_report()
    set_text("07:52:049", style)
    after = atlas_report()
    assert after.misses == before.misses
    assert after.hits == before.hits + 9


def test_threads() -> None:
    texts = [f"thread {n} of many, {n * 37} words" for n in range(24)]
    styles = [TextStyle(size=s, outline_width=o) for s, o in ((19, 0), (23, 2), (31, 0))]
    text_glyphs.atlas.clear()
    found: dict[tuple[str, float], np.ndarray] = {}
    faults: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for n in range(len(texts)):
                text = texts[(n * 5 + start) % len(texts)]
                for style in styles:
                    found[text, style.size] = set_text(text, style).pixels
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    for (text, size), pixels in found.items():
        style = next(s for s in styles if s.size == size)
        assert np.array_equal(pixels, set_text(text, style).pixels)
