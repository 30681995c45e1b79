"""Write operations as WGSL expressions that give the results defined in ``lang/ir.py``."""

from __future__ import annotations

import math
import re
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from dala.gpu.compute.engines.webgpu.rewrite.ranges import Ranges
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE, Names, literal
from dala.gpu.compute.engines.webgpu.wgsl.shader import Metering
from dala.gpu.compute.lang.ir import FLOATS, Program, SetSlot, Slot, Value, statements

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|",
    "eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip

_COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_SUMS: Final = ("add", "sub")

#: Operations that compilers may join with a product.
_JOINING: Final = frozenset({"add", "sub", "neg", "mul", "byte"})
#: Functions of programs of bytes, correctly rounded.
_EXACT: Final = {"div": "exact_div_f32", "sqrt": "exact_sqrt_f32"}

#: Operations with an exact WGSL builtin; "round" of f64 has a helper.
_BUILTIN: Final = frozenset({"abs", "floor", "ceil", "round", "sqrt"})

#: Operations with a helper function for each type.
_WITH_HELPER: Final = frozenset(
    {"idiv", "mod", "round", "exp", "log", "sin", "cos", "tan", "atan", "atan2", "pow"}
)


@dataclass(eq=False)
class WgslExpressions:
    """Writes values; ``helpers`` collects the helper functions that they call.

    The arguments are WGSL names: of ``loaded`` elements and pixels, ``positions`` along the axes,
    functions that read images and arrays (``readers``), ``params`` and ``dims``. ``near`` are
    neighbors that are already loaded, by argument, dx and dy. Floats with a range (``ranges``) are
    neither NaN nor infinite.
    """

    program: Program
    names: Names
    _: KW_ONLY
    loaded: dict[int, str]
    positions: tuple[str, ...]
    readers: dict[int, str]
    params: tuple[str, ...]
    dims: dict[tuple[int, int], str]
    near: dict[tuple[int, int, int], str] = field(default_factory=dict)
    metering: Metering = field(default_factory=Metering)
    #: Whether each loop is inside another that runs once, which compilers do not know.
    apart: bool = False
    ranges: Ranges = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        #: Whether the program stores pictures of bytes: then no operation is fused or approximate.
        self._exact = self.program.exact
        self._alone = _products_apart(self.program) if self._exact else frozenset()
        self._slots: dict[Slot, str] = {}
        self._text: dict[Value, str] = {}
        self._read: list[dict[tuple[object, ...], str]] = [{}]
        #: The x of sums 1 + exp(x), by their text.
        self._powers: dict[str, str] = {}
        #: Expressions that read a slot and have not been written yet.
        self._pending: dict[Value, None] = {}
        self._lines: list[str] = []
        self._depth = 1

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _use(self, value: Value) -> str:
        if value.op == "const":
            return literal(value.attr, value.type, self.helpers)
        self._pending.pop(value, None)
        return self._text[value]

    def _opaque(self, value: Value) -> str:
        """Hide a constant, so that no compiler folds it.

        Compilers reject constant expressions that overflow or give NaN, and drivers fold them with
        other results: they assume that ``x * 0`` and ``x / 0`` are finite.
        """
        if value.type in FLOATS:
            return self._hidden(value.attr, value.type)
        name = self.names.number()
        self._line(f"var {name} = {self._use(value)};")
        return name

    def _expression(self, value: Value) -> str:
        op = value.op
        if op in ("image", "array"):
            return self._reading(value)
        folded = bool(value.args) and all(a.op == "const" for a in value.args)
        args = [self._opaque(a) if folded else self._use(a) for a in value.args]
        if self._exact and value.type == "f32" and op in _EXACT:
            return self._call(_EXACT[op], args)
        if op == "div" and value.type == "f32" and not _safe_divisor(value.args[1]):
            power = self._powers.get(args[1])
            top = value.args[0]
            if power is not None and top.op == "const" and 1e-30 < abs(top.attr) <= 3:
                return self._call("over_power_f32", [args[0], power])
            return self._call("div_f32", self._guarded(value, args))
        if op in _COMPARISONS and value.args[0].type == "s64":
            args = [
                self._hidden(a.attr, "s64") if a.op == "const" else text
                for a, text in zip(value.args, args, strict=True)
            ]
        if op in _INFIX:
            if value.args[0].type in FLOATS:
                if op == "eq" and value.args[0] is value.args[1]:
                    return f"(!{self._isnan(value, args)})"
                args = self._guarded(value, args)
            if value in self._alone:
                return self._call("product_f32", args)
            text = f"({args[0]} {_INFIX[op]} {args[1]})"
            if op == "add" and value.type == "f32":
                self._note_power(value, args, text)
            return text
        if op in _BUILTIN and (op, value.type) != ("round", "f64"):
            return f"{op}({bare(args[0])})"
        if op == "exp":
            found = self.ranges.get(value.args[0])
            if found is not None and found.high <= 0.0:
                return self._call("exp_below_zero", args)
        if op in _WITH_HELPER:
            return self._call(f"{op}_{value.args[0].type}", args)
        match op:
            case "param":
                name = self.params[value.attr]
                return f"({name} != 0u)" if value.type == "bool" else name
            case "position":
                return self.positions[value.attr]
            case "dim":
                return self.dims[value.attr]
            case "element":
                return self.loaded[value.attr]
            case "pixel":
                argument, channel = value.attr
                return self._channel(self.loaded[argument], argument, channel)
            case "get":
                return self._slots[value.attr]
            case "neg":
                return f"(0u - {args[0]})" if value.type == "u32" else f"(-{args[0]})"
            case "not":
                return f"(!{args[0]})" if value.type == "bool" else f"(~{args[0]})"
            case "xor":
                return f"({args[0]} {'!=' if value.type == 'bool' else '^'} {args[1]})"
            case "shl" | "shr":
                return f"({args[0]} {'<<' if op == 'shl' else '>>'} {_amount(value, args)})"
            case "bits":
                return f"bitcast<{WGSL_TYPE[value.type]}>({bare(args[0])})"
            case "min" | "max":
                return self._extreme(value, args)
        return str(getattr(self, f"_{op}")(value, args))

    def _channel(self, pixel: str, argument: int, channel: int) -> str:
        return pixel if self.program.args[argument].channels == 1 else f"{pixel}.{'xyzw'[channel]}"

    def _note_power(self, value: Value, args: list[str], text: str) -> None:
        """Remember a sum of 1 and an exponential, for a division by it."""
        for k, (one, power) in enumerate((value.args, value.args[::-1])):
            name = args[1 - k]  # a call only if it is written here
            if one.op == "const" and one.attr == 1 and name.startswith("exp_f32("):
                assert power.op == "exp"
                self._powers[text] = name.removeprefix("exp_f32(").removesuffix(")")

    def _guarded(self, value: Value, args: list[str]) -> list[str]:
        """Return the arguments of a float operation, hidden if a driver would change the result.

        Mesa folds constants (``x + 1e8 - 1e8`` becomes ``x``, and ``x * 1e38 * 1e38`` becomes ``x *
        inf``) and assumes that ``x * 0``, ``x - x``, ``x / 0`` and ``x / x`` are finite.
        """
        left, right = value.args
        if left is right and value.op in ("sub", "div"):
            if value.op == "div":
                return [args[0], f"({args[1]} * {self._hidden(1.0, left.type)})"]
            return [args[0], f"({args[1]} + {self._hidden(-0.0, left.type)})"]
        guarded = list(args)
        for k, (this, other) in enumerate(((left, right), (right, left))):
            if this.op != "const":
                continue
            # Mesa adds it to a factor's zero (see ``product_f32``) in a sum of products.
            moved = value.op in _SUMS and other.op in _SUMS
            moved = moved and any(a in self._alone for a in other.args)
            if moved or _is_changed(value.op, this, other):
                guarded[k] = self._hidden(this.attr, this.type)
        return guarded

    def _hidden(self, number: float, type_: str) -> str:
        return self._call(f"hide_{type_}", [literal(number, type_, self.helpers)])

    def _call(self, helper: str, args: list[str]) -> str:
        self.helpers.add(helper)
        return f"{helper}({', '.join(map(passed, args))})"

    def _reading(self, value: Value) -> str:
        """Return a read at computed indices; all channels of a pixel are read once per block."""
        if value.op == "array":
            indexes = ", ".join(passed(self._use(a)) for a in value.args)
            return f"{self.readers[value.attr]}({indexes})"
        argument, channel = value.attr
        if self.near:
            pixel = self.near[argument, value.args[0].attr, value.args[1].attr]
            return self._channel(pixel, argument, channel)
        dx, dy = (passed(self._use(a)) for a in value.args)
        key = (argument, *(a.attr if a.op == "const" else a for a in value.args))
        known = next((names[key] for names in self._read if key in names), None)
        if known is None:
            known = self._read[-1][key] = self.names.number()
            y, x = self.positions
            self._line(f"let {known} = {self.readers[argument]}({x}, {y}, {dx}, {dy});")
        return self._channel(known, argument, channel)

    def _ne(self, value: Value, args: list[str]) -> str:
        if value.args[0].type in FLOATS:  # drivers evaluate != as false for NaN
            if value.args[0] is value.args[1]:
                return self._isnan(value, args)
            args = self._guarded(value, args)
            return f"(!({args[0]} == {args[1]}))"
        return f"({args[0]} != {args[1]})"

    def _isnan(self, value: Value, args: list[str]) -> str:
        return self._call(f"isnan_{value.args[0].type}", args[:1])

    def _select(self, value: Value, args: list[str]) -> str:
        condition, then, otherwise = map(passed, args)
        test, inside, limit = value.args
        if test.op in ("gt", "lt") and value.type == "f32" and value in self.ranges:
            tested, end = test.args
            if tested is inside and end.op == limit.op == "const" and end.attr == limit.attr:
                return f"{'max' if test.op == 'gt' else 'min'}({then}, {otherwise})"
        return f"select({otherwise}, {then}, {condition})"

    def _extreme(self, value: Value, args: list[str]) -> str:
        op = value.op
        if value.type not in FLOATS or value in self.ranges:
            return f"{op}({passed(args[0])}, {passed(args[1])})"
        other = value.args[1]
        if other.op == "const" and not math.isnan(other.attr):
            a, b = args
            if not re.fullmatch(r"[\w.]+", a):
                a = self.names.number()
                self._line(f"let {a} = {bare(args[0])};")
            # Mesa's OpenGL driver turns the plain form into its own min, which drops NaN.
            limit = self._hidden(other.attr, other.type)
            return f"select({a}, {b}, {a} {'<' if op == 'max' else '>'} {limit})"
        return self._call(f"{op}_{value.type}", args)

    def _byte(self, value: Value, args: list[str]) -> str:
        ordinary = value.args[0] in self.ranges
        if self._exact:
            if value.attr == "unit":
                args = [self._call("product_f32", [args[0], "255.0f"])]
            return self._call("byte_exact_of_number" if ordinary else "byte_exact", args)
        if value.attr == "unit":
            # Saturated before the product with 255: many GPUs need no operation for that.
            if ordinary:
                return self._call("byte_of_unit", args)
            args = [f"{args[0]} * 255.0f"]
        return self._call("byte_of_number" if ordinary else "byte_f32", args)

    def _cast(self, value: Value, args: list[str]) -> str:
        source, target = value.args[0].type, value.type
        text = args[0]
        if source == target:
            return text
        if value.attr == "byte":
            return f"f32({bare(text)})" if self._exact else self._call("from_byte", args)
        if target == "bool":
            zero = literal(0, source, self.helpers)
            if source == "s64":
                zero = self._hidden(0, source)
            return f"(!({text} == {zero}))" if source in FLOATS else f"({text} != {zero})"
        if source == "bool":
            one, zero = literal(1, target, self.helpers), literal(0, target, self.helpers)
            return f"select({zero}, {one}, {bare(text)})"
        if source in FLOATS and target not in FLOATS and value.attr != "in_range":
            return self._call(f"{source}_to_{target}", args)
        if (source, target) == ("u32", "s64"):
            return self._call("u32_to_s64", args)
        return f"{WGSL_TYPE[target]}({bare(text)})"


