"""A live run seen from outside: its frames in the terminal, its metrics for Prometheus."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

import dala
from dala.errors import DalaError, ParameterError
from dala.gpu.presenters.http import HttpResponse, PageServer, text_response
from dala.trace.metrics import Metrics
from dala.trace.recorder import tracer
from dala.trace.report import TraceReport
from dala.trace.session import so_far

if TYPE_CHECKING:
    from dala.media.live.sending import LiveRun

#: Seconds between two looks at a run, and between two lines where there is no terminal.
_LOOK: Final = 0.5
_LINES: Final = 5.0


class Watching:
    """What ``dala live`` shows of a run while it sends: ``--stats`` and ``--metrics``.

    Both read a trace, which is started for them unless one runs.
    """

    def __init__(self, stats: bool, metrics: str | None) -> None:
        self._stats = stats
        self._place = None if metrics is None else place_of(metrics)
        self._metrics = Metrics()
        self._held = ExitStack()
        self._live: LiveRun | None = None
        #: Why frames were late, of a traced run that dropped some, once it has ended.
        self.reasons: list[str] = []

    def __enter__(self) -> Self:
        if self._place is not None:  # it can fail: before the trace starts
            try:
                server = PageServer(
                    self._respond, "/", failed=lambda error: None, place=self._place
                )
            except OSError as error:
                raise ParameterError(
                    f"--metrics cannot listen on {self._place[0]}:{self._place[1]}: "
                    f"{error.strerror or error}."
                ) from None
            self._held.callback(server.close)
            self._say(f"metrics are served at {server.address}metrics")
        if (self._stats or self._place is not None) and not tracer.on:
            self._held.enter_context(dala.trace(None, seconds=30.0))
        return self

    def __exit__(self, *_: object) -> None:
        if tracer.on and self._live is not None and self._live.stats["dropped"]:
            report = TraceReport(*so_far())
            self.reasons = str(report).splitlines() if report.late else []
        self._held.close()

    def wait(self, live: LiveRun) -> None:
        """Wait for the end of a run, and show it meanwhile."""
        self._live, shown = live, monotonic()
        if not self._stats and self._place is None:
            live.wait()
            return
        terminal = sys.stderr is not None and sys.stderr.isatty()
        while not live.wait(_LOOK):
            self._metrics.update()
            if self._stats and terminal:
                sys.stderr.write(f"\r\x1b[K{self._line(live)}")
                sys.stderr.flush()
            elif self._stats and monotonic() - shown >= _LINES:
                shown = monotonic()
                self._say(self._line(live))
        if self._stats and terminal:
            sys.stderr.write("\n")

    def _line(self, live: LiveRun) -> str:
        dropped = live.stats["dropped"]
        return f"{self._metrics.strip.text()}, {dropped:.0f} dropped"

    def _respond(self, path: str, query: dict[str, str]) -> HttpResponse:
        if path != "metrics":
            return text_response(404, "Not found. The metrics are at /metrics.")
        with suppress(DalaError):
            self._metrics.update()
        live = self._live
        stats = {} if live is None else live.stats
        text = self._metrics.text({f"live {name}": value for name, value in stats.items()})
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return HttpResponse(200, text.encode(), {"Content-Type": kind})

    def _say(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"dala live: {text}\n")
            sys.stderr.flush()


def place_of(text: str) -> tuple[str, int]:
    """Return host and port.

    >>> place_of("127.0.0.1:9100")
    ('127.0.0.1', 9100)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise ParameterError(f"--metrics must be HOST:PORT, such as 127.0.0.1:9100, got {text!r}.")
    return host, int(port)
