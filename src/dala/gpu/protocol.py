"""The command protocol of surfaces: one table, and the encoding and decoding derived from it.

A command is one byte of opcode and its fields. All integers are little-endian, lengths are u32,
text is UTF-8. Each row of ``COMMANDS`` declares a command: ``dala.gpu.command`` has a function that
encodes it, and ``dala.gpu.draw`` one that encodes it and queues it on a surface. Tests check both
against the table. ``dala.gpu.raster.stream`` executes the commands that draw.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from dala import memory
from dala.errors import CommandError, ProtocolError
from dala.gpu.color import rgba_of

if TYPE_CHECKING:
    from dala.typing import ColorLike, NDArray

#: Binary data that calls accept: bytes, or an array over bytes.
BytesLike: TypeAlias = "bytes | bytearray | memoryview | NDArray"

#: The decoded value of a field.
FieldValue: TypeAlias = "int | bool | str | bytes | tuple[int, ...] | tuple[DrawCommand, ...]"

#: How deep batches may be nested.
MAX_DEPTH: Final = 16

_FORMATS: Final = {"u32": "I", "i32": "i", "u64": "Q", "u8": "B", "rgba": "4s"}
_RANGES: Final = {
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "u64": (0, 2**64 - 1),
    "u8": (0, 255),
}
_LENGTH: Final = struct.Struct("<I")


class CommandRow:
    """One row of the protocol table.

    Args:
        opcode: The first byte of the command.
        name: The name; its encoder is ``encode_<name>``.
        fields: The fields in order, as ``name:kind``. A kind is u8, i32, u32, u64; rgba, four
            bytes; pixels, w * h * 4 bytes; text or data, a u32 length and so many bytes; commands,
            a u32 count and so many commands.
        arguments: The arguments of the encoder, where they are not the fields.
        function: The name of the drawing call, where it is not ``name``.
        call_arguments: The arguments of the drawing call, where they are not the encoder's.
    """

    __slots__ = ("arguments", "call_arguments", "fields", "function", "name", "opcode", "struct")

    def __init__(
        self,
        opcode: int,
        name: str,
        fields: str,
        *,
        arguments: str = "",
        function: str = "",
        call_arguments: str = "",
    ) -> None:
        pairs = [field.split(":") for field in fields.split()]
        self.opcode = opcode
        self.name = name
        self.fields: list[tuple[str, str]] = [(field, kind) for field, kind in pairs]
        self.arguments = arguments.split() or [field for field, _ in self.fields]
        self.function = function or name
        self.call_arguments = call_arguments.split() or self.arguments
        #: Packs opcode and fields; None for a command of variable size.
        self.struct: struct.Struct | None = None
        if all(kind in _FORMATS for _, kind in self.fields):
            self.struct = struct.Struct("<B" + "".join(_FORMATS[kind] for _, kind in self.fields))

    def encode(self, values: Sequence[object]) -> bytes:
        """Return the command with these field values, each of them checked."""
        parts = [bytes([self.opcode])]
        for (name, kind), value in zip(self.fields, values, strict=True):
            parts.append(_encode_field(self.function, name, kind, value))
        return b"".join(parts)


#: The drawing commands.
COMMANDS: Final = (
    CommandRow(0x01, "clear", "color:rgba"),
    CommandRow(0x02, "fill_rect", "x:u32 y:u32 w:u32 h:u32 color:rgba"),
    CommandRow(0x03, "draw_line", "x1:i32 y1:i32 x2:i32 y2:i32 color:rgba"),
    CommandRow(0x04, "blit", "id:u64 x:i32 y:i32"),
    CommandRow(0x05, "present", ""),
    CommandRow(0x06, "resize", "w:u32 h:u32"),
    CommandRow(
        0x07, "load_sprite", "id:u64 w:u32 h:u32 pixels:pixels",
        arguments="id pixels w h", call_arguments="id rgba w h",
    ),
    CommandRow(0x08, "remove_sprite", "id:u64"),
    CommandRow(
        0x09, "dispatch_compute", "shader:text params:data x:u32 y:u32 z:u32",
        arguments="shader params workgroups",
    ),
    CommandRow(0x0A, "read_pixels", "x:u32 y:u32 w:u32 h:u32"),
    CommandRow(0x0B, "load_shader", "name:text source:text"),
    CommandRow(0x0C, "set_uniform", "name:text data:data"),
    CommandRow(
        0x0D, "draw_circle", "cx:i32 cy:i32 radius:u32 color:rgba",
        call_arguments="cx cy r color",
    ),
    CommandRow(
        0x0E, "fill_circle", "cx:i32 cy:i32 radius:u32 color:rgba",
        call_arguments="cx cy r color",
    ),
    CommandRow(0x0F, "draw_triangle", "x1:i32 y1:i32 x2:i32 y2:i32 x3:i32 y3:i32 color:rgba"),
    CommandRow(0x10, "fill_triangle", "x1:i32 y1:i32 x2:i32 y2:i32 x3:i32 y3:i32 color:rgba"),
    CommandRow(0x11, "draw_round_rect", "x:u32 y:u32 w:u32 h:u32 radius:u32 color:rgba"),
    CommandRow(0x12, "fill_round_rect", "x:u32 y:u32 w:u32 h:u32 radius:u32 color:rgba"),
    CommandRow(0x13, "set_clip", "x:u32 y:u32 w:u32 h:u32 enabled:u8"),
    CommandRow(0x14, "reset_clip", ""),
    CommandRow(0x15, "batch", "commands:commands"),
    CommandRow(
        0x16, "image_blit", "id:u64 x:i32 y:i32 w:u32 h:u32",
        function="draw_image", call_arguments="id x y dest_w dest_h",
    ),
    CommandRow(
        0x17, "load_image", "id:u64 w:u32 h:u32 pixels:pixels",
        arguments="id pixels w h", call_arguments="id rgba w h",
    ),
    CommandRow(0x18, "remove_image", "id:u64"),
    # Opcodes up to 0x18 are fixed. The next two are the round rectangles with signed positions.
    CommandRow(
        0x19, "draw_round_rect_signed", "x:i32 y:i32 w:u32 h:u32 radius:u32 color:rgba",
        function="draw_round_rect",
    ),
    CommandRow(
        0x1A, "fill_round_rect_signed", "x:i32 y:i32 w:u32 h:u32 radius:u32 color:rgba",
        function="fill_round_rect",
    ),
)  # fmt: skip

BY_NAME: Final = MappingProxyType({row.name: row for row in COMMANDS})
BY_OPCODE: Final = MappingProxyType({row.opcode: row for row in COMMANDS})
OPCODES: Final = MappingProxyType({row.name: row.opcode for row in COMMANDS})


def packer(name: str) -> Callable[..., bytes]:
    """Return a function that packs the fields of a command of fixed size, without checks.

    It raises ``struct.error`` for a value that does not fit; ``encode`` of the row says which.
    """
    row = BY_NAME[name]
    assert row.struct is not None, f"{name} has a variable size"
    return partial(row.struct.pack, row.opcode)


# encoding fields --------------------------------------------------------------------------------
def _encode_field(call: str, name: str, kind: str, value: object) -> bytes:
    if kind in _RANGES:
        low, high = _RANGES[kind]
        if isinstance(value, bool) and kind == "u8":
            value = int(value)
        number = as_int(value)
        if number is None or not low <= number <= high:
            raise CommandError.invalid(call, name, f"an int from {low} to {high}", value)
        return struct.pack("<" + _FORMATS[kind], number)
    if kind == "rgba":
        if isinstance(value, bytes) and len(value) == 4:
            return value
        return rgba_of(cast("ColorLike", value), call, name)
    if kind == "text":
        if not isinstance(value, str):
            raise CommandError.invalid(call, name, "a str", value)
        try:
            data = value.encode()
        except UnicodeEncodeError:
            raise CommandError.invalid(call, name, "text without lone surrogates", value) from None
        return _LENGTH.pack(len(data)) + data
    data = as_bytes(call, name, value)
    return data if kind == "pixels" else _LENGTH.pack(len(data)) + data


def as_int(value: object) -> int | None:
    """Return an integral number as an int, and None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = value.__index__() if hasattr(value, "__index__") else int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number == value else None


