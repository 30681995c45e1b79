"""Check that a kernel uses only the Python syntax that the language supports.

The check runs when a kernel is declared. It executes nothing, so untrusted text is safe to check.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from dala.budget import check_deadline
from dala.errors import did_you_mean
from dala.gpu.compute.lang.declaration import CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.source import KernelSource

#: Component names of vectors and pixels, and shape properties of arrays and images.
SWIZZLE: Final = re.compile(r"[rgba]{1,4}|[xyzw]{1,4}|[stpq]{1,4}")
METHODS: Final = frozenset({"sample", "sample_uv"})
PROPERTIES: Final = frozenset({"shape", "width", "height"})

#: Nodes of the syntax tree that may be in a kernel, and kinds of them.
_ALLOWED: Final = frozenset({
    "AnnAssign", "Assign", "Attribute", "AugAssign", "BinOp", "BoolOp", "Break", "Call", "Compare",
    "Constant", "Continue", "Expr", "For", "If", "IfExp", "List", "Name", "Pass", "Return",
    "Subscript", "Tuple", "UnaryOp", "While", "keyword",
})  # fmt: skip
_ALLOWED_KINDS: Final = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)

_LISTED: Final = {
    "Lambda": ("lambda is", "Write a helper function with @kernel."),
    "ListComp SetComp DictComp": ("comprehensions are", "Write a for loop."),
    "GeneratorExp": ("generators are", "Write a for loop."),
    "Dict": ("dicts are", "Use parameters or local variables."),
    "Set": ("sets are", "Use parameters or local variables."),
    "JoinedStr FormattedValue": ("text is", "A kernel computes numbers only."),
    "NamedExpr": (":= is", "Assign on a separate line."),
    "Slice": ("slices are", "Read one value: a[i, j]."),
    "Try": ("try is", "A kernel raises nothing; use if."),
    "With": ("with is", "Remove it."),
    "Delete": ("del is", "Remove it."),
    "Global": ("global is", "Use a parameter."),
    "Nonlocal": ("nonlocal is", "Use a parameter."),
    "ClassDef": ("classes are", "Use tuples for vectors."),
    "AsyncFunctionDef": ("async is", "Write a plain def."),
    "Await": ("await is", "Remove it."),
    "Yield YieldFrom": ("yield is", "Return the value."),
    "Match": ("match is", "Write if, elif, else."),
    "Is": ("'is' is", "Compare with ==."),
    "IsNot": ("'is not' is", "Compare with !=."),
    "In": ("'in' is", "Compare with == and or."),
    "NotIn": ("'not in' is", "Compare with != and and."),
}

#: What is wrong with other nodes, by name, and what to write instead.
_ADVICE: Final = {
    name: (f"{what} not part of the language", advice)
    for names, (what, advice) in _LISTED.items()
    for name in names.split()
} | {
    "Import": ("a kernel cannot import", "The functions of the language need no import."),
    "ImportFrom": ("a kernel cannot import", "The functions of the language need no import."),
    "Raise": ("a kernel cannot raise", "Return a value for every case instead."),
    "Assert": ("a kernel cannot assert", "Check before calling the kernel."),
    "Starred": ("* is not part of the language here", "Pass each argument by itself."),
}


def check_body(source: KernelSource, function: ast.FunctionDef) -> None:
    """Raise KernelSyntaxError for syntax in a kernel's body that is not in the language."""
    documented = ast.get_docstring(function, clean=False) is not None
    body = function.body[1:] if documented else function.body
    for statement in body:
        _check(source, statement)
    if not always_returns(body):
        source.fail(
            function,
            "not every path through the function returns a value",
            "End it with return value.",
        )


def is_math(node: ast.expr) -> bool:
    """Return True for a name of Python's module: ``math.sin`` means ``sin``."""
    module = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(module, ast.Name) and module.id == "math"


def is_method(node: ast.Call) -> bool:
    """Return True for a filtered read of an image: ``img.sample(x, y)``."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in METHODS:
        return False
    return isinstance(function.value, ast.Name)


def check_math(source: KernelSource, node: ast.Attribute, called: bool) -> None:
    """Raise KernelSyntaxError for a name of the module math that the language lacks."""
    table: Mapping[str, object] = FUNCTIONS if called else CONSTANTS
    if node.attr not in table:
        what = "function" if called else "constant"
        source.fail(
            node,
            f"the language has no {what} {node.attr!r}",
            did_you_mean(node.attr, table),
        )


def inside(body: list[ast.stmt]) -> list[ast.AST]:
    """Return all nodes in the statements, except those in nested functions."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        found.append(node)
        if isinstance(node, ast.FunctionDef):
            continue
        for name in node._fields:  # as ast.iter_child_nodes, which takes twice the time
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [each for each in value if isinstance(each, ast.AST)]
    return found


