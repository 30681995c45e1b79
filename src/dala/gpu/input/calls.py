"""The calls of input, which are methods of ``Surface``."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, TypeVar, cast, overload

from dala.errors import CommandError, DalaError, FreedError, did_you_mean
from dala.gpu.checks import destroyed, renderer_of
from dala.gpu.input import running
from dala.gpu.input.events import MAX_TEXT, InputEvent, checked_event, checked_type
from dala.gpu.input.inbox import Handler, Inbox, Pointer
from dala.notices import notify

if TYPE_CHECKING:
    from dala.gpu.presenters.base import Presenter
    from dala.gpu.surface import Surface

F = TypeVar("F", bound=Handler)

#: The shapes of the cursor, by their names in CSS, as rendercanvas has them.
CURSORS: Final = (
    "default", "text", "crosshair", "pointer", "ew-resize", "ns-resize", "nesw-resize",
    "nwse-resize", "not-allowed", "none",
)  # fmt: skip

#: Seconds between looks at a window that its caller has to run.
POLL: Final = 0.01


class Events(list[InputEvent]):
    """The events that waited. ``async for`` continues with those to come, up to ``close``."""

    def __init__(self, surface: Surface, events: list[InputEvent]) -> None:
        super().__init__(events)
        self._surface = surface

    async def __aiter__(self) -> AsyncIterator[InputEvent]:
        event = InputEvent()
        for event in self:
            yield event
        while event.get("event_type") != "close":
            try:
                event = await self._surface.next_event()
            except FreedError:
                return
            yield event


class InputCalls:
    """Input of a surface: events, state, and the properties of its window."""

    _inbox: Inbox
    presenter: Presenter | None

    @property
    def _surface(self) -> Surface:
        return cast("Surface", self)

    def _init_input(self, errors: deque[DalaError], title: str) -> None:
        #: Events that arrive; see :mod:`dala.gpu.input`.
        self._inbox = Inbox(errors)
        self._properties: dict[str, object] = {"title": title, "cursor": "default"}

    # events -------------------------------------------------------------------------------------
    def events(self) -> Events:
        """Return and forget the events that wait, oldest first, after calling their handlers.

        Each is a dict with ``event_type``, ``time_stamp``, and the fields of its type; see
        "Input" in the guide. Moves in a row are one event. ``async for event in s.events()`` goes
        on with the events to come, until the surface is closed.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     s.post_event({"event_type": "pointer_down", "x": 5, "y": 7, "button": 1})
        ...     for event in s.events():
        ...         print(event["event_type"], event["x"], event["y"], event["buttons"])
        pointer_down 5.0 7.0 (1,)
        """
        renderer_of(self._surface, "events")
        if self.presenter is not None:
            self.presenter.poll()
        return Events(self._surface, self._inbox.take())

    async def next_event(self) -> InputEvent:
        """Wait for the next event, and return it.

        >>> import asyncio
        >>> from dala.gpu import create_surface
        >>> async def press():
        ...     with create_surface(64, 48) as s:
        ...         s.post_event({"event_type": "key_down", "key": "a"})
        ...         return (await s.next_event())["key"]
        >>> asyncio.run(press())
        'a'

        Raises:
            FreedError: The surface was destroyed; its last event is ``close``.
        """
        inbox = self._inbox
        while (event := inbox.take_one()) is None:
            if inbox.closed:
                raise destroyed("next_event")
            polled = self.presenter is not None and self.presenter.polled
            if self.presenter is not None:
                self.presenter.poll()
            await inbox.arrival(POLL if polled else None)
        return event

    @overload
    def on(self, event_type: str) -> Callable[[F], F]: ...
    @overload
    def on(self, event_type: str, function: F) -> F: ...
    def on(self, event_type: str, function: F | None = None) -> F | Callable[[F], F]:
        """Call a function with each event of a type, or of all types: ``"*"``.

        Functions are called by ``run``, ``events``, ``next_event`` and ``wait_closed``, on their
        thread, in the order in which they were added; in a notebook also while no cell runs. An
        error in one is logged and listed in ``errors``, and stops no other.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     @s.on("key_down")
        ...     def pressed(event):
        ...         print(event["key"], sorted(s.keys))
        ...     s.post_event({"event_type": "key_down", "key": "ArrowLeft"})
        ArrowLeft ['ArrowLeft']

        Args:
            event_type: The type of event, or "*".
            function: A function of an event. Without it, the call is a decorator.
        """
        renderer_of(self._surface, "on")
        kind = checked_type("on", event_type, "*")

        def add(function: F) -> F:
            if not callable(function) or iscoroutinefunction(function):
                advice = "Coroutines can await s.next_event()." if callable(function) else ""
                raise CommandError.invalid("on", "function", "a plain function", function, advice)
            self._inbox.on(kind, function)
            return function

        return add if function is None else add(function)

    def off(self, event_type: str, function: Handler) -> None:
        """Stop calling a function that was given to ``on``.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     s.on("close", print) is print
        ...     s.off("close", print)
        True
        """
        renderer_of(self._surface, "off")
        if not self._inbox.off(checked_type("off", event_type, "*"), function):
            raise CommandError.invalid("off", "function", "one that was given to on()", function)

    def post_event(self, event: InputEvent) -> None:
        """Add an event, as a window does: for tests, and for programs.

        Handlers have been called when this returns, unless another thread is in ``run``, which
        calls them, or the call is made by a handler.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     s.post_event({"event_type": "pointer_move", "x": 20, "y": 10})
        ...     s.pointer.x, s.pointer.y, s.pointer.inside
        (20.0, 10.0, True)

        Raises:
            CommandError: It is no event, or a field is wrong; nothing was added.
        """
        renderer_of(self._surface, "post_event")
        self._inbox.put(checked_event("post_event", event))
        if self._inbox.runner is None:
            self._inbox.dispatch()

    @property
    def pointer(self) -> Pointer:
        """Where the pointer is: ``x``, ``y``, the ``buttons`` that are held, and ``inside``."""
        height, width = renderer_of(self._surface, "pointer").front.shape[:2]
        return self._inbox.pointer(width, height)

    @property
    def keys(self) -> frozenset[str]:
        """The names of the keys that are held down: ``"ArrowLeft" in s.keys``."""
        renderer_of(self._surface, "keys")
        return self._inbox.keys

    # frames -------------------------------------------------------------------------------------
    def run(self, draw: running.Draw, fps: float = 60) -> None:
        """Call ``draw(s, dt)`` and present, ``fps`` times a second, until closed or stopped.

        Handlers of events are called before each frame. A frame that takes too long delays the
        next one and no other. ``stop``, ``close``, a ``close`` event and Ctrl-C end it; so does an
        exception of ``draw`` or of a drawing command, which is raised. In a notebook the call
        returns at once, and frames are drawn while no cell runs.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     def draw(s, dt):
        ...         s.clear("navy")
        ...         if s.stats["frames"] == 2:
        ...             s.stop()
        ...     s.run(draw, fps=200)
        ...     s.synchronize()
        ...     s.stats["frames"]
        3

        Args:
            draw: A function of the surface and of the seconds since the previous frame, which are
                ``1 / fps`` at the first.
            fps: Frames per second, up to 1000.
        """
        renderer_of(self._surface, "run")
        fps = running.checked_pace("run", draw, fps)
        if self.presenter is None and (show := running.wanted_show()) is not None:
            self._surface._show(show)
            for name in self._properties.keys() - {"title"}:  # set while there was no window
                self._set_property(name, self._properties[name], again=True)
        if not running.run_in_notebook(self._surface, draw, fps):
            running.run(self._surface, draw, fps)

    async def run_async(self, draw: running.Draw, fps: float = 60) -> None:
        """Run like ``run``, while other tasks of the event loop run.

        >>> import asyncio
        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     asyncio.run(s.run_async(lambda s, dt: s.stop()))
        """
        renderer_of(self._surface, "run_async")
        await running.run_async(self._surface, draw, running.checked_pace("run_async", draw, fps))

    def stop(self) -> None:
        """End ``run`` after the current frame; the surface stays open. Safe on any thread."""
        self._inbox.stopping.set()

    # the window ---------------------------------------------------------------------------------
    def _set_property(self, name: str, value: object, *, again: bool = False) -> None:
        renderer_of(self._surface, name)
        if name == "cursor" and self._properties[name] == value and not again:
            return  # programs set it with each frame
        self._properties[name] = value
        shown = self.presenter
        if shown is not None and not shown.closed and not shown.set_property(name, value):
            notify(f"{name}: show={shown.kind!r} cannot change it.", stacklevel=3)

    @property
    def title(self) -> str:
        """The title of the window or page; may be set."""
        return str(self._properties["title"])

    @title.setter
    def title(self, value: str) -> None:
        if not isinstance(value, str):
            raise CommandError.invalid("title", "title", "a str", value)
        self._set_property("title", value)

    @property
    def cursor(self) -> str:
        """The shape of the cursor over the picture, by its name in CSS; may be set.

        >>> from dala.gpu import create_surface
        >>> with create_surface(64, 48) as s:
        ...     s.cursor = "crosshair"
        ...     s.cursor
        'crosshair'
        """
        return str(self._properties["cursor"])

    @cursor.setter
    def cursor(self, value: str) -> None:
        shape = value.replace("_", "-") if isinstance(value, str) else value
        if shape not in CURSORS:
            advice = did_you_mean(shape, CURSORS) if isinstance(shape, str) else ""
            expected = f"one of {', '.join(map(repr, CURSORS))}"
            raise CommandError.invalid("cursor", "cursor", expected, value, advice)
        self._set_property("cursor", shape)

    @property
    def fullscreen(self) -> bool:
        """True where the picture fills the screen; may be set."""
        return bool(self._properties.get("fullscreen", False))

    @fullscreen.setter
    def fullscreen(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise CommandError.invalid("fullscreen", "fullscreen", "True or False", value)
        self._set_property("fullscreen", value)

    @property
    def clipboard(self) -> str:
        """The text of the clipboard, as far as the presenter may read it; may be set."""
        shown = self.presenter
        text = None if shown is None or shown.closed else shown.clipboard_text()
        return str(self._properties.get("clipboard", "")) if text is None else text

    @clipboard.setter
    def clipboard(self, value: str) -> None:
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            expected = f"a str of at most {MAX_TEXT} characters"
            raise CommandError.invalid("clipboard", "clipboard", expected, value)
        self._set_property("clipboard", value)

    @property
    def scale(self) -> float:
        """Physical pixels of the screen for one logical pixel: 2.0 on many laptops; else 1.0."""
        return 1.0 if self.presenter is None else self.presenter.pixel_ratio
