"""Seeded mutation of bytes: the same input for the same seed, on every machine."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: Numbers at which code goes wrong, for 1, 2, 4 and 8 bytes in both orders.
EDGES = (0, 1, 2, 15, 16, 17, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63)


def edge_bytes(rng: random.Random) -> bytes:
    """Return an edge number in one of its layouts."""
    size = rng.choice((1, 2, 4, 8))
    order = rng.choice(("little", "big"))
    return (rng.choice(EDGES) % (1 << 8 * size)).to_bytes(size, order)


def mutate(
    rng: random.Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]
) -> bytes:
    """Change, insert, remove, repeat, cut off or splice some bytes; sometimes none."""
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 4, 8))):
        at = rng.randrange(len(changed) + 1)
        span = rng.choice((1, 1, 2, 4, 8, 32, 200))
        kind = rng.randrange(12 if words else 10)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(changed):
            changed[at] = rng.choice((0, 1, 0x20, 0x7F, 0x80, 0xC0, 0xFF, rng.randrange(256)))
        elif kind == 2:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            del changed[at : at + span]
        elif kind == 4:
            del changed[at:]
        elif kind == 5:
            changed[at:at] = changed[at : at + span] * rng.choice((1, 1, 2, 20))
        elif kind in (6, 7):
            number = edge_bytes(rng)
            changed[at : at + len(number)] = number
        elif kind == 8 and others:
            other = rng.choice(others)
            begin = rng.randrange(len(other) + 1)
            changed[at:] = other[begin:]
        elif kind == 9:
            end = at + rng.randrange(40)
            begin = rng.randrange(len(changed) + 1)
            changed[begin:begin] = changed[at:end]
        elif words:
            word = rng.choice(words)
            changed[at : at + (len(word) if rng.randrange(2) else 0)] = word
        if len(changed) > 200_000:
            del changed[200_000:]
    return bytes(changed)
