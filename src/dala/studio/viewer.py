"""One connected page: its view, the pictures under way to it, and the messages that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, Final

from dala import forks
from dala.arguments import Flag, Integer, Selection
from dala.errors import ParameterError
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.limits import StudioLimits
from dala.studio.picture.charts import CHARTS
from dala.studio.picture.moment import Region
from dala.studio.picture.shown import PageTrace

CODECS: Final = ("h264", "jpeg", "rgba")
#: The largest side of a canvas.
_LARGEST: Final = 16384


@dataclass(frozen=True)
class View:
    """The view of a page: the size, the part and the form of its picture.

    >>> View(640, 360).fitted((1280, 720))
    ((0, 0, 1280, 720), 640, 360)
    >>> View(640, 640, region=(10, 10, 4, 4)).fitted((1280, 720))
    ((10, 10, 4, 4), 4, 4)
    """

    width: int = 0
    height: int = 0
    region: Region | None = None
    split: bool = False
    codec: str = "jpeg"
    charts: tuple[str, ...] = ()
    paused: bool = False

    @property
    def picture(self) -> tuple[object, ...]:
        """The values that its pictures depend on."""
        return self.width, self.height, self.region, self.split, self.codec

    def fitted(self, size: tuple[int, int]) -> tuple[Region, int, int]:
        """Return the part of a result of a size that is shown, and the size of its picture."""
        width, height = size
        left, top, wide, high = self.region or (0, 0, width, height)
        left, top = min(max(left, 0), width - 1), min(max(top, 0), height - 1)
        wide, high = min(max(wide, 1), width - left), min(max(high, 1), height - top)
        scale = min(self.width / wide, self.height / high, 1.0)
        return (left, top, wide, high), max(round(wide * scale), 1), max(round(high * scale), 1)


def changed_view(view: View, message: JsonObject) -> View:
    """Return a view with the keys of a message.

    Raises:
        ParameterError: a key has the wrong form.

    >>> changed_view(View(), {"width": 64, "height": 48, "codec": "rgba"}).codec
    'rgba'
    """
    changes: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        if name in message or (name in ("width", "height") and not getattr(view, name)):
            changes[name] = check(message.get(name))
    return replace(view, **changes)


def _flag(name: str, value: Json) -> bool:
    return bool(Flag("true or false").check_optional("view", name, value))


def _integer(name: str, value: Json, low: int, high: int) -> int:
    if isinstance(value, float) and value == value and abs(value) <= high:
        value = round(value)
    return Integer(low, high, words=f"a number from {low} to {high}").check("view", name, value)


def _region(value: Json) -> Region | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 4:
        raise ParameterError.invalid("view", "region", "[x, y, width, height] or null", value)
    x, y = (_integer("region", v, -(1 << 20), 1 << 20) for v in value[:2])
    w, h = (_integer("region", v, 1, 1 << 20) for v in value[2:])
    return x, y, w, h


def _charts(value: Json) -> tuple[str, ...]:
    charts = value or []
    if not isinstance(charts, list) or any(c not in CHARTS for c in charts):
        raise ParameterError.invalid("view", "charts", f"any of {', '.join(CHARTS)}", charts)
    return tuple(c for c in CHARTS if c in charts)


_CODEC: Final = Selection(*CODECS, expected=f"one of {', '.join(CODECS)}")
#: What each key of a message about the view accepts.
_CHECKS: Final[dict[str, Callable[[Json], object]]] = {
    "width": lambda value: _integer("width", value, 1, _LARGEST),
    "height": lambda value: _integer("height", value, 1, _LARGEST),
    "region": _region,
    "split": partial(_flag, "split"),
    "paused": partial(_flag, "paused"),
    "codec": partial(_CODEC.check, "view", "codec"),
    "charts": _charts,
}


class Viewer:
    """A page that is connected. Its queue is filled from any thread and emptied by the event loop.

    Args:
        id: the number of the viewer.
        limits: bounds of the queue and of the pictures under way.
        loop: the event loop of its connection.
    """

    def __init__(self, id: int, limits: StudioLimits, loop: asyncio.AbstractEventLoop) -> None:
        self.id = id
        self.view = View()
        self._limits = limits
        self._loop = loop
        self._lock = forks.lock()
        self._queue: deque[tuple[str | bytes, int]] = deque()
        self._filled = asyncio.Event()
        #: Pictures that were sent and not acknowledged.
        self._under_way: dict[int, None] = {}
        #: The moment that was sent last, and what of the view its pictures depend on.
        self.sent: tuple[int, tuple[object, ...]] | None = None
        #: Whether its decoder was lost: the next picture has to stand alone.
        self.lost = False
        #: What a trace knows of it, and when its view was changed last.
        self.trace, self.asked = PageTrace(f"page {id}"), 0.0
        #: Why the connection has to end; "" while it may stay.
        self.ended = ""

    # pictures ---------------------------------------------------------------------------------
    @property
    def wants_pictures(self) -> bool:
        """Whether the page shows anything."""
        return bool(self.view.width) and not self.view.paused and not self.ended

    @property
    def has_room(self) -> bool:
        """Whether another picture may be sent."""
        with self._lock:
            return self.wants_pictures and len(self._under_way) < self._limits.pictures

    def send_picture(self, seq: int, messages: list[bytes], due: float) -> None:
        """Queue the pictures of a moment; they are under way until the page has seen them.

        ``due`` is when the moment had to be shown, by ``monotonic``.
        """
        with self._lock:
            self._under_way[seq] = None
        self.trace.put(seq, max(due, self.asked))
        for message in messages:
            self.send(message, seq)

    def seen(self, seq: Json) -> None:
        """Note that the page has taken a picture; earlier ones count as taken, too."""
        if isinstance(seq, bool) or not isinstance(seq, int):
            return
        with self._lock:
            for other in [n for n in self._under_way if n <= seq]:
                del self._under_way[other]
                self.trace.seen(other)

    def show(self, message: JsonObject) -> None:
        """Change the view; with ``key`` the next picture stands alone.

        Raises:
            ParameterError: a key of the message has the wrong form.
        """
        view, lost = changed_view(self.view, message), _flag("key", message.get("key"))
        self.view, self.asked = view, monotonic()
        if lost:
            self.lost, self.sent = True, None

    # messages ---------------------------------------------------------------------------------
    def send(self, message: str | bytes, seq: int = 0) -> None:
        """Queue a message, from any thread. A page whose queue is full is dropped."""
        with self._lock:
            if self.ended:
                return
            if len(self._queue) >= self._limits.queue:
                self.ended = "the page does not keep up"
            else:
                self._queue.append((message, seq))
        self._wake()

    def end(self, why: str) -> None:
        """End the connection."""
        with self._lock:
            self.ended = self.ended or why
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._filled.set)
        except RuntimeError:  # the loop is closed
            self.ended = self.ended or "the server ends"

    async def next(self) -> tuple[str | bytes, int] | None:
        """Return the next message to send, and its picture's number, or 0; None at the end."""
        while True:
            with self._lock:
                if self.ended:
                    return None
                if self._queue:
                    return self._queue.popleft()
                self._filled.clear()
            await self._filled.wait()
