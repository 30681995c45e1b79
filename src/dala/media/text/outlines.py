"""Outlines of glyphs as paths, one em large."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Final

import numpy as np

from dala.gpu.path import Path
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import FontFace
from dala.media.text.fonts.freetype import FreeTypeObject, freetype
from dala.media.text.glyphs import synthesize

#: The size in pixels at which FreeType gives outlines, in 1/64 pixels.
_SIZE: Final = 1024


@lru_cache(maxsize=2048)
def outline_of(face: FontFace, glyph: int, bold: bool, italic: bool) -> Path:
    """Return the outline of a glyph, 1 em large, with its pen at (0, 0) and y down.

    It is not hinted. A glyph that is not an outline, or is damaged, is an empty path.
    """
    ft = freetype()
    if face.has_images or not face.is_scalable:
        return Path()
    with fonts.lock:
        try:
            face.set_size(_SIZE)
            slot = face.load_glyph(glyph, ft.FT_LOAD_NO_BITMAP | ft.FT_LOAD_NO_HINTING)
        except ft.FT_Exception:
            return Path()
        outline = slot.contents.outline
        synthesize(ft, ctypes.byref(outline), _SIZE, bold, italic)
        return _decoded(outline)


def _decoded(outline: FreeTypeObject) -> Path:
    """Return the path of an outline of FreeType."""
    count = outline.n_points
    spots = [(outline.points[n].x, -outline.points[n].y) for n in range(count)]
    tags = [outline.tags[n] for n in range(count)]
    kinds = [(tag[0] if isinstance(tag, bytes) else tag) & 3 for tag in tags]
    verbs, first = bytearray(), 0
    rows: list[tuple[float, float]] = []
    for contour in range(outline.n_contours):
        last = outline.contours[contour]
        _contour(spots[first : last + 1], kinds[first : last + 1], verbs, rows)
        first = last + 1
    return Path(bytes(verbs), np.array(rows, np.float64).reshape(-1, 2) / (64 * _SIZE))


def _contour(
    spots: list[tuple[float, float]],
    kinds: list[int],
    verbs: bytearray,
    rows: list[tuple[float, float]],
) -> None:
    """Append a contour; kind 1 is a point on it, 0 and 2 control points (quadratic, cubic)."""
    if not spots:
        return
    if 1 in kinds:  # begin with a point on the curve
        start = kinds.index(1)
        spots, kinds = spots[start:] + spots[:start], kinds[start:] + kinds[:start]
    else:
        spots, kinds = [_middle(spots[-1], spots[0]), *spots], [1, *kinds]
    verbs.append(0)
    rows.append(spots[0])
    controls: list[tuple[float, float]] = []
    for spot, kind in zip([*spots[1:], spots[0]], [*kinds[1:], 1], strict=True):
        if kind == 1:
            verbs.append(len(controls) + 1)
            rows += [*controls, spot]
            controls = []
        elif kind == 0 and controls:  # between two control points there is one on the curve
            verbs.append(2)
            rows += [controls[0], _middle(controls[0], spot)]
            controls = [spot]
        else:
            controls.append(spot)
    verbs.append(4)


def _middle(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
