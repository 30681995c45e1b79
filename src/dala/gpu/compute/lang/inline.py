"""Inline a producer program into the consumer that reads its result.

A consumer that reads the intermediate at its own position (an element or a pixel) uses the
producer's values directly. A consumer that reads it as an image recomputes a pointwise producer at
every offset. Values are still rounded and clamped as if the intermediate were stored, so the result
equals that of two passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dala.gpu.compute.lang.ir import (
    Arg,
    Block,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Statement,
    Value,
    make_program,
    statements,
    values,
)

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
    reads = {
        (v.args[0], v.args[1])
        for v in values(consumer.body)
        if v.op == "image" and v.attr[0] in readers
    }
    offsets = {(_offset(dx), _offset(dy)) for dx, dy in reads}
    cost = sum(1 for _ in statements(producer.body)) * len(offsets)
    return None not in {o for pair in offsets for o in pair} and cost <= MAX_FUSED_VALUES


def _offset(value: Value) -> int | None:
    return int(value.attr) if value.op == "const" else None


def inline(producer: Program, consumer: Program, readers: tuple[int, ...]) -> Program:
    """Return the consumer with the producer inlined; see :func:`can_inline`.

    Its inputs are those of the producer, then those of the consumer without ``readers``. Its
    parameters are those of the producer, then those of the consumer.
    """
    kept = [i for i in range(len(consumer.args)) if i not in readers]
    places = {i: len(producer.args) + n for n, i in enumerate(kept)}
    first_param = len(producer.params)
    image = any(consumer.args[i].kind == "image" for i in readers)
    target = Block()
    computed: dict[tuple[int, int], tuple[Value, ...]] = {}

    def produce(block: Block, dx: int, dy: int) -> tuple[Value, ...]:
        leaf = _identity if not image else _at(dx, dy)
        copier = _Copier(leaf)
        copier.block(producer.body, block)
        return tuple(copier.value(v) for v in producer.result)

    # Compute all reads first: values in a branch could not be used outside it.
    if image:
        for v in values(consumer.body):
            if v.op == "image" and v.attr[0] in readers:
                at = (int(v.args[0].attr), int(v.args[1].attr))
                if at not in computed:
                    computed[at] = produce(target, *at)
    else:
        computed[0, 0] = produce(target, 0, 0)

    def leaf(v: Value, args: tuple[Value, ...], emit: Callable[[Value], Value]) -> Value | None:
        if v.op == "param":
            return emit(Value("param", v.type, (), v.attr + first_param))
        if v.op == "element":
            if v.attr in readers:
                return computed[0, 0][0]
            return emit(Value("element", v.type, (), places[v.attr]))
        if v.op in ("pixel", "image"):
            arg, channel = v.attr
            if arg not in readers:
                return emit(Value(v.op, v.type, args, (places[arg], channel)))
            at = (int(v.args[0].attr), int(v.args[1].attr)) if v.op == "image" else (0, 0)
            found: Value = computed[at][channel]
            return found
        if v.op == "array":
            return emit(Value("array", v.type, args, places[v.attr]))
        if v.op == "dim":
            arg, axis = v.attr
            # The intermediate has the output's shape.
            return emit(Value("dim", v.type, (), (places.get(arg, -1), axis)))
        return None

    copier = _Copier(leaf)
    copier.block(consumer.body, target)
    result = tuple(copier.value(v) for v in consumer.result)
    args = tuple(_as_image(a) if image else a for a in producer.args)
    return make_program(
        f"{producer.name}+{consumer.name}",
        args + tuple(consumer.args[i] for i in kept),
        consumer.out,
        producer.params + consumer.params,
        target,
        result,
        consumer.rank,
    )


def share_args(program: Program, same: tuple[int, ...]) -> Program:
    """Merge arguments that refer to the same buffer.

    ``same[i]`` is the new index of argument i. New indices are dense; merged arguments have the
    same kind.
    """
    args: dict[int, Arg] = {}
    for i, n in enumerate(same):
        args.setdefault(n, program.args[i])

    def leaf(v: Value, operands: tuple[Value, ...], emit: Callable[[Value], Value]) -> Value | None:
        if v.op == "element" or v.op == "array":
            return emit(Value(v.op, v.type, operands, same[v.attr]))
        if v.op in ("pixel", "image"):
            return emit(Value(v.op, v.type, operands, (same[v.attr[0]], v.attr[1])))
        if v.op == "dim" and v.attr[0] >= 0:
            return emit(Value(v.op, v.type, (), (same[v.attr[0]], v.attr[1])))
        return None

    body = Block()
    copier = _Copier(leaf)
    copier.block(program.body, body)
    result = tuple(copier.value(v) for v in program.result)
    chosen = tuple(args[n] for n in sorted(args))
    return make_program(
        program.name, chosen, program.out, program.params, body, result, program.rank
    )


def _as_image(arg: Arg) -> Arg:
    return replace(arg, kind="image")


def _identity(v: Value, args: tuple[Value, ...], emit: Callable[[Value], Value]) -> Value | None:
    return None


def _at(dx: int, dy: int) -> Callable[..., Value | None]:
    """Return a leaf that shifts the producer's pixel reads and positions by an offset."""

    def leaf(v: Value, args: tuple[Value, ...], emit: Callable[[Value], Value]) -> Value | None:
        if v.op == "pixel":
            return emit(Value("image", v.type, (_number(dx), _number(dy)), v.attr))
        if v.op == "position":
            here = emit(Value("position", "s32", (), v.attr))
            moved = emit(Value("add", "s32", (here, _number(dy if v.attr == 0 else dx))))
            extent = emit(Value("dim", "s32", (), (-1, v.attr)))
            last = emit(Value("sub", "s32", (extent, _number(1))))
            low = emit(Value("max", "s32", (moved, _number(0))))
            return emit(Value("min", "s32", (low, last)))
        return None

    return leaf


def _number(value: int) -> Value:
    return Value("const", "s32", (), value)


class _Copier:
    """Copies blocks; ``leaf`` may replace values."""

    def __init__(self, leaf: Callable[..., Value | None]) -> None:
        self._leaf = leaf
        self._values: dict[int, Value] = {}
        self._slots: dict[int, Slot] = {}

    def value(self, v: Value) -> Value:
        """Return the copy of a value."""
        return v if v.op == "const" else self._values[id(v)]

    def _slot(self, s: Slot) -> Slot:
        return self._slots.setdefault(id(s), Slot(s.name, s.type))

    def block(self, source: Block, target: Block) -> None:
        """Append a copy of a block to another."""

        def emit(v: Value) -> Value:
            target.body.append(v)
            return v

        for s in source.body:
            copied: Statement
            if isinstance(s, Value):
                args = tuple(self.value(a) for a in s.args)
                found = self._leaf(s, args, emit)
                if found is None:
                    attr = self._slot(s.attr) if s.op == "get" else s.attr
                    found = emit(Value(s.op, s.type, args, attr))
                self._values[id(s)] = found
                continue
            if isinstance(s, SetSlot):
                copied = SetSlot(self._slot(s.slot), self.value(s.value))
            elif isinstance(s, If):
                then, otherwise = Block(), Block()
                condition = self.value(s.condition)
                self.block(s.then, then)
                self.block(s.otherwise, otherwise)
                copied = If(condition, then, otherwise)
            elif isinstance(s, For):
                body = Block()
                start, stop = self.value(s.start), self.value(s.stop)
                self.block(s.body, body)
                copied = For(self._slot(s.index), start, stop, s.step, body)
            else:
                copied = type(s)()
            target.body.append(copied)
