"""A WGSL module as LLVM: its types, its buffers, and the functions that the entry point calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dala.gpu.compute.engines.webgpu.cuda.emitter import ShaderEmitter
from dala.gpu.compute.engines.webgpu.cuda.expressions import SHORT, SIZES
from dala.gpu.compute.engines.webgpu.cuda.statements import ShaderStatements
from dala.gpu.compute.engines.webgpu.cuda.tokens import TokenCursor, scan
from dala.gpu.compute.engines.webgpu.cuda.types import (
    INT,
    SCALARS,
    WgslArray,
    WgslPlace,
    WgslScalar,
    WgslStruct,
    WgslType,
    WgslValue,
    WgslVector,
)  # fmt: skip

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.expressions import ShaderExpressions
    from dala.gpu.compute.engines.webgpu.cuda.target import GpuTarget


#: The longest text of a function that is always inlined.
INLINED: Final = 8000
#: The comment of shaders of our own whose loops take less time when they are unrolled, and how far:
#: NVIDIA's compiler leaves loops as LLVM makes them.
UNROLLED: Final = "// Loops are unrolled for CUDA."
UNROLLED_TURNS: Final = 4


class WgslVariable(NamedTuple):
    """A variable of the module: its name, its type, and where it is."""

    name: str
    kind: WgslType
    #: "storage", "uniform", "workgroup" or "private".
    space: str
    binding: int
    written: bool


class WgslModule:
    """Reads the declarations of a text; functions are translated when they are called."""

    def __init__(self, text: str, target: GpuTarget, *, clamped: bool, fused: bool = False) -> None:
        self.target = target
        #: Whether indexes are kept within arrays.
        self.clamped = clamped
        #: Whether a product and a sum may be rounded once, as WGSL permits.
        self.fused = fused
        self.types: dict[str, WgslType] = dict(SCALARS)
        self.buffers: list[WgslVariable] = []
        #: The threads of a workgroup, by dimension.
        self.workgroup: tuple[int, ...] = (1, 1, 1)
        self._tokens = scan(text)
        #: Where the parameters of functions begin, and the values of constants.
        self._functions: dict[str, int] = {}
        self._constants: dict[str, int] = {}
        self._done: dict[str, str] = {}
        self._known: dict[str, WgslValue | WgslPlace] = {}
        self._globals: list[str] = []
        self.declared: set[str] = set()
        self._unrolled = UNROLLED in text
        self._hints: list[str] = []
        self._entry = ""
        self._structs: dict[str, int] = {}
        self._declarations()

    def llvm(self) -> str:
        """Return the text of the LLVM module."""
        entry = self._function(self._entry, entry=True)
        parts = [self.target.header, *self._globals, *self._done.values(), entry, *self._hints]
        return "\n".join([*parts, *sorted(self.declared), self.target.footer(self)]) + "\n"

    def loop_hint(self) -> str:
        """Return what the branch back of a loop says to LLVM, after its label."""
        if not self._unrolled:
            return ""
        n = 2 * len(self._hints) + 1  # 0 is the size of a workgroup
        count = f'!{{!"llvm.loop.unroll.count", i32 {UNROLLED_TURNS}}}'
        self._hints.append(f"!{n} = distinct !{{!{n}, !{n + 1}}}\n!{n + 1} = {count}")
        return f", !llvm.loop !{n}"

    # declarations -----------------------------------------------------------------------------

    def _declarations(self) -> None:
        cursor = TokenCursor(self._tokens)
        attributes: dict[str, list[str]] = {}
        variables: list[tuple[int, dict[str, list[str]]]] = []
        sizes: list[str] = []
        while cursor.next:
            word = cursor.take()
            if word == "@":
                name = cursor.take()
                start = cursor.at
                if cursor.next == "(":
                    cursor.skip_block("(", ")")
                attributes[name] = [t for t in cursor.tokens[start + 1 : cursor.at - 1] if t != ","]
                continue
            if word == "struct":
                self._structs[cursor.next] = cursor.at
                cursor.take()
                cursor.skip_block("{", "}")
            elif word == "fn":
                name = cursor.take()
                self._functions[name] = cursor.at
                if "compute" in attributes:
                    self._entry, sizes = name, attributes["workgroup_size"]
                while cursor.next != "{":
                    cursor.take()
                cursor.skip_block("{", "}")
            elif word == "const":
                name = cursor.take()
                self._constants[name] = cursor.at
            elif word == "var":
                variables.append((cursor.at, attributes))
            if word in ("const", "var", "enable"):
                while cursor.take() != ";":
                    pass
            attributes = {}
        for at, given in variables:
            self._variable(TokenCursor(self._tokens), at, given)
        # Parameters of kernels: storage by bindings, then the uniform block.
        self.buffers.sort(key=lambda b: (b.space == "uniform", b.binding))
        numbers = [self._whole(size) for size in sizes]
        self.workgroup = (*numbers, 1, 1)[:3]

    def _whole(self, token: str) -> int:
        value = ShaderStatements(self, TokenCursor([token, ";"])).expression()
        assert isinstance(value.number, int)
        return value.number

    def _variable(self, cursor: TokenCursor, at: int, attributes: dict[str, list[str]]) -> None:
        cursor.at = at
        cursor.expect("<")
        space = cursor.take()
        written = cursor.skip(",") and cursor.take() == "read_write"
        cursor.expect(">")
        name = cursor.take()
        cursor.expect(":")
        kind = self.type(cursor)
        binding = int(attributes["binding"][0]) if "binding" in attributes else -1
        buffer = WgslVariable(name, kind, space, binding, written)
        self.buffers.append(buffer)
        place, text = self.target.place(buffer)
        self._known[name] = place
        if text:
            self._globals.append(text)

    # types ------------------------------------------------------------------------------------

    def type(self, cursor: TokenCursor) -> WgslType:
        """Read a type."""
        name = cursor.take()
        if name in self.types:
            return self.types[name]
        if name in SHORT:
            return SHORT[name]
        if name in ("vec2", "vec3", "vec4"):
            of: WgslType = INT
            if cursor.skip("<"):
                of = self.type(cursor)
                cursor.close_angle()
            assert isinstance(of, WgslScalar)
            return WgslVector(int(name[3]), of)
        if name == "atomic":
            cursor.expect("<")
            of = self.type(cursor)
            cursor.close_angle()
            return of
        if name == "array":
            cursor.expect("<")
            of, count = self.type(cursor), 0
            if cursor.skip(","):
                value = ShaderStatements(self, cursor).expression(SIZES)
                cursor.skip(",")
                assert isinstance(value.number, int)
                count = value.number
            cursor.close_angle()
            return WgslArray(of, count)
        if name in self._structs:
            return self._struct(name)
        cursor.at -= 1
        cursor.refuse("a type")

    def _struct(self, name: str) -> WgslType:
        cursor = TokenCursor(self._tokens)
        cursor.at = self._structs[name] + 1
        cursor.expect("{")
        fields: list[tuple[str, WgslType]] = []
        while not cursor.skip("}"):
            field = cursor.take()
            cursor.expect(":")
            fields.append((field, self.type(cursor)))
            cursor.skip(",")
        found = self.types[name] = WgslStruct(name, tuple(fields))
        return found

    # names ------------------------------------------------------------------------------------

    def is_function(self, name: str) -> bool:
        """Return whether the shader defines a function."""
        return name in self._functions

    def named(self, name: str, user: ShaderExpressions) -> WgslValue | WgslPlace:
        """Return a constant or a variable of the module."""
        if name in self._known:
            return self._known[name]
        if name not in self._constants:
            user.cursor.at -= 1
            user.cursor.refuse("a name that is known")
        cursor = TokenCursor(self._tokens)
        cursor.at = self._constants[name]
        value = self._value(cursor, ShaderEmitter())
        if "%" in value.text:  # computed where it is used
            cursor.at = self._constants[name]
            return self._value(cursor, user.emitter)
        found: WgslValue | WgslPlace = value
        if isinstance(found.kind, WgslArray):
            self._globals.append(
                f"@c.{name} = internal constant {found.kind.llvm} {value.text}, align 16"
            )
            found = WgslPlace(found.kind, f"@c.{name}")
        self._known[name] = found
        return found

    def _value(self, cursor: TokenCursor, emitter: ShaderEmitter) -> WgslValue:
        body = ShaderStatements(self, cursor)
        body.emitter = emitter
        kind = self.type(cursor) if cursor.skip(":") else None
        cursor.expect("=")
        value = body.expression()
        return value if kind is None else emitter.coerce(value, kind)

    # functions --------------------------------------------------------------------------------

    def signature(self, name: str) -> tuple[list[WgslType], WgslType | None]:
        """Return the types of a function's parameters and of its result; translate it."""
        cursor = TokenCursor(self._tokens)
        cursor.at = self._functions[name]
        parameters, result = self._parameters(cursor)
        if name not in self._done:
            self._done[name] = ""  # no function calls itself
            self._done[name] = self._function(name)
        return [kind for _, kind, _ in parameters], result

    def _parameters(
        self, cursor: TokenCursor
    ) -> tuple[list[tuple[str, WgslType, str]], WgslType | None]:
        cursor.expect("(")
        found: list[tuple[str, WgslType, str]] = []
        while not cursor.skip(")"):
            builtin = ""
            while cursor.skip("@"):
                cursor.take()
                cursor.expect("(")
                builtin = cursor.take()
                cursor.expect(")")
            name = cursor.take()
            cursor.expect(":")
            found.append((name, self.type(cursor), builtin))
            cursor.skip(",")
        return found, self.type(cursor) if cursor.skip("->") else None

    def _function(self, name: str, *, entry: bool = False) -> str:
        cursor = TokenCursor(self._tokens)
        cursor.at = self._functions[name]
        body = ShaderStatements(self, cursor)
        body.emitter.fused = self.fused
        parameters, body.result = self._parameters(cursor)
        body.is_entry = entry
        for k, (parameter, kind, builtin) in enumerate(parameters):
            if entry:
                body.scopes[0][parameter] = self.target.builtin(body.emitter, builtin, self)
            else:
                body.scopes[0][parameter] = WgslValue(kind, f"%a{k}")
        if entry:
            self.target.begin(body.emitter, self)
        body.block()
        if not entry:
            body.emitter.end("unreachable" if body.result is not None else "ret void")
        self.declared |= body.emitter.declared
        if entry:
            body.emitter.end(self.target.leave)
            return self.target.entry(body.emitter, self)
        kinds = [f"{kind.llvm} %a{k}" for k, (_, kind, _) in enumerate(parameters)]
        every = ", ".join([*kinds, *self.target.passed(self)])
        result = "void" if body.result is None else body.result.llvm
        lines = "\n".join(["entry:", *body.emitter.head, *body.emitter.lines])
        # LLVM decides about long ones, which four pixels call: each copy has to be compiled.
        how = "alwaysinline" if len(lines) <= INLINED else ""
        return f"define internal {result} @f.{name}({every}) {how} {{\n{lines}\n}}\n"
