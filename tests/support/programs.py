"""Random kernels: source text drawn from the language's grammar, with a bound on its error.

Programs are typed as they are drawn, so each is valid, and their answers do not depend on luck:

- Integer arithmetic is exact, so it may be anything at all, and all decisions (``if``, loop
  bounds, ``break``) are made on integers or on the inputs themselves, which are small multiples
  of 1/8 and exact on every engine.
- Floats are only put through functions that do not jump. Every float expression carries a bound
  of its size and, for each column of the tolerance table, of how wrong an engine may have got it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support.tolerances import NUMPY, TOLERANCES

FAMILIES = ("reference", "cpu", "webgpu")

#: Largest size a float may reach before it is clamped again.
LARGEST = 64.0


class Limits:
    """What the tolerance table allows for values of size 1, for each family and a float type."""

    def __init__(self, dtype: str) -> None:
        self.epsilon = 2.0**-23 if dtype == "f32" else 2.0**-52

        def error_of(kind: str) -> np.ndarray:
            rows = [TOLERANCES[f][dtype][kind] for f in FAMILIES]
            return np.array([r.ulps * self.epsilon + r.absolute for r in rows])

        # Contraction to a fused multiply-add moves one ulp.
        self.rounding = np.array([0.0, self.epsilon, self.epsilon])
        self.div, self.exp, self.trig = error_of("div"), error_of("exp"), error_of("trig")


LIMITS = {dtype: Limits(dtype) for dtype in ("f32", "f64")}


class Choices:
    """Where a program's choices come from: Hypothesis, which shrinks them, or a seed."""

    def __init__(self, source: Callable[..., Any] | random.Random) -> None:
        self._source = source

    def pick(self, choices: Sequence[Any]) -> Any:
        if isinstance(self._source, random.Random):
            return self._source.choice(choices)
        return self._source(st.sampled_from(choices))

    def integer(self, low: int, high: int) -> int:
        if isinstance(self._source, random.Random):
            return self._source.randint(low, high)
        return int(self._source(st.integers(low, high)))


@dataclass(frozen=True)
class Real:
    """A float expression, how large it can be, and how wrong each family may have it.

    One made of literals only may be weak: stored in a variable it is f32 whatever the inputs are.
    """

    text: str
    size: float
    error: np.ndarray = field(default_factory=lambda: np.zeros(len(FAMILIES)))
    weak: bool = False

    @property
    def exact(self) -> bool:
        return not self.error.any()


def bounded(r: Real) -> Real:
    """The expression, clamped if it has grown large; clamping does not add to the error."""
    if r.size <= LARGEST:
        return r
    return Real(f"clamp({r.text}, -4.0, 4.0)", 4.0, r.error, r.weak)


def limits_of(t: Limits, *operands: Real) -> Limits:
    """What an operation allows: it computes in f32 if all of its operands are weak."""
    return LIMITS["f32"] if all(r.weak for r in operands) else t


def sum_of(a: Real, b: Real, operator: str, t: Limits) -> Real:
    size, weak = a.size + b.size, a.weak and b.weak
    error = a.error + b.error + size * limits_of(t, a, b).rounding
    return bounded(Real(f"({a.text} {operator} {b.text})", size, error, weak))


def product(a: Real, b: Real, t: Limits) -> Real:
    size, rounding = a.size * b.size, limits_of(t, a, b).rounding
    error = a.size * b.error + b.size * a.error + a.error * b.error + size * rounding
    return bounded(Real(f"({a.text} * {b.text})", size, error, a.weak and b.weak))


def quotient(a: Real, b: Real, t: Limits) -> Real:
    division, sum_ = limits_of(t, a, b).div, limits_of(t, b).rounding
    error = a.error + a.size * b.error + a.size * (division + 2 * sum_)
    return Real(f"({a.text} / (1.0 + abs({b.text})))", a.size, error, a.weak and b.weak)