def always_returns(body: list[ast.stmt]) -> bool:
    """Return True if every path through the statements ends in a return."""
    return any(
        isinstance(s, ast.Return)
        or (isinstance(s, ast.If) and always_returns(s.body) and always_returns(s.orelse))
        or (isinstance(s, ast.While) and _endless(s))
        for s in body
    )


def _endless(loop: ast.While) -> bool:
    """Return whether a loop is left by return only."""
    nodes = inside(loop.body)
    is_true = isinstance(loop.test, ast.Constant) and loop.test.value is True
    returns = any(isinstance(n, ast.Return) for n in nodes)
    return is_true and returns and not any(isinstance(n, ast.Break) for n in nodes)


def returns_inside(body: list[ast.stmt]) -> bool:
    """Return whether there is a return in the statements."""
    return any(isinstance(n, ast.Return) for n in inside(body))


def assigned_often(body: list[ast.stmt], arguments: Iterable[str]) -> frozenset[str]:
    """Return names that are assigned more than once; arguments count as one assignment."""
    counts = Counter(arguments)
    for node in inside(body):
        root: ast.AST = node.target if isinstance(node, ast.AugAssign) else node
        stores = root is not node or isinstance(getattr(node, "ctx", None), ast.Store)
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if stores and isinstance(root, ast.Name):
            counts[root.id] += 1 if root is node else 2  # a part is replaced in what there was
    return frozenset(name for name, count in counts.items() if count > 1)


def _check(source: KernelSource, node: ast.AST) -> None:
    if isinstance(node, ast.FunctionDef):
        return  # nested helpers are checked as kernels of their own
    check_deadline("a kernel's text")
    name = type(node).__name__
    if name not in _ALLOWED and not isinstance(node, _ALLOWED_KINDS):
        other = f"{name} is not part of the language", "See docs/compute/kernel-language.md."
        source.fail(node, *_ADVICE.get(name, other))
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool | int | float):
        is_text = isinstance(node.value, str | bytes)
        problem = (
            "text is not part of the language" if is_text else f"{node.value!r} is not a number"
        )
        source.fail(node, problem, "A kernel computes numbers only.")
    elif isinstance(node, ast.Attribute):
        _check_attribute(source, node)
    elif isinstance(node, ast.Call):
        _check_call(source, node)
    elif isinstance(node, ast.Name) and node.id == "range":
        source.fail(node, "range works only in a for loop", "Write for i in range(n).")
    elif isinstance(node, ast.For):
        _check_for(source, node)
    elif isinstance(node, ast.While) and node.orelse:
        problem = "while ... else is not part of the language"
        source.fail(node.orelse[0], problem, "Remove the else.")
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
    for operator in operators:  # reported here: they have no line number
        if type(operator).__name__ in _ADVICE:
            source.fail(node, *_ADVICE[type(operator).__name__])
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and is_method(node):
            if child is node.func:
                continue
            text = child.value if isinstance(child, ast.keyword) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                continue  # the filter, or the edge
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        if isinstance(node, ast.For) and child is node.iter:
            for bound in node.iter.args:  # type: ignore[attr-defined]
                _check(source, bound)
            continue
        _check(source, child)


def _check_attribute(source: KernelSource, node: ast.Attribute) -> None:
    if is_math(node):
        return  # math.sin means sin; names are resolved later
    if not (SWIZZLE.fullmatch(node.attr) or node.attr in PROPERTIES):
        source.fail(
            node,
            f"the language has no attribute {node.attr!r}",
            "Pixels have .r .g .b .a (and .rgb); arrays .shape; images .width and .height.",
        )


def _check_swizzle(source: KernelSource, node: ast.Attribute) -> None:
    if not SWIZZLE.fullmatch(node.attr):
        source.fail(
            node, f"{node.attr!r} cannot be assigned", "Write v.x = value or v.xy = (x, y)."
        )
    if len(set(node.attr)) < len(node.attr):
        source.fail(node, f"{node.attr!r} names a component twice", "Name each once.")


def _check_call(source: KernelSource, node: ast.Call) -> None:
    function = node.func
    if not isinstance(function, ast.Name) and not is_math(function) and not is_method(node):
        name = function.attr if isinstance(function, ast.Attribute) else "name"
        source.fail(node, "only functions can be called, by name", f"Write {name}(...).")
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
            root: ast.expr = name
            while isinstance(root, ast.Attribute | ast.Subscript):
                if isinstance(root, ast.Attribute):
                    _check_swizzle(source, root)
                root = root.value
            if not isinstance(root, ast.Name):
                source.fail(name, "only names can be assigned", "Write name = value.")
    if isinstance(node, ast.AnnAssign) and node.value is None:
        source.fail(node, "a variable must have a value", "Write name = value.")
