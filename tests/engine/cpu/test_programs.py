"""Random native programs, compared with Python running the same source on emulated numbers."""

from __future__ import annotations

import builtins
import importlib.util
import random
from typing import Any

import numpy as np
import pytest

from dala.gpu.compute.engines.cpu.native import compile_native

HEAD = """\
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array, i8, i16, i32, i64, select, static, u8, u16, u32, u64,
)

@native
"""
KINDS = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64")
ROOM = 8
PROGRAMS = 24


class Int:
    """An integer with the type and the arithmetic of native code."""

    def __init__(self, kind: str, value: int) -> None:
        bits = int(kind[1:])
        value &= (1 << bits) - 1
        self.kind, self.bits = kind, bits
        self.value = value - (1 << bits) if kind[0] == "i" and value >> (bits - 1) else value

    def _with(self, other: Any, op: Any) -> Int:
        assert not isinstance(other, Int) or other.kind == self.kind
        return Int(self.kind, op(self.value, int(other)))

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __add__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a + b)

    def __sub__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a - b)

    def __mul__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a * b)

    def __floordiv__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a // b if b else 0)

    def __mod__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a % b if b else 0)

    def __and__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a & b)

    def __or__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a | b)

    def __xor__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a ^ b)

    def __lshift__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a << (b % self.bits))

    def __rshift__(self, o: Any) -> Int:
        return self._with(o, lambda a, b: a >> (b % self.bits))

    def __neg__(self) -> Int:
        return Int(self.kind, -self.value)

    def __invert__(self) -> Int:
        return Int(self.kind, ~self.value)

    def __abs__(self) -> Int:
        return Int(self.kind, abs(self.value))

    def __eq__(self, o: object) -> bool:
        return self.value == int(o)  # type: ignore[call-overload]

    def __lt__(self, o: Any) -> bool:
        return self.value < int(o)

    def __le__(self, o: Any) -> bool:
        return self.value <= int(o)

    def __gt__(self, o: Any) -> bool:
        return self.value > int(o)

    def __ge__(self, o: Any) -> bool:
        return self.value >= int(o)

    __hash__ = None  # type: ignore[assignment]


