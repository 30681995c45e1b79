"""Check that a kernel uses only the Python syntax that the language supports.

The check runs when a kernel is declared. It executes nothing, so untrusted text is safe to check.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from dala.gpu.compute.lang.source import KernelSource

#: Component names of vectors and pixels, and shape properties of arrays and images.
SWIZZLE: Final = re.compile(r"[rgba]{1,4}|[xyzw]{1,4}")
PROPERTIES: Final = frozenset({"shape", "width", "height"})

_ALLOWED: Final = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.If,
    ast.For,
    ast.Break,
    ast.Continue,
    ast.Pass,
    ast.Expr,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.Tuple,
    ast.Subscript,
    ast.Attribute,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)

_ADVICE: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.While: ("while loops are not part of the language", "Write for i in range(n) with break."),
    ast.Import: ("a kernel cannot import", "The functions of the language need no import."),
    ast.ImportFrom: ("a kernel cannot import", "The functions of the language need no import."),
    ast.Lambda: ("lambda is not part of the language", "Write a helper function with @kernel."),
    ast.ListComp: ("comprehensions are not part of the language", "Write a for loop."),
    ast.SetComp: ("comprehensions are not part of the language", "Write a for loop."),
    ast.DictComp: ("comprehensions are not part of the language", "Write a for loop."),
    ast.GeneratorExp: ("generators are not part of the language", "Write a for loop."),
    ast.List: ("lists are not part of the language", "Write a tuple of two to four numbers."),
    ast.Dict: ("dicts are not part of the language", "Use parameters or local variables."),
    ast.Set: ("sets are not part of the language", "Use parameters or local variables."),
    ast.JoinedStr: ("text is not part of the language", "A kernel computes numbers only."),
    ast.FormattedValue: ("text is not part of the language", "A kernel computes numbers only."),
    ast.Starred: ("* is not part of the language here", "Pass each argument by itself."),
    ast.NamedExpr: (":= is not part of the language", "Assign on a separate line."),
    ast.Slice: ("slices are not part of the language", "Read one value: a[i, j]."),
    ast.Try: ("try is not part of the language", "A kernel raises nothing; use if."),
    ast.With: ("with is not part of the language", "Remove it."),
    ast.Raise: ("a kernel cannot raise", "Return a value for every case instead."),
    ast.Assert: ("a kernel cannot assert", "Check before calling the kernel."),
    ast.Delete: ("del is not part of the language", "Remove it."),
    ast.Global: ("global is not part of the language", "Use a parameter."),
    ast.Nonlocal: ("nonlocal is not part of the language", "Use a parameter."),
    ast.ClassDef: ("classes are not part of the language", "Use tuples for vectors."),
    ast.AsyncFunctionDef: ("async is not part of the language", "Write a plain def."),
    ast.Await: ("await is not part of the language", "Remove it."),
    ast.Yield: ("yield is not part of the language", "Return the value."),
    ast.YieldFrom: ("yield is not part of the language", "Return the value."),
    ast.Match: ("match is not part of the language", "Write if, elif, else."),
}

_OPERATORS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.MatMult: ("@ is not part of the language", "Use the 'matmul' kernel, or dot(a, b)."),
    ast.Is: ("'is' is not part of the language", "Compare with ==."),
    ast.IsNot: ("'is not' is not part of the language", "Compare with !=."),
    ast.In: ("'in' is not part of the language", "Compare with == and or."),
    ast.NotIn: ("'not in' is not part of the language", "Compare with != and and."),
}


def check_body(source: KernelSource, function: ast.FunctionDef) -> None:
    """Raise KernelSyntaxError for syntax in a kernel's body that is not in the language."""
    body = function.body
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        body = body[1:]
    for statement in body:
        _check(source, statement)
    if not always_returns(body):
        source.fail(
            function,
            "not every path through the function returns a value",
            "End it with return value.",
        )


