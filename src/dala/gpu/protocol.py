"""The command protocol of surfaces: kinds of fields, rows of commands, encoding and decoding.

A command is one byte of opcode and its fields. All integers are little-endian, lengths are u32,
text is UTF-8. The rows are declared in ``dala.gpu.command``; encoders, drawing calls, methods of
``Surface``, type stubs and the table of the documentation are derived from them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from dala import memory
from dala.errors import CommandError, DalaError, ProtocolError
from dala.gpu.color import LAYER_BLENDS, rgba_of
from dala.gpu.vector.fields import (
    MAX_NUMBERS,
    PLACE,
    as_float,
    encode_numbers,
    encode_path,
    encode_places,
    path_problem,
)
from dala.gpu.vector.fields import PathData as PathData

if TYPE_CHECKING:
    from dala.typing import ColorLike, NDArray

#: Binary data that calls accept: bytes, or an array over bytes.
BytesLike: TypeAlias = "bytes | bytearray | memoryview | NDArray"

#: The decoded value of a field.
FieldValue: TypeAlias = (
    "int | float | str | bytes | PathData | tuple[float | tuple[int, ...] | DrawCommand, ...]"
)

#: How deep batches may be nested.
MAX_DEPTH: Final = 16

_LENGTH: Final = struct.Struct("<I")


class FieldKind(NamedTuple):
    """The kind of a field: its name, its type in calls, its format if the size is fixed, a range.

    ``pixels`` are w * h * 4 bytes after all other fields, ``text`` and ``data`` a u32 length and so
    many bytes, ``commands`` a u32 count and so many commands, ``numbers`` a u32 count and so many
    f64, ``places`` a u32 count and so many u64 ids with two i32, ``path`` a u32 number of verbs and
    one of points, their verbs, and two f64 for each point.
    Floats are finite. A choice is one byte, the place of its name in ``names``.
    """

    name: str
    python: str
    format: str = ""
    low: int = 0
    high: int = 0
    names: tuple[str, ...] = ()

    def place(
        self, call: str, argument: str, value: object, error: type[DalaError] = CommandError
    ) -> int:
        """Return the place of a choice's name, or raise."""
        if not isinstance(value, str) or value not in self.names:
            raise error.invalid(call, argument, " or ".join(map(repr, self.names)), value)
        return self.names.index(value)


u32: Final = FieldKind("u32", "int", "I", 0, 2**32 - 1)
i32: Final = FieldKind("i32", "int", "i", -(2**31), 2**31 - 1)
u64: Final = FieldKind("u64", "int", "Q", 0, 2**64 - 1)
flag: Final = FieldKind("flag", "bool", "B")
rgba: Final = FieldKind("rgba", "ColorLike", "4s")
text: Final = FieldKind("text", "str")
data: Final = FieldKind("data", "BytesLike")
pixels: Final = FieldKind("pixels", "BytesLike")
commands: Final = FieldKind("commands", "Iterable[bytes]")
f64: Final = FieldKind("f64", "float", "d")
numbers: Final = FieldKind("numbers", "Iterable[float]")
path: Final = FieldKind("path", "Path | PathData")
places: Final = FieldKind("places", "Iterable[tuple[int, int, int]]")


def choice(name: str, *names: str) -> FieldKind:
    """Return the kind of a field that is one of some names."""
    return FieldKind(name, "str", "B", 0, len(names) - 1, names)


rule: Final = choice("rule", "nonzero", "evenodd")
cap: Final = choice("cap", "butt", "round", "square")
join: Final = choice("join", "miter", "round", "bevel")
gradient: Final = choice("gradient", "linear", "radial", "conic")
spread: Final = choice("spread", "pad", "repeat", "reflect")
space: Final = choice("space", "srgb", "linear", "oklab")
blend: Final = choice("blend", *LAYER_BLENDS)
sampling: Final = choice("sampling", "linear", "nearest")


