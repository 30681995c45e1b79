"""The names of the native language, for import by modules written in it.

Native functions are parsed, never executed, so these types, markers and functions do nothing in
Python: the emitter recognizes them by identity. Type checkers see ``int`` and ``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from dala.gpu.compute.engines.cpu.native import types

T = TypeVar("T")
S = TypeVar("S")
_F = TypeVar("_F", bound=Callable[..., object])

#: The annotation of an argument or result of any type: a vector, or a number.
Vector: TypeAlias = Any

if TYPE_CHECKING:
    u8: TypeAlias = int
    i8: TypeAlias = int
    u16: TypeAlias = int
    i16: TypeAlias = int
    u32: TypeAlias = int
    i32: TypeAlias = int
    u64: TypeAlias = int
    i64: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
else:
    u8, i8, u16, i16 = types.U8, types.I8, types.U16, types.I16
    u32, i32, u64, i64 = types.U32, types.I32, types.U64, types.I64
    f32, f64 = types.F32, types.F64


#: A number or a vector of numbers, for which Python has no type.
Value: TypeAlias = Any
#: A number type, such as f32.
Element: TypeAlias = Any


class NativeArray(Generic[T]):
    """An array argument, ``a: Array[f32]``. Read and write ``a[i]``; ``a[i:j]`` is a slice."""

    def __getitem__(self, index: Value) -> Value:
        raise _python_error("Array")

    def __setitem__(self, index: Value, value: Value) -> None:
        raise _python_error("Array")

    def __len__(self) -> int:
        raise _python_error("Array")


#: The name to use in native code.
Array = NativeArray


def _python_error(name: str) -> TypeError:
    return TypeError(f"{name} works in native code only, which is parsed, not executed.")


def _name(function: _F) -> _F:
    def refuse(*args: Value, **named: Value) -> NoReturn:
        raise _python_error(function.__name__)

    refuse.__name__, refuse.__doc__ = function.__name__, function.__doc__
    return refuse  # type: ignore[return-value]


# loops and constants --------------------------------------------------------------------------
@_name
def static(value: Value) -> Value:
    """Evaluate at compile time.

    ``for k in static(range(taps))`` unrolls a loop; ``half = static(taps // 2)`` is a constant.
    """


@_name
def independent(steps: range, width: int = 0, interleave: int = 0) -> Iterable[int]:
    """Promise that no iteration of a loop reads or writes memory that another one writes."""
    return ()


@_name
def hinted(
    steps: range, width: int = 0, interleave: int = 0, unroll: int = 0, scalar: bool = False
) -> Iterable[int]:
    """Give hints for a loop: vector width, interleave and unroll counts, or no vectors."""
    return ()


# memory ---------------------------------------------------------------------------------------
@_name
def local(element: Element, length: int) -> Array[Value]:
    """Allocate an uninitialized array of constant length on the stack."""
    return Array()


@_name
def view(array: Array[Value], element: Element, offset: Value = 0) -> Array[Value]:
    """Return the memory from a byte offset on as an array of another type, at any alignment."""
    return Array()


@_name
def table(element: Element, values: Value) -> Array[Value]:
    """Return a constant array."""
    return Array()


@_name
def load(array: Array[Value], index: Value, lanes: int, count: Value = None) -> Value:
    """Load ``lanes`` consecutive elements as a vector; those from ``count`` on are 0, not read."""


@_name
def store(array: Array[Value], index: Value, vector: Value, count: Value = None) -> None:
    """Store a vector to consecutive elements; with ``count``, only its first lanes."""


@_name
def stream(array: Array[Value], index: Value, vector: Value) -> None:
    """Store a vector with a nontemporal store if its address is aligned, else normally.

    For large results that are not read soon: the caches are bypassed.
    """


@_name
def gather(array: Array[Value], indexes: Value, element: Element = None) -> Value:
    """Load the elements at a vector of indexes.

    From an array of bytes, ``element`` loads wider numbers at any alignment.
    """


@_name
def prefetch(array: Array[Value], index: Value) -> None:
    """Prefetch memory into the cache; the index may be out of bounds."""


# vectors --------------------------------------------------------------------------------------
@_name
def splat(value: Value, lanes: int) -> Value:
    """Return a vector with a number in every lane. Operators do this to scalars by themselves."""


@_name
def vec(*values: Value) -> Value:
    """Return a vector of numbers."""


@_name
def insert(vector: Value, lane: int, value: Value) -> Value:
    """Return a vector with one lane replaced. ``v[lane]`` reads a lane."""


@_name
def shuffle(a: Value, b: Value, lanes: Value) -> Value:
    """Return lanes of ``a`` and ``b``, selected by a constant tuple of indexes."""


@_name
def hsum(vector: Value) -> Value:
    """Return the sum of the lanes, in any order."""


@_name
def hmin(vector: Value) -> Value:
    """Return the minimum of the lanes; NaN if any is NaN."""


@_name
def hmax(vector: Value) -> Value:
    """Return the maximum of the lanes; NaN if any is NaN."""


@_name
def any_of(mask: Value) -> bool:
    """Return True if any lane is true."""
    return False


@_name
def all_of(mask: Value) -> bool:
    """Return True if all lanes are true."""
    return False


# numbers --------------------------------------------------------------------------------------
@_name
def saturate(target: Element, value: Value) -> Value:
    """Convert, clamping to the range of the target type."""


@_name
def add_saturate(a: Value, b: Value) -> Value:
    """Return the saturating sum of integers."""


@_name
def multiply_q15(a: Value, b: Value) -> Value:
    """Return the rounded Q15 product ``a * b / 32768`` of vectors of i16."""


@_name
def multiply_pairs(a: Value, b: Value) -> Value:
    """Multiply vectors of i16 and add the products in pairs: i32, half as many lanes."""


@_name
def narrow_fours(a: Value, b: Value) -> Value:
    """Saturate vectors of i32 to one of i16: four lanes of ``a``, four of ``b``, and so on."""


@_name
def look_up(a: Value, b: Value, c: Value, d: Value, places: Value) -> Value:
    """Return the entries of a table of 256 bytes, given as four vectors of 64, at 64 places."""


@_name
def in_range(target: Element, value: Value) -> Value:
    """Convert a float to an integer type that holds it: fewer instructions than saturating."""


@_name
def bits(target: Element, value: Value) -> Value:
    """Reinterpret the bits as another type: of the same size, or of a vector's parts."""


@_name
def select(condition: Value, yes: Value, no: Value) -> Value:
    """Return ``yes`` or ``no`` without a branch; both are computed."""


@_name
def minimum(a: Value, b: Value) -> Value:
    """Return the minimum; NaN if either is NaN. ``min(a, b)`` is ``b if b < a else a``."""


@_name
def maximum(a: Value, b: Value) -> Value:
    """Return the maximum; NaN if either is NaN."""


@_name
def fma(a: Value, b: Value, c: Value) -> Value:
    """Return ``a * b + c``, rounded once if the machine has the instruction."""


@_name
def copysign(a: Value, b: Value) -> Value:
    """Return ``a`` with the sign of ``b``."""


@_name
def count_ones(a: Value) -> Value:
    """Return the number of set bits."""


@_name
def leading_zeros(a: Value) -> Value:
    """Return the number of leading zero bits; the width of the type for 0."""


@_name
def trailing_zeros(a: Value) -> Value:
    """Return the number of trailing zero bits; the width of the type for 0."""


@_name
def isnan(a: Value) -> bool:
    """Return True for NaN."""
    return False


@_name
def floor(a: Value) -> Value:
    """Round down; the result is a float."""


@_name
def ceil(a: Value) -> Value:
    """Round up; the result is a float."""


@_name
def trunc(a: Value) -> Value:
    """Round toward zero; the result is a float."""


@_name
def sqrt(a: Value) -> Value:
    """Return the square root."""


@_name
def exp(a: Value) -> Value:
    """Return e raised to a power."""


@_name
def log(a: Value) -> Value:
    """Return the natural logarithm."""


@_name
def sin(a: Value) -> Value:
    """Return the sine."""


@_name
def cos(a: Value) -> Value:
    """Return the cosine."""


@_name
def tan(a: Value) -> Value:
    """Return the tangent."""


@_name
def atan(a: Value) -> Value:
    """Return the arc tangent."""


@_name
def atan2(a: Value, b: Value) -> Value:
    """Return the angle of the point (b, a)."""


@_name
def power(a: Value, b: Value) -> Value:
    """Return ``a`` raised to the power ``b``."""
