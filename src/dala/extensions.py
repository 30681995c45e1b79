"""Packages that add kernels, inputs and streams to :mod:`dala.gpu`, which knows none of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self, cast

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer
    from dala.typing import PathLike

#: Pairs of modules. The first has ``NAMES``, the kernels' names, and is cheap to import; the second
#: has ``OPERATIONS``, their classes, and is imported when one of them is first used.
KERNEL_MODULES: Final = (("dala.ml.models", "dala.ml.stages"),)

#: Modules with ``kernel_input(value, call)``, which converts an input of a kernel that is neither a
#: buffer nor an array, or returns None; each with the packages whose objects it knows.
INPUT_MODULES: Final = (("dala.media.images", ("dala", "PIL")),)

#: Modules with ``target_of(video, item)``, which makes what nodes of scene files follow.
TARGET_MODULES: Final = ("dala.ml.follow.saved",)

#: Modules with ``recipe_hint(name)``, which says how to call a filter that is not a kernel, or
#: returns "".
FILTER_MODULES: Final = ("dala.media.filters.declarations",)


class SentStream(Protocol):
    """A live stream that sends by itself; see ``dala.media.live.LiveRun``."""

    @property
    def stats(self) -> dict[str, float]:
        """Frames in, shown, dropped and repeated, bit rate, latency, reconnections."""

    @property
    def state(self) -> str:
        """One of "sending", "lost" and "closed"."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; return False after ``timeout`` seconds."""

    def close(self) -> None:
        """Stop sending."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


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
        bit_rate: int | str | None,
        key_frames: float,
        encoder: str | None,
        reconnect: float,
    ) -> SentStream:
        """Send what a surface presents."""


#: The module with ``live_surface``, which sends what a surface presents.
LIVE_MODULE: Final = "dala.media.live.surfaces"


def live_module() -> LiveModule:
    """Return the module that sends surfaces.

    >>> live_module().__name__
    'dala.media.live.surfaces'
    """
    return cast("LiveModule", import_module(LIVE_MODULE))


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
