"""What the examples of operations take and return, found by running them."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dala
from dala.errors import DtypeMismatch, UnsupportedDtype
from dala.gpu.compute.kernel import get
from dala.gpu.compute.runnable import Runnable
from website.docstrings import table

#: NumPy's names of the six dtypes.
DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "s32": "int32",
    "s64": "int64",
    "u32": "uint32",
    "u8": "uint8",
}
_SHORT = {long: short for short, long in DTYPES.items()}


@dataclass(frozen=True)
class Call:
    """A call of a kernel in the example of its docstring."""

    inputs: tuple[np.ndarray, ...]
    params: dict[str, Any]


def call_of(name: str, kernel: Runnable) -> Call | None:
    """Run an example, and return its first call ``get(name)(...)``; None if it has no inputs.

    >>> from dala.gpu.compute.kernel import get
    >>> found = call_of("argmax", get("argmax"))
    >>> [a.shape for a in found.inputs], found.params
    ([(2, 3)], {})
    """
    if not kernel.inputs:
        return None
    names: dict[str, Any] = {}
    for part in doctest.DocTestParser().get_examples(inspect.cleandoc(kernel.__doc__ or "")):
        for node in ast.walk(ast.parse(part.source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"get({name!r})":
                given = [_value(a, names) for a in node.args]
                params = {str(k.arg): _value(k.value, names) for k in node.keywords}
                return Call(tuple(given), params)
        exec(part.source, names)
    raise ValueError(f"the example of {name} does not call get({name!r})")


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<example>", "eval"), names)


def results(name: str, call: Call) -> dict[str, np.ndarray]:
    """Return the result of a call for each dtype of its first input that is accepted.

    Inputs that have the dtype of the first one change with it.
    """
    first = call.inputs[0].dtype
    found = {}
    for short, long in DTYPES.items():
        given = [a.astype(long) if a.dtype == first else a for a in call.inputs]
        try:
            with dala.device("reference"):
                found[short] = np.asarray(get(name)(*given, **call.params))
        except (UnsupportedDtype, DtypeMismatch):
            continue
    return found


def facts(name: str, kernel: Runnable) -> Iterator[str]:
    """Yield the lines about inputs, shapes and dtypes of a kernel's page."""
    call = call_of(name, kernel)
    if call is None:
        yield from ("No inputs: the shape and dtype of the output are those of the buffer.", "")
        return
    made = results(name, call)
    result = next(iter(made.values()))
    rows = []
    optional = kernel.inputs[len(kernel.inputs) - kernel.optional :]
    for number, argument in enumerate(kernel.inputs):
        held = call.inputs[number] if number < len(call.inputs) else None
        text = "may be left out" if argument in optional else ""
        rows.append((f"`{argument}`", f"`{held.shape}`" if held is not None else "", text))
    rows.append(("result", f"`{result.shape}`", ""))
    yield from table(("", "shape in the example", ""), rows)
    dtypes = {short: _SHORT[str(array.dtype)] for short, array in made.items()}
    listed = ", ".join(f"`{short}`" for short in dtypes)
    if all(short == out for short, out in dtypes.items()):
        yield from (f"Dtypes: {listed}; the result has the dtype of `{kernel.inputs[0]}`.", "")
    elif len(set(dtypes.values())) == 1:
        yield from (f"Dtypes: {listed}; the result is `{next(iter(dtypes.values()))}`.", "")
    else:
        pairs = [(f"`{short}`", f"`{out}`") for short, out in dtypes.items()]
        yield from table((f"dtype of `{kernel.inputs[0]}`", "dtype of the result"), pairs)
