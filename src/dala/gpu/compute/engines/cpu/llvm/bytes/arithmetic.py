"""Cheaper instructions for programs that store bytes, where the last bits do not matter.

- A sum of products is a fused multiply-add: one instruction instead of two, rounded once.
- A quotient by a number that is the same for all pixels is a product with its reciprocal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dala.gpu.compute.engines.cpu.llvm.bytes.gentle import GentleValues
from dala.gpu.compute.lang.ir import Block, Value, values


def fused_sums(
    block: Block, result: Sequence[Value], varying: Collection[Value], *, partial: bool = False
) -> dict[Value, int]:
    """Return the sums to fuse: for each, which of its operands is the product.

    Products that are the same for all pixels are computed once, and not fused. ``partial``: the
    results are read by a program that stores bytes, and are not bytes themselves.
    """
    gentle = GentleValues(block, result, partial)
    return {s: k for s in values(block) if (k := gentle.product(s, varying)) is not None}


def products_for(
    block: Block, result: Sequence[Value], varying: Collection[Value]
) -> frozenset[Value]:
    """Return the quotients by uniform numbers that may be products with a reciprocal."""
    gentle = GentleValues(block, result)
    return frozenset(
        v
        for v in values(block)
        if v.op == "div" and v.type == "f32" and v in varying and v.args[1] not in varying
        and v not in gentle.storing and gentle.is_gentle(v)
    )  # fmt: skip


def reads_are_gentle(block: Block, result: Sequence[Value], argument: int) -> bool:
    """Return whether small errors of an argument's numbers do not matter to the stored bytes."""
    gentle = GentleValues(block, result)
    return all(
        gentle.is_gentle(v)
        for v in values(block)
        if v.op in ("image", "pixel") and v.attr[0] == argument
    )
