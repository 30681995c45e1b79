"""The LLVM text of one function: instructions, blocks, and conversions of values."""

from __future__ import annotations

from dala.gpu.compute.engines.webgpu.cuda.types import (
    BOOL,
    F32,
    FLOAT,
    I32,
    INT,
    WgslArray,
    WgslPlace,
    WgslScalar,
    WgslStruct,
    WgslType,
    WgslValue,
    WgslVector,
    constant,
    like,
    scalar_of,
)  # fmt: skip


class ShaderEmitter:
    """Writes the instructions of a function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: Instructions at the beginning: memory of variables.
        self.head: list[str] = []
        #: Declarations of LLVM's functions that are called.
        self.declared: set[str] = set()
        #: Whether a product and a sum may be rounded once.
        self.fused = False
        self._count = 0

    def name(self, stem: str = "t") -> str:
        """Return a new name without its sign."""
        self._count += 1
        return f"{stem}{self._count}"

    def emit(self, text: str, kind: WgslType) -> WgslValue:
        """Write an instruction with a result."""
        name = "%" + self.name()
        self.lines.append(f"  {name} = {text}")
        return WgslValue(kind, name)

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append("  " + text)

    def block(self, label: str) -> None:
        """Begin a block, to which the last one continues unless it has ended."""
        if not self.ended:
            self.do(f"br label %{label}")
        self.lines.append(f"{label}:")

    @property
    def ended(self) -> bool:
        """Whether the last instruction ended its block."""
        last = self.lines[-1] if self.lines else ""
        return last.startswith(("  br ", "  ret ", "  unreachable", "  switch "))

    def end(self, text: str) -> None:
        """Write the instruction that ends a block; what follows is a block of its own."""
        if not self.ended:
            self.do(text)

    def branch(self, test: WgslValue, yes: str, no: str) -> None:
        """End a block by a test."""
        self.end(f"br i1 {test.text}, label %{yes}, label %{no}")

    def call(self, name: str, kind: WgslType, *values: WgslValue, returned: str = "") -> WgslValue:
        """Call a function of LLVM."""
        result = returned or kind.llvm
        kinds = ", ".join(value.kind.llvm for value in values)
        self.declared.add(f"declare {result} @{name}({kinds})")
        arguments = ", ".join(f"{value.kind.llvm} {value.text}" for value in values)
        return self.emit(f"call {result} @{name}({arguments})", kind)

    # memory -----------------------------------------------------------------------------------

    def variable(self, kind: WgslType) -> WgslPlace:
        """Return new memory of the function."""
        name = "%" + self.name("v")
        self.head.append(f"  {name} = alloca [{max(kind.size, 1)} x i8], align 16")
        return WgslPlace(kind, name)

    def offset(self, place: WgslPlace, at: int, kind: WgslType) -> WgslPlace:
        """Return the place some bytes further on."""
        if not at:
            return WgslPlace(kind, place.address, place.pointer)
        moved = self.emit(f"getelementptr i8, {place.pointer} {place.address}, i64 {at}", kind)
        return WgslPlace(kind, moved.text, place.pointer)

    def element(self, place: WgslPlace, index: WgslValue, clamped: bool) -> WgslPlace:
        """Return the place of an element of an array or a vector."""
        kind = place.kind
        if isinstance(kind, WgslVector):
            of: WgslType = kind.of
            stride, count = kind.of.size, str(kind.count)
        else:
            assert isinstance(kind, WgslArray), kind
            of, stride, count = kind.of, kind.stride, place.length or str(kind.count)
        if isinstance(index.number, int) and (count.isdecimal() and index.number < int(count)):
            return self.offset(place, index.number * stride, of)
        index = self.concrete(index)
        if clamped:
            if count.isdecimal():
                last = str(int(count) - 1)
            else:
                last = self.emit(f"sub i32 {count}, 1", I32).text
            index = self.call("llvm.umin.i32", I32, index, WgslValue(I32, last))
        wide = self.emit(f"zext i32 {index.text} to i64", I32)
        at = self.emit(f"mul nuw nsw i64 {wide.text}, {stride}", I32)
        text = f"getelementptr i8, {place.pointer} {place.address}, i64 {at.text}"
        return WgslPlace(of, self.emit(text, of).text, place.pointer)

    def load(self, place: WgslPlace) -> WgslValue:
        """Read a value."""
        kind = place.kind
        parts = self._parts(place)
        if parts is None:
            text = f"load {kind.llvm}, {place.pointer} {place.address}, align {min(kind.align, 16)}"
            return self.emit(text, kind)
        return self.gather(kind, [self.load(part) for part in parts])

    def store(self, place: WgslPlace, value: WgslValue) -> None:
        """Write a value."""
        value = self.coerce(value, place.kind)
        parts = self._parts(place)
        if parts is None:
            where = f"{place.pointer} {place.address}, align {min(place.kind.align, 16)}"
            self.do(f"store {place.kind.llvm} {value.text}, {where}")
        else:
            for k, part in enumerate(parts):
                self.store(part, self.part(value, k))

    def _parts(self, place: WgslPlace) -> list[WgslPlace] | None:
        kind = place.kind
        if isinstance(kind, WgslStruct):
            fields = enumerate(kind.fields)
            return [self.offset(place, kind.offset(k), field) for k, (_, field) in fields]
        if isinstance(kind, WgslArray):
            return [self.offset(place, k * kind.stride, kind.of) for k in range(kind.count)]
        return None

    # parts of values --------------------------------------------------------------------------

    def gather(self, kind: WgslType, parts: list[WgslValue]) -> WgslValue:
        """Return a vector, a structure or an array of values."""
        if not any("%" in part.text for part in parts):
            signs = {WgslVector: "<>", WgslStruct: "{}"}.get(type(kind), "[]")
            every = ", ".join(f"{part.kind.llvm} {part.text}" for part in parts)
            return WgslValue(kind, f"{signs[0]}{every}{signs[1]}")
        vector = isinstance(kind, WgslVector)
        how, index = ("insertelement", "i32 ") if vector else ("insertvalue", "")
        value = WgslValue(kind, "poison")
        for k, part in enumerate(parts):
            item = f"{part.kind.llvm} {part.text}, {index}{k}"
            value = self.emit(f"{how} {kind.llvm} {value.text}, {item}", kind)
        return value

    def part(self, value: WgslValue, index: int) -> WgslValue:
        """Return one of the values that a value consists of."""
        kind = value.kind
        if isinstance(kind, WgslVector):
            return self.emit(f"extractelement {kind.llvm} {value.text}, i32 {index}", kind.of)
        assert isinstance(kind, WgslStruct | WgslArray), kind
        of = kind.fields[index][1] if isinstance(kind, WgslStruct) else kind.of
        return self.emit(f"extractvalue {kind.llvm} {value.text}, {index}", of)

    def splat(self, value: WgslValue, count: int) -> WgslValue:
        """Return a vector of equal scalars."""
        scalar = scalar_of(value.kind)
        kind = WgslVector(count, scalar)
        if value.number is not None:
            every = ", ".join([f"{scalar.llvm} {value.text}"] * count)
            return WgslValue(kind, f"<{every}>")
        placed = f"insertelement {kind.llvm} poison, {scalar.llvm} {value.text}, i32 0"
        operands = f"{kind.llvm} {self.emit(placed, kind).text}, {kind.llvm} poison"
        return self.emit(f"shufflevector {operands}, <{count} x i32> zeroinitializer", kind)

    def number(self, kind: WgslType, number: float) -> WgslValue:
        """Return a number of a type, or a vector of it."""
        made = constant(scalar_of(kind), number)
        return self.splat(made, kind.count) if isinstance(kind, WgslVector) else made

    # types ------------------------------------------------------------------------------------

    def coerce(self, value: WgslValue, kind: WgslType) -> WgslValue:
        """Return a literal as a number of a type; other values as they are."""
        if isinstance(value.kind, WgslScalar) and value.kind.abstract:
            assert value.number is not None
            return constant(scalar_of(kind), value.number)
        return value

    def concrete(self, value: WgslValue) -> WgslValue:
        """Return a literal with the type it has by itself."""
        return self.coerce(value, I32 if value.kind == INT else F32)

    def unify(self, *values: WgslValue) -> list[WgslValue]:
        """Return values with one type: literals and scalars follow the others."""
        vectors = [v.kind for v in values if isinstance(v.kind, WgslVector)]
        typed = [v.kind for v in values if not scalar_of(v.kind).abstract]
        if typed:
            scalar = scalar_of(typed[0])
        else:
            scalar = FLOAT if any(v.kind == FLOAT for v in values) else INT
            return [WgslValue(scalar, "", v.number) for v in values]
        found = [self.coerce(v, scalar) for v in values]
        if vectors:
            count = vectors[0].count
            found = [v if isinstance(v.kind, WgslVector) else self.splat(v, count) for v in found]
        return found

    def convert(self, value: WgslValue, scalar: WgslScalar) -> WgslValue:
        """Return a number, or the numbers of a vector, as another type."""
        if isinstance(value.kind, WgslScalar) and value.kind.abstract:
            assert value.number is not None
            number = value.number if scalar.floating else int(value.number)
            return constant(scalar, number)
        old = scalar_of(value.kind)
        if old == scalar:
            return value
        kind = like(value.kind, scalar)
        if scalar == BOOL:
            zero = "0.0" if old.floating else "0"
            zero = "zeroinitializer" if isinstance(kind, WgslVector) else zero
            test = "fcmp une" if old.floating else "icmp ne"
            return self.emit(f"{test} {value.kind.llvm} {value.text}, {zero}", kind)
        if old.floating and not scalar.floating:
            stem = "fptosi" if scalar.signed else "fptoui"
            suffix = f"{mangled(kind)}.{mangled(value.kind)}"
            return self.call(f"llvm.{stem}.sat.{suffix}", kind, value)
        if old.floating:
            how = "fpext" if scalar.bits > old.bits else "fptrunc"
        elif scalar.floating:
            how = "sitofp" if old.signed else "uitofp"
        elif scalar.bits == old.bits:
            known = value.number and constant(scalar, value.number).number
            return WgslValue(kind, value.text, known)
        elif scalar.bits < old.bits:
            how = "trunc"
        else:
            how = "sext" if old.signed else "zext"
        return self.emit(f"{how} {value.kind.llvm} {value.text} to {kind.llvm}", kind)


def mangled(kind: WgslType) -> str:
    """Return the name of a type in those of intrinsics."""
    scalar = scalar_of(kind)
    count = f"v{kind.count}" if isinstance(kind, WgslVector) else ""
    return f"{count}{'f' if scalar.floating else 'i'}{scalar.bits}"
