"""Models over streams: results with the frames they are of, and never a queue that grows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.ml.model import Model


class Seen(NamedTuple):
    """A frame, what was found in it, and when it is shown (None where it has no time)."""

    frame: Any
    result: Any
    time: Fraction | None


def stream(
    model: Model, frames: Iterable[Any], policy: str, options: Mapping[str, Any]
) -> Iterator[Seen]:
    """Results for frames as they come."""
    if policy not in ("latest", "every"):
        raise ParameterError(f"stream: policy is 'latest' or 'every', {policy!r} came.")
    source = frames if policy == "every" else _latest(frames)
    return _results(model, source, options)


def _results(model: Model, frames: Iterable[Any], options: Mapping[str, Any]) -> Iterator[Seen]:
    walk = iter(frames)
    try:
        for frame in walk:
            yield Seen(frame, model.predict(frame, **options), getattr(frame, "time", None))
    finally:
        close = getattr(walk, "close", None)
        if close is not None:
            close()


def _latest(frames: Iterable[Any]) -> Iterator[Any]:
    """Frames from a thread of their own, the newest only: one waits at most, an older one goes."""
    ready = threading.Condition()
    state: dict[str, Any] = {"frame": None, "full": False, "ended": False, "error": None}
    stop = threading.Event()

    def read() -> None:
        walk = iter(frames)
        try:
            for frame in walk:
                with ready:
                    state["frame"], state["full"] = frame, True
                    ready.notify()
                if stop.is_set():
                    break
        except BaseException as error:
            state["error"] = error
        finally:
            close = getattr(walk, "close", None)
            if close is not None:
                close()
            with ready:
                state["ended"] = True
                ready.notify()

    thread = threading.Thread(target=read, name="dala-model-stream", daemon=True)
    thread.start()
    try:
        while True:
            with ready:
                ready.wait_for(lambda: state["full"] or state["ended"])
                if not state["full"]:
                    break
                frame, state["frame"], state["full"] = state["frame"], None, False
            yield frame
        if state["error"] is not None:
            raise state["error"]
    finally:
        stop.set()
        thread.join()
