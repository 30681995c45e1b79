"""Matrices: tuples of column vectors, and their products, inverses and determinants."""

from __future__ import annotations

from functools import partial, reduce
from typing import NamedTuple

from dala.gpu.compute.lang.builder import (
    Builder,
    Compound,
    Scalar,
    Term,
    Vec,
    components,
    describe,
    refuse,
)

#: The numbers of a matrix by column, then by row.
Columns = list[list[Scalar]]


class _Side(NamedTuple):
    """A factor of a product, and whether it is a matrix."""

    columns: Columns
    whole: bool


def matrix(name: str, width: int, height: int, b: Builder, *terms: Term) -> Term:
    """Make a matrix: of one number on the diagonal, of another matrix, or column by column."""
    if len(terms) == 1 and is_matrix(terms[0]):
        given = columns_of(terms[0])
        return _of([
            [given[c][r] if c < len(given) and r < len(given[c]) else float(c == r)
             for r in range(height)]
            for c in range(width)
        ])  # fmt: skip
    items = components(terms)
    if len(items) == 1:
        items = [items[0] if r == c else 0.0 for c in range(width) for r in range(height)]
    if len(items) != width * height:
        problem = f"{name} takes {width * height} numbers, got {len(items)}"
        refuse(problem, "Pass column by column.")
    return _of([items[c * height : (c + 1) * height] for c in range(width)])


def is_matrix(term: Term) -> bool:
    """Return whether a term is a matrix."""
    return isinstance(term, Compound) and term.kind == "matrix"


def columns_of(term: Term) -> Columns:
    """Return the columns of a matrix; refuse other terms."""
    if not isinstance(term, Compound) or term.kind != "matrix":
        refuse(f"this takes a matrix, got {describe(term)}", "Make one: mat2(a, b, c, d).")
    return [components([column]) for column in term.parts]


def _of(columns: Columns) -> Compound:
    return Compound("matrix", tuple(Vec(tuple(column)) for column in columns))


def transpose(b: Builder, m: Term) -> Term:
    """Exchange columns and rows."""
    return _of([list(row) for row in zip(*columns_of(m), strict=True)])


def product(b: Builder, left: Term, right: Term) -> Term:
    """Multiply matrices, or a matrix and a vector (a row on the left, a column on the right)."""
    a, c = _side(left, True), _side(right, False)
    if len(a.columns) != len(c.columns[0]) or not (a.whole or c.whole):
        refuse(
            f"{describe(left)} @ {describe(right)} has no product",
            "Use matrices and vectors of one size; for two vectors dot(a, b).",
        )
    rows = list(zip(*a.columns, strict=True))
    made = [[_dot(b, list(row), column) for row in rows] for column in c.columns]
    if a.whole and c.whole:
        return _of(made)
    return Vec(tuple(components([Vec(tuple(column)) for column in made])))


def _side(term: Term, left: bool) -> _Side:
    if is_matrix(term):
        return _Side(columns_of(term), True)
    if not isinstance(term, Vec):
        refuse("@ multiplies matrices and vectors", "Use the 'matmul' kernel for arrays.")
    # A vector on the left is a row: a matrix of columns with one number.
    return _Side([[x] for x in term.items] if left else [list(term.items)], False)


def _dot(b: Builder, x: list[Scalar], y: list[Scalar]) -> Scalar:
    return reduce(partial(b.binary, "add"), map(partial(b.binary, "mul"), x, y))


def _minor(columns: Columns, c: int, r: int) -> Columns:
    kept = [column for i, column in enumerate(columns) if i != c]
    return [[x for i, x in enumerate(column) if i != r] for column in kept]


def _determinant(b: Builder, columns: Columns) -> Scalar:
    if len(columns) == 1:
        return columns[0][0]
    total: Scalar | None = None
    for c, column in enumerate(columns):
        term = b.binary("mul", column[0], _determinant(b, _minor(columns, c, 0)))
        total = term if total is None else b.binary("sub" if c % 2 else "add", total, term)
    assert total is not None
    return total


def determinant(b: Builder, m: Term) -> Term:
    """Return the determinant of a matrix."""
    return _determinant(b, _square(m))


def _square(m: Term) -> Columns:
    columns = columns_of(m)
    if len(columns) != len(columns[0]):
        refuse(f"this takes a square matrix, got {describe(m)}")
    return columns


def inverse(b: Builder, m: Term) -> Term:
    """Invert a matrix by its cofactors; a singular one gives numbers that are not finite."""
    columns = _square(m)
    size = range(len(columns))
    one_over = b.binary("div", 1.0, _determinant(b, columns))

    def cofactor(c: int, r: int) -> Scalar:
        found = _determinant(b, _minor(columns, c, r))
        return b.binary("mul", b.negate(found) if (c + r) % 2 else found, one_over)

    return _of([[cofactor(r, c) for r in size] for c in size])


def outer_product(b: Builder, column: Term, row: Term) -> Term:
    """Return the matrix whose columns are a vector times each number of another one."""
    down, across = components([column]), components([row])
    if not (2 <= len(down) <= 4 and 2 <= len(across) <= 4):
        refuse("outerProduct takes two vectors")
    return _of([[b.binary("mul", x, y) for x in down] for y in across])