class CommandRow:
    """One row of the protocol table.

    Args:
        opcode: The first byte of the command.
        declared: A function whose name, arguments and docstring are those of the command; the
            annotations are kinds.
        draws: The native function in ``dala.gpu.raster.commands`` that executes it; without one,
            the render thread's method ``_do_<name>`` does.
        call: The drawing call with its arguments, where it is not declared the same:
            ``"draw_image id x y dest_w dest_h"``.
        vector: Whether ``dala.gpu.vector.painter`` executes it.
    """

    def __init__(
        self,
        opcode: int,
        declared: Callable[..., None],
        draws: str = "",
        call: str = "",
        vector: bool = False,
    ) -> None:
        kinds: dict[str, FieldKind] = dict(declared.__annotations__)
        kinds.pop("return", None)
        self.opcode = opcode
        self.draws = draws
        self.vector = vector
        self.name = declared.__name__
        self.doc = declared.__doc__ or ""
        #: The kinds of the encoder's arguments, in their order.
        self.kinds: Mapping[str, FieldKind] = kinds
        defaults = declared.__defaults__ or ()
        #: The default values of the last arguments.
        self.defaults = dict(zip([*kinds][len(kinds) - len(defaults) :], defaults, strict=True))
        #: The fields in the order of their bytes.
        self.fields = sorted(kinds.items(), key=lambda field: field[1] is pixels)
        #: Where each field begins in a command of fixed size.
        self.offsets: dict[str, int] = {}
        form = "<B"
        for field, kind in self.fields:
            self.offsets[field] = struct.calcsize(form)
            form += kind.format
        #: The name of the drawing call, and of its arguments after the surface.
        self.function, *renamed = call.split() or [self.name.removesuffix("_signed")]
        self.call_arguments = renamed or [*kinds]
        #: Packs opcode and fields; None for a command of variable size.
        self.struct: struct.Struct | None = None
        if all(kind.format for kind in kinds.values()):
            self.struct = struct.Struct(form)
        #: Whether the bytes of a field need a check of their own, other than of flags.
        self.checked = any(kind is f64 or kind.names for kind in kinds.values())

    def encode(self, values: Sequence[object]) -> bytes:
        """Return the command with the values of its arguments, each of them checked."""
        given = dict(zip(self.kinds, values, strict=True))
        parts = [bytes([self.opcode])]
        for name, kind in self.fields:
            if kind is pixels:
                parts.append(_as_pixels(self.function, given[name], given["w"], given["h"]))
            else:
                parts.append(_encode_field(self.function, name, kind, given[name]))
        return b"".join(parts)


#: The commands, also by name and by opcode; ``dala.gpu.command`` declares them.
COMMANDS: Final[list[CommandRow]] = []
BY_NAME: Final[dict[str, CommandRow]] = {}
BY_OPCODE: Final[dict[int, CommandRow]] = {}
OPCODES: Final[dict[str, int]] = {}


def command(
    opcode: int, *, draws: str = "", call: str = "", vector: bool = False
) -> Callable[[Callable[..., None]], CommandRow]:
    """Declare a command; see :class:`CommandRow`."""

    def declare(declared: Callable[..., None]) -> CommandRow:
        row = BY_OPCODE[opcode] = CommandRow(opcode, declared, draws, call, vector)
        BY_NAME[row.name] = row
        OPCODES[row.name] = opcode
        COMMANDS.append(row)
        return row

    return declare


# encoding fields --------------------------------------------------------------------------------
def _encode_field(call: str, name: str, kind: FieldKind, value: object) -> bytes:
    if kind is flag:
        if not isinstance(value, bool | int):
            raise CommandError.invalid(call, name, "True or False", value)
        return bytes([bool(value)])
    if kind is rgba:
        if isinstance(value, bytes) and len(value) == 4:
            return value
        return rgba_of(cast("ColorLike", value), call, name)
    if kind is f64:
        return struct.pack("<d", as_float(call, name, value))
    if kind.names:
        return bytes([kind.place(call, name, value)])
    if kind is numbers:
        return encode_numbers(call, name, value)
    if kind is path:
        return encode_path(call, name, value)
    if kind is places:
        return encode_places(call, name, value)
    if kind.format:
        number = as_int(value)
        if number is None or not kind.low <= number <= kind.high:
            raise CommandError.invalid(call, name, f"an int from {kind.low} to {kind.high}", value)
        return struct.pack("<" + kind.format, number)
    if kind is text:
        if not isinstance(value, str):
            raise CommandError.invalid(call, name, "a str", value)
        try:
            value = value.encode()
        except UnicodeEncodeError:
            raise CommandError.invalid(call, name, "text without lone surrogates", value) from None
    found = as_bytes(call, name, value)
    return _LENGTH.pack(len(found)) + found


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


