"""Packing of native arguments into the job block that compiled code reads.

After the head (``cpu/job.py``) come the addresses of the result and of the fault report, then the
arguments: an array as two words (address, length), a number as one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.cpu.job import HEAD_BYTES, WORD_FORMATS
from dala.gpu.compute.engines.cpu.memory import Memory, address_of
from dala.gpu.compute.engines.cpu.native.types import ParamType
from dala.gpu.compute.engines.cpu.vector.types import Type
from dala.typing import NDArray

#: A parameter: its name and its type.
Param: TypeAlias = tuple[str, ParamType]
#: An argument: a number, or an array as ndarray, Memory or (address, length).
Argument: TypeAlias = "NDArray | Memory | tuple[int, int] | bool | int | float | np.number"

#: A result as Python numbers: one, a tuple of them, or None. The compiled function decides which.
NativeResult: TypeAlias = Any

_DTYPES: Final = {
    name: np.dtype(code)
    for name, code in {
        "bool": "|b1", "u8": "|u1", "i8": "|i1", "u16": "<u2", "i16": "<i2", "u32": "<u4",
        "i32": "<i4", "u64": "<u8", "i64": "<i8", "f32": "<f4", "f64": "<f8",
    }.items()
}  # fmt: skip


class Arguments:
    """Packs the arguments of one function; trailing arguments may be fixed and packed once.

    An array argument is a NumPy array, the engine's ``Memory``, or ``(address, length)``.
    """

    __slots__ = ("_changing", "_pack", "_tail", "fixed", "function", "params")

    def __init__(
        self, function: str, params: Sequence[Param], fixed: Sequence[Argument] = ()
    ) -> None:
        if len(fixed) > len(params):
            raise count_error(function, [name for name, _ in params], len(fixed))
        self.function, self.params = function, params
        #: Kept so that the memory of fixed arrays stays valid.
        self.fixed = tuple(fixed)
        split = len(params) - len(fixed)
        self._changing, last = params[:split], params[split:]
        form, fixed_form = (words_format(k for _, k in some) for some in (self._changing, last))
        self._pack = struct.Struct(f"={HEAD_BYTES}sQQ{form}").pack
        self._tail = b""
        if fixed:
            words = self._words(last, fixed)
            try:
                self._tail = struct.pack(f"={fixed_form}", *words)
            except (struct.error, OverflowError) as error:
                raise self._misfit(error) from None

    @property
    def complete(self) -> bool:
        """True if every argument is fixed."""
        return not self._changing

    def pack(self, head: bytes, result: int, fault: int, args: Sequence[Argument]) -> bytes:
        """Return the block for a call: head, addresses of result and fault report, arguments."""
        words = self._words(self._changing, args)
        try:
            return self._pack(head, result, fault, *words) + self._tail
        except (struct.error, OverflowError) as error:
            raise self._misfit(error) from None

    def _words(self, params: Sequence[Param], args: Sequence[Argument]) -> list[Argument]:
        if len(args) != len(params):
            raise count_error(self.function, [name for name, _ in params], len(args))
        words: list[Argument] = []
        for (name, kind), arg in zip(params, args, strict=True):
            if not isinstance(kind, tuple):
                words.append(arg)
            elif isinstance(arg, tuple):
                words += arg
            elif isinstance(arg, Memory):  # untyped bytes
                words += arg.address, arg.array.nbytes // kind[1].size
            else:
                words += self._array(name, kind[1], arg)
        return words

    def _array(self, name: str, element: Type, arg: Argument) -> tuple[int, int]:
        if not isinstance(arg, np.ndarray):
            raise ParameterError.invalid(
                self.function, name, "an array, Memory or (address, length)", type(arg)
            )
        if arg.dtype != _DTYPES[element.name]:
            raise DtypeMismatch.invalid(self.function, name, f"an array of {element}", arg)
        if not arg.flags.c_contiguous:
            raise ParameterError.invalid(
                self.function, name, "a contiguous array", arg, "Copy it: np.ascontiguousarray(x)."
            )
        return address_of(arg), arg.size

    def _misfit(self, error: Exception) -> ParameterError:
        listed = ", ".join(f"{n}: {k}" for n, k in self.params if isinstance(k, Type))
        return ParameterError(
            f"{self.function}: a number does not fit its type ({listed}): {error}.",
            call=self.function,
        )


def count_error(function: str, names: Sequence[str], got: int) -> ParameterError:
    """Return the error for a wrong number of arguments."""
    listed = ", ".join(names)
    return ParameterError(
        f"{function}: expected {len(names)} arguments ({listed}), got {got}.", call=function
    )


def words_format(kinds: Iterable[ParamType]) -> str:
    """Return the struct format of parameters, or of the numbers of a result."""
    return "".join("Qq" if isinstance(k, tuple) else WORD_FORMATS[k.name] for k in kinds)
