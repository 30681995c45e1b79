"""The ASGI application: pages, files, uploads and the WebSocket of a studio."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from dala.arguments import checked_path
from dala.errors import DalaError, ParameterError
from dala.offload import LoopWorker
from dala.resources import Closing
from dala.studio.catalogue.catalogue import catalogue
from dala.studio.limits import StudioLimits
from dala.studio.message import error_json
from dala.studio.security import StudioGuard
from dala.studio.session import StudioSession
from dala.studio.viewer import Viewer
from dala.trace.recorder import tracer
from dala.typing import PathLike

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The built files of the page.
STATIC: Final = Path(__file__).with_name("static")
#: Messages of one page that are worked on at the same time; further ones wait in the socket.
_AT_ONCE: Final = 64
#: Close codes of the WebSocket: policy, and try again later.
_POLICY, _LATER = 1008, 1013
_SECRET: Final = "open the address that the studio printed; it has a secret."
_NAME: Final = re.compile(r"[^\w.\- ()]+")


class StudioApp(Closing):
    """A studio as an ASGI application; :func:`app` makes one.

    ``secret`` is in the address of the first visit: ``BASE/?secret=SECRET``. Close it when its
    server ends, if it is mounted in another application.

    Example::

        from starlette.applications import Starlette
        from starlette.routing import Mount

        studio = dala.studio.app("photo.jpg")
        site = Starlette(routes=[Mount("/studio", studio)])
    """

    _instead = "Make another application there."

    def __init__(self, session: StudioSession, guard: StudioGuard) -> None:
        self.session = session
        self.guard = guard
        self._catalogue: bytes | None = None
        self._worker = LoopWorker("dala-studio-files")
        self._tasks: set[asyncio.Task[None]] = set()
        inner = Starlette(
            routes=[
                Route("/", self._page),
                Route("/catalogue.json", self._declarations),
                Route("/files", self._files),
                Route("/upload", self._upload, methods=["POST"]),
                Route("/download/{id}", self._download),
                WebSocketRoute("/ws", self._socket),
                Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
            ],
            lifespan=self._lifespan,
        )
        self._inner: ASGIApp = inner

    @property
    def secret(self) -> str:
        """The secret of the first visit; "" if none is asked for."""
        return self.guard.secret

    def address(self, base: str) -> str:
        """Return the address of the first visit, with the secret.

        >>> app(secret="s", device="cpu").address("http://127.0.0.1:8000")
        'http://127.0.0.1:8000/?secret=s'
        """
        base = base.rstrip("/") + "/"
        return f"{base}?secret={quote(self.secret)}" if self.secret else base

    # requests ---------------------------------------------------------------------------------
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, after it was checked."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal is None:
                await self._inner(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": _POLICY, "reason": refusal})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.guard.headers(scope):
                    headers[name.decode()] = value.decode("latin-1")
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer: ASGIApp = self._inner if refusal is None else _error(403, refusal)
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused; None if it is not."""
        guard = self.guard
        if not guard.host_allowed(scope):
            return "this host is not a name of the studio."
        reads = scope["type"] != "websocket" and scope["method"] in ("GET", "HEAD")
        if not reads and not guard.origin_allowed(scope):
            return "this page is not the studio's."
        known = guard.has_cookie(scope) or (reads and guard.has_secret(scope))
        return None if known else _SECRET

    async def _page(self, request: Request) -> Response:
        scope = request.scope
        if "secret" in request.query_params:
            if not self.guard.open and not self.guard.has_secret(scope):
                return _error(403, _SECRET)
            root = (scope.get("root_path") or "").rstrip("/") + "/"
            response = Response(status_code=303, headers={"location": root})
            if not self.guard.open:
                response.headers["set-cookie"] = self.guard.cookie(scope)
            return response
        page = STATIC / "index.html"
        if not page.is_file():
            return PlainTextResponse("The page of the studio is not built.", 500)
        return FileResponse(page, media_type="text/html; charset=utf-8")

    async def _declarations(self, request: Request) -> Response:
        if self._catalogue is None:
            made = await self._worker.run(lambda: catalogue(self.session.limits))
            self._catalogue = json.dumps(made).encode()
        return Response(self._catalogue, media_type="application/json")

    async def _files(self, request: Request) -> Response:
        under = request.query_params.get("under")
        try:
            found = await self._worker.run(lambda: self.session.folders.listing(under))
        except DalaError as error:
            return JSONResponse({"error": error_json(error)}, 400)
        return JSONResponse(found)

    async def _upload(self, request: Request) -> Response:
        limits = self.session.limits
        name = _file_name(request.query_params.get("name", ""))
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limits.upload:
            return _error(413, f"upload: a file must have at most {limits.upload:,} bytes.")
        target = self.session.new_upload(name)
        if target is None:
            return _error(413, f"upload: all files together have at most {limits.uploads:,} bytes.")
        written = 0
        try:
            with target.open("wb") as file:
                stream = request.stream()
                while True:
                    # A client that stops sending is not waited for.
                    chunk = await asyncio.wait_for(anext(stream, None), limits.patience)
                    if chunk is None:
                        break
                    written += len(chunk)
                    if (
                        written > limits.upload
                        or self.session.uploaded(len(chunk)) > limits.uploads
                    ):
                        raise ParameterError(
                            f"upload: a file must have at most {limits.upload:,} bytes."
                        )
                    await self._worker.run(partial(file.write, chunk))
        except (ParameterError, TimeoutError, ClientDisconnect, OSError) as error:
            with suppress(OSError):
                target.unlink()
                target.parent.rmdir()
            self.session.uploaded(-written)
            if isinstance(error, ParameterError):
                return JSONResponse({"error": error_json(error)}, 413)
            return _error(400, "upload: the file did not arrive whole.")
        return JSONResponse({"path": str(target)})

    async def _download(self, request: Request) -> Response:
        named = self.session.downloads.get(request.path_params["id"])
        try:  # what is at the name now may lead elsewhere
            found = None if named is None else self.session.folders.open(str(named), "download")
        except DalaError:
            found = None
        if found is None:
            return _error(404, "download: there is no such file.")
        # The file is open for as long as the task that ends with the answer is kept.
        kept = BackgroundTask(found.stat)
        return FileResponse(os.fspath(found), filename=found.name.name, background=kept)

    # the WebSocket ----------------------------------------------------------------------------
    async def _socket(self, socket: WebSocket) -> None:
        session = self.session
        loop = asyncio.get_running_loop()
        viewer = await session.connect(loop)
        if viewer is None:
            await socket.close(_LATER, "too many pages are open.")
            return
        await socket.accept()
        sender = asyncio.ensure_future(self._send_all(socket, viewer))
        slots = asyncio.Semaphore(_AT_ONCE)
        working: set[asyncio.Task[None]] = set()

        async def answer(data: str | bytes) -> None:
            try:
                await session.receive(viewer, data)
            finally:
                slots.release()

        try:
            while not viewer.ended:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                data = message.get("text")
                data = message.get("bytes") if data is None else data
                await slots.acquire()
                task = asyncio.create_task(answer(data or ""))
                working.add(task)
                task.add_done_callback(working.discard)
                short = data if isinstance(data, str) and len(data) < 200 else ""
                if '"seen"' in short or '"view"' in short:
                    await task  # acknowledgements must not wait for a turn
        except (WebSocketDisconnect, RuntimeError):
            pass  # the page has gone
        finally:
            viewer.end("disconnected")
            sender.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await sender
            await session.disconnect(viewer)

    async def _send_all(self, socket: WebSocket, viewer: Viewer) -> None:
        """Send the messages of the viewer's queue; a page that does not read is dropped."""
        try:
            while (found := await viewer.next()) is not None:
                message, seq = found
                kind = "text" if isinstance(message, str) else "bytes"
                sending, begin = (
                    socket.send({"type": "websocket.send", kind: message}),
                    tracer.clock(),
                )
                await asyncio.wait_for(sending, self.session.limits.patience)
                viewer.trace.sent(seq, begin)
        except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            viewer.end("the page does not read")
        if socket.application_state is WebSocketState.CONNECTED:
            with suppress(Exception):
                await asyncio.wait_for(socket.close(1001, viewer.ended[:100]), 1.0)

    # closing ----------------------------------------------------------------------------------
    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            ending = LoopWorker("dala-studio-end")  # closing waits for threads
            try:
                await ending.run(self.close)
            finally:
                ending.stop()

    def close(self) -> None:
        """End the session. Closing twice is allowed."""
        self.session.close()
        self._worker.stop()


