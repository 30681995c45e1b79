"""A chain with controls in a notebook: a picture, and a slider for every number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from dala import forks
from dala.arguments import Integer, Items
from dala.errors import DalaError, ParameterError
from dala.extras import needing
from dala.gpu.compute.kernels.filter import FilterParam
from dala.gpu.compute.runnable import Runnable
from dala.media import gpu
from dala.media.filters.declarations import parameters_of
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter, FilterValue, check, parted
from dala.media.frame import Frame
from dala.offload import LoopWorker
from dala.studio.catalogue.parameters import Json, JsonObject, kind_of, parameter, plain, title_of
from dala.studio.folders import kind_of as file_kind
from dala.studio.picture.channels import jpeg
from dala.studio.picture.moment import rgba8
from dala.studio.sources.source import MovingFile, StillPicture, StudioSource
from dala.typing import ImageLike, NDArray, PathLike

#: What anywidget's classes are: it is imported where it is used, and its traits have no types.
AnyWidgetClass: TypeAlias = Any

#: The script of the widget, in the browser.
SCRIPT: Final = Path(__file__).with_name("widget.js")
#: Types of parameters that have a control.
_CONTROLS: Final = ("number", "int", "bool", "choice", "color")
_LARGEST: Final = 1 << 20


class WidgetChain:
    """The chain of a widget: filters with values that controls change.

    Args:
        chain: filters, as ``FramePipeline.process`` takes them.

    >>> made = WidgetChain([("blur", {"radius": 4}), "invert"])
    >>> made.filters()
    [('blur', {'radius': 4}), ('invert', {})]
    >>> made.set(0, "radius", 9)
    >>> made.filters()[0]
    ('blur', {'radius': 9})
    """

    def __init__(self, chain: Sequence[Filter]) -> None:
        Items("a list such as [('blur', {'radius': 3})]").check("studio.widget", "chain", chain)
        self._items: list[tuple[str | Runnable, dict[str, FilterValue]]] = []
        for item in chain:
            name, params = parted(item, "studio.widget")
            check((name, params), "studio.widget")
            self._items.append((name, params))

    def filters(self) -> list[Filter]:
        """Return the filters with their present values."""
        return [(name, dict(params)) for name, params in self._items]

    def set(self, number: int, name: str, value: Json) -> None:
        """Set a parameter of a filter.

        Raises:
            ParameterError: it is refused, and nothing changed.
        """
        if not 0 <= number < len(self._items):
            raise ParameterError.invalid("studio.widget", "filter", "one of the chain", number)
        item, params = self._items[number]
        given: FilterValue = tuple(value) if isinstance(value, list) else value  # type: ignore[assignment]
        made = {**params, name: given}
        check((item, made), "studio.widget")
        self._items[number] = item, made

    def cards(self) -> list[Json]:
        """Return the filters with their controls, as the widget shows them."""
        made: list[Json] = []
        for name, params in self._items:
            title = name if isinstance(name, str) else name.name
            controls: list[Json] = [
                {**parameter(p), "value": plain(params.get(p.name, p.default))}
                for p in parameters_of(name)
                if kind_of(p) in _CONTROLS and _has_control(p)
            ]
            card: JsonObject = {"title": title_of(title), "params": controls}
            made.append(card)
        return made


def _has_control(p: FilterParam) -> bool:
    """Return whether a control can show the parameter's value; borders are left out."""
    return p.name not in ("border", "fill") and (p.default is not None or p.required)


