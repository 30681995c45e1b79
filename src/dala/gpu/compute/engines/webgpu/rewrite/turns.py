"""Write loops that run at most once without a loop.

NVIDIA's compiler loses the other branch of an ``if`` around a loop that never runs a second time,
such as ``for i in range(7, 2, 3): break``. Without loops there is nothing to lose.
"""

from __future__ import annotations

from dala.gpu.compute.engines.unroll import has_loops, jumps
from dala.gpu.compute.lang import ir
from dala.gpu.compute.lang.rewrite import Copier


def without_single_turns(program: ir.Program) -> ir.Program:
    """Return an equivalent program without loops of which it is known that they run at most once.

    A loop without any iteration is removed. One that has a single iteration, or leaves at the end
    of each, becomes its body. The number of iterations changes, so it must not be counted.
    """
    return program if not has_loops(program.body) else _Turns().program(program)


class _Turns(Copier):
    def copy(self, block: ir.Block) -> None:
        ends = (n for n, s in enumerate(block.body, 1) if isinstance(s, ir.Break | ir.Continue))
        super().copy(ir.Block(block.body[: next(ends, None)]))  # what follows never runs

    def loop(self, s: ir.For) -> None:
        body = self.block(s.body)
        self.body += _unlooped(ir.For(s.index, s.start, s.stop, s.step, body))


def _unlooped(loop: ir.For) -> list[ir.Statement]:
    start, stop = loop.start, loop.stop
    turns = None
    if start.op == stop.op == "const":
        turns = len(range(int(start.attr), int(stop.attr), loop.step))
    if turns == 0:
        return []
    once = _run_once(loop.body)
    if once is None and turns == 1 and not jumps(loop.body):
        once = loop.body
    if once is None:
        return [loop]
    body: list[ir.Statement] = [ir.SetSlot(loop.index, start), *once.body]
    if turns is not None:
        return body
    enters = ir.Value("lt" if loop.step > 0 else "gt", "bool", (start, stop))
    return [enters, ir.If(enters, ir.Block(body), ir.Block())]


def _run_once(body: ir.Block) -> ir.Block | None:
    """Return the body of a loop without the ``break`` at the end of every path, else None."""
    if not body.body:
        return None
    *head, last = body.body
    if jumps(ir.Block(head)):
        return None
    if isinstance(last, ir.Break):
        return ir.Block(head)
    if isinstance(last, ir.If):
        then, otherwise = _run_once(last.then), _run_once(last.otherwise)
        if then is not None and otherwise is not None:
            return ir.Block([*head, ir.If(last.condition, then, otherwise)])
    return None
