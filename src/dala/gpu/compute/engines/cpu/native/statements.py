"""Emit statements and functions of native code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from dala.gpu.compute.engines.cpu.native.control_flow import ControlWriter, is_call, llvm_name
from dala.gpu.compute.engines.cpu.native.expressions import EARLY_RETURN
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.module import (
    MAX_CALL_DEPTH,
    MAX_FUNCTIONS,
    EmittedFunction,
    FunctionKey,
    NativeModule,
)
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.signature import annotation, arg_type, bind, llvm_result
from dala.gpu.compute.engines.cpu.native.types import ArgType, Result, Span, Static, Term, is_group
from dala.gpu.compute.engines.cpu.vector.text import FunctionText
from dala.gpu.compute.engines.cpu.vector.types import Operand, Type


class FunctionWriter(ControlWriter):
    """Emits the statements of one function."""

    # statements -------------------------------------------------------------------------------
    def block(self, statements: list[ast.stmt]) -> None:
        """Emit statements, up to one that ends the block."""
        for s in statements:
            if self.f.ended:
                return
            self.at = s
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        """Emit a statement."""
        handler = _STATEMENTS.get(type(s))
        if handler is None:
            self.fail(f"{type(s).__name__} is not supported in native code")
        handler(self, s)

    def _expression(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.term(s.value)

    def _pass(self, s: ast.Pass) -> None:
        """Emit nothing."""

    def _assign(self, s: ast.Assign) -> None:
        if len(s.targets) != 1:
            self.fail("a = b = c is not supported in native code", "Use two assignments.")
        target = s.targets[0]
        if isinstance(target, ast.Name) and is_call(s.value, "static"):
            self.names[target.id] = self.term(s.value)
            return
        term = self.term(s.value)
        self.at = s
        self._put(target, term)

    def _put(self, target: ast.expr, term: Term) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(term, tuple) or len(term) != len(target.elts):
                self.fail(f"expected {len(target.elts)} values, got {describe(term)}")
            for t, part in zip(target.elts, term, strict=True):
                self._put(t, part)
        elif isinstance(target, ast.Name):
            if term is None:
                self.fail(f"{target.id!r} cannot hold {describe(term)}")
            self.assign(target.id, term)
        else:
            self.store(*self._element(target), term)

    def _element(self, target: ast.expr) -> tuple[Span, str]:
        """Return the array and the index of an element or field that is written to."""
        if not isinstance(target, (ast.Attribute, ast.Subscript)) or isinstance(
            getattr(target, "slice", None), ast.Slice
        ):
            self.fail(f"cannot assign to {ast.unparse(target)}")
        owner = self.term(target.value)
        if not isinstance(owner, Span):
            self.fail(f"cannot store to elements of {describe(owner)}")
        if isinstance(target, ast.Attribute):
            return self.field(owner, target.attr)
        return owner, self.index(self.term(target.slice))

    def _augment(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name):
            if s.target.id not in self.names:
                self.fail(f"{s.target.id!r} has no value yet")
            old = self.read(self.names[s.target.id])
            term = self.term(s.value)
            self.at = s
            self.assign(s.target.id, self.binary(s.op, old, term))
        else:
            array, index = self._element(s.target)
            term = self.term(s.value)
            self.at = s
            self.store(array, index, self.binary(s.op, self.load(array, index), term))

    def _declare(self, s: ast.AnnAssign) -> None:
        kind = annotation(self.function, s.annotation, self.statics, s)
        if not isinstance(s.target, ast.Name) or s.value is None or not isinstance(kind, Type):
            self.fail("a declaration must have the form name: type = value")
        self.assign(s.target.id, self.term(s.value), kind)

    def _assert(self, s: ast.Assert) -> None:
        condition = self.term(s.test)
        if isinstance(condition, Operand):
            self.fail("assert takes a compile-time condition")
        if not condition:
            self.fail(f"assertion failed for {self.statics}")

    # control flow -----------------------------------------------------------------------------
    def _return(self, s: ast.Return) -> None:
        none = s.value is None or (isinstance(s.value, ast.Constant) and s.value.value is None)
        term = None if none or s.value is None else self.term(s.value)
        self.at = s
        if term is None:
            if self.result not in (None, "any"):
                self.fail("return without a value in a function with a result")
            self.result = None
            self.f.do("ret void")
        elif self.result is None:
            self.fail("the function has no result", "Annotate it, for example -> f32.")
        elif isinstance(term, tuple):
            self._return_several(term)
        else:
            v = self.value(term, self.result if isinstance(self.result, Type) else None)
            if self.result not in ("any", v.type):
                self.fail(f"the result must be {describe_result(self.result)}, got {v.type}")
            self.result = v.type
            self.f.do(f"ret {v.type.llvm} {v.name}")
        self.f.ended = True

    def _return_several(self, terms: tuple[Term, ...]) -> None:
        wanted = self.result if isinstance(self.result, tuple) else (None,) * len(terms)
        if len(wanted) != len(terms):
            self.fail(f"the result must be {describe_result(self.result)}, got {len(terms)} values")
        values = [self.value(t, w) for t, w in zip(terms, wanted, strict=True)]
        found = tuple(v.type for v in values)
        if self.result not in ("any", found):
            self.fail(
                f"the result must be {describe_result(self.result)}, got {describe_result(found)}"
            )
        self.result = found
        whole = "poison"
        for i, v in enumerate(values):
            kind = llvm_result(found)
            whole = self.f.let(f"insertvalue {kind} {whole}, {v.type.llvm} {v.name}, {i}")
        self.f.do(f"ret {llvm_result(found)} {whole}")

    # calls ------------------------------------------------------------------------------------
    def call(self, function: NativeFunction, args: list[Term], statics: dict[str, Static]) -> Term:
        """Emit a call of another native function, which is emitted first if it is new."""
        if len(args) != len(function.params):
            names = ", ".join(p.arg for p in function.params)
            self.fail(
                f"{function.name}: expected {len(function.params)} arguments ({names}), "
                f"got {len(args)}"
            )
        given, filled = bind(self, function, args, statics)
        kinds = [arg_type(g) for g in given]
        if function_key(function, kinds, filled) in self.unit.open:
            self.fail(
                f"{function.name} calls itself with the same constants",
                "Recursion must change a compile-time constant.",
            )
        if len(self.unit.open) >= MAX_CALL_DEPTH:
            self.fail(f"more than {MAX_CALL_DEPTH} nested calls")
        written = write_function(self.unit, function, kinds, filled)
        parts = [part for g in given for part in _operands(g)]
        if self.unit.checked:
            parts.append("ptr %fault")
        kind = llvm_result(written.result)
        text = f"call {kind} {written.name}({', '.join(parts)}){self.access_metadata()}"
        if written.result is None:
            self.f.do(text)
            self._after_call()
            return None
        whole = self.f.let(text)
        self._after_call()
        if isinstance(written.result, tuple):
            return tuple(
                Operand(t, self.f.let(f"extractvalue {kind} {whole}, {i}"))
                for i, t in enumerate(written.result)
            )
        return Operand(written.result, whole)

    def _after_call(self) -> None:
        if not self.unit.checked:
            return
        f = self.f
        code = f.let("load i64, ptr %fault")
        bad, fine = f.label("faulted"), f.label("went")
        f.branch(f.let(f"icmp ne i64 {code}, 0"), bad, fine)
        f.start(bad)
        f.do(EARLY_RETURN)
        f.start(fine)


_STATEMENTS: dict[type, Callable[..., None]] = {
    ast.Assign: FunctionWriter._assign, ast.AugAssign: FunctionWriter._augment,
    ast.AnnAssign: FunctionWriter._declare, ast.If: FunctionWriter._if,
    ast.While: FunctionWriter._while, ast.For: FunctionWriter._for,
    ast.Return: FunctionWriter._return, ast.Break: FunctionWriter._leave_loop,
    ast.Continue: FunctionWriter._leave_loop, ast.Expr: FunctionWriter._expression,
    ast.Assert: FunctionWriter._assert, ast.Pass: FunctionWriter._pass,
}  # fmt: skip


def write_function(
    unit: NativeModule,
    function: NativeFunction,
    kinds: Sequence[ArgType],
    statics: dict[str, Static],
    *,
    entry: bool = False,
) -> EmittedFunction:
    """Emit a function for argument types and constants, unless the module has it."""
    key = function_key(function, kinds, statics)
    found = unit.known.get(key)
    if found is not None:
        return found
    if len(unit.known) >= MAX_FUNCTIONS:
        function.fail(function.tree, f"more than {MAX_FUNCTIONS} functions in one module")
    name = f"@{llvm_name(function.name)}.{len(unit.known)}"
    written = unit.known[key] = EmittedFunction(name)
    if function.name not in unit.names:
        unit.names.append(function.name)
    unit.open.append(key)
    args = {
        p.arg: _argument(f"%arg.{llvm_name(p.arg)}", kind)
        for p, kind in zip(function.params, kinds, strict=True)
    }
    # Only the entry function needs noalias; inlined functions inherit it.
    promise = "" if function.aliasing or not entry else " noalias"
    params = [part for arg in args.values() for part in _operands(arg, promise)]
    if unit.checked:
        params.append("ptr %fault")
    style = "noinline" if entry or not function.inline else "alwaysinline"
    f = FunctionText(unit.module, f"define internal $RESULT {name}({', '.join(params)}) {style} #0")
    body = FunctionWriter(unit, function, f, statics)
    for param, arg in args.items():
        body.assign(param, arg)
    tree = function.tree
    body.result = annotation(function, tree.returns, statics, tree)
    body.block(tree.body)
    body.at = tree
    if not f.ended:
        if body.result not in (None, "any"):
            body.fail("the function can end without a result")
        body.result = None
        f.do("ret void")
    unit.open.pop()
    assert body.result != "any"  # a return statement has set it
    written.result = body.result
    unit.functions.append(_finished(f.text(), body.result))
    return written


def function_key(
    function: NativeFunction, kinds: Sequence[ArgType], statics: dict[str, Static]
) -> FunctionKey:
    """Return the key of a function for argument types and constants."""
    # Types are part of it, since 1, 1.0 and True are equal in Python.
    constants = tuple((name, v, type(v)) for name, v in statics.items())
    return function, tuple(kinds), constants


def _finished(text: str, result: Result) -> str:
    kind = llvm_result(result)
    leave = "ret void" if result is None else f"ret {kind} zeroinitializer"
    return text.replace(EARLY_RETURN, leave).replace("$RESULT", kind)


def _argument(name: str, kind: ArgType) -> Term:
    """Return a parameter of a function as a term."""
    if is_group(kind):
        members = zip(kind._fields, kind, strict=True)
        return type(kind)(*(_argument(f"{name}.{n}", k) for n, k in members))
    if isinstance(kind, tuple):
        return Span(kind[0], name, f"{name}.n", *kind[1:])
    return Operand(kind, name)


def _operands(term: Term, promise: str = "") -> list[str]:
    """Return the operands of an argument, with their types."""
    if isinstance(term, tuple):
        return [part for member in term for part in _operands(member, promise)]
    if isinstance(term, Span):
        return [f"ptr{promise} {term.pointer}", f"i64 {term.length}"]
    return [f"{term.type.llvm} {term.name}"]


def describe_result(result: object) -> str:
    """Return a description of a result type for messages."""
    if isinstance(result, tuple):
        return "(" + ", ".join(str(t) for t in result) + ")"
    return str(result)
