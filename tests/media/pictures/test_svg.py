"""SVG files: what is drawn, at which size, and what is refused."""

from __future__ import annotations

import base64
import gzip
import io
import time

import numpy as np
import pytest

import dala
from dala.errors import CommandTimeout, ParameterError
from dala.media import Frame
from dala.media.pictures import svg
from dala.png import encode_png

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
HALVES = HEAD + ' viewBox="0 0 40 20"><rect width="20" height="20" fill="#f00"/></svg>'


def drawn(text: str | bytes, **given: object) -> np.ndarray:
    data = text.encode() if isinstance(text, str) else text
    return np.asarray(Frame.open(data, device="cpu", **given))


@pytest.mark.parametrize(
    ("size", "shape"),
    [
        ({}, (20, 40)),
        ({"width": 80}, (40, 80)),
        ({"height": 80}, (80, 160)),
        ({"width": 80, "height": 10}, (10, 20)),
    ],
)
def test_the_size_that_is_drawn(size, shape) -> None:
    pixels = drawn(HALVES, **size)
    assert pixels.shape == (*shape, 4)
    left, right = pixels[:, : shape[1] // 2], pixels[:, shape[1] // 2 :]
    assert (left == (255, 0, 0, 255)).all()
    assert (right == 0).all()


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('width="30" height="10"', (30, 10)),
        ('width="1in" height="48px"', (96, 48)),
        ('width="25.4mm" height="72pt"', (96, 96)),
        ('width="50%" viewBox="0 0 60 20"', (30, 10)),
        ('width="50%" height="100%" viewBox="0 0 60 20"', (30, 20)),
        ('height="10" viewBox="0 0 60 20"', (30, 10)),
        ('viewBox="-5,-5 , 60 20"', (60, 20)),
        ("", (100, 100)),
    ],
)
def test_the_size_of_the_document(attributes: str, size: tuple[int, int]) -> None:
    pixels = drawn(f'{HEAD} {attributes}><rect width="9" height="9"/></svg>')
    assert pixels.shape[1::-1] == size


def test_half_covered_pixels_are_straight_alpha() -> None:
    pixels = drawn(f'{HEAD} width="4" height="1"><rect width="2.5" height="1" fill="#08f"/></svg>')
    assert pixels[0, 0].tolist() == [0, 136, 255, 255]
    assert pixels[0, 2, 3] in (127, 128)
    assert np.abs(pixels[0, 2, :3].astype(int) - (0, 136, 255)).max() <= 1


def test_compressed_files_and_other_encodings(tmp_path) -> None:
    whole = drawn(HALVES)
    packed = tmp_path / "halves.svgz"
    packed.write_bytes(gzip.compress(HALVES.encode()))
    assert np.array_equal(np.asarray(Frame.open(packed, device="cpu")), whole)
    assert np.array_equal(drawn(packed.read_bytes()), whole)
    wide = ('<?xml version="1.0" encoding="UTF-16"?>' + HALVES).encode("utf-16")
    assert np.array_equal(drawn(wide), whole)
    with io.BytesIO(HALVES.encode()) as file:
        assert np.array_equal(np.asarray(Frame.open(file, device="cpu")), whole)


def test_embedded_pictures_are_drawn() -> None:
    picture = base64.b64encode(encode_png(np.full((2, 2, 3), (1, 200, 3), np.uint8))).decode()
    for name in ("href", "xlink:href"):
        image = f'<image width="4" height="4" {name}="data:image/png;base64,{picture}"/>'
        assert drawn(f'{HEAD} width="4" height="4">{image}</svg>')[1, 1].tolist() == [
            1,
            200,
            3,
            255,
        ]


def test_text_without_a_family_has_the_font_of_scenes() -> None:
    text = '<text y="30" font-size="32" fill="white"{}>Hamburg</text></svg>'
    plain = drawn(f'{HEAD} width="140" height="40">' + text.format(""))
    named = drawn(
        f'{HEAD} width="140" height="40">' + text.format(' font-family="Source Sans Pro"')
    )
    assert plain[..., 3].any()
    assert np.array_equal(plain, named)


NESTED = base64.b64encode(HALVES.encode()).decode()


@pytest.mark.parametrize(
    "inside",
    [
        '<image href="/etc/passwd"/>',
        '<image xlink:href="file:///etc/passwd"/>',
        '<image xlink:href="\n http://127.0.0.1/x.png"/>',
        '<image href="picture.png"/>',
        '<image xmlns:q="http://www.w3.org/1999/xlink" q:href="x.png"/>',
        f'<image href="data:image/svg+xml;base64,{NESTED}"/>',
        f'<image href=" DATA:IMAGE/SVG+XML;base64,{NESTED}"/>',
        '<image href="data:text/plain,x"/>',
        '<use href="other.svg#part"/>',
        '<filter id="f"><feImage href="/etc/passwd"/></filter>',
        '<textPath href="other.svg#path"/>',
        '<linearGradient href="other.svg#g"/>',
        '<script href="x.js"/>',
        '<script src="x.js"/>',
        '<a><image href="x.png"/></a>',
        "<style>@import 'x.css';</style>",
        "<style>@font-face { font-family: x; src: url(x.ttf) }</style>",
        "<style>rect { fill: URL( 'http://a.b/c' ) }</style>",
        "<style>rect { fill: u\\72l(x.svg#y) }</style>",
        "<style><![CDATA[rect { fill: url(x.svg#y) }]]></style>",
        '<rect style="fill: url(http://a.b/c)"/>',
        '<rect fill="url(http://a.b/c)"/>',
        '<rect mask="url(&quot;x.svg#m&quot;)"/>',
    ],
)
def test_what_is_outside_cannot_be_named(inside: str) -> None:
    with pytest.raises(ParameterError, match="names something outside it"):
        drawn(f"{HEAD}>{inside}</svg>")