def _as_pixels(call: str, given: object, w: Any, h: Any) -> bytes:
    """Return w x h pixels as RGBA bytes; refuses any other number of bytes."""
    view = _view(call, "pixels", given)
    count = view.nbytes
    if as_int(w) is None or as_int(h) is None or count != w * h * 4:
        expected = f"{w!r} x {h!r} RGBA pixels of 4 bytes"
        raise wrong_pixels(call, "pixels", expected, f"{count} bytes")
    return _copied(call, view)


def wrong_pixels(call: str, argument: str, expected: str, got: str) -> CommandError:
    """Return the error for pixels of another size; ``got`` is a description."""
    text = f"{call}: {argument} must be {expected}, got {got}."
    return CommandError(text, call=call, argument=argument, expected=expected, got=got)


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
        return row.encode([self.fields[name] for name in row.kinds])


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
            if kind is commands:
                fields[name] = self._batch(start, depth)
            elif kind is pixels:
                w, h = cast("int", fields["w"]), cast("int", fields["h"])
                fields[name] = self._take(w * h * 4, start)
            else:
                fields[name] = self._field(name, kind, start)
        return DrawCommand(row.name, start, fields)

    def _batch(self, start: int, depth: int) -> tuple[DrawCommand, ...]:
        opcode = self.data[start]
        if depth >= MAX_DEPTH:
            raise ProtocolError(f"batches are nested more than {MAX_DEPTH} deep", start, opcode)
        count = self._number(u32, start)
        left = len(self.data) - self.offset
        if count > left:  # a command has one byte at least
            problem = f"the batch has {count} commands, but only {left} bytes are left"
            raise ProtocolError(problem, start, opcode)
        return tuple(self.command(depth + 1) for _ in range(count))

    def _field(self, name: str, kind: FieldKind, start: int) -> FieldValue:
        if kind is rgba:
            return tuple(self._take(4, start))
        if kind is flag:
            value = self._take(1, start)[0]
            if value > 1:
                raise ProtocolError(f"{name} must be 0 or 1", start, self.data[start])
            return bool(value)
        if kind is path:
            return self._path(start)
        if kind is places:
            found = self._take(PLACE.size * self._number(u32, start), start)
            return tuple(PLACE.iter_unpack(found))
        if kind is f64 or kind is numbers:
            return self._floats(kind, start)
        if kind.names:
            place = self._take(1, start)[0]
            if place > kind.high:
                raise ProtocolError(f"{name} must be 0 to {kind.high}", start, self.data[start])
            return kind.names[place]
        if kind.format:
            return self._number(kind, start)
        found = self._take(self._number(u32, start), start)
        if kind is data:
            return found
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise ProtocolError("text is not valid UTF-8", start, self.data[start]) from None

    def _floats(self, kind: FieldKind, start: int) -> float | tuple[float, ...]:
        count = 1 if kind is f64 else self._number(u32, start)
        if kind is numbers and count > MAX_NUMBERS:
            raise ProtocolError(f"more than {MAX_NUMBERS} numbers", start, self.data[start])
        found = struct.unpack(f"<{count}d", self._take(8 * count, start))
        if not all(map(math.isfinite, found)):
            raise ProtocolError("numbers must be finite", start, self.data[start])
        return cast("float", found[0]) if kind is f64 else found

    def _path(self, start: int) -> PathData:
        verbs, points = self._number(u32, start), self._number(u32, start)
        made = PathData(self._take(verbs, start), self._take(16 * points, start))
        problem = path_problem(made)
        if problem:
            raise ProtocolError(problem, start, self.data[start])
        return made

    def _number(self, kind: FieldKind, start: int) -> int:
        form = "<" + kind.format
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
