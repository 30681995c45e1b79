"""Compiled code found on disk without parsing anything, by what its text would be made from.

An entry is named by the function, its constants, the compiler and the sources of this package. It
lists all functions that went into the code and the names that they use, with one digest over their
files and over what these names mean now: if that is no longer so, nothing is found. Functions that
stand in other functions, and names that mean something unusual, are not remembered at all.
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
from typing import Any, Final, NamedTuple

from dala.gpu.compute.engines.cpu.jit import Code, Jit
from dala.gpu.compute.engines.cpu.native import names, types
from dala.gpu.compute.engines.cpu.native.function import NativeFunction, NotCacheable, file_digest
from dala.gpu.compute.engines.cpu.native.types import Type

#: A function that went into the code: its module, its name, and the names that it uses.
Used = tuple[str, str, list[str]]

#: Raised when the meaning of an entry changes.
VERSION: Final = 1

_MODULES: Final = (math, names, types)
_STARTED: Final = time.time()


class CachedCode(NamedTuple):
    """Code from the disk, and what calls of it need to know."""

    code: Code
    params: list[str]
    kinds: list[Any]
    result: Any
    names: list[str]


def cache_key(
    function: NativeFunction, statics: dict[str, Any], compiler: Jit, *more: object
) -> str | None:
    """What the code of a function is remembered by; None if it cannot be."""
    try:
        parts = [str(VERSION), sys.version, compiler._identity, repr(compiler.host), repr(more)]
        parts += [_package(), _meaning(function), file_digest(_path(function))]
        parts += [f"{name}={_meaning(value)}" for name, value in sorted(statics.items())]
    except NotCacheable:
        return None
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def load_code(key: str, compiler: Jit) -> CachedCode | None:
    """The code remembered under a key, if all that it was made from is as it was."""
    stored = compiler.cache.get(key)
    if stored is None:
        return None
    try:
        told = json.loads(stored)
        if told["digest"] != _digest(told["functions"]):
            return None
        object_code = compiler.cache.get(told["object"])
        if object_code is None:
            return None
        code = compiler._link(object_code, tuple(told["exports"]))
        kinds = [
            ("array", types.BY_NAME[k[0]]) if isinstance(k, list) else types.BY_NAME[k]
            for k in told["kinds"]
        ]
        result = told["result"]
        if isinstance(result, list):
            result = tuple(types.BY_NAME[name] for name in result)
        elif result is not None:
            result = types.BY_NAME[result]
        found = CachedCode(code, told["params"], kinds, result, told["names"])
    except (NotCacheable, RuntimeError, ValueError, KeyError, TypeError):
        return None  # an entry of somebody else's making; the full way will write a better one
    compiler.cache_hits += 1
    return found


def store_code(key: str, compiler: Jit, emitted: Any, exports: tuple[str, ...]) -> None:
    """Stores how to find the code of a text that was just compiled."""
    try:
        used: list[Used] = []
        for function in emitted.functions:
            _meaning(function)
            used.append((function.function.__module__, function.name, function.used_names()))
            file_digest(_path(function), again=True)
        kinds = [[_plain(k[1])] if isinstance(k, tuple) else _plain(k) for k in emitted.kinds]
        result = emitted.result
        if isinstance(result, tuple):
            result = [_plain(t) for t in result]
        elif result is not None:
            result = _plain(result)
        digest = _digest(used)
    except NotCacheable:
        return
    whole = f"{compiler._identity}\n{emitted.text}"
    told = {
        "functions": used,
        "digest": digest,
        "object": hashlib.sha256(whole.encode()).hexdigest(),
        "exports": exports,
        "params": emitted.params,
        "kinds": kinds,
        "result": result,
        "names": emitted.names,
    }
    compiler.cache.put(key, json.dumps(told).encode())


def _plain(kind: Any) -> str:
    if not isinstance(kind, Type) or types.BY_NAME.get(kind.name) != kind:
        raise NotCacheable
    return kind.name


def _digest(functions: Iterable[Any]) -> str:
    """Of the files of functions, and of what the names in them mean."""
    parts = []
    for module, name, used in functions:
        function = _function(module, name)
        known = function.function.__globals__
        parts += [_meaning(function), file_digest(_path(function))]
        parts += [f"{n}={_meaning(known[n])}" if n in known else n for n in used]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _function(module: str, name: str) -> NativeFunction:
    found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, NativeFunction):
        raise NotCacheable
    return found


def _meaning(value: Any) -> str:
    """A value as text that differs where the code would, in any process."""
    if value is None or isinstance(value, (bool, int, float, str, Type)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} [{', '.join(map(_meaning, value))}]"
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, NativeFunction):
        plain = value.function
        if plain.__closure__ or _function(plain.__module__, value.name) is not value:
            raise NotCacheable
        options = value.fast, value.aliasing, value.inline
        line = plain.__code__.co_firstlineno
        return f"native {plain.__module__}.{plain.__qualname__} {line} {options}"
    for module in _MODULES:
        if value is module:
            return f"module {module.__name__}"
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    for module in (*_MODULES, typing, builtins):
        if isinstance(name, str) and getattr(module, name, None) is value:
            return f"word {home} {name}"
    raise NotCacheable


# files ----------------------------------------------------------------------------------------
def _path(function: NativeFunction) -> str:
    path = function.function.__code__.co_filename
    if not os.path.isabs(path):
        raise NotCacheable
    return path


def _package() -> str:
    """Of what writes the text: this package, and the emitters beside it.

    If one of them was edited since it may have been imported, nobody knows what runs here.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    emitters = os.path.join(os.path.dirname(here), "llvm")
    whole = hashlib.sha256()
    try:
        found = [os.path.join(here, name) for name in os.listdir(here)]
        found += [os.path.join(emitters, name) for name in os.listdir(emitters)]
        for path in sorted(p for p in found if p.endswith(".py")):
            if os.stat(path).st_mtime > _STARTED:
                raise NotCacheable
            whole.update(file_digest(path).encode())
    except OSError:
        raise NotCacheable from None
    return whole.hexdigest()
