"""Frame pipelines: lists of filters over many frames, each list one fused pipeline."""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from dala import resources
from dala.errors import FreedError, ParameterError, ShapeMismatch
from dala.gpu.compute import buffer_zeros
from dala.media.filters.blame import blamed
from dala.media.filters.executor import Lane
from dala.media.filters.plans import PICTURE, Filter, Step, plan
from dala.media.formats import SAME
from dala.media.images import Picture, check_out, read, shared
from dala.resources import Closing

Filters: TypeAlias = Sequence[Filter]

#: Frames at work at once in a stream, unless told.
WORKERS = 2


class FramePipeline(Closing):
    """Filters over frames of up to a size.

    A list of filters becomes one fused pipeline when it is first used and is kept (the last eight
    are); frames that differ in nothing but parameters' numbers use the same. The list may change
    with every frame. Frames may be of any kind that ``dala.media.gpu`` takes; you get back the kind
    you gave. Once a list was used, further frames allocate nothing on the device; results that you
    let go of are used again.

    Args:
        width: of the largest frame.
        height: of the largest frame.
        device: where to work; the current device where left out.

    >>> import numpy as np
    >>> with FramePipeline(8, 8, device="cpu") as p:
    ...     frame = np.full((4, 8, 4), 100, np.uint8)
    ...     made = p.process(frame, ["invert", ("brightness", {"value": 0.2})])
    ...     made[0, 0].tolist(), p.passes
    ([206, 206, 206, 100], 1)
    """

    def __init__(self, width: int, height: int, *, device: str | None = None) -> None:
        self._closed = True
        self.width, self.height = _side("width", width), _side("height", height)
        with buffer_zeros(1, "u8", device=device) as probe:
            self.device = probe.device
            self._sees = shared(probe) is not None
        self._lock = threading.Lock()
        self._lane = Lane(self.device, self._sees)
        self._spare: list[Lane] = []
        self._closed = False
        resources.track("frame pipeline", self.device, 0)

    # frames -----------------------------------------------------------------------------------
    def process(
        self,
        frame: Any,
        filters: Filters,
        *,
        width: int | None = None,
        height: int | None = None,
        out: Any = None,
    ) -> Any:
        """A frame through a list of filters.

        Args:
            frame: an array, bytes, a Pillow image, a Frame or a Buffer.
            filters: names, or pairs of a name and its parameters; ``dala.media.gpu.filters()``
                lists them. A second picture or a table is a parameter too, such as
                ``("overlay_alpha", {"over": badge})``. A custom kernel of one input will do.
            width: of bytes; that of the context where left out.
            height: likewise.
            out: an array to write.

        Raises:
            ShapeMismatch: the frame is larger than the context.
            UnknownKernel: there is no such filter; the nearest name is offered.
        """
        call = "process_frame"
        picture = self._picture(frame, width, height, call)
        with self._lock:
            self._check_open(call)
            return _through(self._lane, picture, filters, out, call)

    def stream(
        self,
        frames: Iterable[Any],
        filters: Filters | Callable[[int], Filters],
        *,
        workers: int = WORKERS,
    ) -> Iterator[Any]:
        """Frames through filters, in order, several at work at once.

        While one is computed, the next is brought in and the last handed out. No more than
        ``workers`` frames are taken ahead of the one you look at. An error in a frame comes in
        its turn and ends the stream.

        Args:
            frames: any iterable; it is read on your thread.
            filters: the list, or a function from a frame's number to its list.
            workers: how many frames are at work at once.
        """
        call = "FramePipeline.stream"
        self._check_open(call)
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ParameterError(
                f"{call}: workers must be a whole number above 0, {workers!r} came."
            )
        try:
            source = iter(frames)
        except TypeError:
            raise ParameterError(
                f"{call}: frames must be iterable, {type(frames).__name__} came."
            ) from None
        return self._stream(source, filters, workers, call)

    def _stream(
        self,
        frames: Iterator[Any],
        filters: Filters | Callable[[int], Filters],
        workers: int,
        call: str,
    ) -> Iterator[Any]:
        from concurrent.futures import Future, ThreadPoolExecutor

        lanes = self._lanes(workers)

        def work(frame: Any, number: int) -> Any:
            chosen = filters(number) if callable(filters) else filters
            picture = self._picture(frame, None, None, call)
            lane = lanes.pop()
            try:
                return _through(lane, picture, chosen, None, call)
            finally:
                lanes.append(lane)

        pending: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(workers, "dala-frames")
        try:
            failed: BaseException | None = None
            number = 0
            while failed is None:
                try:
                    frame = next(frames)
                except StopIteration:
                    break
                except Exception as error:
                    failed = error  # frames taken before are handed out first
                    break
                self._check_open(call)
                pending.append(pool.submit(work, frame, number))
                number += 1
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
            if failed is not None:
                raise failed
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            self._take_back(lanes)

    def _lanes(self, count: int) -> list[Lane]:
        with self._lock:
            lanes = [self._spare.pop() for _ in range(min(count, len(self._spare)))]
        lanes += [Lane(self.device, self._sees) for _ in range(count - len(lanes))]
        return lanes

    def _take_back(self, lanes: list[Lane]) -> None:
        with self._lock:
            if not self._closed:
                self._spare += lanes
                return
        for lane in lanes:
            lane.close()

    def _picture(self, frame: Any, width: int | None, height: int | None, call: str) -> Picture:
        if isinstance(frame, bytes | bytearray | memoryview):
            width = self.width if width is None else width
            height = self.height if height is None else height
        picture = read(frame, width, height, call)
        rows, columns = picture.shape[:2]
        if columns > self.width or rows > self.height:
            raise ShapeMismatch(
                f"{call}: the context holds frames of up to {self.width} x {self.height}, one of "
                f"{columns} x {rows} came. Use start_pipeline({columns}, {rows})."
            )
        return picture

    # showing ----------------------------------------------------------------------------------
    @property
    def passes(self) -> int:
        """How many passes over memory the last frame took; 0 before the first."""
        return self._lane.passes

    def explain(self) -> str:
        """What the last frame's filters became: stages, passes, bytes and times."""
        with self._lock:
            self._check_open("FramePipeline.explain")
            return self._lane.explain()

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<FramePipeline {self.width}x{self.height} on {self.device}{state}>"

    # end --------------------------------------------------------------------------------------
    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the pipeline was stopped. Start a new one.")

    def close(self) -> None:
        """Frees all buffers; results stay. Closing twice is fine."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            resources.untrack("frame pipeline", self.device, 0)
            for lane in (self._lane, *self._spare):
                lane.close()
            self._spare = []

    def __del__(self) -> None:
        with suppress(Exception):  # one whose __init__ failed has little; at exit modules are gone
            self._end()


def _through(lane: Lane, picture: Picture, filters: Filters, out: Any, call: str) -> Any:
    steps = plan(filters, picture.shape, picture.dtype, call)
    if not steps:
        steps = [Step(SAME, (PICTURE,), picture.shape, picture.dtype)]
    if out is not None:
        check_out(out, picture.kind, steps[-1].shape, steps[-1].dtype, call)
    with blamed(steps, picture.shape, picture.dtype):
        return lane.run(picture, steps, out)


def _side(name: str, value: Any) -> int:
    try:
        side = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        side = -1
    if side < 1:
        raise ParameterError(
            f"start_pipeline: {name} must be a whole number of at least 1, {value!r} came."
        )
    return side
