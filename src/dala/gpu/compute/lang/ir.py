"""The typed intermediate representation (IR) of a kernel: the front end emits it, engines run it.

A :class:`Program` describes the work for *one position* of the output. It is purely scalar: the
front end has split pixels and vectors into components, and all storage rules (u8 widened on load,
normalized pixels, rounding and clamping on store) are explicit operations.

Values are computed once, in the order of their block; names that are assigned more than once live
in slots. Control flow is structured: ``If``, ``For``, ``Break``, ``Continue``. There is no return:
``Program.result`` names the values to store after the block.

Operations (``Value.op``) and their types:

=================  ============================================================================
const              ``attr`` is the number (a bool for type "bool"); never listed in a block
param              ``attr`` is the index into ``Program.params``
position           ``attr`` is the axis; s32
dim                ``attr`` is ``(argument index or -1 for the output, axis)``; s32
element            ``attr`` is the argument index; the stored number (u8 as s32)
pixel              ``attr`` is ``(argument, channel)``; the stored number, u8 as s32
image              ``args`` are dx, dy (s32), ``attr`` is ``(argument, channel)``; clamped at edges
array              ``args`` are indexes (s32), ``attr`` is the argument; every index is clamped
get                ``attr`` is the Slot
add sub mul neg    ints wrap around; floats are IEEE; a product with ``attr == "exact"`` rounds
                   nothing (``exact/products.py``); of a difference with ``attr == "place"``
                   the second is the position, and neither comes near the range's ends
div                floats only
idiv mod           ints only: floor division and its remainder (sign of the divisor);
                   dividing by zero gives 0, and the most negative number by -1 gives itself
                   (remainder 0)
and or xor not     bools, or bits of ints (``not`` flips every bit of an int)
shl shr            ints; the amount is taken modulo the width; shr of a signed int keeps its sign
eq ne lt le gt ge  -> bool; comparing with NaN is False, except ``ne``, which is True
select             ``args`` are condition, value if true, value if false
min max            ``max(a, b)`` is b where a < b or b is NaN, else a (NaN propagates); min likewise
abs                ints and floats (the most negative int stays itself)
floor ceil round   floats; ``round`` rounds halves to even
sqrt exp log sin cos tan atan atan2 pow       floats
isnan              float -> bool
cast               to ``type``: float to int truncates and clamps, NaN becomes 0 (with
                   ``attr == "in_range"`` the value is known to be finite and in range, so
                   truncating is enough); int to int wraps; bool is 0 or 1; anything to bool
                   is ``!= 0``
bits               reinterpret the same bits: f32 <-> s32/u32, f64 <-> s64, s32 <-> u32; ``attr ==
                   "power"``: the result of ``exact/exponential.py``, whose range is known
=================  ============================================================================

``pow(x, y)`` of a negative x is ``±pow(-x, y)`` for whole y and NaN otherwise; ``pow(x, 0)`` is 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Type: TypeAlias = Literal["bool", "s32", "u32", "s64", "f32", "f64"]

INTS: Final = frozenset({"s32", "u32", "s64"})
FLOATS: Final = frozenset({"f32", "f64"})

#: The type of each dtype after loading.
LOADED: Final[dict[str, Type]] = {
    "f32": "f32", "f64": "f64", "s32": "s32", "s64": "s64", "u32": "u32", "u8": "s32",
}  # fmt: skip


# Not dataclasses: each of those adds a millisecond to the import.
class Slot:
    """A local variable that is assigned more than once. Its initial value is zero."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: Type) -> None:
        self.name = name
        self.type: Type = type


#: An operation's attribute, such as the number of a constant. Its type depends on the operation
#: (see the table above), which type checkers cannot express.
Attr: TypeAlias = Any


class Value:
    """One operation and its value; see the table in the module's docstring.

    Immutable: programs share values.
    """

    __slots__ = ("args", "attr", "op", "type")

    def __init__(
        self, op: str, type: Type, args: tuple[Value, ...] = (), attr: Attr = None
    ) -> None:
        self.op = op
        self.type: Type = type
        self.args = args
        self.attr = attr

    def __repr__(self) -> str:
        return f"Value({self.op!r}, {self.type!r}, {len(self.args)} args, {self.attr!r})"


