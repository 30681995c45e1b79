"""Find fonts by family name or path, open them once, and fall back for missing letters.

>>> from dala.media import fonts
>>> fonts.find("Source Sans Pro", weight=700).weight
700

The bundled font is Source Sans Pro (six weights, upright and italic; SIL Open Font License), from
the package ``font-source-sans-pro`` of the ``media`` extra. The ``text`` extra adds FiraGO for
Arabic, Hebrew, Thai, Devanagari and Georgian.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import struct
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dala import forks
from dala.arguments import Text, refuse_url
from dala.errors import MissingPackage, ParameterError, did_you_mean
from dala.extras import pip_install
from dala.media.text.fonts import scan as fonts_scan
from dala.media.text.fonts.freetype import FreeTypeFace, freetype
from dala.media.text.fonts.scan import FontFile
from dala.notices import notify

#: A family, the path of a file, or several: the first that has a letter is used for it.
FontName: TypeAlias = "str | os.PathLike[str] | tuple[str | os.PathLike[str], ...] | None"

DEFAULT: Final = "Source Sans Pro"

#: CSS generic families and the families they stand for, in order of preference.
GENERIC: Final = {
    "sans-serif": (DEFAULT, "Noto Sans", "DejaVu Sans", "Helvetica Neue", "Segoe UI", "Arial"),
    "serif": ("Source Serif Pro", "Noto Serif", "DejaVu Serif", "Times New Roman", "Georgia"),
    "monospace": (
        "Source Code Pro",
        "Fira Mono",
        "DejaVu Sans Mono",
        "Menlo",
        "Consolas",
        "Courier New",
    ),
}

#: Modules of pymupdf-fonts with fallback fonts, in order.
_FALLBACK_MODULES: Final = ("FiraGO_Regular", "FiraGO_Bold", "FiraGO_Italic", "FiraGO_BoldItalic")

#: Incremented by :func:`refresh`.
generation = 0

#: FreeType's objects are not thread-safe.
lock = forks.native_lock("FreeType")


#: The module uharfbuzz or an object of it, which has no types.
HarfBuzzObject: TypeAlias = Any


@lru_cache(maxsize=1)
def harfbuzz() -> HarfBuzzObject:
    """Return the module ``uharfbuzz``, or None if it is not installed."""
    return importlib.import_module("uharfbuzz") if importlib.util.find_spec("uharfbuzz") else None


class FontFace(FreeTypeFace):
    """An open font face: its glyphs and its metrics in font units."""

    def __init__(self, file: FontFile, wght: float | None = None) -> None:
        self.file = file
        self.wght = wght
        with self._errors():
            super().__init__(_read(file), file.index)
        #: Whether glyphs are PNG images of one size, which are resized.
        self.has_images = not self.is_scalable and file.color and harfbuzz() is not None
        self.has_images = self.has_images and importlib.util.find_spec("PIL") is not None
        self.upem: int = self.metrics.units_per_EM
        self._hb: HarfBuzzObject = None
        if self.has_images:
            self.has_images, self.upem = self.hb.face.has_color_png, self.hb.face.upem
        if not (self.is_scalable or self.has_images) or self.upem < 16:
            raise ParameterError(
                f"font: {file.path!r} has no outlines. Use a TrueType or OpenType font with "
                "outlines."
            )
        if wght is not None:
            with self._errors():
                self.set_weight(wght)
        metrics = self.metrics
        self.ascent: float = metrics.ascender / self.upem
        self.descent: float = -metrics.descender / self.upem
        if self.ascent + self.descent <= 0:
            self.ascent, self.descent = 0.8, 0.2

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of FreeType as ParameterError."""
        try:
            yield
        except freetype().FT_Exception as error:
            raise ParameterError(
                f"font: FreeType cannot read {self.file.path!r} ({error}). Use another file, or a "
                "family name."
            ) from None

    @property
    def hb(self) -> HarfBuzzObject:
        """HarfBuzz's font object, in font units."""
        if self._hb is None:
            hb = harfbuzz()
            self._hb = hb.Font(hb.Face(hb.Blob(self._data), self.file.index))
            if self.wght is not None:
                self._hb.set_variations({"wght": self.wght})
        return self._hb

    def advance(self, glyph: int) -> int:
        """Return the advance width of a glyph, in font units."""
        with self._errors():
            return super().advance(glyph)

    def __repr__(self) -> str:
        return f"<FontFace {self.file.family!r} {self.file.weight}{' italic' * self.file.italic}>"


def _read(file: FontFile) -> bytes:
    if file.package:
        data: bytes = importlib.import_module(file.package).fontbuffer
        return data
    try:
        return pathlib.Path(file.path).read_bytes()
    except OSError as error:
        raise ParameterError(f"font: {file.path!r} cannot be read ({error.strerror}).") from None


