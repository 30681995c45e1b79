"""Command streams: check() agrees with decode(), and valid ones draw within bounds.

Native code runs as its checked build here, which raises where an access would leave an array.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct

from dala.errors import CommandError, DalaError, ProtocolError
from dala.gpu import command, protocol
from dala.gpu.color import LAYER_BLENDS
from dala.gpu.raster import Canvas
from dala.gpu.vector import fields
from dala.media.filters.declarations import declared
from tests.fuzz.target import Failed, Target

#: Filters that need no model.
FILTERS = sorted({*declared()} - {"virtual_background"})
PARAMETERS = sorted({p.name for name in FILTERS for p in declared()[name].parameters})
EDGES = (0, 1, 2, 15, 16, 17, 2**15, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)


class Checked(Canvas):
    _checked = True


def number(rng: random.Random) -> int:
    return rng.choice((rng.randrange(80), rng.randrange(80), rng.choice(EDGES)))


def signed(rng: random.Random) -> int:
    value = number(rng)
    return value - 2**32 if value >= 2**31 else value * rng.choice((1, -1))


def place(rng: random.Random) -> float:
    """Return a coordinate, which is sometimes far out."""
    if rng.randrange(12) == 0:
        return rng.choice((0.0, -0.0, 1e-300, 1e9, -1e9, 3e4, -3e4, 1e308, -1e308, 5e-324))
    return rng.choice((rng.uniform(-20, 80), float(rng.randrange(64)), rng.uniform(-3, 3)))


def path(rng: random.Random) -> bytes:
    """Return the bytes of a path."""
    verbs = [0]
    for _ in range(rng.randrange(7)):
        verbs.append(0 if verbs[-1] == 4 else rng.randrange(5))
    verbs = verbs[rng.randrange(12) == 0 and len(verbs) :]
    count = 2 * sum(fields.VERB_POINTS[verb] for verb in verbs)
    places = struct.pack(f"<{count}d", *(place(rng) for _ in range(count)))
    return struct.pack("<II", len(verbs), count // 2) + bytes(verbs) + places


def layer_filters(rng: random.Random) -> list[object]:
    """Return filters of a layer, which are sometimes wrong."""
    value = rng.choice((0, 1, 2.5, -1, 1e300, float("nan"), "a", None, [1, 2, 3, 4], [0.5] * 9))
    shadow = {"x": 1, "y": -2, "blur": 1, "color": [0, 9, 200, 255]}
    if rng.randrange(2):
        shadow[rng.choice([*shadow])] = value
    named = [rng.choice(FILTERS), {rng.choice(PARAMETERS): value} if rng.randrange(2) else {}]
    return [rng.choice((["shadow", shadow], ["blur", {"radius": 2}], named, value))]


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
        elif kind is protocol.path:
            parts.append(path(rng))
        elif kind is protocol.places:
            found = [(rng.randrange(4), signed(rng), signed(rng)) for _ in range(rng.randrange(4))]
            parts.append(struct.pack("<I", len(found)))
            parts += [struct.pack("<Qii", *each) for each in found]
        elif layout.name == "load_gradient" and kind is protocol.numbers:
            found = [rng.choice((0, 0, 0.3, 1)), *(rng.randrange(256) for _ in range(4))]
            found += [1, *(rng.randrange(256) for _ in range(4))]
            parts.append(struct.pack("<I10d", 10, *found))
        elif layout.name == "load_mask" and kind is protocol.data:
            parts.append(struct.pack("<I", w * h) + rng.randbytes(w * h))
        elif kind is protocol.numbers:
            found = [abs(place(rng)) for _ in range(rng.randrange(4))]
            parts.append(struct.pack(f"<I{len(found)}d", len(found), *found))
        elif kind is protocol.f64:
            parts.append(struct.pack("<d", place(rng)))
        elif kind.names:
            parts.append(bytes([rng.randrange(len(kind.names))]))
        elif layout.name == "begin_layer" and not kind.format:
            text = json.dumps(layer_filters(rng)).encode()
            parts.append(len(text).to_bytes(4, "little") + text)
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
        elif found.name in ("load_path", "load_gradient", "load_pattern", "load_mask"):
            with contextlib.suppress(CommandError):
                canvas.store(found)
        elif found.name == "begin_layer":
            with contextlib.suppress(CommandError):
                canvas.begin_layer(found.opacity, LAYER_BLENDS.index(found.blend), found.filters)
        elif found.name == "end_layer":
            with contextlib.suppress(DalaError):
                canvas.end_layer()
        elif found.name in ("remove_path", "remove_paint", "remove_mask"):
            canvas.painter.remove(found)
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
