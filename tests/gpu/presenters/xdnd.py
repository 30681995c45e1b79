"""A program that drags files to a window of an X server, as a file manager does (XDND 5)."""

from __future__ import annotations

import ctypes
import time

#: Types of events.
SELECTION_REQUEST, SELECTION_NOTIFY, CLIENT_MESSAGE = 30, 31, 33
ATOM = 4
SECONDS = 60


class FileDrag:
    """Drags files over a window and drops them there."""

    def __init__(self, display: str) -> None:
        x = self._x = ctypes.CDLL("libX11.so.6")
        x.XOpenDisplay.restype = ctypes.c_void_p
        for function in ("XInternAtom", "XDefaultRootWindow", "XCreateSimpleWindow"):
            getattr(x, function).restype = ctypes.c_ulong
        self._display = ctypes.c_void_p(x.XOpenDisplay(display.encode()))
        root = ctypes.c_ulong(x.XDefaultRootWindow(self._display))
        self._window = x.XCreateSimpleWindow(self._display, root, 0, 0, 1, 1, 0, 0, 0)

    def _atom(self, name: str) -> int:
        return int(self._x.XInternAtom(self._display, name.encode(), 0))

    def _send(self, window: int, *fields: int) -> None:
        event = (ctypes.c_long * 24)(*fields)
        self._x.XSendEvent(self._display, ctypes.c_ulong(window), 0, 0, event)
        self._x.XFlush(self._display)

    def _tell(self, window: int, kind: str, *data: int) -> None:
        head = CLIENT_MESSAGE, 0, 0, 0, window, self._atom(kind), 32
        self._send(window, *head, self._window, *data)

    def _next(self) -> ctypes.Array[ctypes.c_long]:
        event = (ctypes.c_long * 24)()
        end = time.monotonic() + SECONDS
        while not self._x.XPending(self._display):
            assert time.monotonic() < end, "the window does not answer"
            time.sleep(0.01)
        self._x.XNextEvent(self._display, event)
        return event

    def drop(self, window: int, x: int, y: int, *addresses: str) -> None:
        """Drop files, given as addresses, at a place of the screen, and wait for the end."""
        types = self._atom("text/uri-list"), 0, 0
        selection = self._atom("XdndSelection")
        me = ctypes.c_ulong(self._window)
        self._x.XSetSelectionOwner(self._display, ctypes.c_ulong(selection), me, 0)
        self._tell(window, "XdndEnter", 5 << 24, *types)
        self._tell(window, "XdndPosition", 0, x << 16 | y, 0, self._atom("XdndActionCopy"))
        dropped = False
        while True:
            event = self._next()
            if event[0] & 255 == SELECTION_REQUEST:
                self._hand_over(event, "".join(f"{each}\r\n" for each in addresses).encode())
            elif event[5] == self._atom("XdndStatus") and not dropped:
                assert event[8] & 1, "the window takes no files"
                dropped = True
                self._tell(window, "XdndDrop", 0, 0, 0, 0)
            elif event[5] == self._atom("XdndFinished"):
                return

    def _hand_over(self, request: ctypes.Array[ctypes.c_long], data: bytes) -> None:
        requestor, selection, target, place, when = request[5:10]
        self._x.XChangeProperty(
            self._display, ctypes.c_ulong(requestor), ctypes.c_ulong(place),
            ctypes.c_ulong(target), 8, 0, data, len(data),
        )  # fmt: skip
        self._send(requestor, SELECTION_NOTIFY, 0, 0, 0, requestor, selection, target, place, when)

    def close(self) -> None:
        """Close the connection."""
        self._x.XCloseDisplay(self._display)
