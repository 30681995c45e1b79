"""A plugin of pytest: the most memory that each worker of a run used, in one line at its end.

A worker of ``make test`` may take 1.5 GB. ``--memory`` shows the modules that raised the peak, too.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

#: What a worker sends to the process that started it.
KEY = "peaks"
#: MB by which a module must raise the peak to be listed.
LEAST = 20


def peak_mb() -> int:
    """Return the most memory that this process has used; 0 where the system does not tell.

    >>> 0 <= peak_mb() < 10**6
    True
    """
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1 << 20 if sys.platform == "darwin" else 1 << 10)


class MemoryReport:
    """Notes which modules raise the peak of this process, and prints those of all workers."""

    def __init__(self) -> None:
        self.name = os.environ.get("PYTEST_XDIST_WORKER", "")
        #: By worker, the modules that raised its peak and the peak after each, in MB.
        self.peaks: dict[str, list[tuple[str, int]]] = {self.name: [("start", peak_mb())]}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        result = yield
        raised, now = self.peaks[self.name], peak_mb()
        module = item.nodeid.partition("::")[0]
        if raised[-1][0] == module:
            raised[-1] = module, now
        elif now >= raised[-1][1] + LEAST:
            raised.append((module, now))
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[KEY] = self.peaks[self.name]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # a hook of xdist
        peaks = getattr(node, "workeroutput", {}).get(KEY)
        if peaks:
            self.peaks[node.gateway.id] = [(module, peak) for module, peak in peaks]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        workers = {name: peaks for name, peaks in self.peaks.items() if name} or self.peaks
        shown = [
            f"{peaks[-1][1]} MB{f' ({name})' if name else ''} in {peaks[-1][0]}"
            for name, peaks in sorted(workers.items())
        ]
        terminalreporter.write_line("most memory: " + ", ".join(shown))
        if terminalreporter.config.getoption("--memory"):
            for name, peaks in sorted(workers.items()):
                for (_, before), (module, after) in itertools.pairwise(peaks):
                    terminalreporter.write_line(f"  {name:5} {before:6} to {after:6} MB  {module}")
