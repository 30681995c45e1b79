"""Streams: submitted commands that run in the background."""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu.compute.stream.stream import Stream as Stream
    from dala.gpu.compute.stream.stream import submit as submit

__all__ = ["Stream", "submit"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(
        __name__, dict.fromkeys(__all__, "dala.gpu.compute.stream.stream")
    )
