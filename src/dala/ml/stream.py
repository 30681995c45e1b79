"""Models over streams: results with the frames they are of, and never a queue that grows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute import Buffer
from dala.media.frame import Frame

if TYPE_CHECKING:
    from dala.ml.model import Model


#: Seconds to wait for a source when its stream is left; one that hangs is let go of.
_PATIENCE: Final = 5.0


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
    one = isinstance(frames, np.ndarray) and frames.ndim < 4
    if one or isinstance(frames, Frame | Buffer | str) or not isinstance(frames, Iterable):
        raise ParameterError(
            "stream: frames is a video, a list or a generator of pictures; "
            f"{type(frames).__name__} came. Of one picture: model.predict(picture)."
        )
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
        walk: Any = None
        try:
            walk = iter(frames)
            for frame in walk:
                if stop.is_set():
                    break
                with ready:
                    state["frame"], state["full"] = frame, True
                    ready.notify()
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
        thread.join(_PATIENCE)