def as_bytes(call: str, name: str, value: object) -> bytes:
    """Return the bytes of a bytes-like object; an error names the call and its argument."""
    return _copied(call, _view(call, name, value))


def _copied(call: str, view: memoryview) -> bytes:
    memory.check_copy(view.nbytes, call)
    return view.tobytes()


def _view(call: str, name: str, value: object) -> memoryview:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        view = None
    if view is None or "O" in view.format:  # pointers to objects
        raise CommandError.invalid(call, name, "bytes or an array", value)
    return view


def as_pixels(call: str, pixels: BytesLike, w: int, h: int) -> bytes:
    """Return w x h pixels as RGBA bytes; refuses any other number of bytes."""
    view = _view(call, "pixels", pixels)
    count = view.nbytes
    if as_int(w) is None or as_int(h) is None or count != w * h * 4:
        expected = f"{w!r} x {h!r} RGBA pixels of 4 bytes"
        raise CommandError(
            f"{call}: pixels must be {expected}, got {count} bytes.",
            call=call,
            argument="pixels",
            expected=expected,
            got=f"{count} bytes",
        )
    return _copied(call, view)


# decoding ---------------------------------------------------------------------------------------
class DrawCommand:
    """A decoded command. Its fields are attributes.

    >>> from dala.gpu.command import decode, encode_fill_rect
    >>> (found,) = decode(encode_fill_rect(1, 2, 3, 4, "red"))
    >>> found.name, found.opcode, found.offset, found.x, found.color
    ('fill_rect', 2, 0, 1, (255, 0, 0, 255))

    Attributes:
        name: The name of the command, such as ``"fill_rect"``.
        opcode: Its first byte.
        offset: Where it begins in the decoded bytes.
        fields: The values of its fields by name.
    """

    __slots__ = ("fields", "name", "offset", "opcode")

    def __init__(self, name: str, offset: int, fields: dict[str, FieldValue]) -> None:
        self.name = name
        self.opcode = OPCODES[name]
        self.offset = offset
        self.fields = fields

    def __getattr__(self, name: str) -> Any:  # the type depends on the command
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"a {self.name} command has no {name!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DrawCommand):
            return NotImplemented
        return (self.name, self.fields) == (other.name, other.fields)

    def __hash__(self) -> int:
        return hash((self.name, self.encode()))

    def __repr__(self) -> str:
        parts = []
        for name, value in self.fields.items():
            text = f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)
            parts.append(f" {name}={text}")
        return f"<{self.name}{''.join(parts)} at {self.offset}>"

    def encode(self) -> bytes:
        """Return the bytes of the command.

        >>> from dala.gpu.command import decode, encode_present
        >>> decode(encode_present())[0].encode()
        b'\\x05'
        """
        if self.name == "batch":
            commands = cast("tuple[DrawCommand, ...]", self.fields["commands"])
            return encode_commands([c.encode() for c in commands])
        row = BY_OPCODE[self.opcode]
        return row.encode([self.fields[name] for name, _ in row.fields])


