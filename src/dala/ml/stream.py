"""Models over streams of frames, without unbounded queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from contextvars import copy_context
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from dala import forks
from dala.arguments import Selection
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
    Selection("latest", "every", expected="'latest' or 'every'").check("stream", "policy", policy)
    one = isinstance(frames, np.ndarray) and frames.ndim < 4
    if one or isinstance(frames, Frame | Buffer | str) or not isinstance(frames, Iterable):
        expected = "a video, or an iterable of pictures"
        advice = "For one picture, use model.predict(picture)."
        raise ParameterError.invalid("stream", "frames", expected, frames, advice)
    if model.provider != "cpu" and model.spec.steps is None:
        return _overlapped(model, frames, _ahead if policy == "every" else _latest, options)
    source = frames if policy == "every" else _latest(frames)
    return _results(model, source, options)


def _overlapped(
    model: Model[R],
    frames: Iterable[ImageLike],
    read: Callable[[Iterable[Any]], Generator[Any]],
    options: Mapping[str, float],
) -> Iterator[StreamResult[R]]:
    """Yield results; frames are read and preprocessed on a thread while the model runs.

    Of ``_latest``, a newer frame replaces one that waits prepared. So a result is no older than if
    preparing had begun when the model was free: then the frame would have waited for that.
    """

    def prepared() -> Iterator[tuple[ImageLike, PreparedInput]]:
        walk = iter(frames) if read is _ahead else _latest(frames)
        try:
            for frame in walk:
                yield frame, model._prepared(frame)
        finally:
            _close(walk)

    with closing(read(prepared())) as walk:
        for frame, tensor in walk:
            (result,) = model._together([tensor], options)
            yield _result(frame, result)


def _ahead(frames: Iterable[T]) -> Generator[T]:
    """Read frames on a thread, each while the one before it is used."""
    walk = iter(frames)
    here = copy_context()  # the device and limits of the caller
    pool = forks.pool(1, "dala-model-stream")

    def read() -> T | None:
        return next(walk, None)

    try:
        ready = pool.submit(here.run, read).result()
        while ready is not None:
            following = pool.submit(here.run, read)
            yield ready
            ready = following.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _close(walk)


def _result(frame: ImageLike, result: R) -> StreamResult[R]:
    return StreamResult(frame, result, getattr(frame, "time", None))


def _close(walk: Iterator[T] | None) -> None:
    """Close an iterator that can be closed."""
    getattr(walk, "close", lambda: None)()


def _results(
    model: Model[R], frames: Iterable[ImageLike], options: Mapping[str, float]
) -> Iterator[StreamResult[R]]:
    walk, find = iter(frames), model.follower(options)
    try:
        for frame in walk:
            yield _result(frame, find(frame))
    finally:
        _close(walk)


def _latest(frames: Iterable[T]) -> Generator[T]:
    """Read frames on a thread, and yield the newest; older ones that wait are dropped."""
    newest: deque[T] = deque(maxlen=1)
    #: How reading has ended: None, or its error.
    ended: list[BaseException | None] = []
    ready, stop = forks.condition(), forks.event()
    here = copy_context()  # the device and limits of the caller

    def read() -> None:
        walk: Iterator[T] | None = None
        failed: BaseException | None = None
        try:
            walk = iter(frames)
            for frame in walk:
                if stop.is_set():
                    break
                with ready:
                    newest.append(frame)
                    ready.notify()
        except BaseException as error:
            failed = error
        finally:
            _close(walk)
            with ready:
                ended.append(failed)
                ready.notify()

    thread = forks.thread(lambda: here.run(read), name="dala-model-stream")
    thread.start()
    try:
        while True:
            with ready:
                ready.wait_for(lambda: newest or ended)
                if not newest:
                    break
                frame = newest.pop()
            yield frame
        if ended[0] is not None:
            raise ended[0]
    finally:
        stop.set()
        thread.join(_JOIN_SECONDS)
