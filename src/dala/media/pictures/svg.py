"""SVG files: checked, and drawn by resvg in a process of their own.

A file may come from a stranger, so it is read twice. Here it is parsed and written again without
what could reach beyond it: entities are refused, and so is every reference to another file or
address. resvg then draws the result in a child process with limits on its time and memory, whose
end harms no one else.
"""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from dala.arguments import refuse_folder
from dala.budget import check_deadline, deadline
from dala.errors import ParameterError
from dala.extras import needing
from dala.media.frame import MAX_PIXELS
from dala.typing import NDArray

#: Most bytes of a file, elements and levels of elements in it, and pixels along a side.
MAX_BYTES: Final = 1 << 24
MAX_ELEMENTS: Final = 500_000
MAX_LEVELS: Final = 256
MAX_SIDE: Final = 16384
#: Seconds that drawing may take, and bytes of memory.
MAX_SECONDS: Final = 20.0
MAX_MEMORY: Final = 3 << 30

_SVG: Final = "{http://www.w3.org/2000/svg}"
#: Elements that only link; what they link to is never opened, and is left out.
_LINKS: Final = (f"{_SVG}a", "a")
_EMBEDDED: Final = re.compile(r"data:image/(?:png|jpe?g|gif|webp)[;,]", re.IGNORECASE)
#: CSS that names something else than an element of the document. A backslash could spell it.
#: Here and below nothing is tried twice (``*+``), so that long runs of spaces and digits are read
#: once.
_REACHING: Final = re.compile(r"@import|\\|url\(\s*+[\"']?+\s*+(?![#\"'\s])", re.IGNORECASE)
_LENGTH: Final = re.compile(
    r"\s*+([+-]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+)\s*+([a-z%]*+)\s*+"
)
#: Pixels of each unit, at 96 pixels an inch.
_UNITS: Final = {
    "": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0,
    "em": 16.0, "ex": 8.0,
}  # fmt: skip
_CHILD: Final = """
import json, sys
options = json.loads(sys.argv[1])
sys.path.insert(0, options.pop("home"))
memory, seconds = options.pop("memory"), options.pop("seconds")
try:
    import resource
except ImportError:
    pass
else:
    for limit, most in ("AS", memory), ("CPU", seconds), ("CORE", 0):
        try:
            resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (most, most))
        except (ValueError, OSError):
            pass
from resvg_py import svg_to_bytes
try:
    made = svg_to_bytes(svg_string=sys.stdin.buffer.read().decode(), **options)
except BaseException as error:
    sys.exit(str(error) or type(error).__name__)
sys.stdout.buffer.write(bytes(made))
"""


def is_svg(source: Path | io.BytesIO) -> bool:
    """Return True for a file that begins as an SVG document does, compressed or not."""
    head = head_of(source, 1024)
    if head[:2] == b"\x1f\x8b":
        with suppress(zlib.error):
            head = zlib.decompressobj(31).decompress(head, 1024)
    plain = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return plain[:5] in (b"<?xml", b"<!DOC") or plain[:4] in (b"<svg", b"<!--")


def head_of(source: Path | io.BytesIO, count: int) -> bytes:
    """Return the first bytes of a file; none of a pipe or a folder."""
    if not isinstance(source, Path):
        source.seek(0)
        return source.read(count)
    if not source.is_file():
        return b""
    with source.open("rb") as file:
        return file.read(count)


