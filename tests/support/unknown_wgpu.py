"""A plugin (``-p tests.support.unknown_wgpu``): tests see a version of wgpu that is not known."""

from __future__ import annotations

import pytest
import wgpu

from dala.gpu.compute.engines.webgpu import calls

wgpu.version_info = (*calls.KNOWN[:1], calls.KNOWN[1] + 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"wgpu by public functions: {bool(calls._noticed)}")
