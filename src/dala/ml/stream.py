"""Models over streams of frames, without unbounded queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import numpy as np

from dala import forks
from dala.errors import ParameterError
from dala.gpu.compute import Buffer
from dala.media.frame import Frame
from dala.typing import ImageLike

if TYPE_CHECKING:
    from dala.ml.model import Model, PreparedInput

#: The type of a model's results.
R = TypeVar("R")
T = TypeVar("T")

#: Seconds to wait for the reader thread when a stream ends; a source that hangs is abandoned.
_JOIN_SECONDS: Final = 5.0


class StreamResult(NamedTuple, Generic[R]):
    """A frame, its result, and its time (None for pictures without one)."""

    frame: ImageLike
    #: A Prediction, or the result of the model's own ``decode``.
    result: R
    time: Fraction | None


def stream(
    model: Model[R], frames: Iterable[ImageLike], policy: str, options: Mapping[str, float]
) -> Iterator[StreamResult[R]]:
    """Yield a result for each frame; see :meth:`dala.ml.Model.stream`."""
    if not isinstance(policy, str) or policy not in ("latest", "every"):
        raise ParameterError.invalid("stream", "policy", "'latest' or 'every'", policy)
    one = isinstance(frames, np.ndarray) and frames.ndim < 4
    if one or isinstance(frames, Frame | Buffer | str) or not isinstance(frames, Iterable):
        raise ParameterError.invalid(
            "stream",
            "frames",
            "a video, or an iterable of pictures",
            frames,
            "For one picture, use model.predict(picture).",
        )
    if model.provider != "cpu" and model.spec.steps is None:
        return (_ahead if policy == "every" else _newest)(model, frames, options)
    source = frames if policy == "every" else _latest(frames)
    return _results(model, source, options)


def _ahead(
    model: Model[R], frames: Iterable[ImageLike], options: Mapping[str, float]
) -> Iterator[StreamResult[R]]:
    """Yield results; the next frame is read and preprocessed while the model runs on this one."""
    walk = iter(frames)
    here = copy_context()  # the device and limits of the caller

    def prepare() -> tuple[ImageLike, PreparedInput] | None:
        for frame in walk:
            return frame, model._prepared(frame)
        return None

    pool = forks.pool(1, "dala-model-stream")
    try:
        ready = pool.submit(here.run, prepare).result()
        while ready is not None:
            frame, tensor = ready
            following = pool.submit(here.run, prepare)
            (result,) = model._together([tensor], options)
            yield StreamResult(frame, result, getattr(frame, "time", None))
            ready = following.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        close = getattr(walk, "close", None)
        if close is not None:
            close()


def _newest(
    model: Model[R], frames: Iterable[ImageLike], options: Mapping[str, float]
) -> Iterator[StreamResult[R]]:
    """Yield results of the newest frames, which are preprocessed while the model runs.

    A newer frame replaces one that waits prepared. So a result is no older than if preparing had
    begun when the model was free: then the frame would have waited for that.
    """

    def prepared() -> Iterator[tuple[ImageLike, PreparedInput]]:
        walk = _latest(frames)
        try:
            for frame in walk:
                yield frame, model._prepared(frame)
        finally:
            walk.close()

    walk = _latest(prepared())
    try:
        for frame, tensor in walk:
            (result,) = model._together([tensor], options)
            yield StreamResult(frame, result, getattr(frame, "time", None))
    finally:
        walk.close()


def _results(
    model: Model[R], frames: Iterable[ImageLike], options: Mapping[str, float]
) -> Iterator[StreamResult[R]]:
    walk, find = iter(frames), model.follower(options)
    try:
        for frame in walk:
            yield StreamResult(frame, find(frame), getattr(frame, "time", None))
    finally:
        close = getattr(walk, "close", None)
        if close is not None:
            close()


@dataclass
class _Latest(Generic[T]):
    """The newest item that was read, and how reading ended."""

    frames: deque[T] = field(default_factory=lambda: deque(maxlen=1))
    ended: bool = False
    error: BaseException | None = None


def _latest(frames: Iterable[T]) -> Generator[T, None, None]:
    """Read frames on a thread, and yield the newest; older ones that wait are dropped."""
    state, ready, stop = _Latest[T](), forks.condition(), forks.event()
    here = copy_context()  # the device and limits of the caller

    def read() -> None:
        walk: Iterator[T] | None = None
        try:
            walk = iter(frames)
            for frame in walk:
                if stop.is_set():
                    break
                with ready:
                    state.frames.append(frame)
                    ready.notify()
        except BaseException as error:
            state.error = error
        finally:
            close = getattr(walk, "close", None)
            if close is not None:
                close()
            with ready:
                state.ended = True
                ready.notify()

    thread = forks.thread(lambda: here.run(read), name="dala-model-stream")
    thread.start()
    try:
        while True:
            with ready:
                ready.wait_for(lambda: state.frames or state.ended)
                if not state.frames:
                    break
                frame = state.frames.pop()
            yield frame
        if state.error is not None:
            raise state.error
    finally:
        stop.set()
        thread.join(_JOIN_SECONDS)
