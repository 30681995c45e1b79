"""Disk cache of native code. A hit loads compiled code without parsing any source.

The key of an entry covers the function, its constants, the compiler and the sources of this
package. The entry lists every function in the code and the names they use, with a digest of their
source files and of the current values of these names. If the digest differs, the entry is ignored.
Nested functions, and names with values that cannot be digested, are not cached.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import math
import os
import sys
import time
import typing
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dala.gpu.compute.engines.cpu.jit import Code, Jit
from dala.gpu.compute.engines.cpu.native import names
from dala.gpu.compute.engines.cpu.native.function import NativeFunction, NotCacheable, file_digest
from dala.gpu.compute.engines.cpu.native.types import ParamType, Result, Static, is_group
from dala.gpu.compute.engines.cpu.vector import types
from dala.gpu.compute.engines.cpu.vector.types import Type

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.native.emit import EmittedModule

#: A function in the code: its module, its name, and the names it uses.
Used = tuple[str, str, list[str]]

#: The format of an entry.
VERSION: Final = 1

_MODULES: Final = (math, names, types)
_STARTED: Final = time.time()


class CachedCode(NamedTuple):
    """Code loaded from disk, with its signature."""

    code: Code
    params: list[str]
    kinds: list[ParamType]
    result: Result
    names: list[str]


def cache_key(
    function: NativeFunction, statics: dict[str, Static], compiler: Jit, *more: object
) -> str | None:
    """Return the cache key of a function, or None if it cannot be cached."""
    try:
        parts = [str(VERSION), sys.version, compiler._identity, repr(compiler.machine), repr(more)]
        parts += [_package(), _identify(function), file_digest(_path(function))]
        parts += [f"{name}={_identify(value)}" for name, value in sorted(statics.items())]
    except NotCacheable:
        return None
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def load_code(key: str, compiler: Jit) -> CachedCode | None:
    """Return the code stored under a key, or None if there is none or its sources changed."""
    stored = compiler.cache.get(key)
    if stored is None:
        return None
    try:
        entry = json.loads(stored)
        if entry["digest"] != _digest(entry["functions"]):
            return None
        object_code = compiler.cache.get(entry["object"])
        if object_code is None:
            return None
        code = compiler._link(object_code, tuple(entry["exports"]))
        kinds = [("array", *k) if isinstance(k, tuple) else k for k in map(_types, entry["kinds"])]
        found = CachedCode(code, entry["params"], kinds, _types(entry["result"]), entry["names"])
    except (NotCacheable, RuntimeError, ValueError, KeyError, TypeError):
        return None  # a damaged entry, which compiling will replace
    compiler.cache_hits += 1
    return found


def store_code(key: str, compiler: Jit, emitted: EmittedModule, exports: tuple[str, ...]) -> None:
    """Store the entry of code that was just compiled."""
    try:
        used: list[Used] = []
        for function in emitted.functions:
            _identify(function)
            used.append((function.function.__module__, function.name, function.used_names()))
            file_digest(_path(function), again=True)
        kinds = [_type_names(k[1:2] if isinstance(k, tuple) else k) for k in emitted.kinds]
        result = _type_names(emitted.result)
        digest = _digest(used)
    except NotCacheable:
        return
    whole = f"{compiler._identity}\n{emitted.text}"
    entry = {
        "functions": used,
        "digest": digest,
        "object": hashlib.sha256(whole.encode()).hexdigest(),
        "exports": exports,
        "params": emitted.params,
        "kinds": kinds,
        "result": result,
        "names": emitted.names,
    }
    compiler.cache.put(key, json.dumps(entry).encode())


def _type_names(kind: object) -> Any:
    """Return a type by its name, several as a list, and none as None."""
    if isinstance(kind, tuple):
        return [_type_names(part) for part in kind]
    if kind is not None and types.BY_NAME.get(getattr(kind, "name", "")) != kind:
        raise NotCacheable
    return kind and kind.name


def _types(names: Any) -> Any:
    """Return the types with these names."""
    if isinstance(names, list):
        return tuple(_types(name) for name in names)
    return None if names is None else types.BY_NAME[names]


def _digest(functions: Iterable[Used]) -> str:
    """Return the digest of the functions' files and of the values of the names they use."""
    parts = []
    for module, name, used in functions:
        function = _function(module, name)
        known = function.function.__globals__
        parts += [_identify(function), file_digest(_path(function))]
        parts += [f"{n}={_identify(known[n])}" if n in known else n for n in used]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _function(module: str, name: str) -> NativeFunction:
    found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, NativeFunction):
        raise NotCacheable
    return found


def _identify(value: object) -> str:
    """Return text that identifies a value in every process."""
    if value is None or isinstance(value, (bool, int, float, str, Type)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} [{', '.join(map(_identify, value))}]"
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, NativeFunction):
        plain = value.function
        if plain.__closure__ or _function(plain.__module__, value.name) is not value:
            raise NotCacheable
        options = value.fast, value.aliasing, value.inline
        line = plain.__code__.co_firstlineno
        return f"native {plain.__module__}.{plain.__qualname__} {line} {options}"
    if isinstance(value, type) and issubclass(value, names.Record):
        return f"record {value.size} {value.kinds!r}"
    if is_group(value):
        return f"group {value!r} {value._fields!r}"  # type: ignore[attr-defined]
    for module in _MODULES:
        if value is module:
            return f"module {module.__name__}"
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    for module in (*_MODULES, typing, builtins):
        if isinstance(name, str) and getattr(module, name, None) is value:
            return f"name {home} {name}"
    raise NotCacheable


# files ----------------------------------------------------------------------------------------
def _path(function: NativeFunction) -> str:
    path = function.function.__code__.co_filename
    if not os.path.isabs(path):
        raise NotCacheable
    return path


def _package() -> str:
    """Return the digest of the code that emits LLVM IR: this package and the emitters beside it.

    Raises NotCacheable if a file changed after this process started, since it may have been
    imported before the change.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(here)
    whole = hashlib.sha256()
    try:
        folders = here, os.path.join(beside, "llvm"), os.path.join(beside, "vector")
        found = [os.path.join(folder, name) for folder in folders for name in os.listdir(folder)]
        for path in sorted(p for p in found if p.endswith((".py", ".ll"))):
            if os.stat(path).st_mtime > _STARTED:
                raise NotCacheable
            whole.update(file_digest(path).encode())
    except OSError:
        raise NotCacheable from None
    return whole.hexdigest()
