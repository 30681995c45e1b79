"""Packages that add kernels, inputs and streams to :mod:`dala.gpu`, which knows none of them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, Unpack, cast

if TYPE_CHECKING:
    from dala.gpu.path import Path
    from dala.gpu.render.thread import Renderer
    from dala.media.live.keywords import StreamKeywords
    from dala.media.live.sending import LiveRun
    from dala.media.text.style import TextStyle
    from dala.typing import ImageLike, NDArray, PathLike
    from dala.web.exporting import Export

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


#: The style of a text on a surface.
LetterStyle: TypeAlias = "TextStyle"
#: A live stream that sends by itself, and an exported page.
SentStream: TypeAlias = "LiveRun"
WebExport: TypeAlias = "Export"


class LiveModule(Protocol):
    """The module with ``live_surface``."""

    __name__: str

    def live_surface(
        self,
        renderer: Renderer,
        url: str | PathLike,
        seconds: float | None,
        *,
        fps: float,
        **given: Unpack[StreamKeywords],
    ) -> SentStream:
        """Send what a surface presents."""


#: A value of an option of ``dala.web.export``; that function checks it.
WebOption: TypeAlias = (
    "str | bool | PathLike | Mapping[str, tuple[float, float] | None] | ImageLike | None"
)


class WebModule(Protocol):
    """The module with ``export``."""

    def export(self, chain: object, folder: PathLike, **options: WebOption) -> WebExport:
        """Export a chain as a web page."""


class DrawnText(Protocol):
    """A text as a picture."""

    @property
    def pixels(self) -> NDArray:
        """Straight RGBA."""

    @property
    def offset(self) -> tuple[int, int]:
        """The picture's place relative to the text's box."""


class LettersModule(Protocol):
    """The module with texts and SVG files for surfaces."""

    __name__: str

    def style_of(self, call: str, **given: object) -> LetterStyle:
        """Return a style."""

    def with_color(self, style: LetterStyle, rgba: bytes, scale: float = 1.0) -> LetterStyle:
        """Return a style in a color."""

    def picture_of_text(self, text: str, style: LetterStyle, quarter: int) -> DrawnText:
        """Return a text as a picture."""

    def outline_of_text(self, text: str, style: LetterStyle) -> Path | None:
        """Return a text as a path."""

    def size_of_text(self, text: str, style: LetterStyle) -> tuple[float, float]:
        """Return width and height of a text."""

    def svg_pixels(
        self, source: PathLike, call: str, scale: float, w: float | None, h: float | None
    ) -> tuple[NDArray, float, float]:
        """Return an SVG as pixels, and its width and height."""


#: The module with texts and SVG files for surfaces.
LETTERS_MODULE: Final = "dala.media.text.surfaces"


def letters_module() -> LettersModule:
    """Return the module with texts and SVG files for surfaces.

    >>> letters_module().__name__
    'dala.media.text.surfaces'
    """
    return cast("LettersModule", import_module(LETTERS_MODULE))


#: The package that exports chains as web pages.
WEB_MODULE: Final = "dala.web"


def web_module() -> WebModule:
    """Return the package that exports chains as web pages.

    >>> web_module().__name__
    'dala.web'
    """
    return cast("WebModule", import_module(WEB_MODULE))


#: The module with ``live_surface``, which sends what a surface presents.
LIVE_MODULE: Final = "dala.media.live.functions"


def live_module() -> LiveModule:
    """Return the module that sends surfaces.

    >>> live_module().__name__
    'dala.media.live.functions'
    """
    return cast("LiveModule", import_module(LIVE_MODULE))


class SurfaceModule(Protocol):
    """The module with pictures and filters for surfaces."""

    __name__: str

    def picture_of(self, value: ImageLike | PathLike, call: str) -> NDArray:
        """Return the straight RGBA pixels of a picture or of its file."""

    def filtered(self, pixels: NDArray, filters: Sequence[tuple[str, dict[str, Any]]]) -> NDArray:
        """Return pixels after filters."""


#: The module with pictures and filters for surfaces.
SURFACE_MODULE: Final = "dala.media.drawing"


def surface_module() -> SurfaceModule:
    """Return the module with pictures and filters for surfaces.

    >>> surface_module().__name__
    'dala.media.drawing'
    """
    return cast("SurfaceModule", import_module(SURFACE_MODULE))


#: The module with ``PartFile``: files that get their name when they are complete.
PARTS_MODULE: Final = "dala.media.parts"


def write_whole(path: PathLike, data: bytes) -> None:
    """Write a file, which is there as a whole or not at all.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> write_whole(path, b"done")
    >>> path.read_bytes()
    b'done'
    """
    with import_module(PARTS_MODULE).PartFile(pathlib.Path(path)) as part:
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
