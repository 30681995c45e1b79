"""The byte protocol of surfaces: one byte of opcode, then what the command needs.

``encode_*`` make the bytes of one command; they can be joined, batched, stored, sent. All integers
are little-endian, lengths are u32, text is UTF-8. ``decode`` reads them back for people and tests;
surfaces execute the bytes as they are.

>>> encode_fill_rect(1, 2, 3, 4, "red").hex(" ", 4)
'02 01000000 02000000 03000000 04000000 ff0000ff'
>>> decode(encode_fill_rect(1, 2, 3, 4, "red"))
[<fill_rect x=1 y=2 w=3 h=4 color=(255, 0, 0, 255) at 0>]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final

from dala.errors import CommandError, ProtocolError
from dala.gpu.color import Color, color_to_rgba, seen

__all__ = [
    "Command",
    "color_to_rgba",
    "decode",
    "encode_batch",
    "encode_blit",
    "encode_clear",
    "encode_dispatch_compute",
    "encode_draw_circle",
    "encode_draw_line",
    "encode_draw_round_rect",
    "encode_draw_triangle",
    "encode_fill_circle",
    "encode_fill_rect",
    "encode_fill_round_rect",
    "encode_fill_triangle",
    "encode_image_blit",
    "encode_load_image",
    "encode_load_shader",
    "encode_load_sprite",
    "encode_present",
    "encode_read_pixels",
    "encode_remove_image",
    "encode_remove_sprite",
    "encode_reset_clip",
    "encode_resize",
    "encode_set_clip",
    "encode_set_uniform",
]

#: How deep batches may lie in batches.
MAX_DEPTH: Final = 16

_U32, _I32, _U64, _U8 = ("u32", "i32", "u64", "u8")
_FORMATS: Final = {_U32: "I", _I32: "i", _U64: "Q", _U8: "B"}
_RANGES: Final = {
    _U32: (0, 2**32 - 1),
    _I32: (-(2**31), 2**31 - 1),
    _U64: (0, 2**64 - 1),
    _U8: (0, 255),
}

#: Opcode, name, and the fields in order. "rgba" is four bytes; "pixels" w * h * 4 bytes; "text" and
#: "data" a u32 length and so many bytes; "commands" a u32 count and so many commands.
_TABLE: Final = (
    (0x01, "clear", "color:rgba"),
    (0x02, "fill_rect", "x:u32 y:u32 w:u32 h:u32 color:rgba"),
    (0x03, "draw_line", "x1:i32 y1:i32 x2:i32 y2:i32 color:rgba"),
    (0x04, "blit", "id:u64 x:i32 y:i32"),
    (0x05, "present", ""),
    (0x06, "resize", "w:u32 h:u32"),
    (0x07, "load_sprite", "id:u64 w:u32 h:u32 pixels:pixels"),
    (0x08, "remove_sprite", "id:u64"),
    (0x09, "dispatch_compute", "shader:text params:data x:u32 y:u32 z:u32"),
    (0x0A, "read_pixels", "x:u32 y:u32 w:u32 h:u32"),
    (0x0B, "load_shader", "name:text source:text"),
    (0x0C, "set_uniform", "name:text data:data"),
    (0x0D, "draw_circle", "cx:i32 cy:i32 radius:u32 color:rgba"),
    (0x0E, "fill_circle", "cx:i32 cy:i32 radius:u32 color:rgba"),
    (0x0F, "draw_triangle", "x1:i32 y1:i32 x2:i32 y2:i32 x3:i32 y3:i32 color:rgba"),
    (0x10, "fill_triangle", "x1:i32 y1:i32 x2:i32 y2:i32 x3:i32 y3:i32 color:rgba"),
    (0x11, "draw_round_rect", "x:u32 y:u32 w:u32 h:u32 radius:u32 color:rgba"),
    (0x12, "fill_round_rect", "x:u32 y:u32 w:u32 h:u32 radius:u32 color:rgba"),
    (0x13, "set_clip", "x:u32 y:u32 w:u32 h:u32 enabled:u8"),
    (0x14, "reset_clip", ""),
    (0x15, "batch", "commands:commands"),
    (0x16, "image_blit", "id:u64 x:i32 y:i32 w:u32 h:u32"),
    (0x17, "load_image", "id:u64 w:u32 h:u32 pixels:pixels"),
    (0x18, "remove_image", "id:u64"),
)


class _Layout:
    """One row of the table, taken apart."""

    def __init__(self, opcode: int, name: str, fields: str) -> None:
        self.opcode = opcode
        self.name = name
        self.fields = [tuple(f.split(":")) for f in fields.split()]
        #: The packed form, where every field has a size of its own.
        self.packer: struct.Struct | None = None
        if all(kind in _FORMATS or kind == "rgba" for _, kind in self.fields):
            form = "".join(_FORMATS.get(kind, "4s") for _, kind in self.fields)
            self.packer = struct.Struct("<B" + form)


LAYOUTS: Final = {row[0]: _Layout(*row) for row in _TABLE}
OPCODES: Final = MappingProxyType({layout.name: code for code, layout in LAYOUTS.items()})


class Command:
    """A decoded command: its name, opcode, offset in the bytes, and its fields as attributes."""

    __slots__ = ("fields", "name", "offset", "opcode")

    def __init__(self, name: str, offset: int, fields: dict[str, Any]) -> None:
        self.name = name
        self.opcode = OPCODES[name]
        self.offset = offset
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"a {self.name} command has no {name!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Command):
            return NotImplemented
        return (self.name, self.fields) == (other.name, other.fields)

    def __hash__(self) -> int:
        return hash((self.name, self.encode()))

    def __repr__(self) -> str:
        shown = []
        for name, value in self.fields.items():
            text = f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)
            shown.append(f" {name}={text}")
        return f"<{self.name}{''.join(shown)} at {self.offset}>"

    def encode(self) -> bytes:
        """The bytes again."""
        layout = LAYOUTS[self.opcode]
        values = [self.fields[name] for name, _ in layout.fields]
        if self.name == "batch":
            return encode_batch([c.encode() for c in self.fields["commands"]])
        return _encode(layout, values)


# encoding -------------------------------------------------------------------------------------
# A call for each primitive has to be quick: commands of a fixed size are packed at once, with a
# colour that was seen before, and only what that does not take goes the careful way.
_PACKERS: Final = {c: x.packer.pack for c, x in LAYOUTS.items() if x.packer is not None}
_BYTES: Final = {bytes, bytearray, memoryview}
_MISSES: Final = (struct.error, TypeError, KeyError, OverflowError)
_clear, _rect, _line, _blit = (_PACKERS[c] for c in (0x01, 0x02, 0x03, 0x04))
_ring, _disc, _outline, _triangle = (_PACKERS[c] for c in (0x0D, 0x0E, 0x0F, 0x10))
_round_outline, _round, _image = (_PACKERS[c] for c in (0x11, 0x12, 0x16))


def _careful(opcode: int, *values: Any) -> bytes:
    return _encode(LAYOUTS[opcode], values)


def _encode(layout: _Layout, values: Sequence[Any]) -> bytes:
    parts = [bytes([layout.opcode])]
    for (name, kind), value in zip(layout.fields, values, strict=True):
        parts.append(_field(layout, name, kind, value))
    return b"".join(parts)


def _field(layout: _Layout, name: str, kind: str, value: Any) -> bytes:
    where = f"encode_{layout.name}: {name}"
    if kind in _FORMATS:
        low, high = _RANGES[kind]
        if isinstance(value, bool) and kind == _U8:
            value = int(value)
        whole = _whole(value)
        if whole is None or not low <= whole <= high:
            raise CommandError(
                f"{where} must be a whole number within {low}..{high} ({kind}), {value!r} came."
            )
        return struct.pack("<" + _FORMATS[kind], whole)
    if kind == "rgba":
        return value if isinstance(value, bytes) and len(value) == 4 else color_to_rgba(value)
    if kind == "text":
        if not isinstance(value, str):
            raise CommandError(f"{where} must be a text, {type(value).__name__} came.")
        data = value.encode("utf-8", "surrogatepass")
        return _U32_PACK(len(data)) + data
    data = _bytes(where, value)
    return data if kind == "pixels" else _U32_PACK(len(data)) + data


_U32_PACK: Final = struct.Struct("<I").pack


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = value.__index__() if hasattr(value, "__index__") else int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number == value else None


def _bytes(where: str, value: Any) -> bytes:
    try:
        view = memoryview(value)
    except TypeError:
        raise CommandError(
            f"{where} must be bytes (or an array over bytes), {type(value).__name__} came."
        ) from None
    return view.tobytes()


def _pixels(name: str, pixels: Any, w: int, h: int) -> bytes:
    data = _bytes(f"encode_{name}: pixels", pixels)
    if _whole(w) is None or _whole(h) is None or len(data) != w * h * 4:
        raise CommandError(
            f"encode_{name}: {w!r} x {h!r} pixels of four bytes (RGBA) are wanted, "
            f"{len(data)} bytes came."
        )
    return data


def encode_clear(color: Color) -> bytes:
    """Fills the surface (within the clip) with a colour, alpha too; blends nothing."""
    try:
        return _clear(0x01, seen[color])
    except _MISSES:
        return _careful(0x01, color)


def encode_fill_rect(x: int, y: int, w: int, h: int, color: Color) -> bytes:
    """A filled rectangle."""
    try:
        return _rect(0x02, x, y, w, h, seen[color])
    except _MISSES:
        return _careful(0x02, x, y, w, h, color)


def encode_draw_line(x1: int, y1: int, x2: int, y2: int, color: Color) -> bytes:
    """A line, both ends included (Bresenham)."""
    try:
        return _line(0x03, x1, y1, x2, y2, seen[color])
    except _MISSES:
        return _careful(0x03, x1, y1, x2, y2, color)


def encode_blit(id: int, x: int, y: int) -> bytes:
    """A sprite at its own size."""
    try:
        return _blit(0x04, id, x, y)
    except _MISSES:
        return _careful(0x04, id, x, y)


def encode_present() -> bytes:
    """Shows what was drawn."""
    return b"\x05"


def encode_resize(w: int, h: int) -> bytes:
    """Another size; what fits is kept."""
    return _careful(0x06, w, h)


def encode_load_sprite(id: int, pixels: Any, w: int, h: int) -> bytes:
    """Puts RGBA pixels into the atlas under a number."""
    return _encode(LAYOUTS[0x07], (id, w, h, _pixels("load_sprite", pixels, w, h)))


def encode_remove_sprite(id: int) -> bytes:
    """Forgets a sprite."""
    return _careful(0x08, id)


def encode_dispatch_compute(
    shader: str, params: Any = b"", workgroups: tuple[int, int, int] = (1, 1, 1)
) -> bytes:
    """Runs a shader (its source, or the name of one that was loaded) over the pixels."""
    try:
        x, y, z = workgroups
    except (TypeError, ValueError):
        raise CommandError(
            f"encode_dispatch_compute: workgroups are three numbers (x, y, z), {workgroups!r} came."
        ) from None
    return _encode(LAYOUTS[0x09], (shader, params, x, y, z))


def encode_read_pixels(x: int, y: int, w: int, h: int) -> bytes:
    """Asks for a rectangle of pixels."""
    return _careful(0x0A, x, y, w, h)


def encode_load_shader(name: str, source: str) -> bytes:
    """Keeps a shader under a name."""
    return _encode(LAYOUTS[0x0B], (name, source))


def encode_set_uniform(name: str, data: Any) -> bytes:
    """Sets a uniform that shaders see by its name."""
    return _encode(LAYOUTS[0x0C], (name, data))


def encode_draw_circle(cx: int, cy: int, radius: int, color: Color) -> bytes:
    """A circle's outline (midpoint)."""
    try:
        return _ring(0x0D, cx, cy, radius, seen[color])
    except _MISSES:
        return _careful(0x0D, cx, cy, radius, color)


