"""Text and SVG files on surfaces: the pixels of scenes, transforms, clips, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from dala import gpu
from dala.errors import FreedError, ParameterError
from dala.gpu import LinearGradient, Path, create_surface
from dala.media import Scene
from dala.media.pictures.svg import SvgDocument
from dala.media.text import TextStyle, set_text

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
DISK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
    '<circle cx="20" cy="10" r="9" fill="gold"/></svg>'
)


def drawn(draw, width: int = 200, height: int = 120, background: str = "navy") -> np.ndarray:
    with create_surface(width, height) as s:
        s.clear(background)
        draw(s)
        return s.to_array()


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Hello, wörld", {"size": 24}),
        ("several words that are\nwrapped", {"size": 17, "width": 90, "align": "right"}),
        ("justified text over several lines", {"size": 15, "width": 110, "align": "justify"}),
        ("Bold", {"size": 48, "weight": "bold"}),
        ("עברית 1, 2", {"size": 20, "italic": True, "line_height": 2}),
        ("big", {"size": 300}),
    ],
)
def test_a_text_has_the_pixels_of_a_scene(device, text, given) -> None:
    for color in ("white", (255, 160, 0, 128), "black"):
        with Scene(200, 120, background="navy", device=device) as scene:
            scene.add_text(text, position=(11, 7), color=color, **given)
            wanted = np.asarray(scene.render())
        assert np.array_equal(drawn(lambda s: s.text(text, 11, 7, color, **given)), wanted)  # noqa: B023


def test_letters_are_at_quarters_of_pixels() -> None:
    def shown(x: float, y: float) -> np.ndarray:
        return drawn(lambda s: s.text("ooo", x, y, "white", size=20))

    assert np.array_equal(shown(10.1, 5.4), shown(10, 5))
    assert np.array_equal(shown(11.25, 5.6)[:, 1:], shown(10.25, 6)[:, :-1])
    quarters = [shown(10 + n / 4, 5).astype(int) for n in range(4)]
    for one, other in ((0, 1), (1, 2), (2, 3)):
        assert (quarters[one] != quarters[other]).any()
    # the same amount of ink, further right
    column = np.arange(200)
    centers = [(q[..., 0].sum(0) * column).sum() / q[..., 0].sum() for q in quarters]
    assert np.diff(centers) == pytest.approx([0.25] * 3, abs=0.2)
    negative = shown(-20.75, 5)
    assert np.array_equal(negative[:, :150], shown(9.25, 5)[:, 30:180])


def test_translations_keep_the_pixels() -> None:
    def moved(s: gpu.Surface) -> None:
        with s.transformed(translate=(10, 3)), s.transformed(translate=(5.5, 4.2)):
            s.text("Hi", 4, 2, "white", size=30)

    assert np.array_equal(moved_result := drawn(moved), drawn(
        lambda s: s.text("Hi", 19.5, 9, "white", size=30)
    ))  # fmt: skip
    assert moved_result.any()
    with create_surface(60, 40) as s:
        s.push()
        s.transform(1, 0, 0, 1, 20, 0)
        s.pop()
        s.text("Hi", 4, 2, "white", size=30)
        plain = s.to_array()
    assert np.array_equal(plain, drawn(lambda s: s.text("Hi", 4, 2, "white", size=30), 60, 40,
                                       "transparent"))  # fmt: skip


def test_fractions_of_translations_round_no_color() -> None:
    """Also where an emoji is translucent, and on nothing."""
    for place, by in (
        ((14.244638138503248, 52.37319968891852), (52.29511870059541, -28.34256732600357)),
        ((72.85369477187103, 39.91869407993459), (-14.759910265754165, 58.60652404882178)),
        ((85.027414901161, 59.6822133967148), (-52.426944864372096, 35.41821400067039)),
    ):

        def moved(s: gpu.Surface, at=place, by=by) -> None:
            with s.transformed(translate=by):
                s.text("fjo 👋", *at, (173, 92, 45, 200), size=15.5, weight="bold")

        def put(s: gpu.Surface, at=(place[0] + by[0], place[1] + by[1])) -> None:
            s.text("fjo 👋", *at, (173, 92, 45, 200), size=15.5, weight="bold")

        for background in ("transparent", "navy"):
            wanted = drawn(put, background=background)
            assert np.array_equal(drawn(moved, background=background), wanted)


def test_turned_text_is_the_fill_of_its_outlines() -> None:
    style = TextStyle(size=40)

    def turned(s: gpu.Surface) -> None:
        with s.transformed(translate=(60, 20), rotate=25, scale=(1.5, 0.8)):
            s.text("Hyg", 3, 4, "white", size=40)

    def filled(s: gpu.Surface) -> None:
        from dala.media.text.text import text_outline

        with s.transformed(translate=(60, 20), rotate=25, scale=(1.5, 0.8)):
            s.fill(text_outline("Hyg", style).transform((3, 4)), "white")

    assert np.array_equal(drawn(turned), drawn(filled))
    # and about what the picture shows where nothing is turned
    straight = drawn(lambda s: s.text("Hyg", 20, 10, "white", size=40), background="black")
    paint = LinearGradient((0, 0), (1, 0), [(0, "white"), (1, "white")])
    outlines = drawn(lambda s: s.text("Hyg", 20, 10, paint, size=40), background="black")
    assert np.abs(straight.astype(int) - outlines).mean() < 6
    assert abs(straight[..., 0].mean() - outlines[..., 0].mean()) < 4


def test_gradients_show_through_letters() -> None:
    paint = LinearGradient((20, 0), (180, 0), [(0, "red"), (1, "blue")])
    found = drawn(lambda s: s.text("HHHHHH", 20, 10, paint, size=50), background="black")
    inked = found[..., 3] * (found[..., :3].sum(axis=2) > 250)
    rows, columns = np.nonzero(inked)
    reds = found[rows, columns, 0].astype(int)
    assert np.corrcoef(columns, reds)[0, 1] < -0.95


def test_texts_are_clipped() -> None:
    def clipped(s: gpu.Surface) -> None:
        with s.clip(Path.rect(0, 0, 40, 120)):
            s.text("wide wide", 5, 5, "white", size=40)

    whole = drawn(lambda s: s.text("wide wide", 5, 5, "white", size=40))
    found = drawn(clipped)
    assert np.array_equal(found[:, :40], whole[:, :40])
    assert (found[:, 40:] == (0, 0, 128, 255)).all()


def test_anchors_without_a_width() -> None:
    def ink(align: str) -> tuple[int, int]:
        found = drawn(lambda s: s.text("mmm", 100, 10, "white", size=30, align=align))
        columns = np.nonzero((found[..., 0] > 0).any(axis=0))[0]
        return int(columns[0]), int(columns[-1])

    left, middle, right = ink("left"), ink("center"), ink("right")
    assert left[0] >= 100
    assert right[1] <= 100
    assert abs((middle[0] + middle[1]) / 2 - 99.5) < 1.5


def test_measures() -> None:
    with create_surface(8, 8) as s:
        width, height = s.measure_text("Hello\nyou", size=40)
        assert set_text("Hello\nyou", TextStyle(size=40)).box == (np.ceil(width), np.ceil(height))
        assert height == 96
        wrapped = s.measure_text("Hello you", size=40, width=100)
        assert wrapped == (100, 96)
        assert s.measure_text("W", size=20, weight="black")[0] > s.measure_text("W", size=20)[0]


def test_svg_files_are_drawn_in_the_size_they_are_shown_at(tmp_path) -> None:
    path = tmp_path / "disk.svg"
    path.write_text(DISK)
    for source in (DISK, path, str(path)):
        found = drawn(lambda s: s.svg(source, 10, 20, 80), background="transparent")  # noqa: B023
        wanted = np.zeros((120, 200, 4), np.uint8)
        wanted[20:60, 10:90] = SvgDocument(DISK, "x").pixels(80)
        wanted[wanted[..., 3] == 0] = 0
        found[found[..., 3] == 0] = 0
        assert np.array_equal(found, wanted)

    def doubled(s: gpu.Surface) -> None:
        with s.transformed(translate=(10, 20), scale=2):
            s.svg(DISK, 0, 0, 40)

    again = drawn(doubled, background="transparent")
    again[again[..., 3] == 0] = 0
    assert np.array_equal(again, wanted)
    path.write_text(DISK.replace("gold", "lime"))  # a file that changes is read again
    assert drawn(lambda s: s.svg(path, 10, 20, 80))[40, 50].tolist() == [0, 255, 0, 255]


def test_the_same_svg_is_drawn_once(monkeypatch) -> None:
    times = []
    draw = SvgDocument.pixels
    monkeypatch.setattr(
        SvgDocument, "pixels", lambda self, *size: (times.append(size), draw(self, *size))[1]
    )
    fresh = DISK.replace("gold", "#123456")
    with create_surface(64, 64) as s:
        for n in range(5):
            s.svg(fresh, n, 0, 30)
        s.svg(fresh, 0, 0, 31)
    assert times == [(30, 15), (31, 15.5)]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda s: s.text(3, 0, 0, "red"), "text: text must be a str, got 3"),
        (lambda s: s.text("a", "x", 0, "red"), "text: x must be a finite number"),
        (lambda s: s.text("a", 0, float("nan"), "red"), "text: y must be a finite number"),
        (lambda s: s.text("a", 0, 0, "blurple"), "text: paint must be a CSS color name"),
        (lambda s: s.text("a", 0, 0, "red", size=0), "text: size must be"),
        (lambda s: s.text("a", 0, 0, "red", font="No Such Font"), "No Such Font"),
        (lambda s: s.text("a", 0, 0, "red", align="middle"), "text: align must be"),
        (lambda s: s.text("a", 0, 0, "red", weight="heavy"), "text: weight must be"),
        (lambda s: s.measure_text("a", size="big"), "measure_text: size must be"),
        (lambda s: s.svg(DISK, 0, 0, 0), "svg: w must be a number above 0"),
        (lambda s: s.svg(DISK, 0, 0, 1e8), r"svg: .* pixels"),
        (lambda s: s.svg("<svg", 0, 0), "svg: the SVG cannot be read"),
        (lambda s: s.svg(5, 0, 0), "svg: svg must be a str or Path, got 5"),
        (
            lambda s: s.svg('<svg><image href="/etc/passwd"/></svg>', 0, 0),
            "svg: the SVG names something outside it",
        ),
    ],
)
def test_what_is_refused(draw, message) -> None:
    with create_surface(16, 16) as s:
        with pytest.raises((ParameterError, ValueError), match=message):
            draw(s)
        assert not s.to_array().any()
        assert s.errors == []


def test_destroyed_surfaces_and_missing_files(tmp_path) -> None:
    s = create_surface(8, 8)
    with pytest.raises(FileNotFoundError):
        s.svg(tmp_path / "none.svg", 0, 0)
    s.close()
    for draw in (lambda: s.text("a", 0, 0, "red"), lambda: s.svg(DISK, 0, 0), s.push):
        with pytest.raises(FreedError):
            draw()
