"""The operators and array methods of buffers.

They import what they use when they are called: that stands on kernels, which stand on buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from dala.errors import ParameterError, ShapeError

if TYPE_CHECKING:
    from dala.gpu.compute.arrays.indexing import Index
    from dala.gpu.compute.arrays.operators import Value
    from dala.gpu.compute.arrays.reductions import Axis
    from dala.gpu.compute.buffer import Buffer
    from dala.gpu.compute.convert import ShapeLike
    from dala.gpu.compute.dtypes import DtypeLike

#: A number, or lists of numbers, one in another.
Nested: TypeAlias = "float | list[Nested]"

_Operator: TypeAlias = "Callable[[ArrayMethods, Value], Buffer]"

#: NumPy functions that are operators, by name; with a buffer they return one.
_UFUNCS: Final = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide",
    "floor_divide": "floor_divide", "remainder": "remainder", "power": "power",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge",
}  # fmt: skip


def _or_other(result: Buffer | None) -> Buffer:
    """Return a result, or let Python try the other operand."""
    return cast("Buffer", NotImplemented) if result is None else result


def _binary(op: str, a: Value | ArrayMethods, b: Value | ArrayMethods) -> Buffer:
    from dala.gpu.compute.arrays.operators import binary

    return _or_other(binary(op, cast("Buffer", a), cast("Buffer", b)))


def _operators(op: str) -> tuple[_Operator, _Operator, _Operator]:
    """Return the methods of an operator: with the buffer first, with it second, and in place."""

    def in_place(a: ArrayMethods, b: Value) -> Buffer:
        from dala.gpu.compute.arrays.operators import in_place

        return _or_other(in_place(op, cast("Buffer", a), b))

    return lambda a, b: _binary(op, a, b), lambda a, b: _binary(op, b, a), in_place


def _unary(op: str) -> Callable[[ArrayMethods], Buffer]:
    def apply(a: ArrayMethods) -> Buffer:
        from dala.gpu.compute.arrays.operators import unary

        return unary(op, cast("Buffer", a))

    return apply


def _matmul(a: Value | ArrayMethods, b: Value | ArrayMethods) -> Buffer:
    from dala.gpu.compute.arrays.reductions import matmul

    return _or_other(matmul(cast("Buffer", a), cast("Buffer", b)))


class ArrayMethods:
    """Operators, indexing and reductions, as of NumPy arrays. Buffers inherit them."""

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: str

    # operators --------------------------------------------------------------------------------
    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floor_divide")
    __mod__, __rmod__, __imod__ = _operators("remainder")
    __pow__, __rpow__, __ipow__ = _operators("power")
    __and__, __rand__, __iand__ = _operators("and")
    __or__, __ror__, __ior__ = _operators("or")
    __xor__, __rxor__, __ixor__ = _operators("xor")
    __lt__, __le__ = _operators("lt")[0], _operators("le")[0]
    __gt__, __ge__ = _operators("gt")[0], _operators("ge")[0]
    __eq__ = _operators("eq")[0]  # type: ignore[assignment]
    __ne__ = _operators("ne")[0]  # type: ignore[assignment]

    #: Buffers are found in sets and dicts by identity.
    __hash__ = object.__hash__

    def __matmul__(self, other: Value) -> Buffer:
        return _matmul(self, other)

    def __rmatmul__(self, other: Value) -> Buffer:
        return _matmul(other, self)

    def __divmod__(self, other: Value) -> tuple[Buffer, Buffer]:
        return self // other, self % other

    def __rdivmod__(self, other: Value) -> tuple[Buffer, Buffer]:
        return other // self, other % self

    __neg__, __pos__, __abs__ = map(_unary, ("negative", "positive", "absolute"))

    # Any: NumPy passes any operands and options.
    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Apply a NumPy function: operators give a buffer, all others an array on the host."""
        if method == "__call__" and not options:
            name = ufunc.__name__
            if name in _UFUNCS:
                return _binary(_UFUNCS[name], *inputs)
            if name in ("negative", "positive", "absolute"):
                return _unary(name)(self)
            if name == "matmul":
                return _matmul(*inputs)
        if any(isinstance(out, ArrayMethods) for out in options.get("out", ())):
            return NotImplemented
        arrays = [np.asarray(x) if isinstance(x, ArrayMethods) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    # elements ---------------------------------------------------------------------------------
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a buffer of shape () has no length")
        return self.shape[0]

    def __getitem__(self, index: Index) -> Buffer:
        from dala.gpu.compute.arrays.indexing import get

        return get(cast("Buffer", self), index)

    def __setitem__(self, index: Index, value: Value) -> None:
        from dala.gpu.compute.arrays.indexing import put

        put(cast("Buffer", self), index, value)

    def __iter__(self) -> Iterator[Buffer]:
        if not self.shape:
            raise TypeError("a buffer of shape () cannot be iterated")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Value) -> bool:
        found = self == value
        return isinstance(found, ArrayMethods) and bool(found.any())

    def item(self) -> float:
        """Return the only element as a Python number.

        >>> from dala.gpu.compute import buffer
        >>> buffer([1, 2, 3], device="cpu").sum().item()
        6.0
        """
        return self._only("item")

    def _only(self, call: str) -> float:
        b = cast("Buffer", self)
        if b.size != 1:
            raise ShapeError.invalid(
                call, "the buffer", "of one element", b.shape, "Use read_list() or tolist()."
            )
        number: float = b.contents(call).item()
        return number

    def tolist(self) -> Nested:
        """Return the elements as nested lists, like NumPy.

        >>> from dala.gpu.compute import buffer
        >>> buffer([[1, 2], [3, 4]], dtype="s32", device="cpu").tolist()
        [[1, 2], [3, 4]]
        """
        found: Nested = cast("Buffer", self).contents("tolist").tolist()
        return found

    def __bool__(self) -> bool:
        b = cast("Buffer", self)
        if b.size != 1:
            raise ShapeError(
                f"bool: the truth of a buffer of shape {b.shape} is ambiguous. Use b.any() or "
                "b.all(), len(b) for its length, or b is not None.",
                call="bool",
            )
        return bool(self._only("bool"))

    def __float__(self) -> float:
        return float(self._only("float"))

    def __int__(self) -> int:
        return int(self._only("int"))

    def __index__(self) -> int:
        if self.dtype in ("f32", "f64"):
            raise TypeError(f"a buffer of {self.dtype} cannot be an index. Use int(b).")
        return int(self._only("index"))

    def __round__(self, digits: int | None = None) -> float:
        return round(self._only("round"), digits)

    def __format__(self, spec: str) -> str:
        return format(self._only("format"), spec) if spec else str(self)

    # shapes and dtypes ------------------------------------------------------------------------
    @property
    def T(self) -> Buffer:  # noqa: N802 - NumPy's name
        """A copy with the axes in reverse order.

        >>> from dala.gpu.compute import buffer
        >>> buffer([[1, 2], [3, 4]], dtype="s32", device="cpu").T.tolist()
        [[1, 3], [2, 4]]
        """
        from dala.gpu.compute.arrays.indexing import transposed

        return transposed(cast("Buffer", self))

    def reshape(self, *shape: ShapeLike) -> Buffer:
        """Return a copy with another shape; one size may be -1.

        >>> from dala.gpu.compute import buffer
        >>> buffer([1, 2, 3, 4], dtype="s32", device="cpu").reshape(2, -1).tolist()
        [[1, 2], [3, 4]]
        """
        from dala.gpu.compute.arrays.reductions import reshape

        if not shape:
            raise ParameterError.invalid("reshape", "shape", "a shape such as (2, -1)", ())
        wanted = shape[0] if len(shape) == 1 else cast("tuple[int, ...]", shape)
        return reshape(cast("Buffer", self), wanted)

    def astype(self, dtype: DtypeLike) -> Buffer:
        """Return the values in another dtype.

        Floats become integers by truncation; what does not fit is clamped, and NaN becomes 0.
        Integers wrap around, except to u8, which saturates. f64 to f32 rounds.

        >>> from dala.gpu.compute import buffer
        >>> buffer([1.9, -3.5, 300.0], device="cpu").astype("u8").read_list()
        [1, 0, 255]
        """
        from dala.gpu.compute.arrays.operators import astype

        return astype(cast("Buffer", self), dtype)

    def copy(self) -> Buffer:
        """Return a copy on the same device.

        >>> from dala.gpu.compute import buffer
        >>> buffer([1.0, 2.0], device="cpu").copy().read_list()
        [1.0, 2.0]
        """
        return cast("Buffer", self).__copy__()

    # reductions -------------------------------------------------------------------------------
    def sum(
        self,
        axis: Axis = None,
        dtype: DtypeLike | None = None,
        out: Buffer | None = None,
        *,
        keepdims: bool = False,
    ) -> Buffer:
        """Return the sum of all elements or along axes; of u8 as u32, else in the same dtype.

        With ``dtype`` the elements are converted first. ``out`` gets the result.

        >>> from dala.gpu.compute import buffer
        >>> b = buffer([[1, 2], [3, 4]], device="cpu")
        >>> float(b.sum()), b.sum(axis=0).read_list()
        (10.0, [4.0, 6.0])
        """
        from dala.gpu.compute.arrays.reductions import reduce

        return reduce("reduce_sum", "sum", cast("Buffer", self), axis, keepdims, dtype, out)

    def max(
        self, axis: Axis = None, out: Buffer | None = None, *, keepdims: bool = False
    ) -> Buffer:
        """Return the largest element, or the largest along axes. NaN propagates.

        >>> from dala.gpu.compute import buffer
        >>> float(buffer([1.0, 5.0, 2.0], device="cpu").max())
        5.0
        """
        from dala.gpu.compute.arrays.reductions import reduce

        return reduce("reduce_max", "max", cast("Buffer", self), axis, keepdims, None, out)

    def min(
        self, axis: Axis = None, out: Buffer | None = None, *, keepdims: bool = False
    ) -> Buffer:
        """Return the smallest element, or the smallest along axes. NaN propagates.

        >>> from dala.gpu.compute import buffer
        >>> float(buffer([1.0, 5.0, 2.0], device="cpu").min())
        1.0
        """
        from dala.gpu.compute.arrays.reductions import reduce

        return reduce("reduce_min", "min", cast("Buffer", self), axis, keepdims, None, out)

    def mean(
        self,
        axis: Axis = None,
        dtype: DtypeLike | None = None,
        out: Buffer | None = None,
        *,
        keepdims: bool = False,
    ) -> Buffer:
        """Return the mean of all elements or along axes, as f32, or f64 for s64 and f64.

        >>> from dala.gpu.compute import buffer
        >>> float(buffer([1, 2], dtype="u8", device="cpu").mean())
        1.5
        """
        from dala.gpu.compute.arrays.reductions import mean

        return mean(cast("Buffer", self), axis, keepdims, dtype, out)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Buffer:
        """Return 1 where any element, of all or along axes, is not 0, else 0.

        >>> from dala.gpu.compute import buffer
        >>> bool((buffer([1.0, 5.0], device="cpu") > 3).any())
        True
        """
        return (self != 0).sum(axis, "u32", keepdims=keepdims) != 0

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Buffer:
        """Return 1 where all elements, of all or along axes, are not 0, else 0.

        >>> from dala.gpu.compute import buffer
        >>> bool((buffer([1.0, 5.0], device="cpu") > 3).all())
        False
        """
        return (self == 0).sum(axis, "u32", keepdims=keepdims) == 0

    # expressions ------------------------------------------------------------------------------
    def explain(self) -> str:
        """Return how the values are computed, or were: operations, passes and bytes moved.

        >>> from dala.gpu.compute import buffer, relu
        >>> a, b = buffer([1.0, -2.0], device="cpu"), buffer([3.0, 4.0], device="cpu")
        >>> print((relu(a * b) * 2).explain())
        expression on cpu: 3 operations in 1 pass, not computed yet
          pass 0: multiply + relu + multiply (2,), 24 bytes
        """
        from dala.gpu.compute.arrays import evaluate

        b = cast("Buffer", self)
        if b.node is not None:
            return evaluate.explain(b.node)
        b.storage("explain")
        if not b.origin:
            return f"buffer on {b.device}: its values are in memory"
        return f"expression on {b.device}: computed\n  last pass: {b.origin}"