def encode_fill_circle(cx: int, cy: int, radius: int, color: Color) -> bytes:
    """A disc: the outline of the same radius and all within."""
    try:
        return _disc(0x0E, cx, cy, radius, seen[color])
    except _MISSES:
        return _careful(0x0E, cx, cy, radius, color)


def encode_draw_triangle(
    x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
) -> bytes:
    """A triangle's outline."""
    try:
        return _outline(0x0F, x1, y1, x2, y2, x3, y3, seen[color])
    except _MISSES:
        return _careful(0x0F, x1, y1, x2, y2, x3, y3, color)


def encode_fill_triangle(
    x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
) -> bytes:
    """A filled triangle; two that share an edge neither overlap nor leave a gap."""
    try:
        return _triangle(0x10, x1, y1, x2, y2, x3, y3, seen[color])
    except _MISSES:
        return _careful(0x10, x1, y1, x2, y2, x3, y3, color)


def encode_draw_round_rect(x: int, y: int, w: int, h: int, radius: int, color: Color) -> bytes:
    """The outline of a rectangle with round corners."""
    try:
        return _round_outline(0x11, x, y, w, h, radius, seen[color])
    except _MISSES:
        return _careful(0x11, x, y, w, h, radius, color)


def encode_fill_round_rect(x: int, y: int, w: int, h: int, radius: int, color: Color) -> bytes:
    """A filled rectangle with round corners."""
    try:
        return _round(0x12, x, y, w, h, radius, seen[color])
    except _MISSES:
        return _careful(0x12, x, y, w, h, radius, color)


