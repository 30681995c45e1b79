"""The words of native code, for import by modules that are written in it.

Native functions are parsed, never executed; so here are only names: types, markers and functions
that the emitter knows by identity. For a type checker numbers are ``int`` and ``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from dala.gpu.compute.engines.cpu.native import types

T = TypeVar("T")
S = TypeVar("S")
_F = TypeVar("_F", bound=Callable[..., Any])

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
    """``a: Array[f32]``: memory with a length. Read and write ``a[i]``; ``a[i:j]`` is a part."""

    def __getitem__(self, index: Any) -> Any:
        raise _outside("Array")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _outside("Array")

    def __len__(self) -> int:
        raise _outside("Array")


#: The name that native code is written with.
Array = NativeArray


def _outside(name: str) -> TypeError:
    return TypeError(f"{name} has a meaning in native code only, which is parsed, not executed")


def _word(function: _F) -> _F:
    def refuse(*args: Any, **named: Any) -> Any:
        raise _outside(function.__name__)

    refuse.__name__, refuse.__doc__ = function.__name__, function.__doc__
    return refuse  # type: ignore[return-value]


# loops and constants --------------------------------------------------------------------------
@_word
def static(value: Any) -> Any:
    """``for k in static(range(taps))`` unrolls; ``half = static(taps // 2)`` is a constant."""


@_word
def independent(steps: range, width: int = 0, interleave: int = 0) -> Iterable[int]:
    """``for i in independent(range(n))``: no step reads or writes what another writes."""
    return ()


@_word
def hinted(
    steps: range, width: int = 0, interleave: int = 0, unroll: int = 0, scalar: bool = False
) -> Iterable[int]:
    """A loop with advice: vectors of ``width``, ``interleave`` of them, or no vectors at all."""
    return ()


# memory ---------------------------------------------------------------------------------------
@_word
def local(element: Any, length: int) -> Array[Any]:
    """An array on the stack, of constant length, not cleared."""
    return Array()


@_word
def view(array: Array[Any], element: Any, offset: Any = 0) -> Array[Any]:
    """The memory from a byte offset on as another type, at any alignment."""
    return Array()


@_word
def table(element: Any, values: Any) -> Array[Any]:
    """A constant array, from numbers known at compile time."""
    return Array()


@_word
def load(array: Array[Any], index: Any, lanes: int, count: Any = None) -> Any:
    """``lanes`` neighbours as a vector; with ``count`` only so many are read, the rest are 0."""


@_word
def store(array: Array[Any], index: Any, vector: Any, count: Any = None) -> None:
    """Writes a vector to neighbours; with ``count`` only its first lanes."""


@_word
def stream(array: Array[Any], index: Any, vector: Any) -> None:
    """Writes a vector past the caches where its address is a multiple of its size, else as usual.

    For big results that nobody reads soon: their memory is then not read before it is written.
    """


@_word
def gather(array: Array[Any], indexes: Any, element: Any = None) -> Any:
    """The elements at a vector of indexes; of bytes also wider numbers, at any alignment."""


@_word
def prefetch(array: Array[Any], index: Any) -> None:
    """Asks for memory ahead of its use; any index will do."""


# vectors --------------------------------------------------------------------------------------
@_word
def splat(value: Any, lanes: int) -> Any:
    """A vector of one number (scalars beside vectors are spread without it)."""


@_word
def vec(*values: Any) -> Any:
    """A vector of these numbers."""


@_word
def insert(vector: Any, lane: int, value: Any) -> Any:
    """The vector with one lane replaced; ``v[lane]`` reads one."""


@_word
def shuffle(a: Any, b: Any, lanes: Any) -> Any:
    """Lanes of ``a`` followed by ``b``, picked by a constant tuple."""


@_word
def hsum(vector: Any) -> Any:
    """The sum of the lanes, in no particular order."""


@_word
def hmin(vector: Any) -> Any:
    """The least lane; NaN if there is one."""


@_word
def hmax(vector: Any) -> Any:
    """The greatest lane; NaN if there is one."""


@_word
def any_of(mask: Any) -> bool:
    """True if a lane is."""
    return False


@_word
def all_of(mask: Any) -> bool:
    """True if all lanes are."""
    return False


# numbers --------------------------------------------------------------------------------------
@_word
def saturate(target: Any, value: Any) -> Any:
    """A conversion that clamps to the target's range."""


@_word
def add_within(a: Any, b: Any) -> Any:
    """The sum of whole numbers, or the nearest that their type has."""


@_word
def portion(a: Any, b: Any) -> Any:
    """``a * b / 32768`` of vectors of i16, rounded: one instruction where the machine has it."""


@_word
def in_range(target: Any, value: Any) -> Any:
    """Float to whole number with the promise that it fits: fewer instructions."""


@_word
def bits(target: Any, value: Any) -> Any:
    """The same bits as another type."""


@_word
def select(condition: Any, yes: Any, no: Any) -> Any:
    """Either, without a branch; both are computed."""


@_word
def minimum(a: Any, b: Any) -> Any:
    """The lesser; NaN if either is (``min`` is ``b if b < a else a``, one instruction)."""


@_word
def maximum(a: Any, b: Any) -> Any:
    """The greater; NaN if either is."""


@_word
def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where the machine has the instruction."""


@_word
def copysign(a: Any, b: Any) -> Any:
    """``a`` with the sign of ``b``."""


@_word
def count_ones(a: Any) -> Any:
    """The number of bits that are set."""


@_word
def leading_zeros(a: Any) -> Any:
    """Zero bits above the highest one; the width for 0."""


@_word
def trailing_zeros(a: Any) -> Any:
    """Zero bits below the lowest one; the width for 0."""


@_word
def isnan(a: Any) -> bool:
    """True for NaN."""
    return False


@_word
def floor(a: Any) -> Any:
    """Down to a whole number; stays a float."""


@_word
def ceil(a: Any) -> Any:
    """Up to a whole number; stays a float."""


@_word
def trunc(a: Any) -> Any:
    """Towards zero to a whole number; stays a float."""


@_word
def sqrt(a: Any) -> Any:
    """The square root."""


@_word
def exp(a: Any) -> Any:
    """e to the power."""


@_word
def log(a: Any) -> Any:
    """The natural logarithm."""


@_word
def sin(a: Any) -> Any:
    """The sine."""


@_word
def cos(a: Any) -> Any:
    """The cosine."""


@_word
def tan(a: Any) -> Any:
    """The tangent."""


@_word
def atan(a: Any) -> Any:
    """The arc tangent."""


@_word
def atan2(a: Any, b: Any) -> Any:
    """The angle of the point (b, a)."""


@_word
def power(a: Any, b: Any) -> Any:
    """``a`` to the power ``b``."""
