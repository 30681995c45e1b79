"""Recognize sums of bytes with integer weights, as ``lang/exact/sums.py`` writes them.

A stored byte is ``clamp((bias + sum(weight * bytes)) >> bits, 0, 255)``. Weights, bias and bits are
constants or parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dala.gpu.compute.lang.ir import Value, arguments_first

#: A byte that is read: argument, dx, dy, channel.
ByteRead: TypeAlias = "tuple[int, int, int, int]"


@dataclass
class StoredSum:
    """A stored byte: a weight and the bytes that it multiplies, for each group."""

    groups: list[tuple[Value, list[ByteRead]]]
    bias: Value
    bits: Value


def find_sum(v: Value) -> StoredSum | None:
    """Return the sum that a stored byte is, or None for other values."""
    for op, end in (("min", 255), ("max", 0)):
        if v.op != op or v.type != "s32" or v.args[1].op != "const" or v.args[1].attr != end:
            return None
        v = v.args[0]
    if v.op != "shr" or not _known(v.args[1]):
        return None
    total, bits = v.args
    groups: list[tuple[Value, list[ByteRead]]] = []
    while total.op == "add":
        total, product = total.args
        if product.op != "mul" or not _known(product.args[1]):
            return None
        reads = _reads(product.args[0])
        if reads is None:
            return None
        groups.insert(0, (product.args[1], reads))
    return StoredSum(groups, total, bits) if groups and _known(total) else None


def find_color_sum(v: Value) -> tuple[tuple[int, int, int], list[int]] | None:
    """Return the place (argument, dx, dy) and the four weights of a sum of one pixel's bytes.

    Weights are constants of 16 bits; None for other values.
    """
    weights: dict[ByteRead, int] = {}
    while True:
        product = v.args[1] if v.op == "add" else v
        if product.op != "mul" or product.args[1].op != "const":
            return None
        reads, weight = _reads(product.args[0]), product.args[1].attr
        if reads is None or len(reads) != 1 or reads[0] in weights or abs(weight) >= 1 << 15:
            return None
        weights[reads[0]] = weight
        if v.op != "add":
            break
        v = v.args[0]
    places = {read[:3] for read in weights}
    if len(places) != 1:
        return None
    place = places.pop()
    return place, [weights.get((*place, c), 0) for c in range(4)]


def _known(v: Value) -> bool:
    return v.op in ("const", "param")


def _reads(v: Value) -> list[ByteRead] | None:
    """Return the bytes of a sum, or None if it is another value."""
    if v.op == "add":
        first, second = _reads(v.args[0]), _reads(v.args[1])
        return None if first is None or second is None else first + second
    if v.op == "pixel":
        return [(v.attr[0], 0, 0, v.attr[1])]
    if v.op == "image" and all(a.op == "const" for a in v.args):
        dx, dy = (int(a.attr) for a in v.args)
        return [(v.attr[0], dx, dy, v.attr[1])]
    return None


def needed_values(wanted: Sequence[Value]) -> list[Value]:
    """Return all values that the given ones depend on, arguments first."""
    return [v for v in arguments_first(wanted) if v.op != "const"]