def encode_set_clip(x: int, y: int, w: int, h: int, enabled: bool = True) -> bytes:
    """Nothing is drawn outside the rectangle from now on; ``enabled=False`` lifts it."""
    return _careful(0x13, x, y, w, h, int(bool(enabled)))


def encode_reset_clip() -> bytes:
    """Drawing everywhere again."""
    return b"\x14"


def encode_batch(commands: Iterable[bytes]) -> bytes:
    """Commands that are applied together: nobody sees some of them without the others."""
    try:
        items = commands if type(commands) is list else list(commands)
    except TypeError:
        raise CommandError(
            "encode_batch: a list of commands made by encode_... is wanted, "
            f"{type(commands).__name__} came."
        ) from None
    if not ({*map(type, items)} <= _BYTES and all(items)):
        for n, item in enumerate(items):
            if not isinstance(item, (bytes, bytearray, memoryview)) or not len(item):
                raise CommandError(
                    "encode_batch: commands are bytes made by encode_..., "
                    f"item {n} is {item!r:.40}."
                )
    return b"\x15" + _U32_PACK(len(items)) + b"".join(items)


def encode_image_blit(id: int, x: int, y: int, w: int, h: int) -> bytes:
    """An image, scaled to w x h."""
    try:
        return _image(0x16, id, x, y, w, h)
    except _MISSES:
        return _careful(0x16, id, x, y, w, h)


