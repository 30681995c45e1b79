"""Inline a producer program into the consumer that reads its result.

A consumer that reads the intermediate at its own position (an element or a pixel) uses the
producer's values directly. A consumer that reads it as an image recomputes a pointwise producer at
every offset. Values are still rounded and clamped as if the intermediate were stored, so the result
equals that of two passes.
"""

from __future__ import annotations

from dataclasses import replace

from dala.gpu.compute.lang.ir import Arg, Block, Program, Statement, Value, statements, values
from dala.gpu.compute.lang.rewrite import Change, Copier, emit

#: The maximum number of operations in a stencil after inlining.
MAX_FUSED_VALUES = 4000
#: The maximum size of a pointwise program after inlining: larger ones run faster as two passes,
#: because compilers optimize them less.
MAX_FUSED_SIZE = 2500

#: The size of functions beside that of a sum or product.
_SIZES = {
    "exp": 8, "log": 15, "sin": 12, "cos": 12, "tan": 14, "atan": 12, "atan2": 14, "pow": 38,
}  # fmt: skip


def _size(program: Program) -> int:
    return sum(_SIZES.get(s.op, 1) if isinstance(s, Value) else 1 for s in statements(program.body))


def pointwise(program: Program) -> bool:
    """Return True if a program reads its inputs at its own position only."""
    return all(arg.kind in ("element", "pixel") for arg in program.args)


def can_inline(producer: Program, consumer: Program, readers: tuple[int, ...]) -> bool:
    """Return True if a producer can be inlined for these arguments of a consumer."""
    if producer.rank != consumer.rank or producer.out.pixels != consumer.out.pixels:
        return False
    kinds = {consumer.args[i].kind for i in readers}
    if any(consumer.args[i].channels != producer.out.channels for i in readers):
        return False
    if kinds <= {"element", "pixel"}:
        return _size(producer) + _size(consumer) <= MAX_FUSED_SIZE
    if kinds != {"image"} or not all(a.kind == "pixel" for a in producer.args):
        return False
    reads = [v for v in values(consumer.body) if v.op == "image" and v.attr[0] in readers]
    if any(a.op != "const" for v in reads for a in v.args):
        return False
    offsets = {tuple(a.attr for a in v.args) for v in reads}
    return sum(1 for _ in statements(producer.body)) * len(offsets) <= MAX_FUSED_VALUES


def inline(producer: Program, consumer: Program, readers: tuple[int, ...]) -> Program:
    """Return the consumer with the producer inlined; see :func:`can_inline`.

    Its inputs are those of the producer, then those of the consumer without ``readers``. Its
    parameters are those of the producer, then those of the consumer.
    """
    kept = [i for i in range(len(consumer.args)) if i not in readers]
    places = {i: len(producer.args) + n for n, i in enumerate(kept)}
    first_param = len(producer.params)
    image = any(consumer.args[i].kind == "image" for i in readers)
    body: list[Statement] = []
    computed: dict[tuple[int, int], tuple[Value, ...]] = {}

    def place(v: Value) -> tuple[int, int]:
        return (int(v.args[0].attr), int(v.args[1].attr)) if v.op == "image" else (0, 0)

    # Compute all reads first: values in a branch could not be used outside it.
    for v in values(consumer.body):
        if v.op != "dim" and _argument(v) in readers and place(v) not in computed:
            copier = Copier(_at(*place(v)), fresh=True) if image else Copier(fresh=True)
            body += copier.block(producer.body).body
            computed[place(v)] = tuple(map(copier.of, producer.result))

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old.op == "param":
            return emit(body, "param", old.type, attr=old.attr + first_param)
        arg = _argument(old)
        if arg in readers and old.op != "dim":
            return computed[place(old)][0 if old.op == "element" else old.attr[1]]
        # The intermediate has the output's shape.
        return None if arg is None else _moved(new, places.get(arg, -1), body)

    copier = Copier(change, fresh=True)
    body += copier.block(consumer.body).body
    args = tuple(replace(a, kind="image") if image else a for a in producer.args)
    args += tuple(consumer.args[i] for i in kept)
    params, name = producer.params + consumer.params, f"{producer.name}+{consumer.name}"
    made = replace(consumer, name=name, args=args, params=params, derived=None)
    return made.with_body(Block(body), tuple(map(copier.of, consumer.result)))


def _argument(v: Value) -> int | None:
    """Return the argument that a value is read from, or -1 for the output; None for others."""
    if v.op in ("element", "array"):
        return int(v.attr)
    return int(v.attr[0]) if v.op in ("pixel", "image", "dim") else None


def _moved(v: Value, arg: int, body: list[Statement]) -> Value:
    """Append a read of another argument."""
    attr = arg if v.op in ("element", "array") else (arg, v.attr[1])
    return emit(body, v.op, v.type, *v.args, attr=attr)


def share_args(program: Program, same: tuple[int, ...]) -> Program:
    """Merge arguments that refer to the same buffer.

    ``same[i]`` is the new index of argument i. New indices are dense; merged arguments have the
    same kind.
    """
    args: dict[int, Arg] = {}
    for i, n in enumerate(same):
        args.setdefault(n, program.args[i])

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        arg = _argument(old)
        return None if arg is None or arg < 0 else _moved(new, same[arg], body)

    copier = Copier(change)
    body = copier.block(program.body)
    made = replace(program, args=tuple(args[n] for n in sorted(args)), derived=None)
    return made.with_body(body, tuple(map(copier.of, program.result)))


def _at(dx: int, dy: int) -> Change:
    """Return a change that shifts the producer's pixel reads and positions by an offset."""

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old.op == "pixel":
            offsets = (Value("const", "s32", (), n) for n in (dx, dy))
            return emit(body, "image", old.type, *offsets, attr=old.attr)
        if old.op == "position":
            body.append(new)
            moved = emit(body, "add", "s32", new, dy if old.attr == 0 else dx)
            extent = emit(body, "dim", "s32", attr=(-1, old.attr))
            last = emit(body, "sub", "s32", extent, 1)
            return emit(body, "min", "s32", emit(body, "max", "s32", moved, 0), last)
        return None

    return change
