"""Chains of filters as JSON, so that they travel to workers as text.

Pictures, tables and files among the parameters are copied into the folder of the job under the
digest of their bytes: workers on other machines find them there, and a resumed job has the same
ones even if the originals have changed.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias, cast

import numpy as np

from dala.arguments import Items, Settings
from dala.batch import storage
from dala.batch.tasks import Json, JsonObject, object_of, text_of
from dala.errors import ParameterError
from dala.gpu.compute.kernel import Kernel, KernelFunction, kernel, registered
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.passes.program import KernelProgram
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared
from dala.media.filters.plans import Filter, FilterValue, check
from dala.media.filters.sizes import with_size

#: An item of a chain: a filter as pipelines take it, the text of a kernel, or its function.
ChainItem: TypeAlias = (
    "Filter | KernelFunction | tuple[str | KernelFunction, Mapping[str, FilterValue]]"
)
#: Keeps bytes with a suffix, and returns the name that workers read them by.
Keep: TypeAlias = Callable[[bytes, str], str]

#: The stage that blurs or replaces what is behind people; it remembers the frames before.
BACKGROUND: Final = "background"
#: Types of parameters that are given as paths.
_FILES: Final = ("picture", "background", "lut", "map")
_FILE, _ARRAY = "$file", "$array"


class Assets:
    """Pictures and files of a chain, each under the digest of its bytes.

    >>> assets = Assets()
    >>> assets.keep(b"LUT_3D_SIZE 2", ".cube")
    'assets/cf9af0202f293b7c39c981f4.cube'
    """

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def keep(self, data: bytes, suffix: str) -> str:
        """Keep bytes; return their name in the folder of the job."""
        name = f"assets/{hashlib.sha256(data).hexdigest()[:24]}{suffix}"
        self._held[name] = data
        return name

    def write(self, work: str) -> None:
        """Write them into the folder of a job."""
        for name, data in self._held.items():
            place = storage.join(work, name)
            if not storage.exists(place):
                storage.write_bytes(place, data)


def pack_chain(chain: Sequence[ChainItem], keep: Keep, call: str) -> list[Json]:
    """Return a chain as JSON.

    Args:
        chain: names of filters, kernels or their text, each alone or with its parameters.
        keep: keeps pictures and files.
        call: for messages.

    Raises:
        ParameterError: an item is no filter, or a parameter is refused.

    >>> pack_chain(["grayscale", ("blur", {"radius": 3})], Assets().keep, "videos")
    [{'filter': 'grayscale', 'params': {}}, {'filter': 'blur', 'params': {'radius': 3}}]
    """
    Items("a list such as ['denoise', ('blur', {'radius': 3})]").check(call, "chain", chain)
    return [_packed(item, f"{call}: chain[{n}]", keep) for n, item in enumerate(chain)]


def _packed(item: ChainItem, origin: str, keep: Keep) -> JsonObject:
    what, params = item if isinstance(item, tuple | list) and len(item) == 2 else (item, {})
    params = Settings("a dict").check(origin, "parameters", params)
    given = {key: value for key, value in params.items() if value is not None}
    if what == BACKGROUND:
        return {"filter": BACKGROUND, "params": _values(BACKGROUND, given, origin, keep)}
    runnable = _runnable(what, origin)
    checked = runnable if isinstance(runnable, Runnable) else str(what)
    check((checked, given), origin)
    if isinstance(runnable, KernelProgram):
        raise ParameterError(
            f"{origin}: {runnable.name!r} is a program of several passes, which jobs do not split. "
            "Use dala filter."
        )
    if isinstance(runnable, Kernel):
        made: JsonObject = {"kernel": kernel_text(runnable), "name": runnable.name}
    elif isinstance(runnable, Runnable):
        made = {"filter": runnable.name}
    else:
        made = {"filter": str(what)}
    return {**made, "params": _values(str(made.get("filter", "")), given, origin, keep)}


def _runnable(what: object, origin: str) -> Runnable | None:
    """Return the kernel that an item of a chain is; None for the name of a filter."""
    if isinstance(what, Runnable):
        return what
    if isinstance(what, str) and (what.lstrip().startswith(("def ", "@")) or "\n" in what):
        return kernel(what)
    if isinstance(what, str):
        own = registered(what)
        return None if own is None or what in declared() else Kernel(what, own)
    if callable(what):
        return kernel(cast("KernelFunction", what))
    raise ParameterError.invalid(origin, "it", "the name of a filter, or a kernel", what)


def kernel_text(made: Kernel) -> str:
    """Return a kernel as text that stands alone: its helpers before it, its constants inlined.

    >>> kernel_text(kernel("def twice(x): return x + x"))
    'def twice(x):\\n    return x + x'
    """
    parts: dict[str, str] = {}

    def add(decl: KernelDecl) -> None:
        for helper in decl.helpers.values():
            add(helper)
        parts.setdefault(decl.name, _inlined(decl))

    add(made.decl)
    return "\n\n".join(parts.values())


def _inlined(decl: KernelDecl) -> str:
    class Inline(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in decl.constants:
                return node
            return ast.parse(repr(decl.constants[node.id]), mode="eval").body

    tree = ast.parse(decl.source.python)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        function.decorator_list = []
    return "\n\n".join(ast.unparse(Inline().visit(function)) for function in functions)


def _values(name: str, given: Mapping[str, FilterValue], origin: str, keep: Keep) -> JsonObject:
    spec = declared().get(name)
    types = {} if spec is None else {p.name: p.type for p in spec.parameters}
    if name == BACKGROUND:
        types = {"background": "background"}
    return {
        key: _value(value, types.get(key, ""), f"{origin}: {key}", keep)
        for key, value in given.items()
    }


def _value(value: object, type: str, origin: str, keep: Keep) -> Json:
    if type in _FILES and isinstance(value, str | os.PathLike):
        path = os.fsdecode(value)
        try:
            data = storage.read_bytes(path)
        except OSError as error:
            raise FileNotFoundError(f"{origin}={path!r} cannot be read: {error}.") from None
        return {_FILE: keep(data, Path(path).suffix.lower()), "type": type}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return cast("Json", value.item())
    if isinstance(value, list | tuple):
        return [_value(one, "", origin, keep) for one in value]
    found = _pixels(value)
    if found is None:
        raise ParameterError.invalid(origin, "it", "a number, a text, an array or a file", value)
    stream = io.BytesIO()
    np.save(stream, found, allow_pickle=False)
    return {_ARRAY: keep(stream.getvalue(), ".npy")}


def _pixels(value: object) -> np.ndarray | None:
    """Return a picture or table of the caller's as an array; None if it is none."""
    if isinstance(value, np.ndarray):
        return value
    reader = getattr(value, "picture", None) or getattr(value, "numpy", None)
    if callable(reader):
        return np.asarray(reader())
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return np.asarray(value)
    return None


