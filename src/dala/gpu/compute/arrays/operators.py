"""Build expressions: check operands, choose the dtype, and write the code of one operation."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from dala.errors import DeviceMismatch, DtypeError, DtypeMismatch, ParameterError, ShapeMismatch
from dala.gpu.compute.arrays import graph, promote
from dala.gpu.compute.arrays.evaluate import compute, fuse
from dala.gpu.compute.arrays.graph import Expression, Number, Operand
from dala.gpu.compute.buffer import Buffer, check_size, hand_over, lazy, overlap, settle
from dala.gpu.compute.convert import as_array, to_dtype
from dala.gpu.compute.create import filled
from dala.gpu.compute.dtypes import DtypeLike, dtype_name
from dala.gpu.compute.lang.ir import LOADED, Type
from dala.gpu.compute.lang.scalars import RANGES
from dala.typing import NDArray

#: What an operator accepts beside a buffer.
Value: TypeAlias = "Buffer | NDArray | np.generic | float | Sequence[float]"

#: Operators by name: the symbol, and the label that ``explain`` shows.
SYMBOLS: Final = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "power": "**", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
#: The comparison with operands exchanged.
_EXCHANGED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
#: The largest exponent that is written as multiplications.
_MAX_POWER: Final = 16

#: NumPy dtypes of operands that are widened without loss.
_WIDER: Final = {
    "bool": "u8", "int8": "s32", "int16": "s32", "uint16": "s32", "float16": "f32",
}  # fmt: skip


# operands -----------------------------------------------------------------------------------------
def accepts(value: object) -> bool:
    """Return True if an operator can take a value beside a buffer."""
    if isinstance(value, Buffer | int | float | np.generic | list | tuple):
        return not isinstance(value, np.complexfloating | np.str_ | np.bytes_)
    return hasattr(value, "__array__")  # also tensors of other libraries


def to_buffer(value: Value, other: Buffer, call: str) -> Buffer:
    """Return an array as a buffer beside another; small dtypes are widened without loss.

    A list takes the dtype of the other buffer, like a number.
    """
    engine = other.engine
    array = as_array(value, call)
    name = _WIDER.get(array.dtype.name)
    if isinstance(value, list | tuple) and array.dtype.kind in "if":
        for end in (array.min().item(), array.max().item()) if array.size else (0,):
            name = promote.with_number(other.dtype, end, call)
    elif name is None:
        try:
            name = dtype_name(array.dtype, call=call)
        except DtypeError as error:
            if array.dtype.kind in "OUSVcmM":
                raise DtypeError.invalid(
                    call, "the array", "of real numbers", str(array.dtype)
                ) from None
            raise error from None
    assert name is not None
    promote.check_device(engine, name, call, "the array has dtype")
    return filled(to_dtype(array, name, call), name, engine, call)


def _operand(value: Value, other: Buffer, call: str, argument: str) -> Expression | int | float:
    """Return a number as it is, and anything else as a node on the device of another buffer."""
    engine = other.engine
    if isinstance(value, Buffer):
        if value.engine is not engine:
            expected = f"on the device {engine.id!r} of the other"
            advice = f"Move it: {argument}.to({engine.id!r})."
            raise DeviceMismatch.invalid(call, argument, expected, value.engine.id, advice)
        return graph.leaf(value, call, argument)
    number = promote.as_number(value)
    if number is not None:
        return number
    return graph.leaf(to_buffer(value, other, call), call, argument)


def _shape(a: Expression, b: Expression, call: str) -> tuple[int, ...]:
    if a.shape == b.shape:
        return a.shape
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        expected = f"of a shape that broadcasts with a of {a.shape}"
        advice = "Axes must be equal or 1, counted from the last."
        raise ShapeMismatch.invalid(call, "b", expected, b.shape, advice) from None


def _cast(place: int, dtype: str, target: str) -> str:
    """Return the code of an operand as a value of a dtype's type."""
    if LOADED[dtype] == LOADED[target]:
        return f"{{{place}}}"
    return f"{LOADED[target]}({{{place}}})"


def _number(value: int | float, dtype: str, place: int) -> tuple[str, tuple[Number, ...]]:
    """Return the code of a number, and the parameter that it needs."""
    type_: Type = LOADED[dtype]
    value = promote.as_type(value, "f64" if type_ == "f64" else dtype)
    if isinstance(value, float) and math.isnan(value):
        return f"{type_}(nan)", ()  # parameters are never NaN
    return f"{{{place}}}", (Number(type_, value),)


# results ------------------------------------------------------------------------------------------
def _result(
    shape: tuple[int, ...],
    dtype: str,
    label: str,
    template: str,
    args: tuple[Operand, ...],
    call: str,
) -> Buffer:
    """Return the buffer of an expression. Shared memory is read at once: others may write to it."""
    operands = [a for a in args if isinstance(a, Expression)]
    engine = operands[0].engine
    check_size(engine, shape, dtype, call)
    while True:
        size = 1 + sum([a.size for a in operands])
        leaves = graph.joined(operands, shape)
        if size <= graph.MAX_NODES and len(leaves) <= engine.max_inputs:
            break
        pending = [a for a in operands if a.buffer is None]
        compute(max(pending, key=lambda a: (len(a.leaves), a.size)))
    made = lazy(Expression(engine, shape, dtype, label, template, args, size, leaves))
    if any(map(graph.is_shared, operands)):
        made.storage(call)
    return made


