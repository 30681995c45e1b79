"""Command streams: check() agrees with decode(), and valid ones draw within bounds.

Native code runs as its checked build here, which raises where an access would leave an array.
"""

from __future__ import annotations

import random

from dala.errors import ProtocolError
from dala.gpu import command, protocol
from dala.gpu.raster import Canvas
from tests.fuzz.target import Failed, Target

EDGES = (0, 1, 2, 15, 16, 17, 2**15, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)


class Checked(Canvas):
    _checked = True


def number(rng: random.Random) -> int:
    return rng.choice((rng.randrange(80), rng.randrange(80), rng.choice(EDGES)))


def signed(rng: random.Random) -> int:
    value = number(rng)
    return value - 2**32 if value >= 2**31 else value * rng.choice((1, -1))


def one(rng: random.Random, depth: int = 0) -> bytes:
    """Return a valid command."""
    codes = list(protocol.BY_OPCODE)
    layout = protocol.BY_OPCODE[rng.choice(codes)]
    parts = [bytes([layout.opcode])]
    w = h = 0
    for name, kind in layout.fields:
        if kind is protocol.commands:
            inner = [one(rng, depth + 1) for _ in range(rng.randrange(3 if depth < 3 else 1))]
            return command.encode_batch(inner)
        if kind is protocol.rgba:
            parts.append(rng.randbytes(3) + bytes([rng.choice((0, 1, 128, 255, 255))]))
        elif kind is protocol.pixels:
            parts.append(rng.randbytes(w * h * 4))
        elif not kind.format:
            text = rng.choice(("", "name", "ä€😀", "x" * 40)).encode()
            parts.append(len(text).to_bytes(4, "little") + text)
        elif kind is protocol.flag:
            parts.append(bytes([rng.randrange(2)]))
        elif kind is protocol.u64:
            parts.append(rng.randrange(4).to_bytes(8, "little"))
        elif kind is protocol.i32:
            parts.append(signed(rng).to_bytes(4, "little", signed=True))
        else:
            value = number(rng)
            if layout.name.startswith("load"):
                value = rng.randrange(9)
                w, h = (value, h) if name == "w" else (w, value)
            parts.append(value.to_bytes(4, "little"))
    return b"".join(parts)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Change, insert, remove or cut off some bytes."""
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] = rng.choice((0, 1, 5, 0x15, 0x80, 0xC0, 0xFF, rng.randrange(256)))
        elif kind == 1:
            changed[at:at] = rng.randbytes(rng.randrange(1, 6))
        elif kind == 2:
            del changed[at : at + rng.randrange(1, 6)]
        elif kind == 3:
            del changed[at:]
        elif kind == 4 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        else:
            changed[at : at + 4] = rng.choice(EDGES).to_bytes(4, "little")
        if not changed:
            break
    return bytes(changed)


def verdict(data: bytes) -> ProtocolError | None:
    try:
        command.decode(data)
    except ProtocolError as error:
        return error
    return None


def obey(canvas: Canvas, data: bytes) -> None:
    """Execute a stream, with the commands that the canvas leaves to its caller."""
    at = 0
    while (stop := canvas.run(data, at)) is not None:
        (found,) = command.decode(data[stop.offset : stop.end])
        if found.name.startswith(("load_sprite", "load_image")):
            getattr(canvas, found.name)(found.id, found.pixels, found.w, found.h)
        elif found.name.startswith(("remove", "take")):
            getattr(canvas, found.name)(found.id)
        at = stop.end


class Streams(Target):
    """Streams of drawing commands, as a surface takes them."""

    name = "streams"

    def __init__(self) -> None:
        self._canvas = Checked(61, 37)
        self._read = 0

    def seeds(self) -> list[bytes]:
        rng = random.Random(1)
        return [b"".join(one(rng) for _ in range(rng.randrange(1, 6))) for _ in range(40)]

    def input(self, seed: int, number: int) -> bytes:
        rng = random.Random(f"streams:{seed}:{number}")
        if rng.randrange(8) == 0:
            return super().input(seed, number)
        return mutated(rng, b"".join(one(rng) for _ in range(rng.randrange(1, 6))))

    def read(self, data: bytes) -> str:
        canvas = self._canvas
        self._read += 1
        if self._read % 64 == 0:  # another size from time to time
            rng = random.Random(self._read)
            canvas.resize(rng.choice((1, 16, 61, 64)), rng.choice((1, 15, 37)))
            canvas.nearest = not canvas.nearest
        wanted = verdict(data)
        try:
            canvas.check(data)
        except ProtocolError as error:
            places = [(str(e), e.offset, e.opcode) for e in (error, wanted) if e is not None]
            if len(set(places)) != 1 or len(places) != 2:
                raise Failed(f"check() and decode() differ: {places}") from None
            raise
        if wanted is not None:
            raise Failed(f"check() takes what decode() refuses: {wanted}")
        obey(canvas, data)
        canvas.take_faults()
        return f"{len(command.decode(data))} commands"
