"""Serving a studio with uvicorn: connections that are capped and timed, and a clean end."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dala.arguments import Integer
from dala.secure import certificate_files, local_addresses
from dala.studio.application import StudioApp
from dala.studio.security import StudioGuard

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

#: Seconds that open connections have to end.
_GRACE: Final = 3
#: Addresses that mean every network of this machine.
_EVERY: Final = ("", "0.0.0.0", "::")


class _Server(uvicorn.Server):
    """A server whose signals are handled by :func:`serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _protocol(limit: int, patience: float) -> type[H11Protocol]:
    """Return a protocol that drops connections above a number, and ones without a request."""

    class Timed(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _upgraded = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limit:
                transport.abort()
                return
            self._timer = self.loop.call_later(patience, self._expire)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._upgraded:
                return
            if self._timer is not None and self._answers():
                self._timer.cancel()
                self._timer = None
            elif self._timer is None and not self._answers():  # a part of the next request
                self._timer = self.loop.call_later(patience, self._expire)

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            if self._timer is not None:
                self._timer.cancel()  # from here on, pings tell whether the page is there
            self._upgraded = True
            super().handle_websocket_upgrade(event)

        def _answers(self) -> bool:
            """Return whether a request has arrived, and is not answered yet."""
            return self.cycle is not None and not self.cycle.response_complete

        def _expire(self) -> None:
            self._timer = None
            if not self._answers() and self.transport is not None:
                self.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

    return Timed


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises:
        OSError: the address is in use, or not one of this machine.

    >>> with listen("127.0.0.1", 0) as found:
    ...     found.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small messages at once: else a picture waits up to
    # 40 ms for the acknowledgement of the message before it.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(64)
    except OSError as error:
        made.close()
        raise OSError(
            error.errno, f"studio: cannot listen on {host}:{port}: {error.strerror}."
        ) from None
    return made


def address_of(listening: socket.socket, *, tls: bool) -> str:
    """Return the address of a listening socket, as a page opens it.

    >>> with listen("127.0.0.1", 0) as found:
    ...     address_of(found, tls=False).startswith("http://127.0.0.1:")
    True
    """
    host, port = listening.getsockname()[:2]
    host = next(iter(local_addresses()), "127.0.0.1") if host in _EVERY else host
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}/"


class StudioServer:
    """A server of one studio on a listening socket.

    Args:
        studio: the application.
        listening: the socket; it is closed at the end.
        certificate: the files of the certificate and the key, for TLS.
    """

    def __init__(
        self,
        studio: StudioApp,
        listening: socket.socket,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        limits = studio.session.limits
        self._socket = listening
        self._studio = studio
        self._server = _Server(
            uvicorn.Config(
                studio,
                http=_protocol(limits.connections, limits.patience),
                ws="websockets-sansio",
                loop="asyncio",
                log_level="critical",
                access_log=False,
                ws_max_size=limits.message,
                ws_max_queue=32,
                ws_ping_interval=limits.patience * 2,
                ws_ping_timeout=limits.patience * 2,
                ws_per_message_deflate=False,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=_GRACE,
                h11_max_incomplete_event_size=64 << 10,
                server_header=False,
                lifespan="on",
                ssl_certfile=None if certificate is None else str(certificate[0]),
                ssl_keyfile=None if certificate is None else str(certificate[1]),
            )
        )

    def stop(self) -> None:
        """End the server, from any thread or signal handler."""
        self._server.should_exit = True

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._studio.close()

    @property
    def started(self) -> bool:
        """Whether the server answers."""
        return self._server.started


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call a function on Ctrl-C and SIGTERM within the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT, signal.SIGTERM]

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    before = {n: signal.signal(n, handle) for n in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def serve(
    studio: StudioApp,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve a studio until Ctrl-C or SIGTERM.

    Args:
        studio: the application, which is closed at the end.
        host: the address to listen on: loopback unless another is given.
        port: the port; 0 takes a free one.
        tls: serve with a certificate made on the spot.
        ready: called with the address, which has the secret, when connections are accepted.

    Raises:
        OSError: the address cannot be listened on.
        MissingPackage: TLS needs ``cryptography``.

    Example::

        serve(dala.studio.app("photo.jpg"), ready=print)
    """
    Integer(0, 65535).check("studio", "port", port)
    try:
        listening = listen(host, port)
    except BaseException:
        studio.close()
        raise
    base = address_of(listening, tls=tls)
    names = ["localhost", "127.0.0.1", *local_addresses(), *([host] if host not in _EVERY else [])]
    files: AbstractContextManager[tuple[Path, Path] | None]
    files = certificate_files(names, "studio") if tls else nullcontext()
    with files as certificate:
        if tls:
            studio.guard = StudioGuard(studio.guard.secret, studio.guard.hosts, secure=True)
        server = StudioServer(studio, listening, certificate)
        with _signals(server.stop):
            ready(studio.address(base))
            server.run()