# operators ----------------------------------------------------------------------------------------
def binary(op: str, x: Value, y: Value, call: str = "") -> Buffer | None:
    """Return the result of an operator; None if it does not accept an operand.

    One of the operands is a buffer.
    """
    if not accepts(x) or not accepts(y):
        return None
    call = call or f"a {SYMBOLS[op]} b"
    one = x if isinstance(x, Buffer) else y
    assert isinstance(one, Buffer)
    with graph.LOCK:
        a, b = _operand(x, one, call, "a"), _operand(y, one, call, "b")
        if not isinstance(a, Expression):
            assert isinstance(b, Expression)
            return _with_number(op, b, a, True, call)
        if not isinstance(b, Expression):
            return _with_number(op, a, b, False, call)
        shape = _shape(a, b, call)
        dtype = promote.common(a.dtype, b.dtype)
        dtype = _computed(op, one, dtype, call, f"{a.dtype} with {b.dtype} gives")
        left, right = _cast(0, a.dtype, dtype), _cast(1, b.dtype, dtype)
        template = _code(op, dtype, left, right)
        stored = "u8" if op in COMPARISONS else dtype
        return _result(shape, stored, op, template, (a, b), call)


def _with_number(op: str, a: Expression, number: int | float, first: bool, call: str) -> Buffer:
    """Return the result of an operator with a node and a number, which may be the first."""
    if op in COMPARISONS:
        op = _EXCHANGED[op] if first else op
        first = False
        if a.dtype not in promote.FLOATS:
            op, number = promote.compared(op, a.dtype, number)
        code, args = _number(number, a.dtype, 1)
        template = _code(op, a.dtype, "{0}", code)
        return _result(a.shape, "u8", op, template, (a, *args), call)
    if op == "power" and not first:
        return _power(a, number, call)
    dtype = promote.with_number(a.dtype, number, call)
    dtype = _computed(op, a, dtype, call, f"{a.dtype} with {number!r} gives")
    code, args = _number(number, dtype, 1)
    here = _cast(0, a.dtype, dtype)
    template = _code(op, dtype, code, here) if first else _code(op, dtype, here, code)
    return _result(a.shape, dtype, op, template, (a, *args), call)


def _power(a: Expression, number: int | float, call: str) -> Buffer:
    """Return a power with a number as exponent; small ones are written as multiplications."""
    if a.dtype not in promote.FLOATS and isinstance(number, int) and number < 0:
        advice = "Convert the buffer first: a.astype('f32') ** b."
        raise ParameterError.invalid(call, "b", "0 or more for integers", number, advice)
    dtype = a.dtype
    if dtype not in promote.FLOATS and isinstance(number, float):
        dtype = promote.real(dtype)
    promote.check_device(a.engine, dtype, call, f"{a.dtype} with {number!r} gives")
    whole = isinstance(number, int) or (math.isfinite(number) and number.is_integer())
    if whole and abs(number) <= _MAX_POWER:
        # u8 is computed in f32: it saturates at 255, long before f32 loses digits.
        here = "float({0})" if a.dtype == "u8" else _cast(0, a.dtype, dtype)
        template = _stored(dtype, f"{here} ** {int(number)}")
        return _result(a.shape, dtype, "power", template, (a,), call)
    if dtype not in promote.FLOATS:
        promote.with_number(dtype, number, call)
    code, args = _number(number, dtype, 1)
    template = _code("power", dtype, _cast(0, a.dtype, dtype), code)
    return _result(a.shape, dtype, "power", template, (a, *args), call)


def _code(op: str, dtype: str, left: str, right: str) -> str:
    """Return the code of an operator; both operands have the type of ``dtype``."""
    if op in COMPARISONS:
        return f"int({left} {SYMBOLS[op]} {right})"
    if op == "power":
        if dtype == "u8":
            return f"u8(pow(float({left}), float({right})))"
        if dtype not in promote.FLOATS:
            return f"int_power({left}, {right})"
    code = f"{left} {SYMBOLS[op]} {right}"
    return _stored(dtype, code) if op in ("add", "subtract", "multiply") else code


def _stored(dtype: str, code: str) -> str:
    """Return code whose value is in a dtype's range: u8 saturates."""
    return f"u8({code})" if dtype == "u8" else code


def _computed(op: str, on: Buffer | Expression, dtype: str, call: str, reason: str) -> str:
    """Return the dtype in which operands of a dtype are computed; raise if there is none."""
    if op in ("and", "or", "xor") and dtype in promote.FLOATS:
        raise DtypeMismatch.invalid(
            call, "a and b", "integers", dtype, "Compare floats first: (a > 0) & (b > 0)."
        )
    dtype = promote.real(dtype) if op == "divide" else dtype
    promote.check_device(on.engine, dtype, call, reason)
    return dtype