def always_returns(body: list[ast.stmt]) -> bool:
    """Return True if every path through the statements ends in a return."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return True
        if (
            isinstance(statement, ast.If)
            and always_returns(statement.body)
            and always_returns(statement.orelse)
        ):
            return True
    return False


def _check(source: KernelSource, node: ast.AST) -> None:
    if isinstance(node, ast.FunctionDef):
        return  # nested helpers are checked as kernels of their own
    if isinstance(node, tuple(_OPERATORS)):
        return  # the parent node reports it, with a line number
    if not isinstance(node, _ALLOWED):
        problem, advice = _ADVICE.get(
            type(node),
            (
                f"{type(node).__name__} is not part of the language",
                "See docs/compute/kernel-language.md.",
            ),
        )
        source.fail(node, problem, advice)
    if isinstance(node, ast.Constant):
        _check_constant(source, node)
    elif isinstance(node, ast.Attribute):
        _check_attribute(source, node)
    elif isinstance(node, ast.Call):
        _check_call(source, node)
    elif isinstance(node, ast.Name) and node.id == "range":
        source.fail(node, "range works only in a for loop", "Write for i in range(n).")
    elif isinstance(node, ast.For):
        _check_for(source, node)
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        _check_targets(source, node)
    elif isinstance(node, ast.Return) and node.value is None:
        source.fail(node, "this returns nothing", "Return the value for this position.")
    elif isinstance(node, ast.Expr):
        source.fail(node, "this line has no effect", "Assign its value to a name, or return it.")
    elif isinstance(node, ast.Name) and node.id.startswith("__"):
        source.fail(node, f"the name {node.id!r} is not allowed", "Names may not start with '__'.")
    operators: list[ast.AST] = []
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp):
        operators = [node.op]
    elif isinstance(node, ast.Compare):
        operators = list(node.ops)
    for operator in operators:
        if type(operator) in _OPERATORS:
            source.fail(node, *_OPERATORS[type(operator)])
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        if isinstance(node, ast.For) and child is node.iter:
            for bound in node.iter.args:  # type: ignore[attr-defined]
                _check(source, bound)
            continue
        _check(source, child)


def _check_constant(source: KernelSource, node: ast.Constant) -> None:
    if isinstance(node.value, bool | int | float):
        return
    if isinstance(node.value, str | bytes):
        source.fail(node, "text is not part of the language", "A kernel computes numbers only.")
    source.fail(node, f"{node.value!r} is not a number", "A kernel computes numbers only.")


def _check_attribute(source: KernelSource, node: ast.Attribute) -> None:
    if isinstance(node.value, ast.Name) and node.value.id == "math":
        return  # math.sin means sin; names are resolved later
    if not (SWIZZLE.fullmatch(node.attr) or node.attr in PROPERTIES):
        source.fail(
            node,
            f"the language has no attribute {node.attr!r}",
            "Pixels have .r .g .b .a (and .rgb); arrays .shape; images .width and .height.",
        )


def _check_call(source: KernelSource, node: ast.Call) -> None:
    function = node.func
    named = isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "math"
    )
    if not named:
        source.fail(node, "only functions can be called, by name", "Write name(...).")
    for keyword in node.keywords:
        if keyword.arg is None:
            source.fail(node, "** is not part of the language", "Name each parameter.")


def _check_for(source: KernelSource, node: ast.For) -> None:
    loop = "Write for i in range(n), range(start, stop) or range(start, stop, step)."
    if node.orelse:
        source.fail(node.orelse[0], "for ... else is not part of the language", "Remove the else.")
    if not isinstance(node.target, ast.Name):
        source.fail(node.target, "a for loop must have one loop variable", loop)
    call = node.iter
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "range"
        and 1 <= len(call.args) <= 3
        and not call.keywords
    ):
        source.fail(node.iter, "a for loop must run over range(...)", loop)


def _check_targets(source: KernelSource, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if isinstance(name, ast.Subscript):
                source.fail(
                    name,
                    "a kernel cannot store into an array",
                    "Return the value for this position; position() returns its index.",
                )
            if not isinstance(name, ast.Name):
                source.fail(name, "only names can be assigned", "Write name = value.")
    if isinstance(node, ast.AnnAssign) and node.value is None:
        source.fail(node, "a variable must have a value", "Write name = value.")
