"""Glyphs as masks of coverage: drawn by FreeType once, then kept in an atlas.

Hinting is FreeType's *light* kind: letters are fitted to the pixel grid upright only, so baselines
and x-heights are crisp while widths and spacing stay those of the design. That allows letters to
stand at quarters of a pixel from left to right; each quarter has its own mask.
"""

from __future__ import annotations

import ctypes
import io
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from dala.errors import ParameterError
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import Face

NDArray: TypeAlias = np.ndarray[Any, Any]

#: Places between two pixels at which a letter may stand.
STEPS: Final = 4
#: Thickening of a made-up bold, of the em; slant of a made-up italic.
BOLD: Final = 1 / 28
SLANT: Final = 0.2


class Mask(NamedTuple):
    """Coverage of a glyph, (height, width) u8, and where its corner is from the pen.

    A glyph in colour is (height, width, 4) f32 instead: premultiplied RGBA of 0 to 1.
    """

    pixels: NDArray
    left: int
    top: int
    width: int
    height: int


class Look(NamedTuple):
    """How glyphs of a face are drawn: everything but which one, and where."""

    face: Face
    size: float
    bold: bool = False
    italic: bool = False
    #: Pixels the shape grows by on every side.
    outline: float = 0.0


@dataclass(frozen=True)
class AtlasReport:
    """What the atlas has done so far."""

    hits: int
    misses: int
    evictions: int
    bytes: int
    budget: int
    masks: int


class GlyphAtlas:
    """Masks by look, glyph and quarter; the least recently used leave when the budget is spent."""

    #: What a mask costs beside its pixels.
    OVERHEAD: Final = 256

    def __init__(self, budget: int = 16 << 20) -> None:
        self.budget = budget
        self._masks: OrderedDict[tuple[Look, int, int], Mask] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = self._hits = self._misses = self._evictions = 0

    def gather(self, look: Look, glyphs: list[tuple[int, int]]) -> list[Mask]:
        """The masks of several (glyph, quarter); those that are not there are drawn."""
        masks, found = self._masks, []
        missing = 0
        with self._lock:
            for glyph, quarter in glyphs:
                key = (look, glyph, quarter)
                mask = masks.get(key)
                if mask is None:
                    missing += 1
                    mask = masks[key] = draw(look, glyph, quarter)
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
        """Counts since the start, and what is held now."""
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
        """Drops all masks; counts go on."""
        with self._lock:
            self._masks.clear()
            self._bytes = 0


#: The one atlas of the process.
atlas = GlyphAtlas()

_strokers: dict[int, Any] = {}


def draw(look: Look, glyph: int, quarter: int) -> Mask:
    """A glyph's mask from its outline.

    Raises:
        ParameterError: the font's outline of this glyph is damaged.
    """
    ft = fonts.freetype()
    with fonts.lock:
        try:
            return _draw(ft, look, glyph, quarter)
        except ft.FT_Exception as error:
            raise ParameterError(
                f"font: glyph {glyph} of {look.face.file.path!r} cannot be drawn ({error}); "
                "the file seems to be damaged. Give another one."
            ) from None


