"""Write loops that run at most once without a loop.

NVIDIA's compiler loses the other branch of an ``if`` around a loop that never runs a second time,
such as ``for i in range(7, 2, 3): break``. Without loops there is nothing to lose.
"""

from __future__ import annotations

from dala.gpu.compute.lang.ir import (
    Block,
    Break,
    Continue,
    For,
    If,
    Program,
    SetSlot,
    Statement,
    Value,
    make_program,
    statements,
)


def without_single_turns(program: Program) -> Program:
    """Return an equivalent program without loops of which it is known that they run at most once.

    A loop without any iteration is removed. One that has a single iteration, or leaves at the end
    of each, becomes its body. The number of iterations changes, so it must not be counted.
    """
    if not any(isinstance(s, For) for s in statements(program.body)):
        return program
    body = _block(program.body)
    return make_program(
        program.name, program.args, program.out, program.params, body, program.result, program.rank
    )


def _block(block: Block) -> Block:
    done: list[Statement] = []
    for s in block.body:
        if isinstance(s, If):
            done.append(If(s.condition, _block(s.then), _block(s.otherwise)))
        elif isinstance(s, For):
            done += _loop(For(s.index, s.start, s.stop, s.step, _block(s.body)))
        else:
            done.append(s)
            if isinstance(s, Break | Continue):
                break  # what follows never runs
    return Block(done)


def _loop(loop: For) -> list[Statement]:
    start, stop = loop.start, loop.stop
    turns = None
    if start.op == stop.op == "const":
        turns = len(range(int(start.attr), int(stop.attr), loop.step))
    if turns == 0:
        return []
    once = _run_once(loop.body)
    if once is None and turns == 1 and not any(map(_leaves, loop.body.body)):
        once = loop.body
    if once is None:
        return [loop]
    body: list[Statement] = [SetSlot(loop.index, start), *once.body]
    if turns is not None:
        return body
    enters = Value("lt" if loop.step > 0 else "gt", "bool", (start, stop))
    return [enters, If(enters, Block(body), Block())]


def _run_once(body: Block) -> Block | None:
    """Return the body of a loop without the ``break`` at the end of every path, else None."""
    if not body.body:
        return None
    *head, last = body.body
    if any(map(_leaves, head)):
        return None
    if isinstance(last, Break):
        return Block(head)
    if isinstance(last, If):
        then, otherwise = _run_once(last.then), _run_once(last.otherwise)
        if then is not None and otherwise is not None:
            return Block([*head, If(last.condition, then, otherwise)])
    return None


def _leaves(statement: Statement) -> bool:
    """Return True if a statement has a ``break`` or ``continue`` of the loop around it."""
    if isinstance(statement, If):
        return any(map(_leaves, [*statement.then.body, *statement.otherwise.body]))
    return isinstance(statement, Break | Continue)
