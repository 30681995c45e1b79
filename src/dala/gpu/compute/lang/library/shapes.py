"""Shapes of terms: how their numbers are stored one by one, and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from dala.gpu.compute.lang.builder import Compound, Scalar, Term, Vec, components

#: What a term is made of: 0 for a number, the size of a vector, or the kind and shapes of parts.
Shape: TypeAlias = int | tuple[str, tuple["Shape", ...]]


def shape_of(term: Term) -> Shape:
    """Return the shape of a term."""
    if isinstance(term, Compound):
        return term.kind, tuple(map(shape_of, term.parts))
    if isinstance(term, Vec):
        return ("vector", tuple(map(shape_of, term.parts))) if term.parts else len(term.items)
    return 0


def size_of(shape: Shape) -> int:
    """Return how many numbers a term of a shape has."""
    return max(shape, 1) if isinstance(shape, int) else sum(map(size_of, shape[1]))


def shaped(shape: Shape, items: Iterator[Scalar]) -> Term:
    """Return the term of a shape that has these numbers."""
    if shape == 0:
        return next(items)
    if isinstance(shape, int):
        return Vec(tuple(islice(items, shape)))
    parts = tuple(shaped(part, items) for part in shape[1])
    if shape[0] == "vector":
        return Vec(tuple(components(parts)), parts)
    return Compound(shape[0], parts)  # type: ignore[arg-type]  # the kind of a record
