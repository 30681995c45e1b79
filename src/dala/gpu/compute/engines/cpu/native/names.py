"""The names of the native language, for import by modules written in it.

Native functions are parsed, never executed, so these types, markers and functions do nothing in
Python: the emitter recognizes them by identity. Type checkers see ``int`` and ``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from dala.gpu.compute.engines.cpu.native import types

T = TypeVar("T")
S = TypeVar("S")
_F = TypeVar("_F", bound=Callable[..., Any])

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


class NativeArray(Generic[T]):
    """An array argument, ``a: Array[f32]``. Read and write ``a[i]``; ``a[i:j]`` is a slice."""

    def __getitem__(self, index: Any) -> Any:
        raise _python_error("Array")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _python_error("Array")

    def __len__(self) -> int:
        raise _python_error("Array")


#: The name to use in native code.
Array = NativeArray


def _python_error(name: str) -> TypeError:
    return TypeError(f"{name} works in native code only, which is parsed, not executed.")


def _name(function: _F) -> _F:
    def refuse(*args: Any, **named: Any) -> Any:
        raise _python_error(function.__name__)

    refuse.__name__, refuse.__doc__ = function.__name__, function.__doc__
    return refuse  # type: ignore[return-value]


# loops and constants --------------------------------------------------------------------------
@_name
def static(value: Any) -> Any:
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
def local(element: Any, length: int) -> Array[Any]:
    """Allocate an uninitialized array of constant length on the stack."""
    return Array()


@_name
def view(array: Array[Any], element: Any, offset: Any = 0) -> Array[Any]:
    """Return the memory from a byte offset on as an array of another type, at any alignment."""
    return Array()


@_name
def table(element: Any, values: Any) -> Array[Any]:
    """Return a constant array."""
    return Array()


@_name
def load(array: Array[Any], index: Any, lanes: int, count: Any = None) -> Any:
    """Load ``lanes`` consecutive elements as a vector; those from ``count`` on are 0, not read."""


@_name
def store(array: Array[Any], index: Any, vector: Any, count: Any = None) -> None:
    """Store a vector to consecutive elements; with ``count``, only its first lanes."""


@_name
def stream(array: Array[Any], index: Any, vector: Any) -> None:
    """Store a vector with a nontemporal store if its address is aligned, else normally.

    For large results that are not read soon: the caches are bypassed.
    """


@_name
def gather(array: Array[Any], indexes: Any, element: Any = None) -> Any:
    """Load the elements at a vector of indexes.

    From an array of bytes, ``element`` loads wider numbers at any alignment.
    """


@_name
def prefetch(array: Array[Any], index: Any) -> None:
    """Prefetch memory into the cache; the index may be out of bounds."""


# vectors --------------------------------------------------------------------------------------
@_name
def splat(value: Any, lanes: int) -> Any:
    """Return a vector with a number in every lane. Operators do this to scalars by themselves."""


@_name
def vec(*values: Any) -> Any:
    """Return a vector of numbers."""


@_name
def insert(vector: Any, lane: int, value: Any) -> Any:
    """Return a vector with one lane replaced. ``v[lane]`` reads a lane."""


@_name
def shuffle(a: Any, b: Any, lanes: Any) -> Any:
    """Return lanes of ``a`` and ``b``, selected by a constant tuple of indexes."""


@_name
def hsum(vector: Any) -> Any:
    """Return the sum of the lanes, in any order."""


@_name
def hmin(vector: Any) -> Any:
    """Return the minimum of the lanes; NaN if any is NaN."""


@_name
def hmax(vector: Any) -> Any:
    """Return the maximum of the lanes; NaN if any is NaN."""


@_name
def any_of(mask: Any) -> bool:
    """Return True if any lane is true."""
    return False


@_name
def all_of(mask: Any) -> bool:
    """Return True if all lanes are true."""
    return False


# numbers --------------------------------------------------------------------------------------
@_name
def saturate(target: Any, value: Any) -> Any:
    """Convert, clamping to the range of the target type."""


@_name
def add_within(a: Any, b: Any) -> Any:
    """Return the saturating sum of integers."""


@_name
def portion(a: Any, b: Any) -> Any:
    """Return the rounded Q15 product ``a * b / 32768`` of vectors of i16."""


@_name
def in_range(target: Any, value: Any) -> Any:
    """Convert a float to an integer type that holds it: fewer instructions than saturating."""


@_name
def bits(target: Any, value: Any) -> Any:
    """Reinterpret the bits as another type of the same size."""


@_name
def select(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` or ``no`` without a branch; both are computed."""


@_name
def minimum(a: Any, b: Any) -> Any:
    """Return the minimum; NaN if either is NaN. ``min(a, b)`` is ``b if b < a else a``."""


@_name
def maximum(a: Any, b: Any) -> Any:
    """Return the maximum; NaN if either is NaN."""


@_name
def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once if the machine has the instruction."""


@_name
def copysign(a: Any, b: Any) -> Any:
    """Return ``a`` with the sign of ``b``."""


@_name
def count_ones(a: Any) -> Any:
    """Return the number of set bits."""


@_name
def leading_zeros(a: Any) -> Any:
    """Return the number of leading zero bits; the width of the type for 0."""


@_name
def trailing_zeros(a: Any) -> Any:
    """Return the number of trailing zero bits; the width of the type for 0."""


@_name
def isnan(a: Any) -> bool:
    """Return True for NaN."""
    return False


@_name
def floor(a: Any) -> Any:
    """Round down; the result is a float."""


@_name
def ceil(a: Any) -> Any:
    """Round up; the result is a float."""


@_name
def trunc(a: Any) -> Any:
    """Round toward zero; the result is a float."""


@_name
def sqrt(a: Any) -> Any:
    """Return the square root."""


@_name
def exp(a: Any) -> Any:
    """Return e raised to a power."""


@_name
def log(a: Any) -> Any:
    """Return the natural logarithm."""


@_name
def sin(a: Any) -> Any:
    """Return the sine."""


@_name
def cos(a: Any) -> Any:
    """Return the cosine."""


@_name
def tan(a: Any) -> Any:
    """Return the tangent."""


@_name
def atan(a: Any) -> Any:
    """Return the arc tangent."""


@_name
def atan2(a: Any, b: Any) -> Any:
    """Return the angle of the point (b, a)."""


@_name
def power(a: Any, b: Any) -> Any:
    """Return ``a`` raised to the power ``b``."""