class SetSlot(NamedTuple):
    """Assigns a value to a slot of the same type."""

    slot: Slot
    value: Value


class If(NamedTuple):
    """Runs ``then`` if the bool ``condition`` is true, else ``otherwise``."""

    condition: Value
    then: Block
    otherwise: Block


class For:
    """``for index in range(start, stop, step)``; the bounds are s32 values, step is a constant.

    As in Python, assigning to ``index`` in the body does not change the number of iterations.
    """

    __slots__ = ("body", "index", "start", "step", "stop")

    def __init__(self, index: Slot, start: Value, stop: Value, step: int, body: Block) -> None:
        self.index = index
        self.start = start
        self.stop = stop
        self.step = step
        self.body = body


class Break:
    """Ends the innermost loop."""

    __slots__ = ()


class Continue:
    """Starts the next iteration of the innermost loop."""

    __slots__ = ()


Statement: TypeAlias = Value | SetSlot | If | For | Break | Continue


class Block:
    """Statements in order."""

    __slots__ = ("body",)

    def __init__(self, body: list[Statement] | None = None) -> None:
        self.body: list[Statement] = [] if body is None else body


@dataclass(frozen=True)
class Arg:
    """One input of a specialized program."""

    name: str
    kind: Literal["element", "pixel", "image", "array"]
    dtype: str
    rank: int
    #: The number of interleaved channels of a pixel or image argument; 1 for gray.
    channels: int = 1


@dataclass(frozen=True)
class Out:
    """The output of a specialized program."""

    dtype: str
    rank: int
    #: Numbers stored at each position: 1 unless the program writes pixels.
    channels: int
    #: True if positions are (y, x) pixels and not single elements.
    pixels: bool


@dataclass(frozen=True)
class Param:
    """One scalar parameter, or one component of a vector parameter."""

    name: str
    component: int | None
    type: Type


