"""Glyph masks: rendered by FreeType once, then kept in an atlas.

Hinting is FreeType's *light* mode: glyphs are fitted to the pixel grid only vertically, so
baselines and x-heights are crisp while widths and spacing are those of the design. Glyphs can
therefore be positioned at quarter pixels horizontally; each quarter has its own mask.
"""

from __future__ import annotations

import ctypes
import io
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dala import forks
from dala.errors import ParameterError
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import FontFace
from dala.media.text.fonts.freetype import FreeTypeObject, check, freetype
from dala.typing import NDArray

#: Horizontal glyph positions per pixel.
STEPS: Final = 4
#: Emboldening of a synthesized bold, in ems; slant of a synthesized italic.
BOLD: Final = 1 / 28
SLANT: Final = 0.2


class Mask(NamedTuple):
    """Coverage of a glyph, (height, width) u8, and the offset of its corner from the pen.

    A color glyph is (height, width, 4) f32 instead: premultiplied RGBA from 0 to 1.
    """

    pixels: NDArray
    left: int
    top: int
    width: int
    height: int


class GlyphStyle(NamedTuple):
    """The style in which the glyphs of a face are rendered."""

    face: FontFace
    size: float
    bold: bool = False
    italic: bool = False
    #: Width of the outline in pixels; 0 for none.
    outline: float = 0.0


@dataclass(frozen=True)
class AtlasReport:
    """Statistics of the glyph atlas."""

    hits: int
    misses: int
    evictions: int
    bytes: int
    budget: int
    masks: int


class GlyphAtlas:
    """Glyph masks by style, glyph and quarter pixel; the least recently used are evicted."""

    #: Bytes of a mask besides its pixels.
    OVERHEAD: Final = 256

    def __init__(self, budget: int = 16 << 20) -> None:
        self.budget = budget
        self._masks: OrderedDict[tuple[GlyphStyle, int, int], Mask] = OrderedDict()
        self._lock = forks.lock()
        self._bytes = self._hits = self._misses = self._evictions = 0

    def gather(self, style: GlyphStyle, glyphs: list[tuple[int, int]]) -> list[Mask]:
        """Return the masks of several (glyph, quarter); missing ones are rendered."""
        masks, found = self._masks, []
        missing = 0
        with self._lock:
            for glyph, quarter in glyphs:
                key = (style, glyph, quarter)
                mask = masks.get(key)
                if mask is None:
                    missing += 1
                    mask = masks[key] = draw(style, glyph, quarter)
                    self._bytes += mask.pixels.nbytes + self.OVERHEAD
                else:
                    masks.move_to_end(key)
                found.append(mask)
            self._misses += missing
            self._hits += len(glyphs) - missing
            while self._bytes > self.budget and masks:
                _, mask = masks.popitem(last=False)
                self._bytes -= mask.pixels.nbytes + self.OVERHEAD
                self._evictions += 1
        return found

    def report(self) -> AtlasReport:
        """Return the statistics."""
        with self._lock:
            return AtlasReport(
                self._hits,
                self._misses,
                self._evictions,
                self._bytes,
                self.budget,
                len(self._masks),
            )

    def clear(self) -> None:
        """Drop all masks; counts continue."""
        with self._lock:
            self._masks.clear()
            self._bytes = 0


#: The atlas of the process.
atlas = GlyphAtlas()

_strokers: dict[int, FreeTypeObject] = {}


def draw(style: GlyphStyle, glyph: int, quarter: int) -> Mask:
    """Render the mask of a glyph.

    Raises:
        ParameterError: the font's data of this glyph is damaged.
    """
    ft = freetype()
    with fonts.lock:
        try:
            return _draw(ft, style, glyph, quarter)
        except ft.FT_Exception as error:
            raise ParameterError(
                f"font: glyph {glyph} of {style.face.file.path!r} cannot be rendered ({error}). "
                "The file seems to be damaged; use another one."
            ) from None


