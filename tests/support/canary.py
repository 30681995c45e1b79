"""A file and a server that must not be touched, for tests of decoders."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

#: The event of inotify: a file was opened, by whatever part of the process.
_OPENED = 0x20


class Canary:
    """Files that count who opens them (Linux), and a port that counts who connects.

    Attributes:
        port: the port on the loopback interface.
    """

    def __init__(self, *paths: Path) -> None:
        self.paths = paths

    def __enter__(self) -> Canary:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._watch = -1
        if sys.platform.startswith("linux"):
            libc = ctypes.CDLL(None, use_errno=True)
            self._watch = libc.inotify_init1(os.O_NONBLOCK)
            for path in self.paths:
                assert libc.inotify_add_watch(self._watch, os.fsencode(path), _OPENED) >= 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._socket.close()
        if self._watch >= 0:
            os.close(self._watch)

    @property
    def opened(self) -> int:
        """How often one of the files was opened since the last call."""
        if self._watch < 0:
            return 0
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._watch, 1 << 16)
            return sum(1 for _ in _events(data))
        return 0

    @property
    def connected(self) -> bool:
        """Whether something connected to the port since the last call."""
        with contextlib.suppress(BlockingIOError):
            self._socket.accept()[0].close()
            return True
        return False

    @property
    def touched(self) -> bool:
        """Whether a file was opened, or the port was."""
        return bool(self.opened) | self.connected


def _events(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        _, mask, _, length = struct.unpack_from("iIII", data, at)
        at += 16 + length
        yield mask
