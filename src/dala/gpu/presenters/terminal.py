"""The terminal presenter: frames as half-block characters, two pixels per character.

The picture is scaled to the terminal, aspect kept, and drawn on the alternate screen, so that the
terminal's content is kept. At the end the normal screen and the cursor are restored, and the last
frame stays as text.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import shutil
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala import forks
from dala.errors import DeviceUnavailable
from dala.gpu.input.events import InputEvent
from dala.gpu.input.terminal import TerminalInput, input_descriptor
from dala.gpu.presenters.base import ThreadPresenter, over_black
from dala.gpu.presenters.quad import fit_rect
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE: Final = "\x1b[0m\x1b[?25h\x1b[?1049l"
KEEP_TITLE: Final = "\x1b[22;2t"
OLD_TITLE: Final = "\x1b[23;2t"
HOME: Final = "\x1b[H"
#: Synchronized output: terminals that support it show a frame at once.
BEGIN: Final = "\x1b[?2026h"
END: Final = "\x1b[?2026l"

#: Frames per second with vsync; terminals have no sync of their own.
MAX_FPS: Final = 60.0

#: Samples per output pixel along each axis; larger frames are subsampled first.
SAMPLES_PER_CELL: Final = 4


class TerminalPresenter(ThreadPresenter):
    """Writes frames to standard output, which must be a terminal."""

    kind = "terminal"

    def __init__(self, renderer: Renderer, title: str, vsync: bool) -> None:
        super().__init__(renderer, 1.0 / MAX_FPS if vsync else 0.0)
        self._out = _terminal_descriptor()
        self._size = (0, 0)
        self._last: NDArray | None = None
        self._writing = forks.lock()
        self._titled = False
        self._place = (0, 0, 1, 1)
        self._input: TerminalInput | None = None
        self._write(ENTER)
        _entered.add(self)
        _show_errors_after()
        source = input_descriptor()
        if source is not None:
            self._input = TerminalInput(source, self._write, self._take, LEAVE)
        self.listen()

    # input --------------------------------------------------------------------------------------
    def _take(self, event: InputEvent) -> None:
        """Add an event, whose position is in cells."""
        if "x" in event:
            middle = event["x"] + 0.5, 2 * event["y"] + 1.0  # in half blocks
            event["x"], event["y"] = self.surface_position(self._place, *middle)
        self.put_event(event)

    def set_property(self, name: str, value: object) -> bool:
        """Change the title, or the clipboard where the terminal allows it."""
        text = "".join(c for c in str(value) if c.isprintable())
        if name == "title":
            self._write(f"{'' if self._titled else KEEP_TITLE}\x1b]2;{text}\x1b\\")
            self._titled = True
        elif name == "clipboard":
            data = base64.b64encode(str(value).encode()).decode()
            self._write(f"\x1b]52;c;{data}\x1b\\")
            if self._input is not None:
                self._input.parser.pasted = str(value)
        return name in ("title", "clipboard")

    def clipboard_text(self) -> str | None:
        """Return the text that was pasted into the terminal, or set by the program, last."""
        return None if self._input is None else self._input.parser.pasted

    def show(self, frame: NDArray) -> None:
        """Draw a frame. A terminal that was resized is cleared first."""
        size = _terminal_size(self._out)
        left, top, rows = _placed(frame, *size)
        x, y, w, h = fit_rect((frame.shape[1], frame.shape[0]), (size[0], size[1] * 2))
        if size != self._size:
            shown = InputEvent(event_type="resize", width=float(size[0]), height=2.0 * size[1])
            self.put_event(shown)
        self._place = (x, 2 * (y // 2), w, h)
        clear = "\x1b[0m\x1b[2J" if size != self._size else ""
        self._size, self._last = size, frame
        lines = "".join(f"\x1b[{top + i + 1};{left + 1}H{row}" for i, row in enumerate(rows))
        self._write(f"{BEGIN}{clear}{lines}{HOME}{END}")

    def end(self) -> None:
        """Restore the normal screen; the last frame stays as text."""
        if self not in _entered:
            return
        _entered.discard(self)
        if self._input is not None:
            self._input.close()
        last_frame = ""
        if self._last is not None:
            columns, lines = _terminal_size(self._out)
            *_, rows = _placed(self._last, columns, max(lines - 1, 1))
            last_frame = "".join(f"{row}\n" for row in rows)
        with contextlib.suppress(OSError):  # the terminal is gone
            self._write(f"{OLD_TITLE if self._titled else ''}{LEAVE}{last_frame}")

    def _write(self, text: str) -> None:
        data = memoryview(text.encode())
        with self._writing:
            while data:
                data = data[os.write(self._out, data) :]


def _placed(frame: NDArray, columns: int, lines: int) -> tuple[int, int, list[str]]:
    """Return the left column and the top line of a frame in a terminal, and its lines of text."""
    x, y, w, h = fit_rect((frame.shape[1], frame.shape[0]), (columns, lines * 2))
    return x, y // 2, half_blocks(scale(over_black(frame), w, h))


_entered: weakref.WeakSet[TerminalPresenter] = weakref.WeakSet()


def _close_all() -> None:
    for presenter in list(_entered):
        presenter.close()


def _show_errors_after() -> None:
    """Restore the screen before an exception that ends the program is shown: it would be lost."""
    before = sys.excepthook
    if getattr(before, "__name__", "") == "closes_first":
        return

    def closes_first(*error: Any) -> None:
        _close_all()
        before(*error)

    sys.excepthook = closes_first


atexit.register(_close_all)
forks.in_child(lambda: _entered.clear())  # the terminal is the parent's


def _terminal_descriptor() -> int:
    """Return the file descriptor of standard output, which must be a terminal."""
    stream = sys.__stdout__
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        number = -1
    if number < 0 or not os.isatty(number):
        raise DeviceUnavailable(
            "create_surface: show='terminal' needs a terminal as standard output, got a file, a "
            "pipe or a closed stream. Run it in a terminal, or use show='browser'."
        )
    _enable_escapes(number)
    return number


def _enable_escapes(number: int) -> None:
    """Enable escape sequences in a Windows console."""
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        kernel, mode = ctypes.windll.kernel32, ctypes.c_uint32()
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(number))
        if kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            kernel.SetConsoleMode(handle, mode.value | 4)


def _terminal_size(out: int) -> tuple[int, int]:
    """Return the columns and lines of the terminal."""
    try:
        columns, lines = os.get_terminal_size(out)
    except OSError:
        columns, lines = 0, 0
    if columns < 1 or lines < 1:  # some terminals report no size
        columns, lines = shutil.get_terminal_size()
    return columns, lines


def scale(image: NDArray, width: int, height: int) -> NDArray:
    """Return an RGB picture at another size: area mean to shrink, nearest pixel to enlarge."""
    h, w = image.shape[:2]
    step_y = max(h // (height * SAMPLES_PER_CELL), 1)
    step_x = max(w // (width * SAMPLES_PER_CELL), 1)
    image = image[::step_y, ::step_x]
    for axis, size in ((0, height), (1, width)):
        have = image.shape[axis]
        starts = np.arange(size) * have // size
        if size >= have:
            image = np.take(image, starts, axis=axis)
        else:
            sums = np.add.reduceat(image, starts, axis=axis, dtype=np.float32)
            counts = np.diff(np.append(starts, have)).astype(np.float32)
            image = sums / counts.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    if image.dtype != np.uint8:
        image = (image + 0.5).astype(np.uint8)
    return image


def half_blocks(image: NDArray) -> list[str]:
    """Return an RGB picture as lines of half blocks, two rows per line; each line ends reset.

    >>> half_blocks(np.array([[[255, 0, 0]], [[0, 0, 255]]], np.uint8))
    ['\\x1b[38;2;255;0;0;48;2;0;0;255m▀\\x1b[0m']
    """
    if image.shape[0] % 2:
        image = np.concatenate([image, np.zeros_like(image[:1])])
    lines = []
    for upper, lower in zip(image[0::2].tolist(), image[1::2].tolist(), strict=True):
        before: tuple[list[int], list[int]] | None = None
        parts = []
        for top, bottom in zip(upper, lower, strict=True):
            if (top, bottom) != before:
                before = (top, bottom)
                r, g, b = top
                u, v, w = bottom
                parts.append(f"\x1b[38;2;{r};{g};{b};48;2;{u};{v};{w}m▀")
            else:
                parts.append("▀")
        lines.append("".join(parts) + "\x1b[0m")
    return lines
