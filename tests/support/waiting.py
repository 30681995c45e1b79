"""A record of the calls that wait or work long, and of the threads they run on."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Waits:
    """Calls by name, each with the ident of its thread. ``watch`` adds one to record."""

    def __init__(self, monkeypatch: Any) -> None:
        self._monkeypatch = monkeypatch
        self._starting = threading.local()
        self.calls: list[tuple[str, int]] = []
        start = threading.Thread.start

        def started(thread: threading.Thread) -> None:
            # Every thread's start waits until the thread runs. That is not ours to avoid.
            self._starting.now = True
            try:
                start(thread)
            finally:
                self._starting.now = False

        monkeypatch.setattr(threading.Thread, "start", started)
        for owner, name in (
            (threading.Condition, "wait"),
            (threading.Thread, "join"),
            (time, "sleep"),
            (subprocess.Popen, "wait"),
        ):
            self.watch(owner, name)
        self.watch(Future, "result", lambda future, *_: not future.done())

    def watch(
        self, owner: Any, name: str, waits: Callable[..., bool] = lambda *_, **__: True
    ) -> None:
        """Record the calls of a function, or of a method of a class, where they wait."""
        function = getattr(owner, name)

        def recorded(*args: Any, **options: Any) -> Any:
            if waits(*args) and not getattr(self._starting, "now", False):
                self.calls.append((f"{owner.__name__}.{name}", threading.get_ident()))
            return function(*args, **options)

        self._monkeypatch.setattr(owner, name, recorded)

    def on(self, thread: int) -> list[str]:
        """Return the names of the calls on a thread."""
        return [name for name, ident in self.calls if ident == thread]

    @property
    def names(self) -> set[str]:
        """The names of all calls."""
        return {name for name, _ in self.calls}