class SvgDocument:
    """An SVG document that names nothing outside it, ready to be drawn in any size.

    Args:
        source: the file, or the text of the document.
        name: its name in errors.
        call: the name of the call in errors.

    Raises:
        ParameterError: the document is damaged, too large, or names something outside it.

    >>> SvgDocument('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"/>', "x").size
    (8.0, 4.0)
    """

    def __init__(
        self, source: Path | io.BytesIO | str, name: str, call: str = "Frame.open"
    ) -> None:
        self.name, self.call = name, call
        data = source.encode() if isinstance(source, str) else _read(source, name, call)
        root = _Reader(name, call).read(data)
        #: Width and height that the document asks for.
        self.size = _own_size(root)
        self._text = ElementTree.tostring(root, "utf-8")
        self._has_text = any(str(element.tag).endswith("text") for element in root.iter())

    def png(
        self,
        width: float | None = None,
        height: float | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> bytes:
        """Return the drawing as the bytes of a PNG file.

        Args:
            width: the width in pixels; with the height, the box that the picture is fitted into.
                The document's own size by default.
            height: the height in pixels.
            max_pixels: the most pixels.

        Raises:
            ParameterError: it is too large, or takes too long.
            MissingPackage: resvg is not installed.
        """
        across, down = _fitted(self.size, width, height)
        if not (1 <= across <= MAX_SIDE and 1 <= down <= MAX_SIDE and across * down <= max_pixels):
            raise ParameterError(
                f"{self.call}: {self.name} has {across:,} x {down:,} pixels; its sides must be "
                f"from 1 to {MAX_SIDE}, and max_pixels={max_pixels:,}. Give a width."
            )
        options: dict[str, object] = {"width": across, "height": down, "dpi": 96.0}
        options |= _fonts() if self._has_text else {"skip_system_fonts": True}
        return _drawn(self._text, options, self.name, self.call)

    def pixels(self, width: float | None = None, height: float | None = None) -> NDArray:
        """Return the drawing as an array of straight RGBA; see :meth:`png`."""
        with needing(self.call, "media", "Pillow"):
            from PIL import Image

        with Image.open(io.BytesIO(self.png(width, height)), formats=("PNG",)) as image:
            return np.asarray(image.convert("RGBA"))


def _read(source: Path | io.BytesIO, name: str, call: str) -> bytes:
    if isinstance(source, Path):
        refuse_folder(call, source)
        with source.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    else:
        source.seek(0)
        data = source.read(MAX_BYTES + 1)
    if data[:2] == b"\x1f\x8b":
        try:
            data = zlib.decompressobj(31).decompress(data, MAX_BYTES + 1)
        except zlib.error as error:
            raise ParameterError(f"{call}: {name} cannot be read as an SVG ({error}).") from None
    if len(data) > MAX_BYTES:
        raise ParameterError(f"{call}: {name} has more than {MAX_BYTES:,} bytes.")
    return data


class _Reader:
    """Parses a document into elements that name nothing outside it."""

    def __init__(self, name: str, call: str) -> None:
        self.name, self.call = name, call
        self.builder = ElementTree.TreeBuilder()
        self.level = self.count = 0

    def refused(self, problem: str) -> ParameterError:
        """Return the error about the document."""
        return ParameterError(f"{self.call}: {self.name} {problem}")

    def read(self, data: bytes) -> ElementTree.Element:
        """Return the root of a document."""
        parser = expat.ParserCreate(None, "}")
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.builder.data
        parser.EntityDeclHandler = self.entity
        try:
            parser.Parse(data, True)
            root = self.builder.close()
        except ParameterError:
            raise
        except (expat.ExpatError, AssertionError, ValueError, LookupError) as error:
            raise self.refused(f"cannot be read as an SVG ({error}).") from None
        if root.tag not in (f"{_SVG}svg", "svg"):
            raise self.refused("cannot be read as a picture (no svg element).")
        for element in root.iter():
            if str(element.tag).rpartition("}")[2] == "style":
                self.check_css("".join(element.itertext()))
        return root

    def entity(self, entity: str, *_: object) -> None:
        """Refuse a document that declares entities."""
        raise self.refused(f"declares the entity {entity!r}, and entities are refused.")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element, with its attributes checked."""
        self.level += 1
        self.count += 1
        if self.level > MAX_LEVELS or self.count > MAX_ELEMENTS:
            raise self.refused(
                f"has more than {MAX_ELEMENTS:,} elements, or {MAX_LEVELS} levels of them."
            )
        if self.count & 4095 == 0:
            check_deadline(self.call)
        tag = _qualified(tag)
        kept: dict[str, str] = {}
        for full, value in attributes.items():
            plain = full.rpartition("}")[2]
            if plain in ("href", "src") and not value.strip().startswith("#"):
                if tag in _LINKS:
                    continue
                if not _EMBEDDED.match(value.strip()):
                    raise self.refused(
                        f"names something outside it ({plain}={value[:60]!r} of "
                        f"{tag.rpartition('}')[2]}). Embed the picture as data:image/png."
                    )
            if plain == "style" or "url(" in value.lower():
                self.check_css(value)
            kept[_qualified(full)] = value
        self.builder.start(tag, kept)

    def end(self, tag: str) -> None:
        """End an element."""
        self.level -= 1
        self.builder.end(_qualified(tag))

    def check_css(self, css: str) -> None:
        """Refuse style rules that name something outside the document."""
        found = _REACHING.search(css)
        if found is not None:
            rule = css[found.start() : found.start() + 60]
            raise self.refused(f"names something outside it in its style ({rule!r}).")


def _qualified(name: str) -> str:
    return "{" + name if "}" in name else name


def _own_size(root: ElementTree.Element) -> tuple[float, float]:
    """Return the size that a document asks for, as resvg finds it."""
    numbers = re.split(r"[\s,]+", root.get("viewBox", "").strip())
    try:
        box = [float(number) for number in numbers] if len(numbers) == 4 else []
    except ValueError:
        box = []
    inner = (box[2], box[3]) if box and box[2] > 0 and box[3] > 0 else None
    sides = [_length(root.get(name), n, inner) for n, name in enumerate(("width", "height"))]
    wide, high = sides
    if inner is not None and wide is None and high is not None and "width" not in root.attrib:
        wide = high * inner[0] / inner[1]
    if inner is not None and high is None and wide is not None and "height" not in root.attrib:
        high = wide * inner[1] / inner[0]
    default = inner or (100.0, 100.0)
    return (default[0] if wide is None else wide, default[1] if high is None else high)


def _length(text: str | None, axis: int, inner: tuple[float, float] | None) -> float | None:
    found = _LENGTH.fullmatch(text or "")
    if found is None:
        return None
    value = float(found[1])
    if found[2] == "%":
        return value / 100 * (inner or (100.0, 100.0))[axis]
    return value * _UNITS[found[2]] if found[2] in _UNITS else None


def _fitted(own: tuple[float, float], width: float | None, height: float | None) -> tuple[int, int]:
    """Return the size in whole pixels that a document is drawn at."""
    if not (0 < own[0] < math.inf and 0 < own[1] < math.inf):
        return 0, 0
    factors = [
        side / mine for side, mine in zip((width, height), own, strict=True) if side is not None
    ]
    factor = min(factors, default=1.0)
    across, down = own[0] * factor, own[1] * factor
    if not (across < 1e9 and down < 1e9):
        return 1_000_000_000, 1_000_000_000
    return max(math.ceil(across - 1e-6), 1), max(math.ceil(down - 1e-6), 1)


def _fonts() -> dict[str, object]:
    """Return options that make text without a family, or with a generic one, that of scenes."""
    spec = find_spec("font_source_sans_pro")
    folders = [] if spec is None else spec.submodule_search_locations or []
    files = [str(path) for folder in folders for path in sorted(Path(folder).glob("files/*.ttf"))]
    names = ("font_family", "sans_serif_family", "serif_family", "monospace_family")
    return {"font_files": files, **dict.fromkeys(names, "Source Sans Pro" if files else "sans")}


def _drawn(text: bytes, options: dict[str, object], name: str, call: str) -> bytes:
    """Return the PNG that resvg makes, in a process that ends at the deadline."""
    with needing(call, "media", "resvg-py"):
        spec = find_spec("resvg_py")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("resvg_py")
    check_deadline(call)
    end = deadline()
    seconds = MAX_SECONDS if end is None else min(MAX_SECONDS, max(end - time.monotonic(), 0.05))
    home = str(Path(spec.origin).parent.parent)
    given = options | {"home": home, "memory": MAX_MEMORY, "seconds": math.ceil(seconds) + 1}
    command = [sys.executable, "-I", "-S", "-c", _CHILD, json.dumps(given)]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        check_deadline(call)
        raise ParameterError(
            f"{call}: {name} takes longer to draw than {MAX_SECONDS:g} seconds."
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if done.returncode == 1 and lines else "it needs too much time or memory"
        raise ParameterError(f"{call}: {name} cannot be drawn ({reason}).")
    return done.stdout