_open: dict[tuple[FontFile, float | None], FontFace] = {}


def open_face(file: FontFile, wght: float | None = None) -> FontFace:
    """Return the open face of a file; it is opened once.

    Raises:
        ParameterError: the file is damaged.
    """
    with lock:
        face = _open.get((file, wght))
        if face is None:
            face = _open[file, wght] = FontFace(file, wght)
        return face


@lru_cache(maxsize=1)
def bundled() -> tuple[FontFile, ...]:
    """Return the faces of installed Python packages, the default family first."""
    found: list[FontFile] = []
    spec = importlib.util.find_spec("font_source_sans_pro")
    if spec is not None and spec.submodule_search_locations:
        folder = pathlib.Path(spec.submodule_search_locations[0]) / "files"
        for path in sorted(folder.glob("*.ttf")):
            found += fonts_scan.read_file(str(path))
    spec = importlib.util.find_spec("pymupdf_fonts")
    if spec is not None:
        for name in _FALLBACK_MODULES:
            style = name.partition("_")[2]
            found.append(
                FontFile(
                    path=f"pymupdf_fonts/{name}",
                    index=0,
                    family="FiraGO",
                    names=(f"FiraGO {style}", f"FiraGO-{style}"),
                    weight=700 if "Bold" in style else 400,
                    italic="Italic" in style,
                    package=f"pymupdf_fonts.{name}",
                )
            )
    return tuple(found)


def families() -> list[str]:
    """Return the names of all font families.

    >>> "Source Sans Pro" in families()
    True
    """
    return sorted({file.family for file in (*bundled(), *fonts_scan.system_fonts())}, key=str.lower)


def find(
    font: str | os.PathLike[str] | None = None, *, weight: int = 400, italic: bool = False
) -> FontFile:
    """Return the face of a family (or file) that is nearest to a weight and slant.

    Args:
        font: a family name, or the path of a .ttf or .otf file; by default the bundled font.
        weight: 400 is regular, 700 bold.
        italic: whether letters are slanted.

    Raises:
        ParameterError: the family does not exist (the error suggests near ones), or the file is
            missing or not a font.
        MissingPackage: no font is given, and there is none on this machine.

    >>> find("Source Sans Pro", weight=700).weight
    700
    """
    if font is None:
        return _default(weight, italic)
    name = os.fspath(font).replace("\\", "/") if isinstance(font, str | os.PathLike) else font
    Text("a family name or a path").check("fonts.find", "font", name)
    if not isinstance(font, str) or name.lower().endswith(fonts_scan.SUFFIXES) or "/" in name:
        refuse_url("fonts.find", "font", font)
        return _nearest(list(_in_file(name)), weight, italic)
    matches = _family(name)
    if not matches:
        known = families()
        hint = did_you_mean(name, [*known, *GENERIC])
        raise ParameterError(
            f"font: there is no family {name!r}.{f' {hint}' if hint else ''} "
            "dala.media.fonts.families() lists all; the path of a .ttf or .otf file also works."
        )
    return _nearest(matches, weight, italic)


def _default(weight: int, italic: bool) -> FontFile:
    matches = _family("sans-serif")
    matches = matches or [file for file in fonts_scan.system_fonts() if not file.color][:1]
    if not matches:
        raise MissingPackage(
            "dala.media.text: there is no font on this machine. Install one with "
            f"{pip_install('media')}, or give the path of a font."
        )
    return _nearest(matches, weight, italic)


def _key(name: str) -> str:
    return "".join(name.lower().split()).replace("-", "").replace("_", "")


@lru_cache(maxsize=512)
def _family(name: str) -> list[FontFile]:
    if name.lower() in GENERIC:
        for one in GENERIC[name.lower()]:
            matches = _family(one)
            if matches:
                return matches
    wanted = _key(name)
    for files in (bundled(), fonts_scan.system_fonts()):
        matches = [file for file in files if _key(file.family) == wanted]
        matches = matches or [f for f in files if wanted in map(_key, f.names)]
        if matches:
            return matches
    return []


@lru_cache(maxsize=256)
def _in_file(path: str) -> tuple[FontFile, ...]:
    try:
        return tuple(fonts_scan.read_file(path))
    except FileNotFoundError:
        raise ParameterError(f"font: the file {path!r} does not exist.") from None
    except OSError as error:
        raise ParameterError(f"font: {path!r} cannot be read ({error.strerror}).") from None
    except (ValueError, struct.error) as error:
        raise ParameterError(
            f"font: {path!r} is not a TrueType or OpenType font, or is damaged ({error})."
        ) from None


