"""Compute expressions: fuse each into one kernel of the language, and run it.

The kernel's text has one line per operation. Texts are cached, so an expression of the same form
finds its compiled kernel; numbers are parameters. Operands of another shape than the result, and
operations that an earlier result has already computed once, are computed first, into buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from dala.errors import counted
from dala.gpu.compute.arrays import graph
from dala.gpu.compute.arrays.graph import Expression, Number
from dala.gpu.compute.buffer import Buffer, allocate, hand_over
from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.kernel import Kernel, registered, text_kernel
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.parser import declare

#: The number of kernels of expressions that are cached.
MAX_KERNELS: Final = 512

#: Integer powers wrap around. A negative exponent gives the power truncated to an integer.
_INT_POWER: Final = """
def int_power(x, n):
    result = like(x, 1)
    base = x
    left = n
    for i in range(64):
        if left <= 0:
            break
        if left % 2 == 1:
            result = result * base
        base = base * base
        left = left // 2
    if n < 0:
        if x * x != 1:
            result = like(x, 0)
        else:
            result = like(x, 1)
            if n % 2 != 0:
                result = x
    return result
"""


class Fused(NamedTuple):
    """The operations of one kernel, operands first, and its inputs."""

    inner: list[Expression]
    inputs: list[Expression]


def compute(root: Expression, out: Buffer | None = None) -> Buffer:
    """Compute a node's values into ``out`` or a new buffer, and return it."""
    with graph.LOCK:
        for node, fused in _passes(root):
            _run(node, fused, out if node is root else None)
        assert root.buffer is not None
        return root.buffer


def _passes(root: Expression) -> Iterator[tuple[Expression, Fused]]:
    """Yield the nodes that kernels compute for a root, operands first, and the kernels' nodes."""
    todo = [root]
    planned: set[int] = set()
    while todo:
        node = todo[-1]
        if node.buffer is not None or node.serial in planned:
            todo.pop()
            continue
        fused = fuse(node)
        missing = [n for n in fused.inputs if n.buffer is None and n.serial not in planned]
        todo.extend(sorted(missing, key=lambda n: -n.serial))
        if not missing:
            planned.add(node.serial)
            yield node, fused


def fuse(root: Expression) -> Fused:
    """Return the operations that one kernel computes for a node."""
    found = _collect(root, cut=True)
    if len(found.inputs) > root.engine.max_inputs:
        found = _collect(root, cut=False)
    return found


def _collect(root: Expression, *, cut: bool) -> Fused:
    inner: dict[int, Expression] = {}
    inputs: dict[int, Expression] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if node.serial in inner or node.serial in inputs:
            continue
        done = node.buffer is not None or node.shape != root.shape or (cut and node.used)
        if done and node is not root:
            inputs[node.serial] = node
        else:
            inner[node.serial] = node
            todo.extend(node.operands)
    return Fused([inner[n] for n in sorted(inner)], [inputs[n] for n in sorted(inputs)])


def _run(node: Expression, fused: Fused, out: Buffer | None) -> None:
    text, numbers = _text(fused)
    kernel = _kernel(text)
    inputs = [n.buffer for n in fused.inputs if n.buffer is not None]
    if out is not None:
        kernel.run(inputs, out, numbers)
        node.buffer = out
        return
    made = allocate(node.engine, node.shape, node.dtype, zero=False, call=node.label)
    kernel.run(inputs, made, numbers)
    for n in fused.inner:
        n.used = n is not node
    owner = node.owner() if node.owner is not None else None
    if owner is not None and owner.node is node:  # not freed meanwhile
        made = hand_over(made, owner, describe(node, fused))
    node.finish(made)


def _text(fused: Fused) -> tuple[str, dict[str, int | float]]:
    """Return a kernel's text, and the values of its parameters."""
    names = {n.serial: f"a{i}" for i, n in enumerate(fused.inputs)}
    head = [f"a{i}: {n.dtype}" for i, n in enumerate(fused.inputs)]
    params: list[str] = []
    numbers: dict[str, int | float] = {}
    lines: list[str] = []
    for i, node in enumerate(fused.inner):
        given = []
        for arg in node.args:
            if isinstance(arg, Number):
                name = f"p{len(params)}"
                params.append(f"{name}: {arg.type}")
                numbers[name] = arg.value
                given.append(name)
            else:
                given.append(names[arg.serial])
        names[node.serial] = f"t{i}"
        lines.append(f"    t{i} = {node.template.format(*given)}")
    last = names[fused.inner[-1].serial]
    if params:
        head += ["*", *params]
    return "\n".join([f"def expression({', '.join(head)}):", *lines, f"    return {last}"]), numbers


@lru_cache(MAX_KERNELS)
def _kernel(text: str) -> Kernel:
    decl = declare(sources.from_text(text, "expression"), lookup=_helper)
    return Kernel("expression", decl)


def _helper(name: str) -> KernelDecl | None:
    """Return a kernel that kernels of expressions may call, or None."""
    return text_kernel(name, _INT_POWER).decl if name == "int_power" else registered(name)


# showing ----------------------------------------------------------------------------------------
def describe(node: Expression, fused: Fused) -> str:
    """Return a line about one pass: its operations and the bytes that it moves."""
    labels = " + ".join(n.label for n in fused.inner)
    return f"{labels} {node.shape}, {moved([node, *fused.inputs]):,} bytes"


def moved(nodes: Sequence[Expression]) -> int:
    """Return the bytes of some nodes' values."""
    return sum(prod(node.shape) * ITEMSIZE[node.dtype] for node in nodes)


def explain(root: Expression) -> str:
    """Return the passes that computing a node would take."""
    with graph.LOCK:
        planned = list(_passes(root))
        lines = [f"  pass {i}: {describe(*one)}" for i, one in enumerate(planned)]
    passes = counted(len(lines), "passes", "pass")
    operations = counted(sum(len(fused.inner) for _, fused in planned), "operations")
    head = f"expression on {root.engine.id}: {operations} in {passes}, not computed yet"
    return "\n".join([head, *lines])
