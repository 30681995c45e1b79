"""Every call that our modules make of another library or of the system, as a place for a fault.

The bodies of our functions are compiled again, with each call ``f(x)`` as ``__fault__(f, ...)(x)``,
and take the place of the old ones in the live functions. So the library needs no hook and pays
nothing, no call can be forgotten, and threads that already run are included. What ``__fault__``
returns is ``f`` itself, unless a fault was put there: then it is a function that raises the error
that the other side would raise.
"""

from __future__ import annotations

import ast
import errno
import gc
import importlib
import io
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

#: Modules that are not rewritten: compilers, which call nothing but each other, and texts of
#: kernels and native functions, which are read and never called.
LEFT_OUT = (
    "dala.errors", "dala.lazy", "dala.resources",
    "dala.gpu.compute.lang", "dala.gpu.compute.kernels",
    "dala.gpu.compute.engines.cpu.llvm", "dala.gpu.compute.engines.cpu.native",
    "dala.gpu.compute.engines.cpu.pixels", "dala.gpu.compute.engines.cpu.loops",
    "dala.gpu.compute.engines.cpu.compose", "dala.gpu.compute.engines.webgpu.wgsl",
)  # fmt: skip

#: What releases something, or computes in memory. It does not fail: there would be nothing to do.
RELEASES = {
    "get", "preinit", "chroma_width", "chroma_height",
    "close", "release", "unmap", "destroy", "unlink", "rmdir", "join", "shutdown", "cancel",
    "detach", "fileno", "getsockname", "gettimeout", "settimeout", "remove_filter",
}  # fmt: skip

ALLOCATE = {
    "empty", "zeros", "ones", "empty_like", "zeros_like", "full", "copy", "tobytes", "array",
    "ascontiguousarray", "astype", "stack", "concatenate", "pad",
}  # fmt: skip
READS = {"read", "readline", "readinto", "read_bytes", "read_text", "scandir", "listdir", "fstat"}
FILES = READS | {
    "open", "replace", "rename", "write", "write_bytes", "write_text", "flush", "fsync", "mkdir",
    "makedirs", "mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "ftruncate",
    "copyfileobj", "seek", "truncate", "memfd_create", "pipe", "symlink", "mmap",
}  # fmt: skip
#: Modules of functions and of types whose methods are files.
FILE_MODULES = {"io", "_io", "posix", "nt", "os", "pathlib", "shutil", "tempfile", "mmap"}
SOCKETS = {
    "socket", "bind", "listen", "accept", "connect", "send", "sendall", "recv", "recv_into",
    "setsockopt", "create_server", "create_connection", "socketpair", "select", "register",
}  # fmt: skip

#: Which side of the border a call reaches, by the package of what is called. (C functions that
#: cffi calls report errors in other ways than by raising.)
PACKAGES = {
    "av": "codec", "PIL": "picture", "onnxruntime": "model", "wgpu": "device",
    "freetype": "font", "uharfbuzz": "font", "PyOpenColorIO": "color",
    "llvmlite": "compiler", "rendercanvas": "window", "subprocess": "process",
}  # fmt: skip

KINDS = ("allocation", "file", "socket", "thread", *sorted(set(PACKAGES.values())))


def kind_of(function: Any, name: str) -> str | None:
    """Return the kind of a call, or None if nothing beyond the border is reached."""
    if name in RELEASES and not (name == "close" and _is_output(function)):
        return None
    package = _package(function)
    if package == "numpy":
        return "allocation" if name in ALLOCATE else None
    if package in FILE_MODULES:
        return "file" if name in FILES and not _in_memory(function) else None
    if package in ("socket", "_socket", "selectors", "select"):
        return "socket" if name in SOCKETS else None
    if package in ("threading", "concurrent"):
        return "thread" if name in ("start", "submit") else None
    return PACKAGES.get(package)


def _package(function: Any) -> str:
    """Return the package of a function, or of the object whose method it is."""
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        owner = owner if isinstance(owner, type) else type(owner)
        if owner.__module__.partition(".")[0] not in ("dala", "builtins"):
            return str(owner.__module__).partition(".")[0]
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).partition(".")[0]


def _is_output(function: Any) -> bool:
    """Return whether it belongs to a file that FFmpeg writes: closing it writes its end."""
    return type(getattr(function, "__self__", None)).__name__ == "OutputContainer"