def _nearest(files: list[FontFile], weight: int, italic: bool) -> FontFile:
    def distance(file: FontFile) -> tuple[float, ...]:
        low, high = file.axis or (file.weight, file.weight)
        off = max(low - weight, weight - high, 0)
        # As in CSS: light weights prefer lighter faces, bold weights bolder ones.
        wrong_side = (file.weight < weight) != (weight < 500) and off > 0
        return (abs(file.stretch - 5), file.italic != italic, off + 500 * wrong_side, file.index)

    return min(files, key=distance)


class FontSet:
    """The faces of one style: the requested ones, then bundled ones, then those of the system."""

    def __init__(self, font: FontName, weight: int, italic: bool) -> None:
        self.weight, self.italic = weight, italic
        requested = font if isinstance(font, tuple) else (font,)
        self.faces = [self._open(find(one, weight=weight, italic=italic)) for one in requested]
        self.first = self.faces[0]
        self._known: dict[tuple[str, bool], FontFace] = {}
        self._others: list[FontFile] | None = None

    def _open(self, file: FontFile) -> FontFace:
        if file.axis is None:
            return open_face(file)
        return open_face(file, min(max(self.weight, file.axis[0]), file.axis[1]))

    def face(self, cluster: str, emoji: bool = False) -> FontFace:
        """Return the first face that has all characters of a letter with its marks.

        Emoji prefer color faces. If no face has them all, the first face is returned.
        """
        face = self._known.get((cluster, emoji))
        if face is None:
            with lock:
                face = self._known[cluster, emoji] = self._find(cluster, emoji)
                missing = next((one for one in cluster if not face.glyph(one)), "")
            if len(self._known) > 50_000:
                self._known.clear()
            if missing:
                _report(missing, emoji)
        return face

    def _find(self, cluster: str, emoji: bool) -> FontFace:
        if self._others is None:
            self._others = self._fallbacks()
        if emoji:
            color_files = [file for file in self._others if file.color]
            face = self._among(color_files, cluster)
            if face is not None:
                return face
        for face in self.faces:
            if all(map(face.glyph, cluster)):
                return face
        # Always in the same order, so that the result does not depend on earlier text.
        face = self._among(self._others, cluster)
        if face is not None:
            return face
        return self.first if len(cluster) == 1 else self.face(cluster[0], emoji)

    def _among(self, files: list[FontFile], cluster: str) -> FontFace | None:
        for file in files:
            try:
                if not fonts_scan.may_have(file, cluster):
                    continue
                face = self._open(file)
            except (ParameterError, OSError, ValueError, struct.error):  # skip damaged files
                continue
            if all(map(face.glyph, cluster)):
                return face
        return None

    def _fallbacks(self) -> list[FontFile]:
        """Return one face per family, in an order that does not depend on the folders."""
        groups: dict[str, list[FontFile]] = {}
        for file in bundled():
            groups.setdefault(file.family, []).append(file)
        system: dict[str, list[FontFile]] = {}
        for file in fonts_scan.system_fonts():
            system.setdefault(file.family, []).append(file)
        preferred = [name for name in GENERIC["sans-serif"] if name in system]
        sans = sorted(name for name in system if "Noto Sans" in name)
        for name in (*preferred, *sans, *sorted(system)):
            groups.setdefault(name, system[name])
        found = [_nearest(files, self.weight, self.italic) for files in groups.values()]
        return sorted(found, key=lambda file: file.color)


#: Kinds of letters that were reported as missing.
_reported: set[str] = set()


def _report(letter: str, emoji: bool) -> None:
    """Say that no font has a letter, once for all emoji and for each script."""
    name = unicodedata.name(letter, f"U+{ord(letter):04X}")
    kind = "emoji" if emoji else name.split()[0]
    if kind in _reported or not (emoji or unicodedata.category(letter)[0] == "L"):
        return
    _reported.add(kind)
    install = f"Install a font that has it, or set DALA_FONT_PATH; {pip_install('text')} adds one."
    if emoji:
        install = (
            "Install a color font, such as Noto Color Emoji (Debian: fonts-noto-color-emoji), or a "
            "newer one."
        )
    notify(f"set_text: no font here has {letter!r} ({name}), so a box is drawn. {install}")


@lru_cache(maxsize=128)
def font_set(font: FontName, weight: int, italic: bool) -> FontSet:
    """Return the faces of a style, cached."""
    return FontSet(font, weight, italic)


def refresh() -> None:
    """Search for fonts again at the next lookup, after some were installed or removed.

    >>> refresh()
    """
    scanned = fonts_scan.system_fonts, fonts_scan.coverage
    for cache in (*scanned, bundled, _family, _in_file, font_set):
        cache.cache_clear()
    _reported.clear()
    global generation
    generation += 1
