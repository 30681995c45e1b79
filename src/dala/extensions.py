"""Packages that add kernels, inputs and streams to :mod:`dala.gpu`, which knows none of them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from dala.media import drawing as drawing
    from dala.media.live import functions
    from dala.media.live.sending import LiveRun
    from dala.media.parts import PartFile
    from dala.media.text import surfaces
    from dala.typing import ImageLike, PathLike
    from dala.web.exporting import Export

    letters, live = surfaces, functions

#: Pairs of modules. The first has ``NAMES``, the kernels' names, and is cheap to import; the second
#: declares the operations, and is imported when one of them is first used.
KERNEL_MODULES: Final = (("dala.ml.models", "dala.ml.stages"),)

#: Modules with ``kernel_input(value, call)``, which converts an input of a kernel that is neither a
#: buffer nor an array, or returns None; each with the packages whose objects it knows.
INPUT_MODULES: Final = (("dala.media.images", ("dala", "PIL")),)

#: Modules with ``target_of(video, item)``, which makes what nodes of scene files follow.
TARGET_MODULES: Final = ("dala.ml.follow.watch",)

#: Modules with ``recipe_hint(name)``, which says how to call a filter that is not a kernel, or
#: returns "".
FILTER_MODULES: Final = ("dala.media.filters.declarations",)


#: A live stream that sends by itself, and an exported page.
SentStream: TypeAlias = "LiveRun"
WebExport: TypeAlias = "Export"


#: A value of an option of ``dala.web.export``; that function checks it.
WebOption: TypeAlias = (
    "str | bool | PathLike | Mapping[str, tuple[float, float] | None] | ImageLike | None"
)


class WebModule(Protocol):
    """The module with ``export``."""

    def export(self, chain: object, folder: PathLike, **options: WebOption) -> WebExport:
        """Export a chain as a web page."""


#: The package that exports chains as web pages.
WEB_MODULE: Final = "dala.web"


def web_module() -> WebModule:
    """Return the package that exports chains as web pages.

    >>> web_module().__name__
    'dala.web'
    """
    return cast("WebModule", import_module(WEB_MODULE))


#: Modules that surfaces use, imported when they are first looked up: texts and SVG files, streams,
#: pictures and filters.
_MODULES: Final = {
    "letters": "dala.media.text.surfaces",
    "live": "dala.media.live.functions",
    "drawing": "dala.media.drawing",
}


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"dala.extensions has no {name!r}")
    return import_module(_MODULES[name])


def unfinished(path: PathLike) -> PartFile:
    """Return a file that gets its name when it is complete."""
    made: PartFile = import_module("dala.media.parts").PartFile(pathlib.Path(path))
    return made


def write_whole(path: PathLike, data: bytes) -> None:
    """Write a file, which is there as a whole or not at all.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> write_whole(path, b"done")
    >>> path.read_bytes()
    b'done'
    """
    with unfinished(path) as part:
        part.path.write_bytes(data)
        part.complete()


def filter_hint(name: str) -> str:
    """Return how to call a filter of several kernels, which has no kernel of its name; else "".

    >>> filter_hint("relu")
    ''
    """
    hints = (import_module(module).recipe_hint(name) for module in FILTER_MODULES)
    return next(filter(None, hints), "")


def input_modules(value: object) -> Iterator[ModuleType]:
    """Yield the modules that may convert a value to an input of a kernel.

    >>> [module.__name__ for module in input_modules([1.0])]
    []
    """
    packages = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    for name, known in INPUT_MODULES:
        if not packages.isdisjoint(known):
            yield import_module(name)


def kernel_modules() -> Iterator[tuple[str, str]]:
    """Yield the name of each added kernel and the module that defines it.

    >>> dict(kernel_modules())["mobilenet_v2"]
    'dala.ml.stages'
    """
    for listing, module in KERNEL_MODULES:
        for name in import_module(listing).NAMES:
            yield name, module
