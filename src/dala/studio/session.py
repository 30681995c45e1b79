"""A session: the document that pages share, and everything that works on it.

Commands run one after another on one thread, so that the event loop never waits and the document
has one writer. The renderer reports from its own thread.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dala
from dala import forks
from dala.budget import Limits
from dala.errors import DalaError, ParameterError, masked_error
from dala.offload import LoopWorker
from dala.resources import Closing
from dala.studio.cards.chain import ChainRunner
from dala.studio.cards.values import LoadedFiles
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import PageRequest, find
from dala.studio.document.tab import Tab
from dala.studio.folders import Folders, kind_of
from dala.studio.home.jobs import Jobs
from dala.studio.limits import StudioLimits
from dala.studio.message import error_json, parsed
from dala.studio.picture.renderer import StudioRenderer
from dala.studio.viewer import Viewer
from dala.trace.session import TraceRun
from dala.trace.strip import StripOnDemand
from dala.typing import PathLike
from dala.untrusted.address import scheme_of

if TYPE_CHECKING:
    import asyncio

    from dala.studio.sources.source import StudioSource
    from dala.untrusted.place import NewFile

_log = logging.getLogger("dala")
#: What the state says of the active tab if there is none.
_NO_TAB: Final[JsonObject] = {
    "active": None, "chain": [], "scene": None, "playing": False, "time": 0.0, "loop": None,
    "undo": False, "redo": False, "result": None,
}  # fmt: skip


class StudioSession(Closing):
    """The document that pages share: tabs, chains and time.

    Args:
        folders: folders whose files may be opened and written.
        device: the device; the current one by default.
        limits: bounds on what pages may ask for.

    >>> with StudioSession([], device="cpu") as session:
    ...     session.do({"do": "open", "sample": "coffee"})
    ...     session.do({"do": "add", "kind": "filter", "name": "invert"})
    {'tab': 't1'}
    {'card': 'c1'}
    """

    _instead = "Start another studio there."

    def __init__(
        self,
        folders: Iterable[PathLike] = (),
        *,
        device: str | None = None,
        limits: StudioLimits | None = None,
    ) -> None:
        self.limits = limits or StudioLimits()
        self.folders = Folders(folders)
        #: Where uploads and results for downloading are.
        self.scratch = Path(tempfile.mkdtemp(prefix="dala-studio-"))
        self.folders.hidden = (self.scratch.resolve(),)
        self._clean = weakref.finalize(self, shutil.rmtree, str(self.scratch), True)
        #: What one picture may take in its chain.
        self.bounds = Limits(self.limits.chain_time, None, self.limits.chain_memory)
        self.files = LoadedFiles(self.folders, self.limits.pixels)
        #: Files that pages may download, by the last part of the address.
        self.downloads: dict[str, Path] = {}
        #: Files that the studio has opened or made, and may write again.
        self._own: set[Path] = set()
        self._upload_lock = forks.lock()
        self._uploaded = self._upload_serial = 0
        #: The trace that a page has started, and the times of frames for those that show them.
        self.trace: TraceRun | None = None
        self.strip = StripOnDemand()
        self.jobs = Jobs(self.limits.jobs, lambda job: self.broadcast({"job": job}))
        self._lock = forks.rlock()
        self._worker = LoopWorker("dala-studio")
        self.tabs: dict[str, Tab] = {}
        self.active: Tab | None = None
        self.viewers: tuple[Viewer, ...] = ()
        self._serial = self._viewer_serial = 0
        self._version = 0
        self._shown: JsonObject = {}
        self._closed = False
        try:
            self._runner = ChainRunner(self.files, device, self.bounds)
        except BaseException:
            self._clean()
            raise
        self.device = self._runner.device
        self.renderer = StudioRenderer(
            lambda: self.active, lambda: self.viewers, self._runner, self._note, self.broadcast
        )

    # commands ---------------------------------------------------------------------------------
    def do(self, data: JsonObject) -> JsonObject | None:
        """Run a command on this thread, and return its reply.

        Raises:
            DalaError, OSError: it is refused, and nothing changed.
        """
        request = PageRequest(self, data)
        self.strip.rest()
        with self._lock:
            if self._closed:
                raise ParameterError(f"{request.name}: the studio is closed.")
            before = self._seen()
            try:
                return find(request.name)(request)
            finally:
                self.show()
                if self._seen() != before:
                    self.renderer.change()

    def _seen(self) -> tuple[object, ...]:
        """Return the values that the picture depends on."""
        tab = self.active
        if tab is None:
            return (None,)
        time = None if tab.playing else tab.time()
        return id(tab), id(tab.contents), tab.playing, time, tab.seeks

    async def receive(self, viewer: Viewer, data: str | bytes) -> None:
        """Answer a message of a page. Nothing that a page sends raises an error here."""
        id: Json = None
        try:
            message = parsed(data, self.limits.message)
            found = message.get("id")
            id = found if isinstance(found, int | float) and not isinstance(found, bool) else None
            reply = await self._answer(viewer, message)
        except Exception as error:
            if not isinstance(error, DalaError | OSError | ValueError | MemoryError):
                # A mistake of ours must not end the session.
                told = "dala studio: a message was answered with an error"
                _log.error(told, exc_info=masked_error(error))
            head: JsonObject = {} if id is None else {"reply": id, "ok": False}
            viewer.send(json.dumps({**head, "error": error_json(error)}))
        else:
            if id is not None and reply is not None:
                viewer.send(json.dumps({"reply": id, "ok": True, **reply}))

    async def _answer(self, viewer: Viewer, message: JsonObject) -> JsonObject | None:
        match message.get("do"):
            case "seen":
                viewer.seen(message.get("seq"))
                self.strip.rest()
                self.renderer.look()
                return None
            case "view":
                viewer.show(message)
                self.renderer.look()
                return {}
        return await self._worker.run(lambda: self.do(message)) or {}

    def trust(self, path: Path) -> None:
        """Allow the files that a scene file names which the user gave, not a page."""
        if kind_of(path) != "json":
            return
        from dala.media.scene.file.load import read
        from dala.studio.scenes.tree import named_in

        data = read(path)
        if isinstance(data, dict):
            base = path.parent
            self.folders.trusted |= {
                name if scheme_of(name) is not None else str((base / name).resolve())
                for name in named_in(data)
            }

    def own(self, path: Path) -> None:
        """Note a file that was opened or made."""
        self._own.add(path)

    def owns(self, target: NewFile) -> bool:
        """Return whether a file may be written without asking: it was opened or made, or is new."""
        return target.name in self._own or not os.path.lexists(target)

    # files of pages -----------------------------------------------------------------------------
    def new_upload(self, name: str) -> Path | None:
        """Return where a file of a page is written; None if there is no room for more."""
        with self._upload_lock:
            return None if self._uploaded >= self.limits.uploads else self._new("upload", name)

    def uploaded(self, count: int) -> int:
        """Count bytes of uploads, and return those of all together."""
        with self._upload_lock:
            self._uploaded += count
            return self._uploaded

    def new_result(self, name: str) -> Path:
        """Return where a file for downloading is made."""
        with self._upload_lock:
            return self._new("result", name)

    def _new(self, kind: str, name: str) -> Path:
        self._upload_serial += 1
        folder = self.scratch / f"{kind}-{self._upload_serial}"
        folder.mkdir()
        return folder / name

    def offer(self, path: Path) -> str:
        """Let pages download a file, and return its address."""
        id = secrets.token_urlsafe(12)
        with self._upload_lock:
            self.downloads[id] = path
            while len(self.downloads) > self.limits.results:
                old = self.downloads.pop(next(iter(self.downloads)))
                if self.scratch in old.parents:
                    shutil.rmtree(old.parent, ignore_errors=True)
        return f"download/{id}"

    # tabs -------------------------------------------------------------------------------------
    def tab(self, call: str) -> Tab:
        """Return the active tab.

        Raises:
            ParameterError: there is none.
        """
        if self.active is None:
            raise ParameterError(f"{call}: nothing is open. Open a picture or a video first.")
        return self.active

    def add_tab(self, source: StudioSource) -> Tab:
        """Add a tab for a source, and make it the active one.

        Raises:
            ParameterError: there are too many; the source is closed.
        """
        with self._lock:
            if self._closed or len(self.tabs) >= self.limits.tabs:
                source.close()
                raise ParameterError(
                    f"open: at most {self.limits.tabs} tabs can be open. Close one first."
                )
            self._serial += 1
            tab = Tab(f"t{self._serial}", source, self.limits.undo)
            self.tabs[tab.id] = tab
            self.active = tab
            return tab

    def activate(self, id: Json) -> None:
        """Make a tab the active one.

        Raises:
            ParameterError: there is no such tab.
        """
        with self._lock:
            self.active = self._find(id, "tab")

    def close_tab(self, id: Json) -> None:
        """Close a tab; its neighbor becomes active.

        Raises:
            ParameterError: there is no such tab.
        """
        with self._lock:
            tab = self._find(id, "close")
            order = list(self.tabs.values())
            at = order.index(tab)
            order.remove(tab)
            if self.active is tab:
                self.active = order[min(at, len(order) - 1)] if order else None
            del self.tabs[tab.id]
        with self.renderer.busy:
            self.renderer.forget(tab)
            tab.source.close()

    def _find(self, id: Json, call: str) -> Tab:
        if not isinstance(id, str) or id not in self.tabs:
            raise ParameterError.invalid(call, "tab", "the id of a tab", id)
        return self.tabs[id]

    def restore(self, tab: Tab, *, forward: bool) -> None:
        """Undo or redo a change of a tab.

        Raises:
            ParameterError: there is nothing to undo or redo.
        """
        history, now = tab.history, tab.contents
        found = history.redo(now) if forward else history.undo(now)
        if found is None:
            raise ParameterError(f"{'redo' if forward else 'undo'}: there is nothing to do.")
        with self.renderer.busy:
            tab.source.restore(found.scene)
        tab.contents = found

    # viewers ----------------------------------------------------------------------------------
    async def connect(self, loop: asyncio.AbstractEventLoop) -> Viewer | None:
        """Return a new viewer; None if there are too many."""
        return await self._worker.run(lambda: self._connect(loop))

    async def disconnect(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        viewer.end("disconnected")
        if not self._closed:
            await self._worker.run(lambda: self._disconnect(viewer))

    def _connect(self, loop: asyncio.AbstractEventLoop) -> Viewer | None:
        with self._lock:
            if self._closed or len(self.viewers) >= self.limits.viewers:
                return None
            self._viewer_serial += 1
            viewer = Viewer(self._viewer_serial, self.limits, loop)
            hello = {"protocol": 1, "viewer": viewer.id, "version": dala.__version__}
            viewer.send(json.dumps({"hello": hello}))
            self.viewers = (*self.viewers, viewer)
            self.show(skip=viewer)
            viewer.send(json.dumps({"state": {**self._shown, "version": self._version}}))
        return viewer

    def _disconnect(self, viewer: Viewer) -> None:
        with self._lock:
            self.viewers = tuple(v for v in self.viewers if v is not viewer)
            if not self._closed:
                self.show()
        if not self.viewers:
            self.strip.close()
        self.renderer.look()

    def broadcast(self, message: JsonObject) -> None:
        """Send a message to every page."""
        text = json.dumps(message)
        for viewer in self.viewers:
            viewer.send(text)

    # state ------------------------------------------------------------------------------------
    def state(self) -> JsonObject:
        """Return the whole state, as pages get it."""
        return {
            "tabs": [tab.facts() for tab in self.tabs.values()],
            "viewers": len(self.viewers),
            "folders": [str(folder) for folder in self.folders.roots],
            "tracing": self.trace is not None,
            **(_NO_TAB if self.active is None else self.active.state()),
        }

    def show(self, skip: Viewer | None = None) -> None:
        """Send the changes of the state to every page, except one."""
        with self._lock:
            state = self.state()
            if self._shown.get("playing") and state["playing"]:
                state["time"] = self._shown["time"]  # it is in the pictures' headers
            changed = {k: v for k, v in state.items() if self._shown.get(k, ...) != v}
            if not changed:
                return
            self._version += 1
            self._shown = state
            text = json.dumps({"state": {"version": self._version, **changed}})
            for viewer in self.viewers:
                if viewer is not skip:
                    viewer.send(text)

    # the report of the renderer ------------------------------------------------------------------
    def _note(self, tab: Tab, problems: dict[str, str], size: tuple[int, int]) -> None:
        with self._lock:
            tab.problems, tab.result = problems, size
            self.show()

    # closing ----------------------------------------------------------------------------------
    def close(self) -> None:
        """End all threads, close all files and disconnect all pages. Closing twice is allowed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            tabs, self.tabs, self.active = list(self.tabs.values()), {}, None
            viewers, self.viewers = self.viewers, ()
        for viewer in viewers:
            viewer.end("the studio ends")
        if self.trace is not None:
            self.trace.stop()
        self.strip.close()
        self.jobs.close()
        self.renderer.close()
        self._worker.stop()
        for tab in tabs:
            with suppress(Exception):  # close the others, too
                tab.source.close()
        self._runner.close()
        self._clean()
