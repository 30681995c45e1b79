"""Fonts: found by name and by path, nearest weights, fallbacks, damaged files."""

from __future__ import annotations

import pathlib
import random
import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts import scan as fonts_scan
from dala.media.text.text import TextStyle, set_text
from dala.notices import MediaNotice
from tests.fuzz.fonts import composed, layered

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")

REGULAR = fonts.find("Source Sans Pro").path


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A folder of fonts of our own, the only one that is searched."""
    monkeypatch.setattr(fonts_scan, "folders", lambda: [tmp_path])
    fonts.refresh()
    yield tmp_path
    fonts.refresh()


def ink(text: str, **style: object) -> int:
    return int(set_text(text, TextStyle(blend="linear", **style)).pixels[..., 3].sum())  # type: ignore[arg-type]


def test_the_default_family_has_six_weights_upright_and_italic() -> None:
    faces = {(f.weight, f.italic) for f in fonts.bundled() if f.family == "Source Sans Pro"}
    assert faces == {(w, i) for w in (200, 300, 400, 600, 700, 900) for i in (False, True)}


@pytest.mark.parametrize(
    ("asked", "given"),
    [(1, 200), (250, 200), (400, 400), (500, 600), (550, 600), (700, 700), (800, 900), (1000, 900)],
)
def test_the_nearest_weight_is_taken_as_css_does(asked: int, given: int) -> None:
    assert fonts.find("Source Sans Pro", weight=asked).weight == given


def test_names_ignore_case_and_spaces() -> None:
    assert fonts.find("source sans pro") == fonts.find("SourceSansPro") == fonts.find(None)
    assert fonts.find("sans-serif").family == "Source Sans Pro"
    assert fonts.find("SourceSansPro-Black").weight == 900


def test_heavier_weights_cover_more() -> None:
    found = [ink("Weight", weight=w) for w in ("light", "regular", "semibold", "bold", "black")]
    assert found == sorted(found)
    assert found[-1] > 1.5 * found[0]


def test_a_family_in_a_folder_is_found_by_its_name(folder: pathlib.Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    shutil.copy(REGULAR, folder / "deep" / "er" / "some.ttf")
    (folder / "broken.ttf").write_bytes(b"\0\1\0\0 and then nothing that makes sense")
    (folder / "letter.txt").write_text("no font")
    found = fonts_scan.system_fonts()
    assert [(f.family, f.weight) for f in found] == [("Source Sans Pro", 400)]
    assert found[0].path.endswith("some.ttf")


def test_refresh(folder: pathlib.Path) -> None:
    with pytest.warns(MediaNotice, match="no font here has"):  # no bundled font has a snail
        pixels = set_text("\U0001f40c", TextStyle(size=40)).pixels
    dejavu = pathlib.Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    if not dejavu.exists():
        pytest.skip("DejaVu Sans is not on this machine")
    shutil.copy(dejavu, folder)
    with pytest.raises(ParameterError, match="there is no family 'DejaVu Sans'"):
        fonts.find("DejaVu Sans")
    fonts.refresh()
    assert fonts.find("DejaVu Sans").path == str(folder / "DejaVuSans.ttf")
    smile = set_text("\U0001f600", TextStyle(size=40)).pixels
    assert not np.array_equal(smile, pixels)


def test_scan_agrees_with_freetype() -> None:
    import freetype

    for file in (*fonts.bundled(), *fonts_scan.system_fonts()):
        if file.package or file.color:
            continue
        face = freetype.Face(file.path, file.index)
        names = {file.family, *file.names}
        assert face.family_name.decode() in names
        for character in "Aé😀漢א":
            claimed = fonts_scan.may_have(file, character)
            assert claimed or not face.get_char_index(ord(character))


def test_font_by_path() -> None:
    bold = fonts.find("Source Sans Pro", weight=700).path
    assert ink("path", font=bold) == ink("path", weight="bold")
    assert ink("path", font=pathlib.Path(bold)) == ink("path", weight="bold")


def test_bold_and_italic_are_synthesized() -> None:
    plain = set_text("HHH", TextStyle(font=REGULAR, size=60))
    bold = set_text("HHH", TextStyle(font=REGULAR, size=60, weight="bold"))
    slanted = set_text("l", TextStyle(font=REGULAR, size=60, italic=True))
    upright = set_text("l", TextStyle(font=REGULAR, size=60))
    assert bold.box[0] > plain.box[0]
    assert bold.pixels[..., 3].sum() > 1.1 * plain.pixels[..., 3].sum()

    def spread(pixels: np.ndarray) -> float:
        rows, columns = np.nonzero(pixels[..., 3] > 127)
        return float(
            columns[rows < np.median(rows)].mean() - columns[rows >= np.median(rows)].mean()
        )

    assert abs(spread(upright.pixels)) < 1 < spread(slanted.pixels)


def test_fallback_for_missing_letters() -> None:
    pytest.importorskip("pymupdf_fonts")
    found = fonts.font_set(None, 400, False)
    assert found.face("a") is found.first
    assert found.face("ب").file.family == "FiraGO"
    assert found.face("א").glyph("א") != 0
    assert fonts.font_set(None, 700, False).face("ب").file.weight == 700


def test_fallback_does_not_depend_on_earlier_text() -> None:
    texts = ["☃", "א", "ب", "♞", "ก", "😀"]
    for order in (texts, texts[::-1]):
        fonts.refresh()
        found = fonts.font_set(None, 400, False)
        named = {one: found.face(one).file.family for one in order}
        assert named == {
            one: fonts.FontSet(None, 400, False).face(one).file.family for one in texts
        }


def test_a_tuple_of_fonts_is_tried_in_turn() -> None:
    pytest.importorskip("pymupdf_fonts")
    found = fonts.font_set(("Source Sans Pro", "FiraGO"), 400, False)
    assert [found.face(c).file.family for c in "aब"] == ["Source Sans Pro", "FiraGO"]


def test_replacement_box_for_unknown_letters(folder: pathlib.Path) -> None:
    box = set_text("\U0010fffd", TextStyle(size=40))
    assert np.array_equal(box.pixels, set_text("\U0010fffc", TextStyle(size=40)).pixels)
    assert box.pixels[..., 3].max() == 255


def test_color_emoji() -> None:
    pytest.importorskip("uharfbuzz")
    if not any(f.color for f in fonts_scan.system_fonts()):
        pytest.skip("no font in color on this machine")
    face = set_text("😀", TextStyle(size=64, color="blue")).pixels
    solid = face[face[..., 3] == 255][:, :3].astype(int)
    assert len(solid) > 1000
    yellow = (solid[:, 0] > 180) & (solid[:, 1] > 120) & (solid[:, 2] < 120)
    assert yellow.mean() > 0.5
    flag = set_text("🇩🇪", TextStyle(size=64))
    assert flag.box[0] < 1.6 * set_text("😀", TextStyle(size=64)).box[0]  # one glyph, not two
    faint = set_text("😀", TextStyle(size=64, color="#ffffff80")).pixels
    assert abs(int(faint[..., 3].max()) - 128) <= 1
    assert set_text("☃1", TextStyle(size=64, color="red")).pixels[..., 2].max() == 0


def test_variable_fonts_have_any_weight() -> None:
    if not any(f.axis and f.family == "Inter" for f in fonts_scan.system_fonts()):
        pytest.skip("the variable font Inter is not on this machine")
    found = [ink("Weight", font="Inter", weight=w, size=40) for w in (100, 350, 400, 450, 900)]
    assert found == sorted(found)
    assert len(set(found)) == 5


def test_japanese_uses_a_font_that_has_it() -> None:
    found = fonts.font_set(None, 400, False).face("漢")
    if not found.glyph("漢"):
        pytest.skip("no Japanese font on this machine")
    assert not np.array_equal(set_text("漢").pixels, set_text("字").pixels)


def test_unknown_family_suggests_similar_ones() -> None:
    with pytest.raises(
        ParameterError, match=r"there is no family 'Sauce Sans Pro'.*'Source Sans Pro'"
    ):
        fonts.find("Sauce Sans Pro")


@pytest.mark.parametrize("font", ["/nowhere/a.ttf", "nowhere.otf"])
def test_missing_font_file(font: str) -> None:
    with pytest.raises(ParameterError, match="does not exist"):
        set_text("a", TextStyle(font=font))


def test_file_that_is_not_a_font(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ParameterError, match="cannot be read"):
        set_text("a", TextStyle(font=tmp_path))
    other = tmp_path / "a.ttf"
    other.write_bytes(b"GIF89a and so on")
    with pytest.raises(ParameterError, match="not a TrueType or OpenType font"):
        set_text("a", TextStyle(font=other))


COMPOSED = [(2000, 1), (60_000, 1), (6, 60)]


@pytest.mark.parametrize(("levels", "parts"), COMPOSED, ids=["deep", "deeper", "wide"])
def test_letters_composed_of_too_many_are_refused(levels, parts, tmp_path: pathlib.Path) -> None:
    """FreeType composed them on the stack until the process crashed, or took 2 GB."""
    (tmp_path / "a.ttf").write_bytes(composed(levels, parts))
    with pytest.raises(ParameterError, match="invalid composite glyph"):
        set_text("A", TextStyle(font=tmp_path / "a.ttf", size=20))


def test_letters_of_too_many_layers_are_refused(tmp_path: pathlib.Path) -> None:
    """65,000 took more than 40 s at a size of 1,000, in one call of FreeType."""
    for layers in (65_000, 200):
        (tmp_path / f"{layers}.ttf").write_bytes(layered(layers))
    with pytest.raises(ParameterError, match="invalid composite glyph"):
        set_text("A", TextStyle(font=tmp_path / "65000.ttf", size=100))
    assert np.ptp(set_text("A", TextStyle(font=tmp_path / "200.ttf", size=20)).pixels) > 0


def test_letters_composed_of_some_are_drawn(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.ttf").write_bytes(composed(3, 9))
    set_text("A", TextStyle(font=tmp_path / "a.ttf", size=20))


def test_damaged_fonts_never_crash(tmp_path: pathlib.Path) -> None:
    whole = pathlib.Path(REGULAR).read_bytes()
    dice = random.Random(7)
    refused = 0
    for number in range(60):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[dice.randrange(len(data)) :]
        for _ in range(dice.choice((1, 30, 2000))):
            if data:
                data[dice.randrange(len(data) if number % 3 == 1 else min(4000, len(data)))] ^= 0xA5
        path = tmp_path / f"{number}.ttf"
        path.write_bytes(data)
        try:
            set_text("Hamburg Äfi 12", TextStyle(font=path, size=30, outline_width=2))
        except ParameterError as error:
            refused += str(path) in str(error)
    assert refused > 10
