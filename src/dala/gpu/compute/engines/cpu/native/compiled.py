"""Compiled native code: called from Python with the GIL free, on one thread or shared out."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dala.errors import DeviceError, DtypeMismatch, ParameterError
from dala.gpu.compute.engines.cpu.jit import Code, Jit, jit
from dala.gpu.compute.engines.cpu.memory import Memory, address_of
from dala.gpu.compute.engines.cpu.native.recall import key_of, recall, remember
from dala.gpu.compute.engines.cpu.native.source import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import Type
from dala.gpu.compute.engines.cpu.threads import Pool, Tiles, pool

if TYPE_CHECKING:  # what writes code is imported when some has to be written
    from dala.gpu.compute.engines.cpu.native.emission import Emitted
    from dala.gpu.compute.engines.cpu.native.unit import Result

_PACK: Final = {
    "bool": "?7x", "u8": "B7x", "i8": "b7x", "u16": "H6x", "i16": "h6x", "u32": "I4x",
    "i32": "i4x", "u64": "Q", "i64": "q", "f32": "f4x", "f64": "d",
}  # fmt: skip
_KINDS: Final = {
    name: np.dtype(kind)
    for name, kind in {
        "bool": "|b1", "u8": "|u1", "i8": "|i1", "u16": "<u2", "i16": "<i2", "u32": "<u4",
        "i32": "<i4", "u64": "<u8", "i64": "<i8", "f32": "<f4", "f64": "<f8",
    }.items()
}  # fmt: skip
_All: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
#: The same without letting go of the GIL: for calls that are over before anybody else has it.
_Brief: Final = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)
_Body: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


#: Where the first argument of a block is, and an array there.
_FIRST: Final = 72 + 16
_PLACE: Final = struct.Struct("=Qq")

#: Bytes of local arrays from which pages are touched first, where that is needed.
TOUCH_FROM = 1024 if sys.platform == "win32" else 1 << 30


class OutOfBounds(DeviceError, IndexError):
    """Checked native code was about to leave an array: a mistake in that code."""

    def __init__(self, function: str, line: int, index: int, length: int) -> None:
        super().__init__(
            f"native code {function}, line {line}: index {index} of an array of {length}"
        )
        self.function, self.line, self.index, self.length = function, line, index, length


class Native:
    """A compiled function. Call it, or share its range out with :meth:`parallel`."""

    def __init__(
        self, function: NativeFunction, statics: dict[str, Any], checked: bool, compiler: Jit
    ) -> None:
        self.name = function.name
        self.checked = checked
        self._compiler = compiler
        self._function, self._statics, self._touch_from = function, statics, TOUCH_FROM
        key = key_of(function, statics, compiler, checked, TOUCH_FROM)
        recalled = None if key is None else recall(key, compiler)
        found = self._emitted if recalled is None else recalled
        self.params: list[str] = found.params
        self.kinds: list[Any] = found.kinds
        self.result: Result = found.result
        self.names: list[str] = found.names
        self.shared = self.params[-2:] == ["start", "end"]
        if recalled is None:
            exports = ("all", "body") if self.shared else ("all",)
            self.code: Code = compiler.compile(self.text, exports)
            if key is not None:
                remember(key, compiler, self._emitted, exports)
        else:
            self.code = recalled.code
        self._call = self._entry(_All, "all")
        self._body: Any = self._entry(_Body, "body") if self.shared else None
        given = self.kinds[:-2] if self.shared else self.kinds
        self._pack = struct.Struct(f"=72sQQ{_form(given)}").pack
        self._given: list[_Given] = list(zip(self.params, given, strict=False))
        self._head = struct.pack("=9q", 0, 0, 1, 0, 0, 0, 0, 0, 0)

    def _entry(self, kind: Any, name: str) -> Any:
        """A function of the code, which keeps the code's memory: others may outlive this."""
        made = kind(self.code.addresses[name])
        made.owner = self.code
        return made

    @cached_property
    def _emitted(self) -> Emitted:
        from dala.gpu.compute.engines.cpu.native.emission import emit

        host = self._compiler.host
        return emit(
            self._function,
            self._statics,
            checked=self.checked,
            host=host,
            touch_from=self._touch_from,
        )

    @property
    def text(self) -> str:
        """The LLVM IR, before it is optimised."""
        return self._emitted.text

    def assembly(self) -> str:
        """The machine code, as the assembler writes it."""
        return self._compiler.assembly(self.text)

    # calls ------------------------------------------------------------------------------------
    def __call__(self, *args: Any) -> Any:
        """Runs the function on the calling thread."""
        if not self.shared:
            return self._whole(self._call, self._head, args)
        if len(args) != len(self.params):
            raise self._count(args, self.params)
        start, end = args[-2:]
        body = self._body
        return self._whole(lambda block: body(block, None, start, end), self._head, args[:-2])

    def block(self, *args: Any) -> bytes:
        """The block that ``body`` takes its arguments from, for native code that calls it."""
        return self._packed(self._head, 0, 0, args)

    def fixed(self, *args: Any) -> Callable[[tuple[int, int], int, int], None]:
        """A function of the first array's place, ``start`` and ``end``: the rest stays as given.

        For what is called so often that packing all of it takes longer than it runs.
        """
        if self.checked or self.result is not None or not self.shared:
            return lambda place, start, end: self(place, *args, start, end)
        block = self._packed(self._head, 0, 0, ((0, 0), *args))
        before, after, body = block[:_FIRST], block[_FIRST + _PLACE.size :], self._body
        pack = _PLACE.pack

        def run(place: tuple[int, int], start: int, end: int) -> None:
            body(before + pack(*place) + after, None, start, end)

        return run

    def _heading(self, total: int, chunk: int) -> bytes:
        body = self.code.addresses["body"] if self.shared else 0
        return struct.pack("=9q", 0, total, chunk, 0, 0, body, 0, 0, 0)

    def _words(self, given: Sequence[_Given], args: Sequence[Any]) -> list[Any]:
        if len(args) != len(given):
            raise self._count(args, [n for n, _ in given])
        words: list[Any] = []
        for (name, kind), arg in zip(given, args, strict=True):
            if isinstance(kind, Type):
                words.append(arg)
            elif type(arg) is tuple:
                words += arg
            elif type(arg) is Memory:  # of the engine: bytes of any type
                words += arg.address, arg.array.nbytes // kind[1].size
            else:
                words += self._array(name, kind[1], arg)
        return words

    def _count(self, args: Sequence[Any], wanted: Sequence[str]) -> ParameterError:
        names = ", ".join(wanted)
        return ParameterError(f"{self.name}({names}): {len(args)} arguments came")

    def _array(self, name: str, element: Type, arg: Any) -> tuple[int, int]:
        if isinstance(arg, tuple):
            return arg
        if type(arg) is np.ndarray and arg.flags.c_contiguous:
            if arg.dtype != _KINDS[element.name]:
                raise DtypeMismatch(f"{self.name}: {name} is of {element}, not {arg.dtype}")
            return address_of(arg), arg.size
        try:
            told = arg.__array_interface__
        except AttributeError:
            raise ParameterError(
                f"{self.name}: {name} must be an array, memory or (address, length), "
                f"not {type(arg).__name__}"
            ) from None
        if told["typestr"] != _KINDS[element.name].str:
            raise DtypeMismatch(f"{self.name}: {name} is of {element}, not {arg.dtype}")
        if told["strides"] is not None:
            raise ParameterError(f"{self.name}: {name} must be contiguous")
        return told["data"][0], arg.size

    def _packed(self, head: bytes, result: int, fault: int, args: Sequence[Any]) -> bytes:
        words = self._words(self._given, args)
        try:
            return self._pack(head, result, fault, *words)
        except (struct.error, OverflowError) as error:
            raise self._misfit(error) from None

    def _misfit(self, error: Exception) -> ParameterError:
        given = ", ".join(f"{n}: {k}" for n, k in self._given if isinstance(k, Type))
        return ParameterError(f"{self.name}: a number does not fit ({error}); {given}")

    def _packer(self, fixed: Sequence[Any]) -> Callable[[bytes, int, int, Sequence[Any]], bytes]:
        """As :meth:`_packed`, for calls whose last arguments are these."""
        if not fixed:
            return self._packed
        first, last = self._given[: -len(fixed)], self._given[-len(fixed) :]
        words = self._words(last, fixed)
        try:
            tail = struct.pack(f"={_form([kind for _, kind in last])}", *words)
        except (struct.error, OverflowError) as error:
            raise self._misfit(error) from None
        pack = struct.Struct(f"=72sQQ{_form([kind for _, kind in first])}").pack

        def packed(head: bytes, result: int, fault: int, args: Sequence[Any]) -> bytes:
            try:
                return pack(head, result, fault, *self._words(first, args)) + tail
            except (struct.error, OverflowError) as error:
                raise self._misfit(error) from None

        return packed

    def _whole(self, call: Callable[[bytes], Any], head: bytes, args: Sequence[Any]) -> Any:
        fault = _Fault() if self.checked else None
        told = 0 if fault is None else ctypes.addressof(fault)
        if self.result is None:
            call(self._packed(head, 0, told, args))
        else:
            out = (ctypes.c_int64 * _result_words(self.result))()
            call(self._packed(head, ctypes.addressof(out), told, args))
        if fault is not None:
            self._raise(fault)
        return None if self.result is None else _unpacked(self.result, bytes(out))

    def _raise(self, fault: Any) -> None:
        if fault[0]:
            raise OutOfBounds(self.names[fault[4]], fault[3], fault[1], fault[2])

    def bound(self, *args: Any) -> Callable[[], None]:
        """A call with these arguments, packed once; whoever makes it keeps the arrays alive.

        For what takes microseconds: the GIL is kept, so that it need not be waited for after.
        """
        if self.shared or self.result is not None:
            raise ParameterError(f"{self.name}: only a call of all of it without a result is bound")
        fault = _Fault() if self.checked else None
        told = 0 if fault is None else ctypes.addressof(fault)
        block, call = self._packed(self._head, 0, told, args), self._entry(_Brief, "all")
        if fault is None:
            return partial(call, block)

        def run() -> None:
            fault[0] = 0
            call(block)
            self._raise(fault)

        return run

    def parallel(
        self, total: int, chunk: int, *, threads: Pool | None = None, fixed: Sequence[Any] = ()
    ) -> Callable[..., None]:
        """A function of all arguments but ``start`` and ``end``: runs [0, total) in tiles.

        Tiles of ``chunk`` positions are taken by the calling thread and by helpers; one tile runs
        on the calling thread alone. Prepared once, a call costs a few microseconds. The last
        arguments, or all, may be ``fixed``: then calls go without them, and cost less. Whoever
        calls keeps what they point to alive.
        """
        if not self.shared or self.result is not None:
            raise ParameterError(
                f"{self.name}: only a function whose last arguments are start and end, and which "
                "has no result, can be shared out"
            )
        if chunk < 1 or total < 0:
            raise ParameterError(f"{self.name}: total {total} and chunk {chunk} make no tiles")
        head, call, packed = self._heading(total, chunk), self._call, self._packer(fixed)
        crew = threads or pool()
        helpers = min(crew.threads, -(-total // chunk)) - 1
        tiles = None
        if helpers > 0:
            code = self._compiler.tiles()
            tiles = Tiles(code.addresses, (code, self.code))

        if len(fixed) == len(self._given) and not self.checked and total:
            ready = packed(head, 0, 0, ())
            if tiles is None:
                return partial(call, ready)
            return partial(crew.run, tiles, ready, helpers)

        def run(*args: Any, _alive: Sequence[Any] = fixed) -> None:
            fault = _Fault() if self.checked else None
            told = 0 if fault is None else ctypes.addressof(fault)
            block = packed(head, 0, told, args)
            if total == 0:
                return
            if tiles is None:
                call(block)
            else:
                crew.run(tiles, block, helpers)
            if fault is not None:
                self._raise(fault)

        return run


_Given: TypeAlias = tuple[str, Any]
_Fault: Final = ctypes.c_int64 * 5


def _form(kinds: Sequence[Any]) -> str:
    """How arguments of these kinds are packed."""
    return "".join("Qq" if isinstance(k, tuple) else _PACK[k.name] for k in kinds)


def _result_words(result: Result) -> int:
    return len(result) if isinstance(result, tuple) else 1


def _unpacked(result: Result, data: bytes) -> Any:
    if isinstance(result, tuple):
        return struct.unpack("=" + "".join(_PACK[t.name] for t in result), data)
    assert result is not None
    return struct.unpack("=" + _PACK[result.name], data)[0]


#: Compiled functions kept; beyond that the oldest go (and come back from the disk).
KEPT: Final = 1024

_known: dict[tuple[Any, ...], Native] = {}
_compiling = threading.Lock()


def _after_fork() -> None:
    # A thread that the child does not have may have held it.
    global _compiling
    _compiling = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def compile_native(
    function: NativeFunction, *, checked: bool = False, compiler: Jit | None = None, **statics: Any
) -> Native:
    """Code for a function and a set of constants; made once, and kept.

    ``checked`` builds code that raises OutOfBounds instead of leaving an array.
    """
    statics = {n: tuple(v) if isinstance(v, list) else v for n, v in sorted(statics.items())}
    key = (function, checked, compiler, *((n, v, type(v)) for n, v in statics.items()))
    found = _known.get(key)
    if found is None:
        with _compiling:
            found = _known.get(key)
            if found is None:
                found = Native(function, statics, checked, compiler or jit())
                if len(_known) >= KEPT:
                    _known.pop(next(iter(_known)))
                _known[key] = found
    return found