def encode_load_image(id: int, pixels: Any, w: int, h: int) -> bytes:
    """Keeps RGBA pixels under a number, to be drawn at any size."""
    return _encode(LAYOUTS[0x17], (id, w, h, _pixels("load_image", pixels, w, h)))


def encode_remove_image(id: int) -> bytes:
    """Forgets an image."""
    return _careful(0x18, id)


# decoding -------------------------------------------------------------------------------------
def decode(data: Any) -> list[Command]:
    """The commands in some bytes, in order; ProtocolError says where and what is wrong."""
    reader = _Reader(_bytes("decode: data", data))
    commands = []
    while reader.at < len(reader.data):
        commands.append(reader.command(0))
    return commands


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def command(self, depth: int) -> Command:
        start = self.at
        if start >= len(self.data):
            raise ProtocolError("the bytes end where a command should begin", start, None)
        layout = LAYOUTS.get(self.data[start])
        if layout is None:
            raise ProtocolError("no command has this opcode", start, self.data[start])
        self.at += 1
        fields: dict[str, Any] = {}
        for name, kind in layout.fields:
            if kind == "commands":
                fields[name] = self.batch(start, depth)
            else:
                fields[name] = self.field(kind, start, fields)
        if layout.name == "set_clip":
            if fields["enabled"] > 1:
                raise ProtocolError("enabled is 0 or 1", start, layout.opcode)
            fields["enabled"] = bool(fields["enabled"])
        return Command(layout.name, start, fields)

    def batch(self, start: int, depth: int) -> tuple[Command, ...]:
        if depth >= MAX_DEPTH:
            raise ProtocolError(f"batches lie more than {MAX_DEPTH} deep", start, 0x15)
        count = self.number("I", 4, start)
        left = len(self.data) - self.at
        if count > left:  # a command has a byte at least
            problem = f"a batch of {count} commands is announced, {left} bytes are left"
            raise ProtocolError(problem, start, 0x15)
        return tuple(self.command(depth + 1) for _ in range(count))

    def field(self, kind: str, start: int, fields: dict[str, Any]) -> Any:
        if kind in _FORMATS:
            return self.number(_FORMATS[kind], struct.calcsize("<" + _FORMATS[kind]), start)
        if kind == "rgba":
            return tuple(self.take(4, start))
        if kind == "pixels":
            return self.take(fields["w"] * fields["h"] * 4, start)
        data = self.take(self.number("I", 4, start), start)
        if kind == "data":
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8", start, self.data[start]) from None

    def number(self, form: str, size: int, start: int) -> int:
        value: int = struct.unpack("<" + form, self.take(size, start))[0]
        return value

    def take(self, size: int, start: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise ProtocolError(
                f"{size} bytes are wanted at {self.at}, {len(self.data) - self.at} are left",
                start,
                self.data[start],
            )
        taken = self.data[self.at : end]
        self.at = end
        return taken
