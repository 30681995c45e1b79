"""Read and replace one part of a vector, a matrix, a list or a tuple, at a computed index too."""

from __future__ import annotations

from collections.abc import Sequence

from dala.gpu.compute.lang.builder import (
    Builder,
    Compound,
    Scalar,
    Term,
    Vec,
    describe,
    refuse,
    scalar,
)
from dala.gpu.compute.lang.ir import Value
from dala.gpu.compute.lang.library.shapes import shape_of
from dala.gpu.compute.lang.limits import MAX_LIST


def made_list(terms: Sequence[Term]) -> Compound:
    """Return a list of terms of one shape."""
    if not 1 <= len(terms) <= MAX_LIST:
        refuse(f"a list has 1 to {MAX_LIST} items, got {len(terms)}", "Pass an array: a: Array.")
    other = next((t for t in terms if shape_of(plain(t)) != shape_of(plain(terms[0]))), None)
    if other is not None:
        refuse(
            f"the items of a list must be alike, got {describe(terms[0])} and {describe(other)}",
            "Use a tuple for different things.",
        )
    return Compound("list", tuple(map(plain, terms)))


def plain(term: Term) -> Term:
    """Return a vector without the parts that it was written with."""
    return Vec(term.items) if isinstance(term, Vec) and term.parts else term


def parts_of(term: Term) -> tuple[Term, ...]:
    """Return the parts that an index of a term chooses from."""
    if isinstance(term, Compound):
        return term.parts
    if not isinstance(term, Vec):
        refuse(
            "only arrays, images and vectors can be indexed",
            "Annotate the input: a: Array, or img: Image.",
        )
    return term.items


def pick(b: Builder, term: Term, index: Scalar) -> Term:
    """Return the part of a term at an index; a computed index is clamped."""
    parts = parts_of(term)
    if not isinstance(index, Value):
        return parts[_checked(index, len(parts))]
    _refuse_members(term)
    last = b.convert(len(parts) - 1, "s32")
    inside = b.emit("max", "s32", b.convert(0, "s32"), b.emit("min", "s32", b.index(index), last))
    level, bit = list(parts), 1
    while len(level) > 1:
        odd = b.truth(b.binary("and", inside, bit))
        pairs = zip(level[::2], [*level[1::2], None], strict=False)
        level = [low if high is None else b.select(odd, high, low) for low, high in pairs]
        bit *= 2
    return level[0]


def with_part(b: Builder, term: Term, index: Scalar, new: Term) -> Term:
    """Return a term with the part at an index replaced; outside of it nothing is."""
    parts = list(parts_of(term))
    if shape_of(plain(new)) != shape_of(plain(parts[0])) and not isinstance(term, Compound):
        scalar(new)
    fixed = index if isinstance(index, Value) else _checked(index, len(parts))
    if isinstance(fixed, Value):
        _refuse_members(term)
    for place, old in enumerate(parts):
        if not isinstance(fixed, Value):
            parts[place] = new if place == fixed else old
        else:
            parts[place] = b.select(b.binary("eq", fixed, place), new, old)
        if shape_of(plain(parts[place])) != shape_of(plain(old)):
            refuse(f"{describe(new)} cannot replace {describe(old)}", "Use another name.")
    if isinstance(term, Compound):
        return Compound(term.kind, tuple(parts))
    return Vec(tuple(map(scalar, parts)))


def _checked(index: Scalar, count: int) -> int:
    if not isinstance(index, int) or not -count <= index < count:
        refuse(f"the index of a component must be below {count}", "Write v[0].")
    return index % count


def _refuse_members(term: Term) -> None:
    if isinstance(term, Compound) and term.kind == "tuple":
        refuse("the index of a tuple must be a number", "Use a list for a computed index.")
