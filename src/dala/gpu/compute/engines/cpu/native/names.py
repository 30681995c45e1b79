"""The names of the native language: modules written in it import all of them, as its vocabulary.

Native functions are parsed, never executed, so these types, markers and functions do nothing in
Python: the emitter recognizes them by identity. Type checkers see ``int`` and ``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from dala.gpu.compute.engines.cpu.vector import types

T = TypeVar("T")
S = TypeVar("S")
F = TypeVar("F")

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


class NativeRecord(NativeArray[Any]):
    """Elements of an array with names: ``class Plan(Record, fields="left right")``.

    ``plan: Plan`` is an array whose elements are read and written as ``plan.left``, numbers of one
    size, of i64 or of the given types. ``Plan(array, n)`` is the n-th record of an array.
    """

    element: types.Type
    kinds: dict[str, types.Type]
    places: dict[str, int]
    size: int

    def __init_subclass__(cls, fields: str | dict[str, Element], size: int = 0) -> None:
        cls.kinds = dict.fromkeys(fields.split(), types.I64) if isinstance(fields, str) else fields
        cls.element = next(iter(cls.kinds.values()))
        cls.places = {name: place for place, name in enumerate(cls.kinds)}
        cls.size = size or len(cls.kinds)

    @classmethod
    def write(cls, array: Value, **values: Value) -> None:
        """Set fields of a record in a NumPy array."""
        for name, value in values.items():
            array[cls.places[name]] = value

    def __init__(self, array: Array[Value], number: Value) -> None:
        raise _python_error(type(self).__name__)

    def __getattr__(self, name: str) -> Value:
        raise _python_error(name)

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Value) -> None: ...


#: The name to use in native code.
Record = NativeRecord


def _python_error(name: str) -> TypeError:
    return TypeError(f"{name} works in native code only, which is parsed, not executed.")


# loops and constants --------------------------------------------------------------------------
def static(value: Value) -> Value:
    """Evaluate at compile time.

    ``for k in static(range(taps))`` unrolls a loop; ``half = static(taps // 2)`` is a constant.
    """


def independent(steps: range, width: int = 0) -> Iterable[int]:
    """Promise that no iteration of a loop reads or writes memory that another one writes."""
    return ()


def serial(*bounds: int) -> Iterable[int]:
    """Iterate as ``range`` does, without vectors and without unrolling."""
    return ()


def hinted(steps: range, width: int = 0, unroll: int = 0, scalar: bool = False) -> Iterable[int]:
    """Give hints for a loop: vector width and unroll count, or no vectors."""
    return ()


# memory ---------------------------------------------------------------------------------------
def local(element: Element, length: int) -> Array[Value]:
    """Allocate an uninitialized array of constant length on the stack."""
    return Array()


def view(array: Array[Value], element: Element, offset: Value = 0) -> Array[Value]:
    """Return the memory from a byte offset on as an array of another type, at any alignment."""
    return Array()


def table(element: Element, values: Value) -> Array[Value]:
    """Return a constant array."""
    return Array()


def load(array: Array[Value], index: Value, lanes: int, count: Value = None) -> Value:
    """Load ``lanes`` consecutive elements as a vector; those from ``count`` on are 0, not read."""


def store(array: Array[Value], index: Value, vector: Value, count: Value = None) -> None:
    """Store a vector to consecutive elements; with ``count``, only its first lanes."""


def stream(array: Array[Value], index: Value, vector: Value) -> None:
    """Store a vector with a nontemporal store if its address is aligned, else normally.

    For large results that are not read soon: the caches are bypassed.
    """


def gather(array: Array[Value], indexes: Value, element: Element = None) -> Value:
    """Load the elements at a vector of indexes.

    From an array of bytes, ``element`` loads wider numbers at any alignment.
    """


def prefetch(array: Array[Value], index: Value) -> None:
    """Prefetch memory into the cache; the index may be out of bounds."""


# vectors --------------------------------------------------------------------------------------
def splat(value: Value, lanes: int) -> Value:
    """Return a vector with a number in every lane. Operators do this to scalars by themselves."""


def vec(*values: Value) -> Value:
    """Return a vector of numbers."""


def insert(vector: Value, lane: int, value: Value) -> Value:
    """Return a vector with one lane replaced. ``v[lane]`` reads a lane."""


def join(*vectors: Value) -> Value:
    """Return the lanes of all vectors, one after another; there are a power of two of them."""


def shuffle(a: Value, b: Value, lanes: Value) -> Value:
    """Return lanes of ``a`` and ``b``, selected by a constant tuple of indexes."""


def hsum(vector: Value) -> Value:
    """Return the sum of the lanes, in any order."""


def hmin(vector: Value) -> Value:
    """Return the minimum of the lanes; NaN if any is NaN."""


def hmax(vector: Value) -> Value:
    """Return the maximum of the lanes; NaN if any is NaN."""


def any_of(mask: Value) -> bool:
    """Return True if any lane is true."""
    return False


def all_of(mask: Value) -> bool:
    """Return True if all lanes are true."""
    return False


# numbers --------------------------------------------------------------------------------------
def saturate(target: Element, value: Value) -> Value:
    """Convert, clamping to the range of the target type."""


def add_saturate(a: Value, b: Value) -> Value:
    """Return the saturating sum of integers."""


def multiply_q15(a: Value, b: Value) -> Value:
    """Return the rounded Q15 product ``a * b / 32768`` of vectors of i16."""


def multiply_pairs(a: Value, b: Value) -> Value:
    """Multiply vectors of i16 and add the products in pairs: i32, half as many lanes.

    Or vectors of u8 and of i8, whose sums must fit i16.
    """


def narrow_fours(a: Value, b: Value) -> Value:
    """Saturate vectors of i32 to one of i16: four lanes of ``a``, four of ``b``, and so on."""


def look_up(a: Value, b: Value, c: Value, d: Value, places: Value) -> Value:
    """Return the entries of a table of 256 bytes, given as four vectors of 64, at 64 places."""


def in_range(target: Element, value: Value) -> Value:
    """Convert a float to an integer type that holds it: fewer instructions than saturating."""


def bits(target: Element, value: Value) -> Value:
    """Reinterpret the bits as another type: of the same size, or of a vector's parts."""


def select(condition: Value, yes: Value, no: Value) -> Value:
    """Return ``yes`` or ``no`` without a branch; both are computed."""


def minimum(a: Value, b: Value) -> Value:
    """Return the minimum; NaN if either is NaN. ``min(a, b)`` is ``b if b < a else a``."""


def maximum(a: Value, b: Value) -> Value:
    """Return the maximum; NaN if either is NaN."""


def fma(a: Value, b: Value, c: Value) -> Value:
    """Return ``a * b + c``, rounded once if the machine has the instruction."""


def isnan(a: Value) -> bool:
    """Return True for NaN."""
    return False


def floor(a: Value) -> Value:
    """Round down; the result is a float."""


def ceil(a: Value) -> Value:
    """Round up; the result is a float."""


def sqrt(a: Value) -> Value:
    """Return the square root."""


def exp(a: Value) -> Value:
    """Return e raised to a power."""


def _refused(function: Callable[..., object]) -> Callable[..., NoReturn]:
    def refuse(*args: Value, **named: Value) -> NoReturn:
        raise _python_error(function.__name__)

    refuse.__name__, refuse.__doc__ = function.__name__, function.__doc__
    return refuse


#: The functions of the language are those of this module that are public.
globals().update(
    (name, _refused(function))
    for name, function in [*globals().items()]
    if isinstance(function, FunctionType) and not name.startswith("_")
)
