"""A FreeType face, through the C functions that freetype-py exports.

freetype-py's own ``Face`` does not give out the handles that emboldening, stroking and kerning by
glyph need.
"""

from __future__ import annotations

import ctypes
import io
import weakref
from typing import Any, Final, TypeAlias

from dala.errors import MissingPackage
from dala.extras import pip_install

#: The module freetype, or a pointer or structure of it; freetype-py has no types.
FreeTypeObject: TypeAlias = Any
#: Characters of a face whose glyphs are known.
_MOST_KEPT: Final = 1 << 14
#: Glyphs that a glyph is composed of at most, and how deep. FreeType composes them on the stack.
MAX_PARTS: Final = 1000
_LEVELS: Final = 32
#: FreeType's error for such glyphs.
_COMPOSITE: Final = 0x15


def freetype() -> FreeTypeObject:
    """Return the module ``freetype``, or raise MissingPackage."""
    try:
        import freetype as module
    except ModuleNotFoundError as error:
        if error.name != "freetype":
            raise
        raise MissingPackage(
            "dala.media.text: text needs freetype-py, which is not installed. "
            f"Run: {pip_install('media')}"
        ) from None
    return module


class FreeTypeFace:
    """A face in memory. Errors of FreeType raise ``freetype.FT_Exception``."""

    def __init__(self, data: bytes, index: int) -> None:
        self._ft = ft = freetype()
        self._data = data  # FreeType reads from it for as long as the face is open
        self._index = index
        self._handle = ft.FT_Face()
        library = ft.get_handle()
        check(
            ft, ft.FT_New_Memory_Face(library, data, len(data), index, ctypes.byref(self._handle))
        )
        close = weakref.finalize(self, ft.FT_Done_Face, self._handle)
        close.atexit = False  # FreeType itself is closed at exit
        self.metrics: FreeTypeObject = self._handle.contents
        self.is_scalable = bool(self.metrics.face_flags & ft.FT_FACE_FLAG_SCALABLE)
        self.size = 0.0
        self._glyphs: dict[str, int] = {}
        self._parts: dict[int, int] = {}

    def set_weight(self, weight: float) -> None:
        """Set the weight axis of a variable font; other axes get their defaults."""
        ft = self._ft
        face = ft.Face(io.BytesIO(self._data), index=self._index)
        try:
            axes = face.get_variation_info().axes
        except (TypeError, UnicodeDecodeError):  # the name of an axis is damaged
            return
        values = [weight if axis.tag == "wght" else axis.default for axis in axes]
        fixed = (ft.FT_Fixed * len(values))(*(round(value * 65536) for value in values))
        check(ft, ft.FT_Set_Var_Design_Coordinates(self._handle, len(values), ctypes.byref(fixed)))

    def set_size(self, size: float) -> None:
        """Make FreeType load glyphs at a size in pixels per em."""
        if size != self.size:
            check(self._ft, self._ft.FT_Set_Char_Size(self._handle, round(size * 64), 0, 72, 72))
            self.size = size

    def glyph(self, character: str) -> int:
        """Return the index of a character's glyph; 0 if there is none."""
        found = self._glyphs.get(character)
        if found is None:  # every call of FreeType gives other threads the interpreter
            found = int(self._ft.FT_Get_Char_Index(self._handle, ord(character)))
            if len(self._glyphs) >= _MOST_KEPT:
                self._glyphs.clear()
            self._glyphs[character] = found
        return found

    def advance(self, glyph: int) -> int:
        """Return the advance width of a glyph, in font units."""
        self._check_parts(glyph)
        found = self._ft.FT_Fixed(0)
        flags = self._ft.FT_LOAD_NO_SCALE
        check(self._ft, self._ft.FT_Get_Advance(self._handle, glyph, flags, ctypes.byref(found)))
        return int(found.value)

    def kerning(self, left: int, right: int) -> int:
        """Return the kerning of two glyphs from the ``kern`` table, in font units."""
        found = self._ft.FT_Vector(0, 0)
        mode = self._ft.FT_KERNING_UNSCALED
        self._ft.FT_Get_Kerning(self._handle, left, right, mode, ctypes.byref(found))
        return int(found.x)

    def load_glyph(self, glyph: int, flags: int) -> FreeTypeObject:
        """Load a glyph into the face's slot; return a pointer to the slot (FT_GlyphSlot)."""
        self._check_parts(glyph)
        check(self._ft, self._ft.FT_Load_Glyph(self._handle, glyph, flags))
        return self._handle.contents.glyph

    def _check_parts(self, glyph: int) -> None:
        """Refuse a glyph that is composed of too many others, or has too many layers of color."""
        if self._count_parts(glyph) > MAX_PARTS:
            check(self._ft, _COMPOSITE)

    def _count_parts(self, glyph: int, level: int = 0) -> int:
        """Return how many glyphs FreeType loads for one; at most some too many."""
        found = self._parts.get(glyph)
        if found is None:
            found = 1 + self._layers(glyph)
            for inner in self._inner(glyph):
                found += self._count_parts(inner, level + 1) if level < _LEVELS else MAX_PARTS
                if found > MAX_PARTS:
                    break
            self._parts[glyph] = found
        return found

    def _layers(self, glyph: int) -> int:
        ft = self._ft
        found, layer, color = ft.FT_LayerIterator(), ft.FT_UInt(), ft.FT_UInt()
        refer = map(ctypes.byref, (layer, color, found))
        ft.FT_Get_Color_Glyph_Layer(self._handle, glyph, *refer)
        return int(found.num_layers)

    def _inner(self, glyph: int) -> list[int]:
        """Return the glyphs that a glyph is composed of."""
        ft, slot = self._ft, self._handle.contents.glyph
        if ft.FT_Load_Glyph(self._handle, glyph, ft.FT_LOAD_NO_RECURSE):
            return []
        number, matrix = ft.FT_Int(0), ft.FT_Matrix(0, 0, 0, 0)
        flags, x, y = ft.FT_UInt(0), ft.FT_Int(0), ft.FT_Int(0)
        made = []
        for part in range(min(slot.contents.num_subglyphs, MAX_PARTS)):
            ft.FT_Get_SubGlyph_Info(slot, part, *map(ctypes.byref, (number, flags, x, y, matrix)))
            made.append(number.value)
        return made


def check(ft: FreeTypeObject, error: int) -> None:
    """Raise the error of a call of FreeType, if there is one."""
    if error:
        raise ft.FT_Exception(error)
