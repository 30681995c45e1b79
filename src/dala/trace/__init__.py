"""Traces: why a frame was late, from its packet to the screen.

``dala.trace(path)`` records what its block does, and writes a file that Perfetto's page opens and
``dala why`` explains:

>>> import dala, tempfile, pathlib
>>> folder = tempfile.TemporaryDirectory()
>>> with dala.trace(pathlib.Path(folder.name) / "run.json") as run:
...     with dala.trace.span("my step"):
...         pass
>>> print(run.report())
No frame was shown, written or sent.
>>> folder.cleanup()

``dala --trace run.json COMMAND ...`` and the environment variable ``DALA_TRACE`` do the same from
outside. Where no trace runs, a span costs the test of an attribute.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from dala.trace.recorder import OFF, tracer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from dala.trace.session import TraceRun
    from dala.typing import PathLike


__all__ = ["span"]


class _TraceModule(ModuleType):
    """This module, which can be called."""

    def __call__(
        self, path: PathLike | None = None, *, seconds: float = 60.0, all: bool = False
    ) -> TraceRun:
        """Return a trace: a context manager that records what its block does.

        Args:
            path: the file to write, in Perfetto's trace-event format (JSON); None for none.
            seconds: how many seconds are kept, the last ones. Memory is bounded.
            all: keep the whole run; what does not fit in memory goes to a temporary file.

        Raises:
            ParameterError: an argument is invalid, or the folder is not there.
            DalaError: a trace runs already.
        """
        from dala.trace.session import TraceRun

        return TraceRun(path, seconds, all)

    def span(
        self, name: str, *, frame: object = None, **facts: Any
    ) -> AbstractContextManager[object]:
        """Return a context manager that records a range of your own, shown by its name.

        Args:
            name: what the range is called.
            frame: the Frame that it works on; by default the one that this thread works on.
            facts: numbers and texts to show with it.

        >>> import dala
        >>> with dala.trace.span("sort", items=3):
        ...     _ = sorted([3, 1, 2])
        """
        if not tracer.on:
            return OFF
        return tracer.span("user", str(name), frame_id(frame), **facts)


def frame_id(frame: object) -> int | None:
    """Return the id of a frame in the trace; None if it has none."""
    if isinstance(frame, int) and not isinstance(frame, bool):
        return frame
    found: int | None = getattr(frame, "trace_id", None)
    return found


sys.modules[__name__].__class__ = _TraceModule
#: This module.
trace = cast("_TraceModule", sys.modules[__name__])
span = trace.span