def test_what_is_inside_can_be_named() -> None:
    inside = (
        '<defs><linearGradient id="g"><stop stop-color="#0f0"/></linearGradient>'
        '<rect id="r" width="40" height="20"/></defs>'
        "<style>#r { fill: url(#g) }</style>"
        '<a xlink:href="http://example.com/"><use href="#r"/></a>'
    )
    pixels = drawn(f'{HEAD} viewBox="0 0 40 20">{inside}</svg>')
    assert (pixels == (0, 255, 0, 255)).all()
    quoted = '<rect width="40" height="20" fill="url(\'#g\')"/>'
    pixels = drawn(f'{HEAD} viewBox="0 0 40 20">{inside}{quoted}</svg>')
    assert (pixels == (0, 255, 0, 255)).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>', "declares the entity 'a'"),
        ('<!DOCTYPE svg [<!ENTITY % a SYSTEM "x.dtd"> %a;]><svg/>', "declares the entity 'a'"),
        ('<!DOCTYPE svg [<!ENTITY a SYSTEM "/etc/passwd">]><svg>&a;</svg>', "declares the entity"),
        ("<svg>&b;</svg>", "cannot be read as an SVG (undefined entity"),
        ("<svg><g></svg>", "cannot be read as an SVG (mismatched tag"),
        ("<svg", "cannot be read as an SVG (unclosed token"),
        ('<?xml version="1.0"?><html/>', "cannot be read as a picture (no svg element)"),
        ("<svg>" + 300 * "<g>" + 300 * "</g>" + "</svg>", "256 levels"),
        (f'{HEAD} width="1e6" height="1e6"/>', "1,000,000 x 1,000,000 pixels"),
        (f'{HEAD} width="16000" height="16000"/>', "max_pixels"),
        (f'{HEAD} width="1e999" height="1"/>', "0 x 0 pixels"),
        (f'{HEAD} width="0" height="5"/>', "0 x 0 pixels"),
        (f'{HEAD} width="-4" height="5"/>', "0 x 0 pixels"),
        ('<?xml version="1.0" encoding="klingon"?><svg/>', "cannot be read as an SVG"),
    ],
)
def test_documents_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        drawn(text)
    assert problem in str(caught.value)


def test_a_public_doctype_is_not_opened() -> None:
    doctype = (
        '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" '
        '"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
    )
    assert np.array_equal(drawn(doctype + HALVES), drawn(HALVES))


def test_bombs_end_at_the_deadline() -> None:
    # each level uses the one before ten times: 10 billion rectangles
    levels = "".join(f'<g id="g{n + 1}">' + 10 * f'<use href="#g{n}"/>' + "</g>" for n in range(10))
    bomb = f'{HEAD} width="9" height="9"><rect id="g0" width="1" height="1"/>{levels}</svg>'
    begun = time.monotonic()
    with pytest.raises((CommandTimeout, ParameterError)), dala.limits(time=0.5):
        drawn(bomb)
    assert time.monotonic() - begun < 15  # the deadline ended it, however busy the machine is


def test_long_runs_are_read_once() -> None:
    """Patterns that try each split of a run take a minute for these, and no deadline ends them."""
    for style in (f"fill:url({200_000 * ' '}#a)", f"fill:url('{200_000 * ' '}'"):
        assert svg._REACHING.search(style) is None
    for length in (200_000 * "1" + "!", "1" + 200_000 * " " + "!", "1e" + 200_000 * "1" + "!"):
        assert svg._length(length, 0, None) is None
    assert svg._length(" 1.5e1 em ", 0, None) == 240


def test_compressed_bombs_are_not_unpacked(tmp_path) -> None:
    path = tmp_path / "bomb.svgz"
    path.write_bytes(gzip.compress(b"<svg>" + bytes(64 << 20)))
    with pytest.raises(ParameterError, match="more than 16,777,216 bytes"):
        Frame.open(path, device="cpu")
    path.write_bytes(gzip.compress(b"<svg/>")[:-12] + b"????????????")
    with pytest.raises(ParameterError, match="cannot be read as an SVG"):
        Frame.open(path, device="cpu")


def test_sizes_are_for_svg() -> None:
    with pytest.raises(ParameterError, match=r"is not an SVG, which width and height are for"):
        drawn(encode_png(np.zeros((2, 2, 3), np.uint8)), width=4)
    with pytest.raises(ParameterError, match="width must be an int from 1 to 16384, got 0"):
        drawn(HALVES, width=0)
    with pytest.raises(ParameterError, match="max_pixels=100"):
        drawn(HALVES, max_pixels=100)


def test_a_missing_resvg_is_named(monkeypatch) -> None:
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    with pytest.raises(dala.errors.MissingPackage, match=r"resvg-py is not installed. Run: pip"):
        drawn(HALVES)
