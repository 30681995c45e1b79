"""Compiled native functions, called from Python without the GIL, on one thread or several."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from dala import forks
from dala.errors import DeviceError, ParameterError
from dala.forks import cached_property
from dala.gpu.compute.engines.cpu.jit import Code, Jit, jit
from dala.gpu.compute.engines.cpu.job import CallWithGil, CallWithoutGil, job_head
from dala.gpu.compute.engines.cpu.native.arguments import (
    Argument,
    Arguments,
    NativeResult,
    Param,
    count_error,
    words_format,
)
from dala.gpu.compute.engines.cpu.native.disk import cache_key, load_code, store_code
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import ParamType, Result, Static
from dala.gpu.compute.engines.cpu.sanitize import SANITIZE
from dala.gpu.compute.engines.cpu.threads import ThreadPool, Tiles, pool
from dala.trace.recorder import OFF, tracer

if TYPE_CHECKING:  # the emitter is imported only if the cache has no code
    from dala.gpu.compute.engines.cpu.native.emit import EmittedModule

_Entry: TypeAlias = Callable[..., None]
_Body: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


#: Functions with more bytes of local arrays touch their stack pages first; only Windows needs this.
TOUCH_FROM = 1024 if sys.platform == "win32" else 1 << 30


class OutOfBounds(DeviceError, IndexError):
    """Raised by checked native code in place of an access outside an array."""

    def __init__(self, function: str, line: int, index: int, length: int) -> None:
        super().__init__(
            f"native code {function}, line {line}: index {index} is out of bounds for an array of "
            f"length {length}."
        )
        self.function, self.line, self.index, self.length = function, line, index, length


class Native:
    """A compiled native function: a callable that runs without the GIL.

    :meth:`parallel` runs a function over a range on several threads.
    """

    def __init__(
        self, function: NativeFunction, statics: dict[str, Static], checked: bool, compiler: Jit
    ) -> None:
        self.name = function.name
        self.checked = checked
        self._compiler = compiler
        self._function, self._statics, self._touch_from = function, statics, TOUCH_FROM
        key = cache_key(function, statics, compiler, checked, TOUCH_FROM)
        cached = None if key is None else load_code(key, compiler)
        found = self._emitted if cached is None else cached
        self.params: list[str] = found.params
        self.kinds: list[ParamType] = found.kinds
        self.result: Result = found.result
        self.names: list[str] = found.names
        several = self.result if isinstance(self.result, tuple) else (self.result,)
        self._layout = struct.Struct("=" + words_format(t for t in several if t is not None))
        self.shared = self.params[-2:] == ["start", "end"]
        if cached is None:
            exports = ("all", "body") if self.shared else ("all",)
            with tracer.span("compile", f"{self.name}, native code") if tracer.on else OFF:
                self.code: Code = compiler.compile(self.text, exports)
            if key is not None:
                store_code(key, compiler, self._emitted, exports)
        else:
            self.code = cached.code
        self._call = self._entry(CallWithoutGil, "all")
        if self.shared:
            self._body = self._entry(_Body, "body")
        given = self.kinds[:-2] if self.shared else self.kinds
        self._given: list[Param] = list(zip(self.params, given, strict=False))
        self._all = Arguments(self.name, self._given)

    def _entry(self, kind: Callable[[int], _Entry], name: str) -> _Entry:
        """Return an entry point as a ctypes function, which keeps the code's memory alive."""
        made = kind(self.code.addresses[name])
        made.owner = self.code  # type: ignore[attr-defined]
        return made

    @cached_property
    def _emitted(self) -> EmittedModule:
        from dala.gpu.compute.engines.cpu.native.emit import emit

        machine, touch = self._compiler.machine, self._touch_from
        return emit(self._function, self._statics, self.checked, machine, touch)

    @property
    def text(self) -> str:
        """The LLVM IR before optimization."""
        return self._emitted.text

    def assembly(self) -> str:
        """Return the machine code as assembly text."""
        return self._compiler.assembly(self.text)

    # calls ------------------------------------------------------------------------------------
    def __call__(self, *args: Argument) -> NativeResult:
        """Run the function on the calling thread."""
        if self.shared:
            return self._run_part(self._all, args)
        return self._run(self._all, _HEAD, self._call, args)

    def prepare(self, *fixed: Argument, keep_gil: bool = False) -> Callable[..., NativeResult]:
        """Return a function with the last arguments fixed, which are packed once.

        It takes the remaining arguments, and ``start`` and ``end`` where the function has a range.
        It runs on the calling thread and keeps the arrays among ``fixed`` alive. ``keep_gil`` is
        for calls of a few microseconds, which are shorter than the wait for the GIL.
        """
        arguments = Arguments(self.name, self._given, fixed)
        if self.shared:
            return lambda *args: self._run_part(arguments, args)
        call = self._entry(CallWithGil, "all") if keep_gil else self._call
        return self._prepared(arguments, _HEAD, call)

    def parallel(
        self,
        total: int,
        chunk: int,
        *,
        threads: ThreadPool | None = None,
        fixed: Sequence[Argument] = (),
    ) -> Callable[..., None]:
        """Return a function that runs the range [0, total) on several threads.

        It takes the arguments before ``start`` and ``end``, except the last ones if they are
        ``fixed``. The range is cut into tiles of ``chunk`` positions, which the calling thread and
        helpers claim; a single tile runs on the calling thread alone.
        """
        if not self.shared or self.result is not None:
            raise ParameterError(
                f"{self.name}: only a function without a result whose last arguments are start "
                "and end can run in parallel.",
                call=self.name,
            )
        if chunk < 1 or total < 0:
            raise ParameterError(
                f"{self.name}: total must be at least 0 and chunk at least 1, "
                f"got {total} and {chunk}.",
                call=self.name,
            )
        head = job_head(total, chunk, self.code.addresses["body"])
        call: Callable[[bytes], object] = self._call
        crew = threads or pool()
        helpers = min(crew.threads, -(-total // chunk)) - 1
        if helpers > 0:
            code = self._compiler.tiles()
            tiles = Tiles(code.addresses, (code, self.code))
            call = partial(crew.run, tiles, helpers=helpers)
        return self._prepared(Arguments(self.name, self._given, fixed), head, call)

    def _prepared(
        self, arguments: Arguments, head: bytes, call: Callable[[bytes], object]
    ) -> Callable[..., NativeResult]:
        if self.checked or self.result is not None:
            return lambda *args: self._run(arguments, head, call, args)
        pack = arguments.pack
        if arguments.complete:
            ready = partial(call, pack(head, 0, 0, ()))
            ready.arguments = arguments  # type: ignore[attr-defined]  # keeps the arrays
            return ready

        def run(*args: Argument) -> None:
            call(pack(head, 0, 0, args))

        return run

    def _run(
        self,
        arguments: Arguments,
        head: bytes,
        call: Callable[[bytes], object],
        args: Sequence[Argument],
    ) -> NativeResult:
        """Pack the arguments, call, raise a reported fault, and return the result."""
        fault = _Fault() if self.checked else None
        report = 0 if fault is None else ctypes.addressof(fault)
        out = (ctypes.c_int64 * (self._layout.size // 8))()
        call(arguments.pack(head, ctypes.addressof(out), report, args))
        if fault is not None and fault[0]:
            _, index, length, line, name = fault
            raise OutOfBounds(self.names[name], line, index, length)
        values = self._layout.unpack(out)
        return values if isinstance(self.result, tuple) else next(iter(values), None)

    def _run_part(self, arguments: Arguments, args: Sequence[Argument]) -> NativeResult:
        """Run the part of a range from ``start`` to ``end``, the last two of ``args``."""
        if len(args) < 2:
            raise count_error(self.name, self.params, len(args))
        start, end = args[-2:]
        body = self._body
        return self._run(arguments, _HEAD, lambda block: body(block, None, start, end), args[:-2])


#: The head of a block that runs on one thread.
_HEAD: Final = job_head(0, 1, 0)
_Fault: Final = ctypes.c_int64 * 5


#: Compiled functions kept in memory. The oldest are dropped, and reloaded from disk when needed.
MAX_CACHED: Final = 1024

_known: dict[tuple[object, ...], Native] = {}
_compiling = forks.lock()


def compile_native(
    function: NativeFunction,
    *,
    checked: bool = False,
    compiler: Jit | None = None,
    **statics: Static | list[Static],
) -> Native:
    """Compile a native function for a set of constants, or return cached code.

    Args:
        function: The function.
        checked: Whether accesses outside arrays raise OutOfBounds. With DALA_SANITIZE=1 they
            always do.
        compiler: The compiler; by default, that of the process.
        **statics: The function's compile-time constants.
    """
    checked = checked or SANITIZE
    constants: dict[str, Static] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in sorted(statics.items())
    }
    key = (function, checked, compiler, *((n, v, type(v)) for n, v in constants.items()))
    found = _known.get(key)
    if found is None:
        with _compiling:
            found = _known.get(key)
            if found is None:
                found = Native(function, constants, checked, compiler or jit())
                if len(_known) >= MAX_CACHED:
                    _known.pop(next(iter(_known)))
                _known[key] = found
    return found
