"""Compile LLVM IR text to functions in memory: optimize, generate code, link, and cache on disk.

llvmlite is imported when the first kernel is compiled. It holds a lock of its own during each call
and releases the GIL, so other threads keep running while a kernel compiles.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import itertools
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dala import forks
from dala.errors import DalaError, DeviceError
from dala.gpu.compute.engines.cpu.cache import ObjectCache, cache_folder
from dala.gpu.compute.engines.cpu.effort import FULL, SCALAR_FUNCTION, Effort
from dala.gpu.compute.engines.cpu.level import LEVELS, X86, chosen_level
from dala.gpu.compute.engines.cpu.llvm.tiles import tiles_text
from dala.gpu.compute.engines.cpu.machine import Machine

if TYPE_CHECKING:
    from llvmlite.binding import LLJIT, ModuleRef, TargetMachine

#: Part of every key on disk. Increase it when the meaning of stored code changes.
CACHE_VERSION: Final = "3"

#: Modules that one linker takes. It keeps a little memory of each, also when their code is dropped.
MODULES_PER_LINKER: Final = 64


@dataclass(eq=False, slots=True)
class Code:
    """Functions in memory, by name. The memory is freed with this object."""

    addresses: dict[str, int]
    _owner: object = field(repr=False)


class Jit:
    """The compiler for this CPU, or for an older one that this CPU is compatible with.

    Args:
        cache: object code on disk.
        cpu: LLVM's name of another CPU.
        features: those of the other CPU that generated code may choose by.
    """

    def __init__(
        self,
        cache: ObjectCache | None = None,
        cpu: str | None = None,
        features: Sequence[str] = (),
    ) -> None:
        try:
            llvm = importlib.import_module("llvmlite.binding")
        except (ImportError, OSError) as error:
            raise DeviceError(
                f"cpu: llvmlite could not be loaded: {error}. "
                "Install it with 'pip install llvmlite', or choose another device.",
                call="cpu",
            ) from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm = llvm
        self.cpu: str = cpu or llvm.get_host_cpu_name()
        own = dict.fromkeys(features, True)
        self.features: dict[str, bool] = own if cpu else dict(llvm.get_host_cpu_features())
        self.machine = Machine.of(self.features)
        self.version = ".".join(str(n) for n in llvm.llvm_version_info)
        self.cache = ObjectCache(cache_folder()) if cache is None else cache
        flags = ",".join(f"{'-+'[on]}{name}" for name, on in sorted(self.features.items()))
        self._flags = flags
        #: By level of the code generator.
        self._machines: dict[int, TargetMachine] = {}
        self._machine = self._machine_for(3)
        self._linker: LLJIT | None = None
        self._linked = 0
        wrapper = importlib.import_module("llvmlite").__version__
        self._identity = "\n".join(
            [CACHE_VERSION, wrapper, self.version, self._machine.triple, self.cpu, flags]
        )
        old = platform.machine().lower() in X86 and not self.features.get("sse4.1")
        self._imports = _rounding_functions() if old else {}
        self._names = itertools.count()
        self._tiles: Code | None = None
        self._making_tiles = forks.lock()
        # LLVM has locks of its own. llvmlite's finalizers call it without ours: any call waits for
        # them.
        self._lock = forks.native_lock("LLVM", llvm.get_process_triple)
        forks.in_child(_free_llvmlite)
        self.compiled = 0
        self.cache_hits = 0
        self.compile_seconds = 0.0

    def tiles(self) -> Code:
        """Return the functions that run jobs; see ``llvm/tiles.py``."""
        with self._making_tiles:  # shared by all: the functions live as long as this compiler
            if self._tiles is None:
                self._tiles = self.compile(tiles_text(self.machine), ("share", "wait", "serve"))
            return self._tiles

    def _machine_for(self, level: int) -> TargetMachine:
        found = self._machines.get(level)
        if found is None:
            target = self._llvm.Target.from_triple(self._llvm.get_process_triple())
            found = self._machines[level] = target.create_target_machine(
                cpu=self.cpu, features=self._flags, opt=level, jit=True, codemodel="jitdefault"
            )
        return found

    def compile(
        self,
        text: str,
        exports: tuple[str, ...],
        *,
        effort: Effort = FULL,
    ) -> Code:
        """Return the functions of a module, from disk if it was compiled before.

        Args:
            text: the module.
            exports: the functions.
            effort: how much LLVM optimizes it.
        """
        stored = self.load_cached(text, exports)
        return stored or self.compile_new(text, exports, effort=effort)

    def compile_new(
        self,
        text: str,
        exports: tuple[str, ...],
        *,
        effort: Effort = FULL,
    ) -> Code:
        """Compile a module that is not on disk; see :meth:`compile`."""
        began = time.perf_counter()
        made = self.object_code(text, effort=effort)
        code = self._link(made, exports)
        self.compiled += 1
        self.compile_seconds += time.perf_counter() - began
        self.cache.put(self._key(text), made)
        return code

    def load_cached(self, text: str, exports: tuple[str, ...]) -> Code | None:
        """Return the functions of a module if they are on disk, else None."""
        stored = self.cache.get(self._key(text))
        if stored is None:
            return None
        try:
            code = self._link(stored, exports)
        except RuntimeError:
            return None  # the checksum is valid but linking failed: compile again
        self.cache_hits += 1
        return code

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._identity}\n{text}".encode()).hexdigest()

    def object_code(self, text: str, *, effort: Effort = FULL) -> bytes:
        """Return the object code of a module, optimized."""
        with _refusals(), self._module(text, effort) as module:
            # Locked step by step: others link their code in between.
            with self._lock:
                self._optimize(module, effort)
            with self._lock:
                code: bytes = self._machine_for(effort.codegen).emit_object(module)
            return code

    def assembly(self, text: str, *, effort: Effort = FULL) -> str:
        """Return the assembly of a module."""
        with _refusals(), self._module(text, effort) as module, self._lock:
            self._optimize(module, effort)
            listing: str = self._machine_for(effort.codegen).emit_assembly(module)
            return listing

    @contextmanager
    def _module(self, text: str, effort: Effort) -> Iterator[ModuleRef]:
        """Parse a module, and free it at the end.

        It has a context of its own, so that nothing of it stays in memory. Both are closed here, in
        this order: after an error the garbage collector would finalize them in any order, and a
        module without its context crashes.
        """
        with self._lock:
            context = self._llvm.create_context()
            try:
                module = self._llvm.parse_assembly(
                    SCALAR_FUNCTION.sub(r"\1noinline", text) if effort.calls else text, context
                )
            except BaseException:
                context.close()
                raise
        try:
            with self._lock:
                module.verify()
            yield module
        finally:
            with self._lock:
                module.close()
                context.close()

    def _optimize(self, module: ModuleRef, effort: Effort) -> None:
        llvm = self._llvm
        with llvm.create_pipeline_tuning_options(speed_level=effort.pipeline) as options:
            options.loop_vectorization = True
            options.slp_vectorization = effort.pipeline > 1
            with llvm.create_pass_builder(self._machine, options) as builder:
                if effort.passes:
                    manager = llvm.create_new_module_pass_manager()
                else:
                    manager = builder.getModulePassManager()
                try:
                    for name in effort.passes:
                        getattr(manager, f"add_{name}_pass")()
                    manager.run(module, builder)
                finally:
                    # llvmlite 0.45 to 0.50 never frees a manager, which takes about 95 KB.
                    # Detached, it is not freed again by a version that does.
                    llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(manager)
                    manager.detach()

    def _link(self, code: bytes, exports: tuple[str, ...]) -> Code:
        with self._lock, _refusals():
            library = self._llvm.JITLibraryBuilder()
            library.add_object_img(code)
            for name in exports:
                library.export_symbol(name)
            for name, address in self._imports.items():
                library.import_symbol(name, address)
            if self._linker is None or self._linked >= MODULES_PER_LINKER:
                # The last one lives as long as code that it linked.
                self._linker = self._llvm.create_lljit_compiler(self._machine)
                self._linked = 0
            self._linked += 1
            tracker = library.link(self._linker, f"dala{next(self._names)}")
            return Code({name: tracker[name] for name in exports}, (tracker, self._linker))


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise errors of LLVM as DeviceError."""
    try:
        yield
    except DalaError:
        raise
    except RuntimeError as error:
        raise DeviceError(f"cpu: LLVM refused the code: {error}", call="cpu") from error