@dataclass(frozen=True, eq=False)
class Derived:
    """Parameters that the host computes from the declared ones: integer weights of sums.

    See ``exact/fixed_point.py``, which has the meaning of the fields, and ``call/derived.py``.
    """

    #: Weights and biases as expressions of the declared parameters.
    numbers: tuple[Value, ...]
    layout: tuple[int, ...]
    window: bool


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel specialized for dtypes, ranks and channels, for any shapes."""

    name: str
    args: tuple[Arg, ...]
    out: Out
    params: tuple[Param, ...]
    body: Block
    #: The value to store for each channel, of type ``LOADED[out.dtype]`` (0..255 for u8).
    result: tuple[Value, ...]
    #: Number of axes of the positions: 2 for pixel programs, else the output's rank.
    rank: int
    #: True if the program uses ``position``; otherwise axes may be merged.
    uses_position: bool
    #: Text that is equal for programs that do the same work.
    key: str
    #: What the last parameters are computed from; None if all are declared.
    derived: Derived | None = None

    @property
    def exact(self) -> bool:
        """True if it stores a picture of bytes, which must be the same on every engine."""
        return self.out.dtype == "u8" and self.out.pixels

    def with_body(self, body: Block, result: tuple[Value, ...]) -> Program:
        """Return a program with the same inputs, output and parameters and another body."""
        made = make_program(self.name, self.args, self.out, self.params, body, result, self.rank)
        return replace(made, derived=self.derived)

    @property
    def types(self) -> frozenset[str]:
        """All scalar types of the program, and all dtypes that it loads or stores."""
        found: set[str] = {self.out.dtype, *(a.dtype for a in self.args)}
        found.update(p.type for p in self.params)
        found.update(v.type for v in values(self.body))
        return frozenset(found)


def operands(s: Statement) -> tuple[Value, ...]:
    """Return the values that a statement reads itself."""
    match s:
        case Value():
            return s.args
        case SetSlot():
            return (s.value,)
        case If():
            return (s.condition,)
        case For():
            return (s.start, s.stop)
    return ()


def _nested(s: Statement) -> tuple[Block, ...]:
    """Return the blocks of a statement."""
    if isinstance(s, If):
        return s.then, s.otherwise
    return (s.body,) if isinstance(s, For) else ()


def statements(block: Block) -> Iterator[Statement]:
    """Yield every statement of a block, nested ones included."""
    for s in block.body:
        yield s
        for inner in () if isinstance(s, Value) else _nested(s):
            yield from statements(inner)


def values(block: Block) -> Iterator[Value]:
    """Yield every value computed in a block, nested ones included, without constants."""
    for s in statements(block):
        if isinstance(s, Value):
            yield s


def arguments_first(wanted: Iterable[Value], known: Container[Value] = ()) -> Iterator[Value]:
    """Yield values and all that they are computed from, arguments first, but for those known.

    It does not recurse: kernels of strangers may have expressions of thousands of operations.
    """
    seen: set[Value] = set()
    open_ = [(v, False) for v in wanted]
    while open_:
        v, ready = open_.pop()
        if ready:
            yield v
        elif v not in seen and v not in known:
            seen.add(v)
            open_.append((v, True))
            open_.extend((a, False) for a in v.args)


def format_program(body: Block, result: tuple[Value, ...]) -> str:
    """Return a program as text. Values are numbered in order, so equal work gives equal text."""
    names: dict[int, str] = {}
    slots: dict[int, str] = {}
    lines: list[str] = []

    def slot(s: Slot) -> str:
        return slots.setdefault(id(s), f"@{len(slots)}:{s.type}")

    def name(v: Value) -> str:
        if v.op == "const":
            return f"{v.attr!r}:{v.type}"
        return names[id(v)]

    def write(block: Block, depth: int) -> None:
        pad = "  " * depth
        for s in block.body:
            if isinstance(s, Value):
                attr = "" if s.attr is None else slot(s.attr) if s.op == "get" else repr(s.attr)
                names[id(s)] = f"%{len(names)}"
                args = ", ".join([name(a) for a in s.args] + ([attr] if attr else []))
                lines.append(f"{pad}{names[id(s)]} = {s.op}.{s.type}({args})")
            elif isinstance(s, SetSlot):
                lines.append(f"{pad}{slot(s.slot)} = {name(s.value)}")
            elif isinstance(s, If):
                lines.append(f"{pad}if {name(s.condition)}")
                write(s.then, depth + 1)
                lines.append(f"{pad}else")
                write(s.otherwise, depth + 1)
            elif isinstance(s, For):
                bounds = f"{name(s.start)}, {name(s.stop)}, {s.step}"
                lines.append(f"{pad}for {slot(s.index)} in {bounds}")
                write(s.body, depth + 1)
            else:
                lines.append(pad + type(s).__name__.lower())

    write(body, 0)
    lines.append("store " + ", ".join(name(v) for v in result))
    return "\n".join(lines)


def make_program(
    name: str,
    args: tuple[Arg, ...],
    out: Out,
    params: tuple[Param, ...],
    body: Block,
    result: tuple[Value, ...],
    rank: int,
) -> Program:
    """Remove unused values and return a program with its key."""
    _remove_unused(body, result)
    uses_position = any(v.op in ("position", "image") for v in values(body))
    # The key has no names, so that kernels that do the same work share it.
    described = [f"{a.kind} {a.dtype} {a.rank} {a.channels}" for a in args]
    described.append(f"-> {out.dtype} {out.channels} {out.pixels} rank {rank}")
    described.extend(p.type for p in params)
    key = "\n".join([*described, format_program(body, result)])
    return Program(name, args, out, params, body, result, rank, uses_position, key)


def _remove_unused(root: Block, result: tuple[Value, ...]) -> None:
    """Remove unused values, for example the loads of unused channels."""
    others = [s for s in statements(root) if not isinstance(s, Value)]
    needed = set(arguments_first([*result, *(v for s in others for v in operands(s))]))
    for block in (root, *(inner for s in others for inner in _nested(s))):
        block.body = [s for s in block.body if not isinstance(s, Value) or s in needed]