# on a worker --------------------------------------------------------------------------------------
def unpack_chain(chain: Sequence[Json], work: str) -> list[Filter]:
    """Return the filters of a chain, with their pictures and tables loaded.

    >>> unpack_chain([{"filter": "blur", "params": {"radius": 3}}], ".")
    [('blur', {'radius': 3})]
    """
    made: list[Filter] = []
    for item in chain:
        assert isinstance(item, dict)
        given = object_of(item, "params")
        params = {key: _loaded(value, work) for key, value in given.items()}
        if "kernel" in item:
            made.append((_kernel(text_of(item, "name"), text_of(item, "kernel")), params))
        else:
            name = text_of(item, "filter")
            made.append((name, with_size(name, params)))
    return made


@lru_cache(maxsize=64)
def _kernel(name: str, text: str) -> Kernel:
    return Kernel(name, kernel(text).decl)


def _loaded(value: Json, work: str) -> FilterValue:
    if isinstance(value, dict) and _ARRAY in value:
        data = storage.read_bytes(storage.join(work, text_of(value, _ARRAY)))
        return cast("FilterValue", np.load(io.BytesIO(data), allow_pickle=False))
    if isinstance(value, dict) and _FILE in value:
        name = storage.join(work, text_of(value, _FILE))
        return _file(name, text_of(value, "type"))
    if isinstance(value, list):
        return cast("FilterValue", tuple(_loaded(one, work) for one in value))
    return cast("FilterValue", value)


def _file(name: str, type: str) -> FilterValue:
    from dala.media.files import load, load_array
    from dala.media.filters.luts import load_lut

    path = storage.local_path(name)
    if path is None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name.rpartition("/")[2])
            path.write_bytes(storage.read_bytes(name))
            return _file(str(path), type)
    if type == "lut":
        return load_lut(path)
    if type == "map":
        return load_array(path)
    picture = load(path, 1 << 28)
    picture.load()
    return picture


def stage_outside(chain: Sequence[Json]) -> str:
    """Return the first stage of a packed chain outside the contract of bytes, and why; or "".

    Declared filters and kernels of users give the same bytes at every level of the processor.

    >>> stage_outside([{"filter": "blur", "params": {}}, {"kernel": "def f(x): ...", "name": "f"}])
    ''
    >>> stage_outside([{"filter": "background", "params": {}}])
    "'background' is a model"
    """
    for item in chain:
        assert isinstance(item, dict)
        name = item.get("filter")
        if name == BACKGROUND:
            return f"{name!r} is a model"
        if name is not None and name not in declared():
            return f"{name!r} is an operation that is no filter"
    return ""


def names_of(chain: Sequence[Json]) -> list[str]:
    """Return the names of the filters and kernels of a packed chain.

    >>> names_of([{"filter": "blur", "params": {}}])
    ['blur']
    """
    found = [item for item in chain if isinstance(item, dict)]
    return [str(item.get("filter") or item.get("name")) for item in found]


def params_of(chain: Sequence[Json], name: str) -> JsonObject | None:
    """Return the parameters of the first item of a name; None if there is none."""
    for item in chain:
        if isinstance(item, dict) and item.get("filter") == name:
            return object_of(item, "params")
    return None
