"""Input of glfw windows, as events; everything here runs on the window thread."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import ModuleType
from typing import Final, cast

from dala.gpu.input.events import MODIFIERS, InputEvent

#: Seconds between the presses of a double click at most, and how far apart in window units.
DOUBLE_SECONDS: Final = 0.4
DOUBLE_DISTANCE: Final = 5.0
#: A notch of the wheel, in the units of browsers.
NOTCH: Final = 100.0


class WindowInput:
    """Turns the callbacks of one window into events.

    Args:
        glfw: The module.
        handle: The window.
        put: Takes an event.
        place: Converts a position in the window to pixels of the surface.
    """

    def __init__(
        self,
        glfw: ModuleType,
        handle: object,
        put: Callable[[InputEvent], None],
        place: Callable[[float, float], tuple[float, float]],
    ) -> None:
        from rendercanvas.glfw import KEY_MAP

        self._glfw, self._handle, self._put, self._place = glfw, handle, put, place
        self._names: dict[int, str] = KEY_MAP
        self._masks = (glfw.MOD_SHIFT, glfw.MOD_CONTROL, glfw.MOD_ALT, glfw.MOD_SUPER)
        self._modifiers: set[str] = set()
        self._buttons: set[int] = set()
        #: Where the pointer was at the last event; glfw tells only where it is now.
        self._at = (0.0, 0.0)
        #: The last press: when, where and which button, and whether it is the second.
        self._press = (0.0, 0.0, 0.0, 0, False)
        glfw.set_cursor_pos_callback(handle, self._on_move)
        glfw.set_cursor_enter_callback(handle, self._on_enter)
        glfw.set_mouse_button_callback(handle, self._on_button)
        glfw.set_scroll_callback(handle, self._on_scroll)
        glfw.set_key_callback(handle, self._on_key)
        glfw.set_char_callback(handle, self._on_char)
        glfw.set_drop_callback(handle, self._on_drop)

    def _send(self, kind: str, **fields: object) -> None:
        self._put(cast("InputEvent", {"event_type": kind, **fields}))

    def _held(self) -> tuple[str, ...]:
        return tuple(name for name in MODIFIERS if name in self._modifiers)

    def _pointer(self, kind: str, button: int = 0) -> None:
        x, y = self._place(*self._at)
        self._send(
            kind, x=x, y=y, button=button, buttons=tuple(sorted(self._buttons)),
            modifiers=self._held(), ntouches=0, touches={},
        )  # fmt: skip

    def _on_move(self, handle: object, x: float, y: float) -> None:
        self._at = x, y
        self._pointer("pointer_move")

    def _on_enter(self, handle: object, entered: int) -> None:
        self._at = self._glfw.get_cursor_pos(handle)
        self._pointer("pointer_enter" if entered else "pointer_leave")

    def _on_button(self, handle: object, button: int, action: int, mods: int) -> None:
        self._follow(mods)
        number = button + 1  # glfw counts left, right, middle from 0
        if action == self._glfw.PRESS:
            self._buttons.add(number)
            self._pointer("pointer_down", number)
            self._note_press(number)
        else:
            self._buttons.discard(number)
            self._pointer("pointer_up", number)
            if self._press[3:] == (number, True) and self._near_press():
                self._pointer("double_click", number)

    def _near_press(self) -> bool:
        (x, y), (_, before_x, before_y, *_) = self._at, self._press
        return abs(x - before_x) <= DOUBLE_DISTANCE and abs(y - before_y) <= DOUBLE_DISTANCE

    def _note_press(self, button: int) -> None:
        when, _, _, before, second = self._press
        now = perf_counter()
        soon = now - when <= DOUBLE_SECONDS and self._near_press()
        self._press = (now, *self._at, button, soon and button == before and not second)

    def _on_scroll(self, handle: object, dx: float, dy: float) -> None:
        x, y = self._place(*self._at)
        self._send(
            "wheel", dx=NOTCH * dx, dy=-NOTCH * dy, x=x, y=y,
            buttons=tuple(sorted(self._buttons)), modifiers=self._held(),
        )  # fmt: skip

    def _follow(self, mods: int) -> None:
        """Take the modifiers that glfw reports, such as those held before the window had focus."""
        pairs = zip(MODIFIERS, self._masks, strict=True)
        self._modifiers = {name for name, mask in pairs if mods & mask}

    def _on_key(self, handle: object, key: int, code: int, action: int, mods: int) -> None:
        if action == self._glfw.REPEAT:
            return
        self._follow(mods)
        name = self._names.get(key)
        if name in MODIFIERS:  # mods has the state before this key
            (self._modifiers.add if action else self._modifiers.discard)(name)
        name = name or self._printable(key, code)
        if name is not None:
            kind = "key_down" if action == self._glfw.PRESS else "key_up"
            self._send(kind, key=name, modifiers=self._held())

    def _printable(self, key: int, code: int) -> str | None:
        """Return the character of a key in the user's layout; None for a key without one."""
        if key == self._glfw.KEY_SPACE:
            return " "
        if key == self._glfw.KEY_KP_ENTER:
            return "Enter"
        name: str | None = self._glfw.get_key_name(key, code)
        return name.upper() if name and "Shift" in self._modifiers else name or None

    def _on_char(self, handle: object, code: int) -> None:
        self._send("char", data=chr(code), modifiers=self._held())

    def _on_drop(self, handle: object, paths: list[str]) -> None:
        self._at = self._glfw.get_cursor_pos(handle)
        x, y = self._place(*self._at)
        self._send("drop", x=x, y=y, files=tuple(paths), text="")

    def focus(self, focused: bool) -> None:
        """Report that the window has the focus, or has lost it."""
        self._modifiers.clear()
        self._send("focus" if focused else "blur")