def opened(source: ImageLike | PathLike, device: str | None) -> StudioSource:
    """Return the source of a widget: a file, or a picture of a program.

    Raises:
        OSError, DalaError: it cannot be read.

    >>> opened(np.zeros((2, 3, 4), np.uint8), "cpu").width
    3
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"studio.widget: there is no file {str(path)!r}.")
        if file_kind(path) == "video":
            return MovingFile(path, device)
        return StillPicture.open(path, 1 << 26)
    pixels = source.numpy() if isinstance(source, Frame) else np.asarray(source)
    if pixels.ndim not in (2, 3):
        raise ParameterError.invalid("studio.widget", "source", "a picture or a path", source)
    return StillPicture(pixels, "picture")


def widget(
    chain: Sequence[Filter],
    source: ImageLike | PathLike,
    *,
    width: int = 640,
    device: str | None = None,
) -> StudioWidget:
    """Show a chain on a picture or a video in a notebook, with controls for its parameters.

    Args:
        chain: filters such as ``[("blur", {"radius": 4}), "invert"]``, or kernels.
        source: a picture of any kind, or the path of a picture or a video.
        width: of the picture that is shown, in pixels, at most.
        device: the device; the current one by default.

    Returns:
        The widget. ``widget.chain`` has the present values, and ``widget.result`` the picture.

    Raises:
        MissingPackage: ``anywidget`` is not installed.
        ParameterError: a filter or a parameter is refused.

    Example::

        made = dala.studio.widget([("blur", {"radius": 4}), "sepia"], "photo.jpg")
        made                      # shows it
        made.chain                # [('blur', {'radius': 9}), ('sepia', {})]
    """
    Integer(16, 8192).check("studio.widget", "width", width)
    return StudioWidget(chain, source, width, device)


class StudioWidget:
    """A chain with controls in a notebook; :func:`widget` makes one.

    The notebook shows it when it is the last value of a cell::

        dala.studio.widget(["blur", ("contrast", {"value": 0.2})], "photo.jpg")
    """

    def __init__(
        self,
        chain: Sequence[Filter],
        source: ImageLike | PathLike,
        width: int,
        device: str | None,
    ) -> None:
        made = _view_class()
        self._chain = WidgetChain(chain)
        self._pipeline = FramePipeline(_LARGEST, _LARGEST, device=device)
        self._closed = False
        try:
            self._source = opened(source, self._pipeline.device)
        except BaseException:
            self._pipeline.close()
            raise
        self._width = width
        self._lock = forks.lock()
        self._worker = LoopWorker("dala-studio-widget")
        self._waiting = False
        self._time = Fraction(0)
        self._result: NDArray | None = None
        seconds = self._source.duration
        #: The view in the browser, an ``anywidget.AnyWidget``.
        self.view = made(
            cards=self._chain.cards(),
            duration=0.0 if seconds is None else float(seconds),
            step=0.0 if self._source.rate is None else float(1 / self._source.rate),
        )
        self.view.on_msg(self._receive)
        self._render()

    @property
    def chain(self) -> list[Filter]:
        """The filters with their present values."""
        return self._chain.filters()

    @property
    def result(self) -> NDArray:
        """The picture that is shown, in its full size."""
        if self._result is None:
            raise ParameterError(f"studio.widget: {self.view.error or 'there is no picture'}.")
        return self._result

    def _repr_mimebundle_(
        self, **options: object
    ) -> tuple[dict[str, object], dict[str, object]] | dict[str, object] | None:
        shown: dict[str, object] | None = self.view._repr_mimebundle_(**options)
        return shown

    # messages of the browser ----------------------------------------------------------------------
    def _receive(self, view: object, content: Json, buffers: object) -> None:
        """Apply a change of a control, and render on a thread: the newest values win."""
        if not isinstance(content, dict) or self._closed:
            return
        try:
            if "time" in content:
                time = content["time"]
                if isinstance(time, int | float) and not isinstance(time, bool) and time >= 0:
                    self._time = Fraction(min(float(time), 1e6)).limit_denominator(10**6)
            else:
                number, name = content.get("card"), content.get("param")
                if isinstance(number, int) and isinstance(name, str):
                    self._chain.set(number, name, content.get("value"))
        except (DalaError, ValueError, TypeError) as error:
            self.view.error = str(error)
            return
        with self._lock:
            if self._waiting:
                return
            self._waiting = True
        self._worker.submit(self._render)

    def _render(self) -> None:
        with self._lock:
            self._waiting = False
        try:
            picture = self._source.at(self._time)
            if picture is None:
                return
            made = np.asarray(self._pipeline.process(picture, self._chain.filters()))
            self._result = made
            self.view.picture = self._shown(made)
            self.view.error = ""
        except (DalaError, ValueError, MemoryError, OSError) as error:
            self.view.error = str(error)

    def _shown(self, pixels: NDArray) -> bytes:
        made = rgba8(pixels)
        if made.shape[1] > self._width:
            made = np.asarray(gpu.resize(made, width=self._width, device=self._pipeline.device))
        return jpeg(np.ascontiguousarray(made))

    def close(self) -> None:
        """Close the source, and remove the widget. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._worker.submit(lambda: None).result()  # the picture that is being rendered
            self._worker.stop()
            self.view.close()
            self._source.close()
            self._pipeline.close()


def _view_class() -> AnyWidgetClass:
    """Return the class of the view, which the browser shows.

    Raises:
        MissingPackage: ``anywidget`` is not installed.
    """
    global _made
    if _made is None:
        with needing("studio.widget", "studio", "anywidget"):
            import anywidget
            import traitlets

        class StudioView(anywidget.AnyWidget):
            """The picture and the controls."""

            _esm = SCRIPT.read_text(encoding="utf-8")
            _css = SCRIPT.with_suffix(".css").read_text(encoding="utf-8")
            cards: AnyWidgetClass = traitlets.List().tag(sync=True)
            duration = traitlets.Float(0.0).tag(sync=True)
            step = traitlets.Float(0.0).tag(sync=True)
            picture = traitlets.Bytes(b"").tag(sync=True)
            error = traitlets.Unicode("").tag(sync=True)

        _made = StudioView
    return _made


_made: AnyWidgetClass = None