def _products_apart(program: Program) -> frozenset[Value]:
    """Return the products that a compiler could fuse with a sum, or join with another factor.

    Exact ones may be fused, but not joined.
    """
    found: set[Value] = set()
    for s in statements(program.body):
        users = s.args if isinstance(s, Value) and s.op in _JOINING else ()
        if isinstance(s, SetSlot):
            users = (s.value,)
        fused = isinstance(s, Value) and s.op in _SUMS
        products = (v for v in users if v.op == "mul" and v.type == "f32")
        found.update(v for v in products if not (fused and v.attr == "exact"))
    return frozenset(found)


def _safe_divisor(value: Value) -> bool:
    return value.op == "const" and 1e-30 < abs(value.attr) < 1e30


def _is_changed(op: str, constant: Value, other: Value) -> bool:
    """Return True if a driver would fold a constant into another one with a different result."""
    if op in _SUMS:
        return bool(_constants(other, _SUMS))
    if op == "mul" and constant.attr != 0:  # folding ordinary factors only changes the rounding
        factors = [constant.attr, *_constants(other, ("mul",))]
        return len(factors) > 1 and not all(1e-12 < abs(factor) < 1e12 for factor in factors)
    return op in ("mul", "div") and constant.attr == 0


def _constants(value: Value, family: tuple[str, ...], depth: int = 8) -> list[float]:
    """Return the constants in a chain of operations of a family that ends in this value."""
    if value.op not in family or not depth:
        return []
    return [
        number
        for arg in value.args
        for number in ([arg.attr] if arg.op == "const" else _constants(arg, family, depth - 1))
    ]


def _amount(value: Value, args: list[str]) -> str:
    """Return a shift amount as WGSL requires it: a u32 below the number of bits."""
    mask = 63 if value.type == "s64" else 31
    amount = value.args[1]
    if amount.op == "const":
        return f"{amount.attr & mask}u"
    text = bare(args[1])
    return f"({args[1] if amount.type == 'u32' else f'u32({text})'} & {mask}u)"


def bare(text: str) -> str:
    """Return the expression without its outer parentheses."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def passed(text: str) -> str:
    """Return the expression without outer parentheses, unless it would be parsed as a template.

    ``f(a < b, c > d)`` is read as a call with one template argument.
    """
    return text if "<" in text or ">" in text else bare(text)
