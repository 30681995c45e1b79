"""ShaderExpressions: they are read and translated at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.webgpu.cuda import builtins
from dala.gpu.compute.engines.webgpu.cuda.emitter import ShaderEmitter
from dala.gpu.compute.engines.webgpu.cuda.tokens import TokenCursor
from dala.gpu.compute.engines.webgpu.cuda.types import (
    BOOL,
    SCALARS,
    U32,
    WgslArray,
    WgslPlace,
    WgslScalar,
    WgslStruct,
    WgslType,
    WgslValue,
    WgslVector,
    constant,
    literal,
    scalar_of,
)  # fmt: skip

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.module import WgslModule

#: The operators by how much they bind.
_BINDS: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
#: Operators that bind at least so much are part of a size in a type, where ">" is a bracket.
SIZES: Final = 9
_COMPONENTS: Final = {letter: k for k, letter in enumerate("xyzw")} | {
    letter: k for k, letter in enumerate("rgba")
}


#: Types that are followed by ``<``.
TEMPLATES: Final = ("vec2", "vec3", "vec4", "array", "atomic")


class ShaderExpressions:
    """Reads expressions from a cursor, and writes their instructions."""

    def __init__(self, module: WgslModule, cursor: TokenCursor) -> None:
        self.module = module
        self.cursor = cursor
        self.emitter = ShaderEmitter()
        #: Names in the blocks around, the innermost last.
        self.scopes: list[dict[str, WgslValue | WgslPlace]] = [{}]

    def expression(self, least: int = 1) -> WgslValue:
        """Return the value of an expression of operators that bind at least so much."""
        left = self._unary()
        while (binds := _BINDS.get(sign := self.cursor.next, 0)) >= least:
            self.cursor.take()
            if sign in ("&&", "||"):
                left = self._short_circuit(sign, left, binds)
            else:
                left = self.operate(sign, left, self.expression(binds + 1))
        return left

    def operate(self, sign: str, left: WgslValue, right: WgslValue) -> WgslValue:
        """Return the result of an operator."""
        if sign in ("<<", ">>"):
            return builtins.shift(self.emitter, sign, left, right)
        left, right = self.emitter.unify(left, right)
        if left.kind != right.kind:
            got = f"{left.kind.llvm} and {right.kind.llvm}"
            self.cursor.refuse_at(self.cursor.at - 1, f"one type on both sides of {sign}", got)
        return builtins.binary(self.emitter, sign, left, right)

    def _short_circuit(self, sign: str, left: WgslValue, binds: int) -> WgslValue:
        emitter = self.emitter
        kept = emitter.variable(BOOL)
        emitter.store(kept, left)
        more, done = emitter.name("more"), emitter.name("done")
        emitter.branch(left, *((more, done) if sign == "&&" else (done, more)))
        emitter.block(more)
        emitter.store(kept, self.expression(binds + 1))
        emitter.block(done)
        return emitter.load(kept)

    def _unary(self) -> WgslValue:
        if self.cursor.skip("-"):
            return builtins.negated(self.emitter, self._unary())
        if self.cursor.skip("!") or self.cursor.skip("~"):
            return builtins.inverted(self.emitter, self._unary())
        return self.value(self.postfix())

    def value(self, found: WgslValue | WgslPlace) -> WgslValue:
        """Return the content of a place; values as they are."""
        return self.emitter.load(found) if isinstance(found, WgslPlace) else found

    def postfix(self) -> WgslValue | WgslPlace:
        """Return a value or a place, with its parts and indexes."""
        found = self._primary()
        while self.cursor.next in (".", "["):
            if self.cursor.take() == ".":
                found = self._member(found, self.cursor.take())
            else:
                index = self.expression()
                self.cursor.expect("]")
                found = self._element(found, index)
        return found

    def _member(self, found: WgslValue | WgslPlace, name: str) -> WgslValue | WgslPlace:
        emitter, kind = self.emitter, found.kind
        if isinstance(kind, WgslStruct):
            k = kind.index(name)
            if isinstance(found, WgslValue):
                return emitter.part(found, k)
            return emitter.offset(found, kind.offset(k), kind.fields[k][1])
        assert isinstance(kind, WgslVector), kind
        order = [_COMPONENTS[letter] for letter in name]
        if len(order) == 1:
            if isinstance(found, WgslValue):
                return emitter.part(found, order[0])
            return emitter.offset(found, order[0] * kind.of.size, kind.of)
        text, every = self.value(found).text, ", ".join(f"i32 {k}" for k in order)
        shuffled = (
            f"shufflevector {kind.llvm} {text}, {kind.llvm} poison, <{len(order)} x i32> <{every}>"
        )
        return emitter.emit(shuffled, WgslVector(len(order), kind.of))

    def _element(self, found: WgslValue | WgslPlace, index: WgslValue) -> WgslValue | WgslPlace:
        if isinstance(found, WgslValue):
            if isinstance(index.number, int):
                return self.emitter.part(found, index.number)
            place = self.emitter.variable(found.kind)
            self.emitter.store(place, found)
            found = place
        return self.emitter.element(found, index, self.module.clamped)

    def _primary(self) -> WgslValue | WgslPlace:
        cursor = self.cursor
        token = cursor.take()
        if token == "(":
            value = self.expression()
            cursor.expect(")")
            return value
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return literal(token)
        if token in ("true", "false"):
            return constant(BOOL, token == "true")
        if token == "bitcast":
            cursor.expect("<")
            kind = self.module.type(cursor)
            cursor.close_angle()
            (value,) = self.arguments()
            return builtins.bitcast(self.emitter, value, kind)
        for scope in reversed(self.scopes):
            if token in scope:
                return scope[token]
        cursor.at -= 1
        if cursor.tokens[cursor.at + 1] == "(" or token in TEMPLATES or token in self.module.types:
            return self._call(token)
        return self.module.named(cursor.take(), self)

    def arguments(self) -> list[WgslValue]:
        """Return the values in brackets."""
        self.cursor.expect("(")
        values: list[WgslValue] = []
        while not self.cursor.skip(")"):
            values.append(self.expression())
            if self.cursor.next != ")":
                self.cursor.expect(",")
        return values

    def _call(self, name: str) -> WgslValue:
        if name.startswith("atomic") and name != "atomic":
            self.cursor.take()
            return self._atomic(name)
        if name == "arrayLength":
            self.cursor.take()
            return self._array_length()
        if self.module.is_function(name):
            self.cursor.take()
            return self.call(name, self.arguments())
        function = builtins.function(name)
        if function is not None:
            self.cursor.take()
            return function(self.emitter, *self.arguments())
        if name.endswith("Barrier"):
            self.cursor.take()
            self.arguments()
            self.module.target.barrier(self.emitter, name)
            return constant(BOOL, 0)
        return self.construct(self.module.type(self.cursor), self.arguments())

    def call(self, name: str, values: list[WgslValue]) -> WgslValue:
        """Call a function of the shader."""
        kinds, result = self.module.signature(name)
        given = [self.emitter.coerce(v, kind) for v, kind in zip(values, kinds, strict=True)]
        texts = [f"{value.kind.llvm} {value.text}" for value in given]
        every = ", ".join([*texts, *self.module.target.passed(self.module)])
        if result is None:
            self.emitter.do(f"call void @f.{name}({every})")
            return constant(BOOL, 0)
        return self.emitter.emit(f"call {result.llvm} @f.{name}({every})", result)

    def construct(self, kind: WgslType, values: list[WgslValue]) -> WgslValue:
        """Return a value of a type, made of its parts, or converted."""
        emitter = self.emitter
        if not values:
            zero = constant(kind, 0).text if isinstance(kind, WgslScalar) else "zeroinitializer"
            return WgslValue(kind, zero)
        if isinstance(kind, WgslScalar):
            return emitter.convert(values[0], kind)
        if isinstance(kind, WgslStruct | WgslArray):
            of = [kind.of] * kind.count if isinstance(kind, WgslArray) else kind.kinds
            given = [emitter.coerce(v, k) for v, k in zip(values, of, strict=True)]
            return emitter.gather(kind, given)
        if kind.of.abstract:  # vec2(1.0, x)
            first = emitter.concrete(emitter.unify(*values)[0])
            kind = WgslVector(kind.count, scalar_of(first.kind))
        if len(values) == 1:
            if isinstance(values[0].kind, WgslVector):
                return emitter.convert(values[0], kind.of)
            return emitter.splat(emitter.coerce(values[0], kind.of), kind.count)
        parts: list[WgslValue] = []
        for value in values:
            if isinstance(value.kind, WgslVector):
                parts += [emitter.part(value, k) for k in range(value.kind.count)]
            else:
                parts.append(emitter.coerce(value, kind.of))
        return emitter.gather(kind, parts)

    def _atomic(self, name: str) -> WgslValue:
        self.cursor.expect("(")
        self.cursor.expect("&")
        place = self.postfix()
        assert isinstance(place, WgslPlace)
        value = self.expression() if self.cursor.skip(",") and self.cursor.next != ")" else None
        self.cursor.skip(",")
        self.cursor.expect(")")
        where = f"{place.pointer} {place.address}"
        kind = scalar_of(place.kind)
        return builtins.atomic(self.emitter, name, where, kind, value) or constant(BOOL, 0)

    def _array_length(self) -> WgslValue:
        self.cursor.expect("(")
        self.cursor.expect("&")
        place = self.postfix()
        self.cursor.expect(")")
        assert isinstance(place, WgslPlace)
        return WgslValue(U32, place.length)


#: The short names of vectors.
SHORT: Final = {
    f"vec{n}{letter}": WgslVector(n, SCALARS[name])
    for n in (2, 3, 4)
    for letter, name in {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}.items()
}
