"""Frames as text: each character the upper half of a cell in one colour, the lower in another.

The picture is scaled to the terminal, its aspect kept, and drawn on the terminal's second screen,
so that nothing of what was there is lost. At the end that screen is left, the cursor is back, and
the last frame stays as ordinary text.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import DeviceUnavailable
from dala.gpu.presenters.base import ThreadPresenter, over_black
from dala.gpu.presenters.quad import place

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE: Final = "\x1b[0m\x1b[?25h\x1b[?1049l"
HOME: Final = "\x1b[H"
#: Terminals that know of this show a frame all at once.
BEGIN: Final = "\x1b[?2026h"
END: Final = "\x1b[?2026l"

#: Frames a second with vsync; terminals have no sync to ask for.
PACE: Final = 60.0

#: Samples a cell's mean is made of, along each side: beyond this a large frame is thinned first.
SAMPLES: Final = 4


class TerminalPresenter(ThreadPresenter):
    """Writes frames to standard output, which must be a terminal."""

    kind = "terminal"

    def __init__(self, renderer: Renderer, vsync: bool) -> None:
        super().__init__(renderer, 1.0 / PACE if vsync else 0.0)
        self._out = _terminal()
        self._size = (0, 0)
        self._last: np.ndarray[Any, Any] | None = None
        self._write(ENTER)
        _entered.add(self)
        self.listen()

    def show(self, frame: np.ndarray[Any, Any]) -> None:
        """Draws a frame; a terminal of another size than before is cleared first."""
        size = _cells(self._out)
        rows = text(self._scaled(frame, size))
        clear = "\x1b[0m\x1b[2J" if size != self._size else ""
        self._size, self._last = size, frame
        left, top = self._corner(frame, size)
        lines = "".join(f"\x1b[{top + i + 1};{left + 1}H{row}" for i, row in enumerate(rows))
        self._write(f"{BEGIN}{clear}{lines}{HOME}{END}")

    def _corner(self, frame: np.ndarray[Any, Any], size: tuple[int, int]) -> tuple[int, int]:
        columns, lines = size
        x, y, _, _ = place((frame.shape[1], frame.shape[0]), (columns, lines * 2))
        return x, y // 2

    def _scaled(self, frame: np.ndarray[Any, Any], size: tuple[int, int]) -> np.ndarray[Any, Any]:
        columns, lines = size
        _, _, w, h = place((frame.shape[1], frame.shape[0]), (columns, lines * 2))
        return scale(over_black(frame), w, h)

    def end(self) -> None:
        """Leaves the second screen; the last frame stays."""
        if self not in _entered:
            return
        _entered.discard(self)
        stays = ""
        if self._last is not None:
            columns, lines = _cells(self._out)
            rows = text(self._scaled(self._last, (columns, max(lines - 1, 1))))
            stays = "".join(f"{row}\n" for row in rows)
        with contextlib.suppress(OSError):  # a terminal that is gone needs nothing
            self._write(f"{LEAVE}{stays}")

    def _write(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(self._out, data) :]


_entered: weakref.WeakSet[TerminalPresenter] = weakref.WeakSet()


def _close_all() -> None:
    for presenter in list(_entered):
        presenter.close()


atexit.register(_close_all)


def _terminal() -> int:
    """The descriptor of the terminal that standard output is."""
    stream = sys.__stdout__
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        number = -1
    if number < 0 or not os.isatty(number):
        raise DeviceUnavailable(
            "create_surface: show='terminal' needs standard output to be a terminal, and it is a "
            "file, a pipe or closed. Run it in a terminal, or use show='browser'."
        )
    if sys.platform == "win32":
        _understand_escapes(number)
    return number


def _understand_escapes(number: int) -> None:
    """Has a Windows console take escape sequences; those that do already stay as they are."""
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        kernel, mode = ctypes.windll.kernel32, ctypes.c_uint32()
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(number))
        if kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            kernel.SetConsoleMode(handle, mode.value | 4)


def _cells(out: int) -> tuple[int, int]:
    """Columns and lines of the terminal."""
    try:
        columns, lines = os.get_terminal_size(out)
    except OSError:
        columns, lines = 0, 0
    if columns < 1 or lines < 1:  # some terminals do not say
        columns, lines = shutil.get_terminal_size()
    return columns, lines


def scale(image: np.ndarray[Any, Any], width: int, height: int) -> np.ndarray[Any, Any]:
    """An RGB picture at another size: the mean of what falls into a pixel, or the nearest one."""
    h, w = image.shape[:2]
    image = image[:: max(h // (height * SAMPLES), 1), :: max(w // (width * SAMPLES), 1)]
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


def text(image: np.ndarray[Any, Any]) -> list[str]:
    """An RGB picture as lines of characters, two of its rows in each; each line ends plain.

    >>> text(np.array([[[255, 0, 0]], [[0, 0, 255]]], np.uint8))
    ['\\x1b[38;2;255;0;0;48;2;0;0;255m▀\\x1b[0m']
    """
    if image.shape[0] % 2:
        image = np.concatenate([image, np.zeros_like(image[:1])])
    lines = []
    for upper, lower in zip(image[0::2].tolist(), image[1::2].tolist(), strict=True):
        before: Any = None
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
