"""The server's side of a WebSocket (RFC 6455): short messages of text, both ways.

A page sends its input here, and gets what the program wants of it. Everything that a page does not
need is refused: binary messages, extensions, messages without a mask, or longer than the limit.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Final

from dala import forks
from dala.gpu.presenters.http import HttpResponse

#: Bytes of a message at most.
MAX_MESSAGE: Final = 128 * 1024
#: Seconds in which a message must be complete, from its first byte, and in which one is sent.
MESSAGE_SECONDS: Final = 10.0

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0, 1, 8, 9, 10
#: Statuses of a close: a normal end, broken rules, and messages that are too large.
GOING: Final = 1001
BROKEN: Final = 1002
TOO_LARGE: Final = 1009


class MessageRefused(Exception):
    """A message that breaks the rules, with the status of the close."""

    def __init__(self, status: int = BROKEN) -> None:
        super().__init__(f"WebSocket status {status}")
        self.status = status


class WebSocket:
    """A connection with a page, used on the connection's thread, except ``send``."""

    def __init__(self, connection: socket.socket, closed: Callable[[], bool]) -> None:
        self._socket = connection
        self._closed = closed
        self._sending = forks.lock()
        #: When the message that is received must be complete.
        self._end = math.inf

    def send(self, text: str) -> None:
        """Send a message. Safe on any thread.

        Raises:
            OSError: The page is gone, or does not read. Then its connection ends: later messages
                do not wait for it again.
        """
        try:
            self._send(_TEXT, text.encode())
        except OSError:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            raise

    def _send(self, opcode: int, data: bytes) -> None:
        size = len(data)
        head = bytes([128 | opcode, min(size, 125)])
        if size > 125:
            wide = (
                struct.pack("!BH", 126, size) if size < 1 << 16 else struct.pack("!BQ", 127, size)
            )
            head = bytes([128 | opcode]) + wide
        with self._sending:
            self._socket.sendall(head + data)

    def receive(self) -> str | None:
        """Return the next message; None at the end of the page or of the presenter.

        Raises:
            MessageRefused: The message breaks the rules.
            OSError: The connection is broken.
        """
        message, started = bytearray(), False
        while True:
            if not started:
                self._end = math.inf
            head = self._read(2)
            if head is None:
                return None
            final, opcode = head[0] & 128, head[0] & 15
            if head[0] & 112 or not head[1] & 128:
                raise MessageRefused
            data = self._payload(head[1] & 127, MAX_MESSAGE - len(message))
            if data is None or opcode == _CLOSE:
                return None
            if opcode >= _CLOSE:
                if opcode not in (_PING, _PONG) or not final or len(data) > 125:
                    raise MessageRefused
                if opcode == _PING:
                    self._send(_PONG, data)
                continue
            if opcode != (_CONTINUED if started else _TEXT):
                raise MessageRefused
            message += data
            started = True
            if final:
                try:
                    return message.decode()
                except UnicodeDecodeError:
                    raise MessageRefused from None

    def _payload(self, size: int, room: int) -> bytes | None:
        if size > 125:
            wide = self._read(2 if size == 126 else 8)
            if wide is None:
                return None
            size = int.from_bytes(wide, "big")
        if size > room:
            raise MessageRefused(TOO_LARGE)
        mask, data = self._read(4), self._read(size)
        if mask is None or data is None:
            return None
        whole = (mask * (size // 4 + 1))[:size]
        return (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")

    def _read(self, count: int) -> bytes | None:
        """Read so many bytes, or return None at the end of the page or of the presenter."""
        found = bytearray()
        while len(found) < count:
            if time.monotonic() > self._end:
                raise TimeoutError("the message takes too long")
            try:
                part = self._socket.recv(count - len(found))
            except TimeoutError:
                if self._closed():
                    return None
                continue
            if not part:
                return None
            self._end = min(self._end, time.monotonic() + MESSAGE_SECONDS)
            found += part
        return bytes(found)

    def close(self, status: int = GOING) -> None:
        """Tell the page that the connection ends."""
        self._send(_CLOSE, struct.pack("!H", status))


def accept(key: str, serve: Callable[[socket.socket], None]) -> HttpResponse:
    """Return the response to a handshake; ``serve`` is called with the connection after it."""
    digest = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest())
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": digest.decode(),
    }
    return HttpResponse(101, b"", headers, keep=serve)
