"""Mutated command streams: check() agrees with decode(), and valid ones draw within bounds.

The mutator is our own and seeded: many streams a second, the same ones in every run. Native code
runs as its checked build here, which raises where an access would leave an array.
"""

from __future__ import annotations

import random

import pytest

from dala.errors import ProtocolError
from dala.gpu import command, protocol
from dala.gpu.raster import Canvas

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
        if kind == "commands":
            inner = [one(rng, depth + 1) for _ in range(rng.randrange(3 if depth < 3 else 1))]
            return command.encode_batch(inner)
        if kind == "rgba":
            parts.append(rng.randbytes(3) + bytes([rng.choice((0, 1, 128, 255, 255))]))
        elif kind == "pixels":
            parts.append(rng.randbytes(w * h * 4))
        elif kind in ("text", "data"):
            text = rng.choice(("", "name", "ä€😀", "x" * 40)).encode()
            parts.append(len(text).to_bytes(4, "little") + text)
        elif kind == "u8":
            parts.append(bytes([rng.randrange(2)]))
        elif kind == "u64":
            parts.append(rng.randrange(4).to_bytes(8, "little"))
        elif kind == "i32":
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


def fuzz(seed: int, count: int) -> tuple[int, int]:
    rng = random.Random(seed)
    canvas = Checked(61, 37)
    good = bad = 0
    for n in range(count):
        if n % 64 == 0:
            canvas.resize(rng.choice((1, 16, 61, 64)), rng.choice((1, 15, 37)))
            canvas.nearest = not canvas.nearest
        data = mutated(rng, b"".join(one(rng) for _ in range(rng.randrange(1, 6))))
        wanted = verdict(data)
        if wanted is None:
            good += 1
            canvas.check(data)
            obey(canvas, data)
            canvas.take_faults()
        else:
            bad += 1
            with pytest.raises(ProtocolError) as caught:
                canvas.check(data)
            assert str(caught.value) == str(wanted), data.hex()
            assert (caught.value.offset, caught.value.opcode) == (wanted.offset, wanted.opcode)
    return good, bad


@pytest.mark.parametrize("seed", range(3))
def test_mutated_streams(seed: int) -> None:
    good, bad = fuzz(seed, 1500)
    assert good > 300
    assert bad > 300


@pytest.mark.long
def test_million_mutated_streams() -> None:
    counts = [fuzz(seed, 20_000) for seed in range(100, 150)]
    assert all(good > 4_000 and bad > 4_000 for good, bad in counts)


def test_batches_that_are_too_deep_or_too_large() -> None:
    canvas = Checked(4, 4)
    data = command.encode_clear("red")
    for depth in range(1, 20):
        data = command.encode_batch([data])
        wanted = verdict(data)
        assert (wanted is None) == (depth <= protocol.MAX_DEPTH)
        if wanted is None:
            canvas.check(data)
        else:
            with pytest.raises(
                ProtocolError, match="batches are nested more than 16 deep"
            ) as caught:
                canvas.check(data)
            assert caught.value.offset == wanted.offset
    for data in (
        b"\x15\xff\xff\xff\xff\x05",
        b"\x15\x02\0\0\0\x05",
        b"\x15\x01\0\0",
        b"\x15\x01\0\0\0",
    ):
        with pytest.raises(ProtocolError) as caught:
            canvas.check(data)
        assert str(caught.value) == str(verdict(data))


def test_wrong_lengths_of_pixels_and_text() -> None:
    canvas = Checked(4, 4)
    big = (2**32 - 1).to_bytes(4, "little")
    for head in (b"\x07", b"\x17"):
        for size in (
            big + big,
            b"\0\0\0\x80\0\0\0\x80",
            b"\x01\0\0\0\x02\0\0\0",
            big + b"\0\0\0\0",
        ):
            data = head + bytes(8) + size + bytes(4)
            wanted = verdict(data)
            if wanted is None:
                canvas.check(data)
                continue
            with pytest.raises(ProtocolError) as caught:
                canvas.check(data)
            assert str(caught.value) == str(wanted)


@pytest.mark.parametrize(
    "text",
    [
        b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2\x41", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
        b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xee\x80\x80",
        b"\xef\xbf\xbf", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"a\xf1\x80\x80", b"\xe1\x80", b"ok",
    ],
)  # fmt: skip
def test_utf8_check_matches_python(text: bytes) -> None:
    canvas = Checked(4, 4)
    size = len(text).to_bytes(4, "little")
    for data in (
        b"\x0c" + size + text + bytes(4),
        b"\x0b" + size + text,
        b"\x0b" + bytes(4) + size + text,
    ):
        wanted = verdict(data)
        if wanted is None:
            canvas.check(data)
            continue
        with pytest.raises(ProtocolError) as caught:
            canvas.check(data)
        assert str(caught.value) == str(wanted)