def _rounding_functions() -> dict[str, int]:
    """Return the C library's rounding functions, for CPUs without such instructions."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    # rint equals roundeven in the default rounding mode, and every C library has it.
    names = {"floor": "floor", "ceil": "ceil", "roundeven": "rint"}
    found = {}
    for ours, theirs in names.items():
        for suffix in ("", "f"):
            function = getattr(library, theirs + suffix)
            found[ours + suffix] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


def _free_llvmlite() -> None:
    """Free the lock of llvmlite in a child, which a finalizer on another thread may have held."""
    from llvmlite.binding import ffi

    held = getattr(getattr(ffi.lib, "_lock", None), "_lock", None)
    reset = getattr(held, "_at_fork_reinit", None)
    if reset is not None:
        reset()


def _chosen() -> Jit:
    """Return a compiler for this CPU, or for the level that DALA_CPU asks for."""
    if not os.environ.get("DALA_CPU"):
        return Jit()
    own = Jit()
    wanted = chosen_level(own.features)
    return Jit(None, *LEVELS[wanted]) if wanted else own


_jit: Jit | None = None
_making = forks.native_lock("LLVM")


def jit() -> Jit:
    """Return the compiler of the process, created on first use."""
    global _jit
    if _jit is None:
        with _making:
            if _jit is None:
                _jit = _chosen()
    return _jit