def _draw(ft: FreeTypeObject, style: GlyphStyle, glyph: int, quarter: int) -> Mask:
    face = style.face
    if face.has_images:
        return _image_glyph(face, glyph, style.size)
    face.set_size(style.size)
    if face.file.color:
        slot = face.load_glyph(glyph, ft.FT_LOAD_COLOR | ft.FT_LOAD_RENDER)
        if slot.contents.bitmap.pixel_mode == ft.FT_PIXEL_MODE_BGRA:
            return _color_glyph(slot.contents)
    slot = face.load_glyph(glyph, ft.FT_LOAD_NO_BITMAP | ft.FT_LOAD_TARGET_LIGHT)
    outline = ctypes.byref(slot.contents.outline)
    synthesize(ft, outline, style.size, style.bold, style.italic)
    if quarter:
        ft.FT_Outline_Translate(outline, quarter * 64 // STEPS, 0)
    if not style.outline:
        check(ft, ft.FT_Render_Glyph(slot, ft.FT_RENDER_MODE_NORMAL))
        contents = slot.contents
        return _mask(contents.bitmap, contents.bitmap_left, contents.bitmap_top)
    handle = ft.FT_Glyph()
    check(ft, ft.FT_Get_Glyph(slot, ctypes.byref(handle)))
    try:
        stroker = _stroker(ft, round(style.outline * 64))
        check(ft, ft.FT_Glyph_StrokeBorder(ctypes.byref(handle), stroker, False, True))
        check(ft, ft.FT_Glyph_To_Bitmap(ctypes.byref(handle), ft.FT_RENDER_MODE_NORMAL, None, True))
        bitmap = ctypes.cast(handle, ft.FT_BitmapGlyph).contents
        return _mask(bitmap.bitmap, bitmap.left, bitmap.top)
    finally:
        ft.FT_Done_Glyph(handle)


def synthesize(ft: FreeTypeObject, outline: object, size: float, bold: bool, italic: bool) -> None:
    """Make an outline bold or slanted, by reference."""
    if bold:
        strength = round(BOLD * size * 64)
        ft.FT_Outline_Embolden(outline, strength)
        ft.FT_Outline_Translate(outline, -(strength // 2), -(strength // 2))
    if italic:
        shear = ft.FT_Matrix(0x10000, round(SLANT * 0x10000), 0, 0x10000)
        ft.FT_Outline_Transform(outline, ctypes.byref(shear))


def _color_glyph(slot: FreeTypeObject) -> Mask:
    """Return a color glyph as FreeType rendered it."""
    bitmap = slot.bitmap
    pixels = _rows(bitmap, 4 * bitmap.width).reshape(bitmap.rows, bitmap.width, 4)
    colors = pixels[..., [2, 1, 0, 3]] / np.float32(255)
    return Mask(colors, slot.bitmap_left, -slot.bitmap_top, bitmap.width, bitmap.rows)


def _image_glyph(face: FontFace, glyph: int, size: float) -> Mask:
    """Return a glyph that the font has as a PNG image, resized."""
    from PIL import Image, UnidentifiedImageError

    extents = face.hb.get_glyph_extents(glyph)
    png = face.hb.get_glyph_color_png(glyph)
    data = png.data if png is not None else b""
    if not data or extents is None:
        return Mask(np.zeros((0, 0), np.uint8), 0, 0, 0, 0)
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            if image.width * image.height > 1 << 22:
                raise ValueError(f"a glyph of {image.width} x {image.height} pixels")
            colors = np.asarray(image.convert("RGBA")) / np.float32(255)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ParameterError(
            f"font: glyph {glyph} of {face.file.path!r} is not an image ({error}). The file seems "
            "to be damaged; use another one."
        ) from None
    colors[..., :3] *= colors[..., 3:]
    scale = size / face.upem
    width, height = max(round(extents.width * scale), 1), max(round(-extents.height * scale), 1)
    if max(width, height) > 4096:
        raise ParameterError(
            f"font: glyph {glyph} of {face.file.path!r} must be at most 4096 x 4096, got "
            f"{width} x {height}."
        )
    down, across = _weights(colors.shape[0], height), _weights(colors.shape[1], width)
    colors = np.einsum("yh,hwc,xw->yxc", down, colors, across, optimize=True)
    left, top = round(extents.x_bearing * scale), -round(extents.y_bearing * scale)
    return Mask(np.ascontiguousarray(colors, np.float32), left, top, width, height)


def _weights(size: int, wanted: int) -> NDArray:
    """Return the (wanted, size) weights of a resampling with a triangle filter."""
    scale = size / wanted
    center = (np.arange(wanted)[:, None] + 0.5) * scale - 0.5
    tent = np.maximum(1 - np.abs(np.arange(size)[None] - center) / max(scale, 1.0), 0)
    return np.asarray(tent / tent.sum(axis=1, keepdims=True), np.float32)


def _stroker(ft: FreeTypeObject, radius: int) -> FreeTypeObject:
    """Return FreeType's stroker of a radius in 1/64 pixels, with round joins."""
    if radius not in _strokers:
        # The class Stroker fails in its finalizer at interpreter exit, so the C API is used.
        stroker = ft.FT_Stroker()
        check(ft, ft.FT_Stroker_New(ft.get_handle(), ctypes.byref(stroker)))
        ft.FT_Stroker_Set(
            stroker, radius, ft.FT_STROKER_LINECAP_ROUND, ft.FT_STROKER_LINEJOIN_ROUND, 0
        )
        _strokers[radius] = stroker
        while len(_strokers) > 64:
            ft.FT_Stroker_Done(_strokers.pop(next(iter(_strokers))))
    return _strokers[radius]


def _mask(bitmap: FreeTypeObject, left: int, top: int) -> Mask:
    rows, width = bitmap.rows, bitmap.width
    if not rows or not width:
        return Mask(np.zeros((0, 0), np.uint8), 0, 0, 0, 0)
    return Mask(np.ascontiguousarray(_rows(bitmap, width)), left, -top, width, rows)


def _rows(bitmap: FreeTypeObject, width: int) -> NDArray:
    """Return the first bytes of each row of a bitmap."""
    raw = np.frombuffer(ctypes.string_at(bitmap.buffer, bitmap.rows * bitmap.pitch), np.uint8)
    return raw.reshape(bitmap.rows, bitmap.pitch)[:, :width]