def extreme(a: Real, b: Real, name: str) -> Real:
    size, error = max(a.size, b.size), np.maximum(a.error, b.error)
    return Real(f"{name}({a.text}, {b.text})", size, error, a.weak and b.weak)


#: Functions that do not jump: the size and the error of the result.
SMOOTH: dict[str, Callable[[Real, Limits], tuple[float, np.ndarray]]] = {
    "sin({})": lambda a, t: (1.0, a.error + t.trig),
    "cos({})": lambda a, t: (1.0, a.error + t.trig),
    "exp(-abs({}))": lambda a, t: (1.0, a.error + t.exp),
    "log(1.0 + abs({}))": lambda a, t: (5.0, a.error + 5 * t.exp + 65 * t.rounding),
    "sqrt(1.0 + abs({}))": lambda a, t: (9.0, a.error + 9 * t.div + 65 * t.rounding),
    "atan2({}, 2.0)": lambda a, t: (2.0, a.error + 2 * t.trig),
    "tanh({})": lambda a, t: (1.0, a.error + 4 * t.exp + 8 * t.rounding),
    "abs({})": lambda a, t: (a.size, a.error),
    "-({})": lambda a, t: (a.size, a.error),
    "clamp({}, -1.5, 2.0)": lambda a, t: (2.0, a.error),
    "smoothstep(-4.0, 4.0, {})": lambda a, t: (1.0, a.error + 4 * (t.div + 4 * t.rounding)),
    "length(({}, 1.0))": lambda a, t: (
        a.size + 1,
        2 * a.error + (a.size + 1) * (t.div + 4 * t.rounding),
    ),
}

JUMPING = ["floor", "ceil", "round", "fract", "sign"]


@dataclass
class Scope:
    """What may be named at one place of a program."""

    ints: list[str]
    reals: dict[str, Real]
    #: Ints that may be assigned, and floats that may be (not those a loop accumulates).
    counters: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    helper: bool = False
    loops: int = 0

    def inner(self) -> Scope:
        return replace(
            self,
            ints=list(self.ints),
            reals=dict(self.reals),
            counters=list(self.counters),
            variables=list(self.variables),
        )