class WindowProperties:
    """The properties of one window that a program may change."""

    def __init__(self, glfw: ModuleType, handle: object) -> None:
        from rendercanvas.glfw import CURSOR_MAP

        self._glfw, self._handle = glfw, handle
        self._shapes: dict[str, int | None] = CURSOR_MAP
        self._cursor: object = None
        #: The place and size of the window before it filled the screen.
        self._before: tuple[int, int, int, int] | None = None

    def set(self, name: str, value: object) -> bool:
        """Change the title, cursor, fullscreen or clipboard."""
        if name == "title":
            self._glfw.set_window_title(self._handle, value)
        elif name == "clipboard":
            self._glfw.set_clipboard_string(None, value)
        elif name == "cursor":
            self._set_cursor(str(value))
        elif name == "fullscreen":
            return self._set_fullscreen(bool(value))
        return True

    def clipboard(self) -> str:
        """Return the text of the clipboard; "" where it holds none."""
        text = self._glfw.get_clipboard_string(None) or b""
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)

    def _set_cursor(self, shape: str) -> None:
        glfw = self._glfw
        hidden = glfw.CURSOR_HIDDEN if shape == "none" else glfw.CURSOR_NORMAL
        glfw.set_input_mode(self._handle, glfw.CURSOR, hidden)
        number, before = self._shapes.get(shape), self._cursor
        self._cursor = None if number is None else glfw.create_standard_cursor(number)
        glfw.set_cursor(self._handle, self._cursor)
        if before is not None:
            glfw.destroy_cursor(before)

    def _set_fullscreen(self, wanted: bool) -> bool:
        glfw, handle = self._glfw, self._handle
        monitor = glfw.get_primary_monitor()
        if wanted == (self._before is not None):
            return True
        if wanted:
            if not monitor:
                return False
            self._before = *glfw.get_window_pos(handle), *glfw.get_window_size(handle)
            mode = glfw.get_video_mode(monitor)
            width, height = mode.size
            glfw.set_window_monitor(handle, monitor, 0, 0, width, height, mode.refresh_rate)
        elif self._before is not None:
            x, y, width, height = self._before
            self._before = None
            glfw.set_window_monitor(handle, None, x, y, width, height, glfw.DONT_CARE)
        return True