def app(
    source: PathLike | None = None,
    *,
    folders: Iterable[PathLike] = (),
    secret: str | None = None,
    hosts: Iterable[str] = (),
    device: str | None = None,
    limits: StudioLimits | None = None,
) -> StudioApp:
    """Return a studio as an ASGI application, to run or to mount in another one.

    Args:
        source: a picture, a video, a scene or a kernel to open.
        folders: folders whose files pages may open and write; that of the source is always one.
        secret: the secret of the first visit; random by default. "" asks for none: only if the
            outer application lets no one else in.
        hosts: names that ``Host`` may have, such as "studio.example.org". IP addresses and
            "localhost" are always allowed.
        device: the device to run on; the current one by default.
        limits: bounds on what pages may ask for.

    Raises:
        FileNotFoundError: there is no such source.
        DalaError: the source cannot be opened.

    Example::

        from starlette.applications import Starlette
        from starlette.routing import Mount

        studio = dala.studio.app("photo.jpg")
        site = Starlette(routes=[Mount("/studio", studio)])
        print(studio.address("http://127.0.0.1:8000/studio"))
    """
    roots: list[PathLike] = list(folders)
    path = None if source is None else checked_path("studio.app", "source", source)
    if path is not None:
        if not path.is_file():
            raise FileNotFoundError(f"studio.app: there is no file {str(path)!r}.")
        roots = [path.resolve().parent, *roots]
    session = StudioSession(roots, device=device, limits=limits)
    try:
        if path is not None:
            session.trust(path.resolve())
            session.do({"do": "open", "path": str(path.resolve())})
        return StudioApp(session, StudioGuard(secret, hosts))
    except BaseException:
        session.close()
        raise


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": {"text": text}}, status)


def _file_name(text: str) -> str:
    """Return a name for an upload: the last part, of harmless characters.

    >>> _file_name("../../etc/pass wd;.png")
    'pass wd_.png'
    """
    last = re.split(r"[/\\]", text)[-1]
    name = _NAME.sub("_", last).strip(". ")[-100:]
    return name or "upload"