class Writer:
    """Draws one program."""

    def __init__(
        self, source: Callable[..., Any] | random.Random, reals: str = "f32", ints: str = "s32"
    ) -> None:
        self.choices = Choices(source)
        self.types = reals, ints
        self.limits = LIMITS[reals]
        #: Numbers below zero are not u32 literals.
        self.signed = ints != "u32"
        self.names = 0
        self.lines: list[str] = []
        self.returned: list[Real] = []

    def pick(self, *choices):
        return self.choices.pick(choices)

    def chance(self, one_in: int) -> bool:
        return self.choices.integer(1, one_in) == 1

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # expressions

    def whole(self, scope: Scope, depth: int) -> str:
        """An expression of the int type, never a constant; anything goes, all of it is exact."""
        if depth == 0 or self.chance(4):
            return self.pick(*scope.ints)
        kind = self.pick("arithmetic", "arithmetic", "bits", "shift", "call", "choice", "cast")
        a, b = self.whole(scope, depth - 1), self.operand(scope, depth - 1)
        if kind == "arithmetic":
            return f"({a} {self.pick('+', '-', '*')} {b})"
        if kind == "bits":
            return f"({a} {self.pick('&', '|', '^')} {b})"
        if kind == "shift":
            if b.startswith("s64("):  # an index of a loop, which is s32, has the type of the result
                b = f"({b} & 63)"
            return f"({a} {self.pick('<<', '>>')} {b})" if self.chance(2) else f"(~{a})"
        if kind == "call":
            function = self.pick(
                "min({}, {})", "max({}, {})", "abs({} - {})",
                "clamp({0}, -70, {1})" if self.signed else "clamp({0}, 70, {1})",
                "({} // {})", "({} % {})",
            )  # fmt: skip
            return function.format(a, b)
        if kind == "choice":
            return f"({a} if {self.condition(scope, depth - 1)} else {b})"
        exact = self.pick("a", "b", "s")
        return f"(int({exact} * 8.0) {self.pick('%', '//', '+')} {a})"

    def operand(self, scope: Scope, depth: int) -> str:
        """An expression of the int type or a number other than 0."""
        if self.chance(4):
            numbers: list[int | str] = [*range(1, 100), 2**31 - 1]
            if self.signed:
                numbers += range(-9, 0)
            if self.types[1] == "s64":
                numbers += [f"s64({2**31})", f"s64({2**62})", f"s64({-(2**63)})"]
            return str(self.pick(*numbers))
        return self.whole(scope, depth)

    def condition(self, scope: Scope, depth: int) -> str:
        a, b = self.whole(scope, max(depth, 0)), self.operand(scope, 0)
        operator = self.pick("<", "<=", ">", ">=", "==", "!=")
        kind = self.pick("ints", "ints", "inputs", "chain", "and", "not", "parity")
        if kind == "ints":
            return f"{a} {operator} {b}"
        if kind == "inputs":
            return f"{self.pick('a', 'b')} {operator} {self.pick('a', 'b', 's', '0.5', '-1.25')}"
        if kind == "chain":
            return f"{'-5' if self.signed else '5'} < {a} <= {b}"
        if kind == "and":
            return f"({a} > 3 {self.pick('and', 'or')} {b} < 7)"
        if kind == "not":
            return f"not ({a} {operator} {b})"
        return f"({a} & 1) == 0"

    def real(self, scope: Scope, depth: int) -> Real:
        """A float expression and its bounds."""
        t = self.limits
        if depth == 0 or self.chance(5):
            kind = self.pick("name", "name", "literal", "int", "jump")
            if kind == "literal":
                value = self.choices.integer(-24, 24) / 8
                return Real(f"({value})", abs(value), weak=True)
            if kind == "int":
                return Real(f"({self.types[0]}({self.whole(scope, 1)} & 15) * 0.25)", 4.0)
            if kind == "jump":
                return Real(f"{self.pick(*JUMPING)}({self.pick('a', 'b')})", 5.0)
            return scope.reals[self.pick(*scope.reals)]
        kind = self.pick(
            "sum", "product", "quotient", "extreme", "smooth", "smooth", "choice", "call"
        )
        a = self.real(scope, depth - 1)
        if kind == "smooth":
            text = self.pick(*SMOOTH)
            size, error = SMOOTH[text](a, limits_of(t, a))
            return bounded(Real(text.format(a.text), size, error, a.weak))
        b = self.real(scope, depth - 1)
        if kind == "sum":
            return sum_of(a, b, self.pick("+", "-"), t)
        if kind == "product":
            return product(a, b, t)
        if kind == "quotient":
            return quotient(a, b, t)
        if kind == "extreme":
            return extreme(a, b, self.pick("min", "max"))
        if kind == "call" and scope.helper:
            # helper(p, q) is p * 0.5 + sin(q), or p - 0.25 below its threshold
            n = self.whole(scope, 0)
            size = max(a.size * 0.5 + 1.0, a.size + 0.25)
            product_ = limits_of(t, a).rounding
            error = a.error + b.error + limits_of(t, b).trig + 2 * size * product_
            text, weak = f"helper({a.text}, {b.text}, {n})", a.weak and b.weak
            return bounded(Real(text, size, error, weak))
        size, error = max(a.size, b.size), np.maximum(a.error, b.error)
        text = f"({a.text} if {self.condition(scope, 1)} else {b.text})"
        return Real(text, size, error, a.weak and b.weak)

    # statements

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, scope: Scope, depth: int, length: int) -> None:
        before = len(self.lines)
        for _ in range(length):
            kinds = ["new", "new", "int", "set"]
            if depth < 4:
                kinds += ["if", "if", "for"] if scope.loops < 2 else ["if"]
            if scope.loops:
                kinds += ["leave"]
            if depth > 1:
                kinds += ["return"] if self.chance(4) else []
            getattr(self, f"{self.pick(*kinds)}_statement")(scope, depth)
        if len(self.lines) == before:
            self.write(depth, "pass")

    def new_statement(self, scope: Scope, depth: int) -> None:
        value, name = self.real(scope, 2), self.fresh("v")
        self.write(depth, f"{name} = {value.text}")
        scope.reals[name] = replace(value, text=name)
        if not scope.loops:
            scope.variables.append(name)

    def set_statement(self, scope: Scope, depth: int) -> None:
        """Outside loops any float may change; inside, only an accumulator, which forgets."""
        if not scope.variables:
            return self.new_statement(scope, depth)
        name = self.pick(*scope.variables)
        if scope.loops:
            added = self.real(scope, 1)
            self.write(depth, f"{name} = {name} * 0.5 + clamp({added.text}, -4.0, 4.0)")
            self.accumulated[name] = np.maximum(self.accumulated[name], added.error)
        else:
            value = self.real(scope, 2)
            self.write(depth, f"{name} = {value.text}")
            known = scope.reals[name]
            size, error = max(known.size, value.size), np.maximum(known.error, value.error)
            scope.reals[name] = Real(name, size, error, known.weak and value.weak)
        return None

    def int_statement(self, scope: Scope, depth: int) -> None:
        if scope.counters and self.chance(2):
            operator = self.pick("+=", "-=", "*=", "^=", "|=", "&=")
            self.write(depth, f"{self.pick(*scope.counters)} {operator} {self.whole(scope, 1)}")
            return
        name = self.fresh("i")
        self.write(depth, f"{name} = {self.whole(scope, 2)}")
        scope.ints.append(name)
        scope.counters.append(name)

    def if_statement(self, scope: Scope, depth: int) -> None:
        self.write(depth, f"if {self.condition(scope, 1)}:")
        branches = [scope.inner()]
        self.block(branches[0], depth + 1, self.pick(1, 2))
        for word in self.pick(("else",), ("elif", "else"), ()):
            test = f" {self.condition(scope, 1)}" if word == "elif" else ""
            self.write(depth, f"{word}{test}:")
            branches.append(scope.inner())
            self.block(branches[-1], depth + 1, self.pick(1, 2))
        for name, known in scope.reals.items():
            after = [known, *(b.reals[name] for b in branches)]
            error = np.maximum.reduce([r.error for r in after])
            size, weak = max(r.size for r in after), all(r.weak for r in after)
            scope.reals[name] = Real(known.text, size, error, weak)

    accumulated: dict[str, np.ndarray]

    def for_statement(self, scope: Scope, depth: int) -> None:
        """At most ten turns; floats change as accumulators only, which nothing inside reads."""
        outermost = scope.loops == 0
        index = self.fresh("n")
        inside = scope.inner()
        if outermost:
            self.accumulated = {name: np.zeros(len(FAMILIES)) for name in inside.variables}
            for name in inside.variables:
                del inside.reals[name]
        stop = f"({self.whole(scope, 1)} & 7)"
        bounds = self.pick("{}", "1, {}", "-2, {}", "0, {}, 2", "{}, 0, -1", "{}, -2, -3", "0, 3")
        self.write(depth, f"for {index} in range({bounds.format(stop)}):")
        inside.ints.append(index)
        inside.loops += 1
        self.block(inside, depth + 1, self.pick(1, 2, 3))
        if outermost:
            for name in scope.variables:
                before, added = scope.reals[name], self.accumulated[name]
                size = max(before.size, 8.0)  # x/2 + 4 stays below 8 once it is
                rounding = limits_of(self.limits, before).rounding
                error = before.error + 2 * (added + 3 * size * rounding)
                scope.reals[name] = Real(name, size, error, before.weak)

    def leave_statement(self, scope: Scope, depth: int) -> None:
        self.write(depth, f"if {self.condition(scope, 1)}:")
        self.write(depth + 1, self.pick("break", "continue"))

    def return_statement(self, scope: Scope, depth: int) -> None:
        self.write(depth, f"if {self.condition(scope, 1)}:")
        self.give_back(scope, depth + 1)

    def give_back(self, scope: Scope, depth: int) -> None:
        if self.floats:
            value = self.real(scope, 2)
            self.returned.append(value)
            self.write(depth, f"return {value.text}")
        else:
            self.write(depth, f"return {self.whole(scope, 2)}")

    floats: bool

    def program(self) -> Program:
        self.floats = self.chance(2)
        reals = {name: Real(name, size) for name, size in (("a", 5.0), ("b", 5.0), ("s", 2.0))}
        scope = Scope(ints=["n", "m", "k"], reals=reals, helper=self.chance(2))
        if scope.helper:
            threshold = self.choices.integer(-5 if self.signed else 1, 20)
            self.lines += [
                "def helper(p, q, n):",
                f"    if n < {threshold}:",
                "        return p - 0.25",
                "    return p * 0.5 + sin(q)",
                "",
            ]
        real, whole = self.types
        # Numbers beside u8 are s32, so that a helper's or a parameter's type is the same.
        kind = "int" if whole == "u8" else whole
        self.write(
            0,
            f"def program(a: {real}, b: {real}, n: {whole}, m: {whole}, "
            f"*, s: {real}, k: {kind} = 3):",
        )
        for _ in range(2):
            self.new_statement(scope, 1)
        self.block(scope, 1, self.choices.integer(1, 6))
        self.give_back(scope, 1)
        error = np.zeros(len(FAMILIES))
        if self.floats:
            error = np.maximum.reduce([r.error for r in self.returned])
        return Program(
            "\n".join(self.lines) + "\n",
            self.floats,
            dict(zip(FAMILIES, error, strict=True)),
            real,
            whole,
        )