#: Code of operations with one operand, by name.
_UNARY: Final = {"negative": "-{0}", "absolute": "abs({0})", "positive": "{0}"}


def unary(op: str, x: Buffer) -> Buffer:
    """Return -x, +x or abs(x)."""
    with graph.LOCK:
        a = graph.leaf(x, op, "a")
        template = _stored(a.dtype, _UNARY[op])
        return _result(a.shape, a.dtype, op, template, (a,), op)


def function(name: str, x: Buffer, number: float | None = None) -> Buffer | None:
    """Return relu, sigmoid, tanh or scalar_mul of a buffer; None if the number is not valid.

    ``number`` is the slope of relu or the factor of scalar_mul.
    """
    with graph.LOCK:
        a = graph.leaf(x, name, "x")
        if name in ("sigmoid", "tanh"):
            dtype = promote.real(a.dtype)
            return _result(a.shape, dtype, name, name + "({0})", (a,), name)
        if name == "relu" and type(number) in (int, float) and number == 0:
            template = _stored(a.dtype, "relu({0})")
            return _result(a.shape, a.dtype, name, template, (a,), name)
        value = None if isinstance(number, bool) else promote.as_number(number)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
        whole = name == "scalar_mul" and isinstance(value, int) and a.dtype not in promote.FLOATS
        type_: Type = LOADED[a.dtype] if whole else ("f64" if a.dtype == "f64" else "f32")
        if whole and not RANGES[type_][0] <= value <= RANGES[type_][1]:
            return None
        param = "scalar" if name == "scalar_mul" else "slope"
        template = _stored(a.dtype, f"{name}({{0}}, {param}={{1}})")
        number = value if whole else promote.as_type(value, type_)
        if math.isinf(number):
            return None
        args = (a, Number(type_, number))
        return _result(a.shape, a.dtype, name, template, args, name)


def astype(x: Buffer, dtype: DtypeLike) -> Buffer:
    """Return a buffer converted to a dtype."""
    name = dtype_name(dtype, call="astype")
    with graph.LOCK:
        a = graph.leaf(x, "astype", "a")
        promote.check_device(a.engine, name, "astype", "dtype is")
        return _result(a.shape, name, "astype", _converted(a.dtype, name), (a,), "astype")


def _converted(dtype: str, target: str) -> str:
    """Return the code of a conversion: floats are truncated, u8 saturates."""
    if target == "u8" and dtype != "u8":
        return "u8(s32({0}))" if dtype in promote.FLOATS else "u8({0})"
    return _cast(0, dtype, target)


def in_place(op: str, x: Buffer, y: Value) -> Buffer | None:
    """Compute an operator into its first operand, and return it; None for a wrong operand."""
    if not accepts(y):
        return None
    call = f"a {SYMBOLS[op]}= b"
    x.check_writable(call)
    with graph.LOCK:
        if x.node is None:
            settle(x.storage(call, "a"))
        made = binary(op, x, y, call)
        assert isinstance(made, Buffer)
        if made.shape != x.shape:
            expected = f"of a shape that broadcasts to a of {x.shape}"
            got = y.shape if isinstance(y, Buffer | np.ndarray) else made.shape
            raise ShapeMismatch.invalid(call, "b", expected, got)
        if made.dtype != x.dtype:
            _check_kind(x.dtype, made.dtype, call)
            made = astype(made, x.dtype)
        _assign(x, made, call)
    return x


def _assign(x: Buffer, made: Buffer, call: str) -> None:
    """Give a buffer the values of a new one of its shape and dtype."""
    node = made.node
    if x.node is not None:  # nothing has seen its memory yet
        if node is None:
            hand_over(made, x, made.origin)
            return
        x.node.owner = None
        x.node, made.node = node, None
        node.owner = weakref.ref(x)
        return
    target = x.storage(call)
    if node is not None:
        inputs = [n.buffer for n in fuse(node).inputs]
        if all(b is not None and (b is x or not overlap(b, x)) for b in inputs):
            node.owner, made.node = None, None
            compute(node, x)
            return
    source = made.storage(call)
    settle(target)
    x.engine.copy(source, target)


def store(made: Buffer | None, out: Buffer, call: str) -> bool:
    """Compute an expression into a buffer; return False if that does not have its form."""
    if made is None or not isinstance(out, Buffer):
        return False
    form = (made.shape, made.dtype, made.engine)
    if made.node is None or out.readonly or (out.shape, out.dtype, out.engine) != form:
        return False
    with graph.LOCK:
        out.storage_to_write(call, "output")
        _assign(out, made, call)
    return True


def _check_kind(dtype: str, result: str, call: str) -> None:
    """Raise if storing a result in a dtype would drop its fractions."""
    if result in promote.FLOATS and dtype not in promote.FLOATS:
        advice = "Write a = a ... b, or convert: (a ... b).astype(a.dtype)."
        raise DtypeMismatch.invalid(call, "a", f"a float, as the result is {result}", dtype, advice)
