"""The lines of the package that have run, counted as they are first reached."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import dala

#: The folder of the package.
PACKAGE = str(Path(dala.__file__).parent)


class LineCoverage:
    """Counts lines on all threads, from ``start`` on. A line that was reached costs nothing more.

    Python 3.12 and newer report each line once; before, functions with lines that were not reached
    are traced.
    """

    def __init__(self) -> None:
        self.count = 0
        self._left: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        if sys.version_info >= (3, 12):
            watch = sys.monitoring
            watch.use_tool_id(watch.COVERAGE_ID, "dala fuzz")
            watch.register_callback(watch.COVERAGE_ID, watch.events.LINE, self._reached)
            watch.set_events(watch.COVERAGE_ID, watch.events.LINE)
        else:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def stop(self) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)
        else:
            threading.settrace(None)  # type: ignore[arg-type]
            sys.settrace(None)

    def _reached(self, code: CodeType, line: int) -> object:
        self.count += code.co_filename.startswith(PACKAGE)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            inside = code.co_filename.startswith(PACKAGE)
            left = {line for _, _, line in code.co_lines() if line} if inside else set()
            self._left[code] = left
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        left = self._left[frame.f_code]
        if event == "line" and frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self.count += 1
        return self._line