@dataclass(frozen=True)
class Program:
    """A kernel ``program(a, b, n, m, *, s, k=3)``: a, b, s are floats and n, m, k ints.

    ``floats`` says whether it returns the float or the int type, ``error`` how far an engine's
    answers may be from the reference engine's.
    """

    source: str
    floats: bool
    error: dict[str, float]
    reals: str = "f32"
    ints: str = "s32"

    @property
    def out(self) -> str:
        """The dtype of the result."""
        return self.reals if self.floats else self.ints

    @property
    def dtypes(self) -> set[str]:
        """The dtypes that a device must have to run it."""
        return {self.reals, self.ints}


@st.composite
def programs(draw) -> Program:
    """Strategy: one valid program of f32 and s32."""
    return Writer(draw).program()


@st.composite
def programs_of_any_type(draw) -> Program:
    """Strategy: one valid program of any float and int type."""
    reals = draw(st.sampled_from(("f32", "f64")))
    ints = draw(st.sampled_from(("s32", "u32", "s64", "u8")))
    return Writer(draw, reals, ints).program()


def random_program(seed: int, reals: str = "f32", ints: str = "s32") -> Program:
    """The program of a seed."""
    return Writer(random.Random(seed), reals, ints).program()


def inputs(reals: str = "f32", ints: str = "s32") -> list[np.ndarray]:
    """The same for every program: small multiples of 1/8, and ints of every kind."""
    count = 61
    step = np.arange(count)
    a = (step * 7 % 81 - 40) / 8
    b = (step * 29 % 81 - 40) / 8
    n = step - 20
    m = step * 37 % 61 * 3 - 70
    m[::13] = [2**31 - 1, -(2**31), 65536, -1, 0]
    if ints == "s64":
        n[::17] = [2**63 - 1, -(2**63), 2**32, -(2**31) - 1]
    real, whole = NUMPY[reals], NUMPY[ints]
    return [a.astype(real), b.astype(real), n.astype(whole), m.astype(whole)]
