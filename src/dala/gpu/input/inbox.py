"""The inbox of a surface: events that wait, the state they leave, and the functions they call.

Events arrive from any thread. They are merged and bounded, and the state of pointer and keys
follows at once. Handlers are called later, on the thread that takes events: a game's drawing and
its handlers never run at the same time.

The surface owns its inbox; renderer and presenter have a weak reference only, since handlers may
refer to the surface.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, NamedTuple, TypeAlias

from dala import forks
from dala.errors import CommandError, DalaError
from dala.gpu.input.events import MAX_ITEMS, MODIFIERS, InputEvent, merged

#: A function of an event.
Handler: TypeAlias = Callable[[InputEvent], object]

#: Events that wait at most, besides moves, which are merged.
MAX_EVENTS: Final = 1 << 14

_log = logging.getLogger("dala")
_MOVES: Final = frozenset({"pointer_move", "wheel", "resize", "pointer_enter", "pointer_leave"})


class _Place(NamedTuple):
    x: float
    y: float
    buttons: tuple[int, ...]


class Pointer(_Place):
    """Where the pointer is: ``x`` and ``y`` in pixels of the surface, and the ``buttons`` held.

    >>> x, y, buttons = Pointer(3.0, 4.0, (1,))
    >>> Pointer(3.0, 4.0, (1,)).x
    3.0
    """

    #: True while the pointer is over the picture.
    inside: bool = False


class Inbox:
    """The events of one surface.

    >>> inbox = Inbox(deque())
    >>> inbox.put({"event_type": "key_down", "key": "a"})
    >>> inbox.keys, [event["key"] for event in inbox.take()]
    (frozenset({'a'}), ['a'])
    """

    def __init__(self, errors: deque[DalaError]) -> None:
        self._errors = errors
        self._guard = forks.lock()
        #: Events whose handlers were not called yet, and those that wait to be taken.
        self._arrived: deque[InputEvent] = deque()
        self._waiting: deque[InputEvent] = deque()
        self._handlers: dict[str, list[Handler]] = {}
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._dispatcher: int | None = None
        self._signal = forks.event()
        self._held: dict[str, str] = {}
        self._place = _Place(0.0, 0.0, ())
        #: True while the pointer is over the window or page.
        self.hovering = False
        #: True once the program took events: it is warned of those that are dropped.
        self._read = False
        #: Set to end ``run``.
        self.stopping = forks.event()
        #: The thread that draws frames in ``run``.
        self.runner: int | None = None
        self.closed = False
        self._had_close = self._overflowed = False

    # state --------------------------------------------------------------------------------------
    def pointer(self, width: int, height: int) -> Pointer:
        """Return where the pointer is, for a surface of this size."""
        made = Pointer(*self._place)
        made.inside = self.hovering and 0 <= made.x < width and 0 <= made.y < height
        return made

    @property
    def keys(self) -> frozenset[str]:
        """The names of the keys that are held down."""
        return frozenset(self._held.copy().values())

    def _follow(self, event: InputEvent) -> None:
        """Complete an event from the state, and the state from the event. Runs under the lock."""
        kind, at = event["event_type"], self._place
        if kind.startswith(("pointer", "double", "wheel", "drop")):
            buttons = set(at.buttons)
            if kind == "pointer_down":
                buttons.add(event.setdefault("button", 1))
            elif kind == "pointer_up":
                buttons.discard(event.setdefault("button", 1))
            x, y = event.setdefault("x", at.x), event.setdefault("y", at.y)
            if kind != "drop":
                held = event.setdefault("buttons", tuple(sorted(buttons - {0})))
                self._place, self.hovering = _Place(x, y, held), kind != "pointer_leave"
        elif kind.startswith("key"):
            place = event.get("code", event["key"].lower())
            self._held.pop(place, None)
            if kind == "key_down":
                self._held[place] = event["key"]
                if len(self._held) > MAX_ITEMS:  # more than there are fingers: a page makes them up
                    del self._held[next(iter(self._held))]
        elif kind in ("blur", "close"):
            self._held.clear()
            self._place = at._replace(buttons=())
        if kind.startswith(("pointer", "double", "wheel", "key", "char")):
            held_now = set(self._held.values())
            event.setdefault("modifiers", tuple(name for name in MODIFIERS if name in held_now))

    # arriving, on any thread --------------------------------------------------------------------
    def put(self, event: InputEvent) -> None:
        """Add a checked event."""
        with self._guard:
            if self.closed:
                return
            event.setdefault("time_stamp", perf_counter())
            self._follow(event)
            self._keep(self._arrived, event)
            if event["event_type"] == "close":
                self._had_close = True
                self.stopping.set()
        self.wake()

    def _keep(self, queue: deque[InputEvent], event: InputEvent) -> None:
        """Append an event, merged with the last where that loses nothing. Runs under the lock."""
        one = merged(queue[-1], event) if queue else None
        if one is not None:
            queue[-1] = one
            return
        if len(queue) >= MAX_EVENTS:
            self._make_room(queue)
        queue.append(event)

    def _make_room(self, queue: deque[InputEvent]) -> None:
        """Drop moves, all but the newest event; if that is too little, the oldest events."""
        limit, newest = len(queue), queue.pop()
        kept = [event for event in queue if event["event_type"] not in _MOVES]
        left = kept[max(len(kept) - limit * 7 // 8, 0) :]
        queue.clear()
        queue.extend([*left, newest])
        if self._read and len(left) < len(kept) and not self._overflowed:
            self._overflowed = True
            _log.warning("More than %d events waited. The oldest were dropped.", MAX_EVENTS)

    def wake(self) -> None:
        """Wake the threads and tasks that wait for events."""
        self._signal.set()
        with self._guard:
            sleepers, self._sleepers = self._sleepers, []
        for loop, future in sleepers:
            with contextlib.suppress(RuntimeError):  # that loop was closed
                loop.call_soon_threadsafe(_finish, future)

    def wait(self, seconds: float) -> None:
        """Wait until an event arrives, or so many seconds."""
        self._signal.wait(seconds)
        self._signal.clear()

    # handlers -----------------------------------------------------------------------------------
    def on(self, event_type: str, function: Handler) -> None:
        """Call a function with each event of a type, or of all types: ``*``."""
        with self._guard:
            handlers = self._handlers.setdefault(event_type, [])
            self._handlers[event_type] = [each for each in handlers if each != function]
            self._handlers[event_type].append(function)

    def off(self, event_type: str, function: Handler) -> bool:
        """Remove a handler. Return whether there was one."""
        with self._guard:
            before = self._handlers.get(event_type, [])
            self._handlers[event_type] = [each for each in before if each != function]
            return len(before) > len(self._handlers[event_type])

    def dispatch(self) -> None:
        """Call the handlers of the events that arrived, on the calling thread."""
        with self._guard:
            count = len(self._arrived)
            if not count or self._dispatcher is not None:
                return  # also within a handler: the events it makes are for the next time
            self._dispatcher = threading.get_ident()
        try:
            for _ in range(count):
                self._dispatch_one()
        finally:
            self._dispatcher = None
        self.wake()

    def _dispatch_one(self) -> None:
        with self._guard:
            if not self._arrived:  # merged, or dropped, meanwhile
                return
            event = self._arrived.popleft()
            kinds = event["event_type"], "*"
            handlers = [each for kind in kinds for each in self._handlers.get(kind, ())]
        try:
            for handler in handlers:
                if event.get("stop_propagation"):
                    break
                self._call(handler, event)
        finally:
            with self._guard:
                self._keep(self._waiting, event)

    def _call(self, handler: Handler, event: InputEvent) -> None:
        """Call a handler. Its error is reported, and stops no other handler."""
        try:
            handler(event)
        except Exception as error:
            kind = event["event_type"]
            name = getattr(handler, "__qualname__", repr(handler))
            _log.exception("The handler %s of a %s event failed.", name, kind)
            what = f"on: the handler {name} of a {kind} event failed"
            made = CommandError(f"{what}: {type(error).__name__}: {error}")
            made.__cause__ = error.with_traceback(None)  # its frames reference the surface
            self._errors.append(made)

    # taking -------------------------------------------------------------------------------------
    def take(self) -> list[InputEvent]:
        """Call handlers, then return and forget all events that wait."""
        self._read = True
        self.dispatch()
        with self._guard:
            found = list(self._waiting)
            self._waiting.clear()
        return found

    def take_one(self) -> InputEvent | None:
        """Call handlers, then return and forget the oldest event that waits, if there is one."""
        self._read = True
        self.dispatch()
        with self._guard:
            return self._waiting.popleft() if self._waiting else None

    async def arrival(self, seconds: float | None) -> None:
        """Wait until there may be an event to take, or so many seconds."""
        sleeper = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
        with self._guard:
            if self._waiting or self.closed or (self._arrived and self._dispatcher is None):
                return
            self._sleepers.append(sleeper)
        try:
            await asyncio.wait((sleeper[1],), timeout=seconds)
        finally:
            with self._guard:
                self._sleepers = [each for each in self._sleepers if each is not sleeper]

    def close(self) -> None:
        """Add a last event, unless there is a ``close`` already, and refuse more."""
        if not self._had_close:
            self.put(InputEvent(event_type="close"))
        with self._guard:
            self.closed = True
        self.dispatch()
        self.stopping.set()
        self.wake()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
