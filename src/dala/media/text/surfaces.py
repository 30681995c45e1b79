"""Texts and SVG files for surfaces, which know neither; see ``dala.extensions``."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Final

from dala.arguments import checked_path
from dala.errors import DalaError
from dala.gpu.path import Path
from dala.media.pictures.svg import MAX_BYTES, SvgDocument
from dala.media.text.style import SIZES, TextStyle
from dala.media.text.text import TextPicture, has_color, measure_text, set_text, text_outline
from dala.media.texture import TexturePool
from dala.typing import NDArray, PathLike

#: Longest text that is kept after it was drawn, and its largest size.
_LONGEST: Final = 200
_LARGEST: Final = 64
#: SVG files that were drawn.
_drawings: Final = TexturePool(64 << 20, device="cpu")


def style_of(call: str, **given: object) -> TextStyle:
    """Return a style, whose errors name a call.

    >>> style_of("text", size=20).size
    20
    """
    try:
        try:
            return _kept_style(**given)
        except (TypeError, ValueError):  # a list of fonts, a writable memoryview
            return TextStyle(**given)  # type: ignore[arg-type]
    except DalaError as error:
        raise error.within(call) from None


_kept_style = lru_cache(maxsize=256, typed=True)(TextStyle)


@lru_cache(maxsize=256)
def with_color(style: TextStyle, rgba: bytes, scale: float = 1.0) -> TextStyle:
    """Return a style in a color, for a text that is drawn larger.

    >>> with_color(TextStyle(size=10), bytes([255, 0, 0, 255]), 2).size
    20
    """
    width = None if style.width is None else style.width * scale
    return replace(style, color=tuple(rgba), size=min(style.size * scale, SIZES[1]), width=width)


def picture_of_text(text: str, style: TextStyle, quarter: int) -> TextPicture:
    """Return a text as a picture, its letters moved right by quarters of a pixel.

    >>> picture_of_text("Hi", TextStyle(size=20), 0).lines
    ('Hi',)
    """
    if quarter:
        width = None if style.width is None else style.width + quarter / 4
        style = replace(style, padding=(quarter / 4, 0, 0, 0), width=width)
    short = isinstance(text, str) and len(text) <= _LONGEST and style.size <= _LARGEST
    return _kept_text(text, style) if short else set_text(text, style)


_kept_text = lru_cache(maxsize=256)(set_text)


@lru_cache(maxsize=256)
def outline_of_text(text: str, style: TextStyle) -> Path | None:
    """Return a text as a path; None if a font has some of its letters in color only.

    >>> outline_of_text("i", TextStyle()).verbs.count(4)
    2
    """
    return None if has_color(text, style) else text_outline(text, style)


def size_of_text(text: str, style: TextStyle) -> tuple[float, float]:
    """Return width and height of a text."""
    return measure_text(text, style)


def svg_pixels(
    source: PathLike, call: str, scale: float, w: float | None, h: float | None
) -> tuple[NDArray, float, float]:
    """Return an SVG file, or the text of one, as pixels; and the width and height to show it at.

    Args:
        source: The file, or the text.
        call: The name of the call in errors.
        scale: Pixels of the drawing for each of the surface's coordinates.
        w: The width; with the height, the box to fit it into. Its own by default.
        h: The height.
    """
    key, document = _document(source, call)
    own = document.size
    factors = [side / mine for side, mine in zip((w, h), own, strict=True) if side is not None]
    factor = min(factors, default=1.0)
    width, height = own[0] * factor, own[1] * factor
    wanted = (key, round(width * scale, 3), round(height * scale, 3))
    kept = _drawings.get(wanted)
    if kept is not None:
        return kept.array, width, height
    pixels = document.pixels(width * scale, height * scale)
    if pixels.nbytes <= _drawings.budget // 4:
        _drawings.load(wanted, pixels)
    return pixels, width, height


def _document(source: PathLike, call: str) -> tuple[object, SvgDocument]:
    """Return a document and a key that identifies it."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, _read_text(source, call)
    path = checked_path(call, "svg", source)
    facts = os.stat(path)
    key = (os.path.abspath(path), facts.st_mtime_ns, facts.st_size)
    return key, _read_file(key, str(source), call)


@lru_cache(maxsize=32)
def _read_text(text: str, call: str) -> SvgDocument:
    return SvgDocument(text, "the SVG", call)


@lru_cache(maxsize=32)
def _read_file(key: tuple[str, int, int], name: str, call: str) -> SvgDocument:
    with FilePath(key[0]).open("rb") as file:
        return SvgDocument(io.BytesIO(file.read(MAX_BYTES + 1)), name, call)