def _in_memory(function: Any) -> bool:
    """Return whether a file is one in memory, or a standard stream, which tests capture."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, io.BytesIO | io.StringIO) or owner in (sys.stdout, sys.stderr)


def error_of(kind: str, name: str) -> Exception:
    """Return the error that the other side would raise."""
    if kind == "allocation":
        return MemoryError("injected")
    if kind == "file":
        if name in READS:
            return OSError(errno.EIO, "Input/output error (injected)")
        return OSError(errno.ENOSPC, "No space left on device (injected)")
    if kind == "socket":
        return OSError(errno.EMFILE, "Too many open files (injected)")
    if kind == "codec":
        av = importlib.import_module("av")
        try:
            av.error.err_check(-errno.EIO)
        except av.FFmpegError as error:
            return error
    if kind == "picture":
        return OSError("broken data stream (injected)")
    if kind == "model":
        state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        return state.RuntimeException("injected")
    if kind == "device":
        wgpu = importlib.import_module("wgpu")
        if name == "create_buffer":
            return wgpu.GPUOutOfMemoryError("Not enough memory left (injected)")
        return wgpu.GPUInternalError("injected")
    if kind == "font":
        return importlib.import_module("freetype").FT_Exception(0x40)
    if kind == "color":
        return importlib.import_module("PyOpenColorIO").Exception("injected")
    if kind == "thread":
        return RuntimeError("can't start new thread (injected)")
    if kind == "process":
        return OSError(errno.EAGAIN, "Resource temporarily unavailable (injected)")
    return RuntimeError("injected")


class Faults:
    """The fault that was asked for. Off unless ``number`` is positive."""

    def __init__(self) -> None:
        self.number = 0
        self.kinds: tuple[str, ...] = KINDS
        self.count = 0
        #: The call that failed, as "kind: function in module:line".
        self.where = ""
        #: If set, nothing fails, and the calls are listed here.
        self.seen: list[str] | None = None
        self._lock = threading.Lock()

    def start(self, number: int, kinds: tuple[str, ...]) -> None:
        self.kinds, self.count, self.where = kinds or KINDS, 0, ""
        self.number = number

    def stop(self) -> None:
        self.number = 0

    def pass_on(self, function: Any, name: str, place: str) -> Any:
        """Return the function to call in place of ``function``: itself, or one that raises."""
        if self.seen is None and (not self.number or self.where):
            return function
        kind = kind_of(function, name)
        if kind is None or kind not in self.kinds:
            return function
        if self.seen is not None:
            self.seen.append(f"{kind}: {name} in {place}")
            return function
        with self._lock:
            self.count += 1
            if self.count != self.number or self.where:
                return function
            self.where = f"{kind}: {name} in {place}"
        error = error_of(kind, name)

        def fails(*args: Any, **named: Any) -> Any:
            if name == "close":  # what it holds is released, and the error is reported
                function(*args, **named)
            raise error

        return fails


FAULTS = Faults()


class _Calls(ast.NodeTransformer):
    """Replaces the function of every call."""

    def __init__(self, module: str) -> None:
        self._module = module

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not name or name == "super":
            return node
        place = f"{self._module}:{node.lineno}"
        fault = ast.Name("__fault__", ast.Load())
        made = ast.Call(fault, [node.func, ast.Constant(name), ast.Constant(place)], [])
        node.func = ast.copy_location(made, node.func)
        return node


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


_rewritten: dict[str, dict[tuple[str, int], CodeType | None]] = {}
_replaced: list[tuple[FunctionType, CodeType]] = []


def rewrite() -> None:
    """Rewrite the functions of all our modules that are loaded and were not rewritten yet."""
    new = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        ours = name.startswith("dala.") and not name.startswith(LEFT_OUT) and path.endswith(".py")
        if not ours or path in _rewritten:
            continue
        with open(path, encoding="utf-8") as file:
            tree = _Calls(name).visit(ast.parse(file.read()))
        made = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
        found: dict[tuple[str, int], CodeType | None] = {}
        for code in _codes(made):
            key = code.co_qualname, code.co_firstlineno
            found[key] = None if key in found else code  # two lambdas of one line are left alone
        _rewritten[path] = new[path] = found
        module.__dict__["__fault__"] = FAULTS.pass_on
    if not new:
        return
    if frozen := gc.get_freeze_count():
        gc.unfreeze()  # frozen objects are not listed
    for function in [f for f in gc.get_objects() if isinstance(f, FunctionType)]:
        old = function.__code__
        code = new.get(old.co_filename, {}).get((old.co_qualname, old.co_firstlineno))
        if code is not None and code.co_freevars == old.co_freevars:
            function.__code__ = code
            _replaced.append((function, old))
    if frozen:
        gc.freeze()


def restore() -> None:
    """Give all functions their own bodies again."""
    for function, old in _replaced:
        function.__code__ = old
    _replaced.clear()
    _rewritten.clear()
