"""Compute expressions: fuse each into one kernel of the language, and run it.

The kernel's text has one line per operation. Texts are cached, so an expression of the same form
finds its compiled kernel; numbers are parameters. Operands of another shape than the result, and
operations that an earlier result has already computed once, are computed first, into buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dala.errors import counted
from dala.gpu.compute.arrays import graph
from dala.gpu.compute.arrays.graph import Expression, Number
from dala.gpu.compute.arrays.helpers import helper
from dala.gpu.compute.buffer import Buffer, allocate, hand_over
from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.kernel import Kernel, registered
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.parser import declare

#: The number of kernels of expressions that are cached.
MAX_KERNELS: Final = 512

_kernels: dict[str, Kernel] = {}


class Fused(NamedTuple):
    """The operations of one kernel, operands first, and its inputs."""

    inner: list[Expression]
    inputs: list[Expression]


def compute(root: Expression, out: Buffer | None = None) -> Buffer:
    """Compute a node's values into ``out`` or a new buffer, and return it."""
    with graph.LOCK:
        todo = [root]
        while todo:
            node = todo[-1]
            if node.buffer is not None:
                todo.pop()
                continue
            fused = fuse(node)
            missing = [n for n in fused.inputs if n.buffer is None]
            if missing:
                todo.extend(sorted(missing, key=lambda n: -n.serial))
                continue
            _run(node, fused, out if node is root else None)
            todo.pop()
        assert root.buffer is not None
        return root.buffer


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


def _kernel(text: str) -> Kernel:
    found = _kernels.get(text)
    if found is None:
        if len(_kernels) >= MAX_KERNELS:
            _kernels.clear()
        decl = declare(
            sources.from_text(text, "expression"),
            lookup=lambda name: helper(name) or registered(name),
        )
        found = _kernels[text] = Kernel("expression", decl)
    return found


# showing ----------------------------------------------------------------------------------------
def describe(node: Expression, fused: Fused) -> str:
    """Return a line about one pass: its operations and the bytes that it moves."""
    labels = " + ".join(n.label for n in fused.inner)
    return f"{labels} {node.shape}, {moved([node, *fused.inputs]):,} bytes"


def moved(nodes: Sequence[Expression]) -> int:
    """Return the bytes of some nodes' values."""
    total = 0
    for node in nodes:
        size = ITEMSIZE[node.dtype]
        for axis in node.shape:
            size *= axis
        total += size
    return total


def explain(root: Expression) -> str:
    """Return the passes that computing a node would take."""
    with graph.LOCK:
        lines: list[str] = []
        planned: set[int] = set()
        count = 0
        todo = [root]
        while todo:
            node = todo[-1]
            fused = fuse(node)
            missing = [n for n in fused.inputs if n.buffer is None and n.serial not in planned]
            if missing:
                todo.extend(sorted(missing, key=lambda n: -n.serial))
                continue
            todo.pop()
            if node.serial not in planned:
                planned.add(node.serial)
                count += len(fused.inner)
                lines.append(f"  pass {len(lines)}: {describe(node, fused)}")
    passes = counted(len(lines), "passes", "pass")
    operations = counted(count, "operations")
    head = f"expression on {root.engine.id}: {operations} in {passes}, not computed yet"
    return "\n".join([head, *lines])