class Writer:
    """Generates a random program that reads only variables assigned on every path."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.element = self.random.choice(KINDS)
        self.kinds = [self.element, "i64", self.random.choice(KINDS)]
        self.names: dict[str, str] = {"n": "i64"}
        self.lines: list[str] = []
        self.loops = 0
        self.budget = 40

    def program(self) -> str:
        args = f"a: Array[{self.element}], n: i64"
        for i, kind in enumerate(self.kinds):
            self.put(1, f"v{i} = {self.number(kind)}")
            self.names[f"v{i}"] = kind
        self.block(1, 6, in_loop=False)
        total = " ^ ".join(f"i64({n})" for n in self.names)
        self.put(1, f"return {total}")
        return f"def program({args}) -> i64:\n" + "\n".join(self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # expressions
    def number(self, kind: str) -> str:
        bits = int(kind[1:])
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "i" else (0, 0)
        high = high or (1 << bits) - 1
        return f"{kind}({self.random.choice([0, 1, 2, 3, 7, low, high, high - 1])})"

    def value(self, kind: str, depth: int = 3) -> str:
        r = self.random
        known = [n for n, k in self.names.items() if k == kind]
        if depth == 0 or r.random() < 0.15:
            return r.choice(known) if known and r.random() < 0.8 else self.number(kind)
        choice = r.randrange(10)
        if choice < 4:
            op = r.choice(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
            right = self.value(kind, depth - 1) if r.random() < 0.7 else str(r.randrange(1, 6))
            return f"({self.value(kind, depth - 1)} {op} {right})"
        if choice == 4:
            return f"({r.choice('-~')}{self.value(kind, depth - 1)})"
        if choice == 5:
            return f"{kind}({self.value(r.choice(self.kinds), depth - 1)})"
        if choice == 6:
            a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
            return f"({a} if {self.truth(depth - 1)} else {b})"
        if choice == 7:
            both = f"{self.value(kind, depth - 1)}, {self.value(kind, depth - 1)}"
            return r.choice([f"min({both})", f"max({both})", f"select({self.truth(1)}, {both})"])
        if choice == 8:
            return f"abs({self.value(kind, depth - 1)})"
        return f"{kind}({self.place()})"

    def place(self) -> str:
        return f"a[i64({self.value(self.random.choice(self.kinds), 1)}) & {ROOM - 1}]"

    def truth(self, depth: int) -> str:
        r = self.random
        kind = r.choice(self.kinds)
        if depth > 0 and r.random() < 0.4:
            a, b = self.truth(depth - 1), self.truth(depth - 1)
            return r.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])
        a, b = self.value(kind, 1), self.value(kind, 1)
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        chained = f" <= {self.value(kind, 1)}" if r.random() < 0.2 else ""
        return f"{a} {op} {b}{chained}"

    # statements
    def block(self, depth: int, length: int, *, in_loop: bool) -> None:
        for _ in range(self.random.randrange(1, length + 1)):
            self.statement(depth, in_loop)
        if not self.lines[-1].startswith("    " * depth):
            self.put(depth, "pass")

    def statement(self, depth: int, in_loop: bool) -> None:
        r = self.random
        self.budget -= 1
        choice = r.randrange(10) if depth < 4 and self.budget > 0 else r.randrange(4)
        name = r.choice([n for n in self.names if n.startswith("v")])
        kind = self.names[name]
        if choice < 2:
            self.put(depth, f"{name} = {self.value(kind)}")
        elif choice == 2:
            op = r.choice(["+", "-", "*", "^", "//", ">>"])
            self.put(depth, f"{name} {op}= {self.value(kind, 2)}")
        elif choice == 3:
            target = self.place()
            op = r.choice(["", "+", "^", "*"])
            self.put(depth, f"{target} {op}= {self.value(self.element, 2)}")
        elif choice < 6:
            self.put(depth, f"if {self.truth(2)}:")
            self.block(depth + 1, 3, in_loop=in_loop)
            if r.random() < 0.3:
                self.put(depth, f"elif {self.truth(1)}:")
                self.block(depth + 1, 2, in_loop=in_loop)
            if r.random() < 0.5:
                self.put(depth, "else:")
                self.block(depth + 1, 2, in_loop=in_loop)
        elif choice == 6 and in_loop:
            self.put(depth, f"if {self.truth(1)}:")
            self.put(depth + 1, r.choice(["break", "continue"]))
        elif choice == 7 and r.random() < 0.3:
            self.put(depth, f"if {self.truth(1)}:")
            self.put(depth + 1, f"return {self.value('i64', 2)}")
        elif choice == 8:
            self.loops += 1
            count = f"c{self.loops}"
            self.put(depth, f"{count} = i64(0)")
            self.put(depth, f"while {count} < {r.randrange(1, 6)} and {self.truth(1)}:")
            self.put(depth + 1, f"{count} += 1")
            self.names[count] = "i64"
            self.block(depth + 1, 3, in_loop=True)
            del self.names[count]
        else:
            self.loops += 1
            count = f"c{self.loops}"
            steps = r.choice(["range(5)", "range(n & 7)", "range(2, 9, 3)", "range(4, -2, -2)"])
            if r.random() < 0.3:
                steps = "static(range(3))"
            self.put(depth, f"for {count} in {steps}:")
            if "static" in steps:
                self.put(depth + 1, f"{name} ^= {kind}({count} + 1)")
            else:
                self.names[count] = "i64"
            self.block(depth + 1, 3, in_loop=True)
            self.names.pop(count, None)


def emulated(source: str, kind: str, numbers: list[int], n: int) -> tuple[int, list[int]]:
    def steps(*args: Any) -> Any:
        return (Int("i64", i) for i in builtins.range(*map(int, args)))

    scope: dict[str, Any] = {
        "range": steps,
        "static": lambda r: r,
        "select": lambda c, yes, no: yes if c else no,
        "Array": dict[str, Any],
    }
    for name in KINDS:
        scope[name] = lambda v, name=name: Int(name, int(v))
    exec("from __future__ import annotations\n" + source, scope)
    a = [Int(kind, x) for x in numbers]
    result = scope["program"](a, Int("i64", n))
    return int(result), [int(x) for x in a]


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed, tmp_path):
    writer = Writer(seed)
    source = writer.program()
    path = tmp_path / f"program_{seed}.py"
    path.write_text(HEAD + source)
    spec = importlib.util.spec_from_file_location(f"program_{seed}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dtype = np.dtype({"u": "uint", "i": "int"}[writer.element[0]] + writer.element[1:])
    rng = np.random.default_rng(seed)
    for checked in (False, True):
        code = compile_native(module.program, checked=checked)
        for n in (0, 5, -3, 1 << 40):
            numbers = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, ROOM, dtype)
            a = numbers.copy()
            result = code(a, n)
            expected, left = emulated(source, writer.element, numbers.tolist(), n)
            assert result == expected, source
            assert a.tolist() == left, source