def encode_commands(commands: Sequence[bytes]) -> bytes:
    """Return a batch of encoded commands, without checks."""
    return b"\x15" + _LENGTH.pack(len(commands)) + b"".join(commands)


def decode(data: BytesLike) -> list[DrawCommand]:
    """Decode command bytes.

    >>> from dala.gpu.command import decode, encode_blit, encode_present
    >>> decode(encode_blit(7, 10, 20) + encode_present())
    [<blit id=7 x=10 y=20 at 0>, <present at 17>]

    Raises:
        ProtocolError: The bytes are malformed. It has the offset and opcode of the command.
    """
    decoder = CommandDecoder(as_bytes("decode", "data", data))
    commands = []
    while decoder.offset < len(decoder.data):
        commands.append(decoder.command(0))
    return commands


class CommandDecoder:
    """Reads commands from bytes, one after another."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        #: Where the next command or field begins.
        self.offset = offset

    def command(self, depth: int) -> DrawCommand:
        """Return the next command, which is nested in ``depth`` batches."""
        start = self.offset
        if start >= len(self.data):
            raise ProtocolError("the data ends where a command should begin", start, None)
        row = BY_OPCODE.get(self.data[start])
        if row is None:
            raise ProtocolError("unknown opcode", start, self.data[start])
        self.offset += 1
        fields: dict[str, FieldValue] = {}
        for name, kind in row.fields:
            if kind == "commands":
                fields[name] = self._batch(start, depth)
            elif kind == "pixels":
                w, h = cast("int", fields["w"]), cast("int", fields["h"])
                fields[name] = self._take(w * h * 4, start)
            else:
                fields[name] = self._field(kind, start)
        if row.name == "set_clip":
            if fields["enabled"] not in (0, 1):
                raise ProtocolError("enabled must be 0 or 1", start, row.opcode)
            fields["enabled"] = bool(fields["enabled"])
        return DrawCommand(row.name, start, fields)

    def _batch(self, start: int, depth: int) -> tuple[DrawCommand, ...]:
        opcode = self.data[start]
        if depth >= MAX_DEPTH:
            raise ProtocolError(f"batches are nested more than {MAX_DEPTH} deep", start, opcode)
        count = self._number("u32", start)
        left = len(self.data) - self.offset
        if count > left:  # a command has one byte at least
            problem = f"the batch has {count} commands, but only {left} bytes are left"
            raise ProtocolError(problem, start, opcode)
        return tuple(self.command(depth + 1) for _ in range(count))

    def _field(self, kind: str, start: int) -> FieldValue:
        if kind in _RANGES:
            return self._number(kind, start)
        if kind == "rgba":
            return tuple(self._take(4, start))
        data = self._take(self._number("u32", start), start)
        if kind == "data":
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ProtocolError("text is not valid UTF-8", start, self.data[start]) from None

    def _number(self, kind: str, start: int) -> int:
        form = "<" + _FORMATS[kind]
        number: int = struct.unpack(form, self._take(struct.calcsize(form), start))[0]
        return number

    def _take(self, size: int, start: int) -> bytes:
        end = self.offset + size
        if end > len(self.data):
            left = len(self.data) - self.offset
            problem = f"{size} bytes are needed at offset {self.offset}, but only {left} are left"
            raise ProtocolError(problem, start, self.data[start])
        taken = self.data[self.offset : end]
        self.offset = end
        return taken