def _draw(ft: Any, look: Look, glyph: int, quarter: int) -> Mask:
    face = look.face
    if face.pictures:
        return _picture(face, glyph, look.size)
    face.set_size(look.size)
    if face.file.coloured:
        face.ft.load_glyph(glyph, ft.FT_LOAD_COLOR | ft.FT_LOAD_RENDER)
        slot = face.ft.glyph._FT_GlyphSlot.contents
        if slot.bitmap.pixel_mode == ft.FT_PIXEL_MODE_BGRA:
            return _layered(slot)
    face.ft.load_glyph(glyph, ft.FT_LOAD_NO_BITMAP | ft.FT_LOAD_TARGET_LIGHT)
    slot = face.ft.glyph._FT_GlyphSlot
    outline = ctypes.byref(slot.contents.outline)
    if look.bold:
        strength = round(BOLD * look.size * 64)
        ft.FT_Outline_Embolden(outline, strength)
        ft.FT_Outline_Translate(outline, -(strength // 2), -(strength // 2))
    if look.italic:
        shear = ft.FT_Matrix(0x10000, round(SLANT * 0x10000), 0, 0x10000)
        ft.FT_Outline_Transform(outline, ctypes.byref(shear))
    if quarter:
        ft.FT_Outline_Translate(outline, quarter * 64 // STEPS, 0)
    if not look.outline:
        _check(ft, ft.FT_Render_Glyph(slot, ft.FT_RENDER_MODE_NORMAL))
        contents = slot.contents
        return _mask(contents.bitmap, contents.bitmap_left, contents.bitmap_top)
    handle = ft.FT_Glyph()
    _check(ft, ft.FT_Get_Glyph(slot, ctypes.byref(handle)))
    try:
        stroker = _stroker(ft, round(look.outline * 64))
        _check(ft, ft.FT_Glyph_StrokeBorder(ctypes.byref(handle), stroker, False, True))
        _check(
            ft, ft.FT_Glyph_To_Bitmap(ctypes.byref(handle), ft.FT_RENDER_MODE_NORMAL, None, True)
        )
        bitmap = ctypes.cast(handle, ft.FT_BitmapGlyph).contents
        return _mask(bitmap.bitmap, bitmap.left, bitmap.top)
    finally:
        ft.FT_Done_Glyph(handle)


def _layered(slot: Any) -> Mask:
    """A glyph of layers in colour, as FreeType has drawn it."""
    bitmap = slot.bitmap
    raw = np.frombuffer(ctypes.string_at(bitmap.buffer, bitmap.rows * bitmap.pitch), np.uint8)
    pixels = raw.reshape(bitmap.rows, bitmap.pitch)[:, : 4 * bitmap.width]
    colours = pixels.reshape(bitmap.rows, bitmap.width, 4)[..., [2, 1, 0, 3]] / np.float32(255)
    return Mask(colours, slot.bitmap_left, -slot.bitmap_top, bitmap.width, bitmap.rows)


def _picture(face: Face, glyph: int, size: float) -> Mask:
    """A glyph that comes as a PNG, at the size that is wanted."""
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
            colours = np.asarray(image.convert("RGBA")) / np.float32(255)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ParameterError(
            f"font: glyph {glyph} of {face.file.path!r} is no picture ({error}); the file seems to "
            "be damaged. Give another one."
        ) from None
    colours[..., :3] *= colours[..., 3:]
    scale = size / face.upem
    width, height = max(round(extents.width * scale), 1), max(round(-extents.height * scale), 1)
    if max(width, height) > 4096:
        raise ParameterError(f"font: glyph {glyph} of {face.file.path!r} is {width} x {height}.")
    down, across = _weights(colours.shape[0], height), _weights(colours.shape[1], width)
    colours = np.einsum("yh,hwc,xw->yxc", down, colours, across, optimize=True)
    left, top = round(extents.x_bearing * scale), -round(extents.y_bearing * scale)
    return Mask(np.ascontiguousarray(colours, np.float32), left, top, width, height)


def _weights(size: int, wanted: int) -> NDArray:
    """What each of ``wanted`` samples takes from ``size`` ones: a tent over all it stands for."""
    scale = size / wanted
    centre = (np.arange(wanted)[:, None] + 0.5) * scale - 0.5
    tent = np.maximum(1 - np.abs(np.arange(size)[None] - centre) / max(scale, 1.0), 0)
    return np.asarray(tent / tent.sum(axis=1, keepdims=True), np.float32)


def _check(ft: Any, error: int) -> None:
    if error:
        raise ft.FT_Exception(error)


def _stroker(ft: Any, radius: int) -> Any:
    """FreeType's stroker of a radius in 64ths of a pixel, with round joins."""
    if radius not in _strokers:
        # Not the class Stroker, which complains when Python ends before it is collected.
        stroker = ft.FT_Stroker()
        _check(ft, ft.FT_Stroker_New(ft.get_handle(), ctypes.byref(stroker)))
        ft.FT_Stroker_Set(
            stroker, radius, ft.FT_STROKER_LINECAP_ROUND, ft.FT_STROKER_LINEJOIN_ROUND, 0
        )
        _strokers[radius] = stroker
        while len(_strokers) > 64:
            ft.FT_Stroker_Done(_strokers.pop(next(iter(_strokers))))
    return _strokers[radius]


def _mask(bitmap: Any, left: int, top: int) -> Mask:
    rows, width, pitch = bitmap.rows, bitmap.width, bitmap.pitch
    if not rows or not width:
        return Mask(np.zeros((0, 0), np.uint8), 0, 0, 0, 0)
    raw = np.frombuffer(ctypes.string_at(bitmap.buffer, rows * pitch), np.uint8)
    pixels = np.ascontiguousarray(raw.reshape(rows, pitch)[:, :width])
    return Mask(pixels, left, -top, width, rows)
