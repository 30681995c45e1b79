"""Receivers on loopback: servers that read, refuse, hang and come back."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")

#: Seconds after which a test that is stuck fails.
PATIENCE = 60.0


def free_port() -> int:
    """Return a port that nothing uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(fine: Callable[[], Any], what: str = "it") -> None:
    """Wait for what must happen; a test that is stuck fails."""
    end = time.monotonic() + PATIENCE
    while not fine():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.005)


def program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def ffmpeg(*arguments: str, ready: Callable[[], Any] | None = None) -> Iterator[subprocess.Popen]:
    """Run ffmpeg, which receives."""
    command = [program("ffmpeg"), "-hide_banner", "-loglevel", "error", "-y", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        if ready is not None:
            until(ready, "ffmpeg's start")
        yield process
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def listens(port: int) -> bool:
    """Return whether a program listens on a port, without connecting to it."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(wanted) and fields[3] == "0A":
                return True
    return False


def levels(path: Path, kind: str = "video") -> list[float]:
    """Return the mean of each picture, or of each block of sound, of a file."""
    with av.open(str(path)) as source:
        if kind == "audio":
            return [float(np.abs(f.to_ndarray()).mean()) for f in source.decode(audio=0)]
        return [float(f.to_ndarray(format="gray").mean()) for f in source.decode(video=0)]


class TcpReceiver:
    """A server that takes one connection after another, and keeps what it reads of each."""

    def __init__(self, *, reads: bool = True) -> None:
        self.port = free_port()
        self.reads = reads
        self.received: list[bytearray] = []
        self._server: socket.socket | None = None
        self._sockets: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        """Listen, as at first."""
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not self.reads:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", self.port))
        server.listen()
        self._server = server
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                taken, _ = server.accept()
            except OSError:
                return
            self._sockets.append(taken)
            self.received.append(bytearray())
            if self.reads:
                args = (taken, self.received[-1])
                threading.Thread(target=self._read, args=args, daemon=True).start()

    def _read(self, taken: socket.socket, into: bytearray) -> None:
        try:
            while data := taken.recv(1 << 16):
                into += data
        except OSError:
            pass

    def stop(self) -> None:
        """Vanish: close all connections and refuse new ones."""
        if self._server is not None:
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            self._server = None
        for taken in self._sockets:
            taken.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )  # resets, as a receiver that crashes does
            taken.close()
        self._sockets.clear()

    def __enter__(self) -> TcpReceiver:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
