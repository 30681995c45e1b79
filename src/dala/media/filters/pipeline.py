"""Frame pipelines: lists of filters over many frames, each list one fused pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from dala import forks, resources
from dala.arguments import Integer, Quantity
from dala.errors import FreedError, ParameterError, ShapeMismatch
from dala.gpu.compute import buffer_zeros
from dala.gpu.compute.call.instant import Instant
from dala.media.filters.executor import FilterExecutor, overlapped
from dala.media.filters.plans import PICTURE, Filter, Step, plan, remember
from dala.media.formats import SAME
from dala.media.frame import Frame
from dala.media.images import SourceImage, check_out, host_memory, read, wants_given_dtype
from dala.resources import Closing
from dala.trace.recorder import Holding, tracer
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.extensions import WebExport, WebOption

Filters: TypeAlias = Sequence[Filter]

_Image = TypeVar("_Image", bound=ImageLike)

#: Frames of a stream that are processed at the same time by default.
WORKERS = 2


class FramePipeline(Closing):
    """A context that applies lists of filters to frames of up to a size.

    A list of filters becomes one fused pipeline when it is first used; the last eight lists are
    kept, and lists that differ only in their parameters' values share a pipeline. The list may
    change with every frame. Frames are of any kind that ``dala.media.gpu`` takes, and results are
    of the same kind. After the first frame of a list, further frames allocate nothing on the
    device; the memory of results is reused once they are garbage collected.

    Args:
        width: of the largest frame, in pixels.
        height: of the largest frame, in pixels.
        device: the device; the current one by default.

    >>> import numpy as np
    >>> with FramePipeline(8, 8, device="cpu") as p:
    ...     frame = np.full((4, 8, 4), 100, np.uint8)
    ...     made = p.process(frame, ["invert", ("brightness", {"value": 0.2})])
    ...     made[0, 0].tolist(), p.passes
    ([206, 206, 206, 100], 1)
    """

    _instead = "Pass the filters, and make one there."

    def __init__(self, width: int, height: int, *, device: str | None = None) -> None:
        self._closed = True
        self.width, self.height = (
            Integer(1).check("start_pipeline", name, value)
            for name, value in (("width", width), ("height", height))
        )
        with buffer_zeros(1, "u8", device=device) as probe:
            self.device = probe.device
            self._shares_memory = host_memory(probe) is not None
        self._lock = forks.lock()
        self._executor = FilterExecutor(self.device, self._shares_memory)
        self._spare: list[FilterExecutor] = []
        self._frames = 0
        self._filters: list[Filter] = []
        self._closed = False
        resources.track("frame pipeline", self.device, 0)

    # frames -----------------------------------------------------------------------------------
    def process(
        self,
        frame: _Image,
        filters: Filters,
        *,
        width: int | None = None,
        height: int | None = None,
        out: NDArray | None = None,
        number: int | None = None,
        time: float | None = None,
    ) -> _Image:
        """Apply a list of filters to a frame.

        Args:
            frame: an array, bytes, a Pillow image, a Frame or a Buffer.
            filters: names, or pairs of a name and its parameters; ``dala.media.gpu.filters()``
                lists them. A second picture or a table is a parameter too, such as
                ``("overlay_alpha", {"over": badge})``. A custom kernel also works.
            width: of bytes, in pixels; the context's by default.
            height: of bytes, in pixels; the context's by default.
            out: an array for the result.
            number: the frame's number, for kernels that ask for it and programs that remember
                frames: the same number is the same frame again, a lower one begins anew. By
                default it is one more than the last.
            time: seconds, for kernels that ask; by default the time of a Frame, else 0.

        Returns:
            A picture of the frame's kind, or ``out``.

        Raises:
            ShapeMismatch: the frame is larger than the context.
            UnknownKernel: there is no such filter; the nearest name is suggested.
        """
        call = "process_frame"
        picture = self._picture(frame, width, height, call)
        with Holding(self._lock, "frame pipeline") if tracer.on else self._lock:
            self._check_open(call)
            listed = isinstance(filters, Sequence) and not isinstance(filters, memoryview)
            self._filters = list(filters) if listed else []
            number = self._frames if number is None else Integer(0).check(call, "number", number)
            moment, self._frames = _moment(frame, number), number + 1
            if time is not None:
                moment = moment._replace(time=Quantity().check(call, "time", time))
            return cast("_Image", _apply(self._executor, picture, filters, out, call, moment))

    def stream(
        self,
        frames: Iterable[_Image],
        filters: Filters | Callable[[int], Filters],
        *,
        workers: int = WORKERS,
    ) -> Iterator[_Image]:
        """Apply filters to frames in order, several at a time.

        Uploads and downloads overlap with computing. At most ``workers`` frames are read ahead of
        the one that is yielded. An error of a frame is raised in its turn and ends the stream.

        Args:
            frames: an iterable; it is read on the calling thread.
            filters: the list, or a function from a frame's number to its list.
            workers: how many frames are processed at the same time; one with programs that
                remember frames.
        """
        call = "FramePipeline.stream"
        self._check_open(call)
        workers = Integer(1).check(call, "workers", workers)
        if not callable(filters) and remember(filters):
            workers = 1
        try:
            source = iter(frames)
        except TypeError:
            raise ParameterError.invalid(call, "frames", "an iterable", type(frames)) from None
        return self._stream(source, filters, workers, call)

    def _stream(
        self,
        frames: Iterator[_Image],
        filters: Filters | Callable[[int], Filters],
        workers: int,
        call: str,
    ) -> Iterator[_Image]:
        executors = self._take_executors(workers)

        def numbered() -> Iterator[tuple[int, _Image]]:
            for number, frame in enumerate(frames):
                self._check_open(call)
                yield number, frame

        def work(executor: FilterExecutor, item: tuple[int, _Image]) -> _Image:
            number, frame = item
            chosen = filters(number) if callable(filters) else filters
            picture = self._picture(frame, None, None, call)
            moment = _moment(frame, number)
            return cast("_Image", _apply(executor, picture, chosen, None, call, moment))

        try:
            yield from overlapped(numbered(), executors, work, "dala-frames")
        finally:
            self._return_executors(executors)

    def _take_executors(self, count: int) -> list[FilterExecutor]:
        with self._lock:
            found = [self._spare.pop() for _ in range(min(count, len(self._spare)))]
        missing = count - len(found)
        found += [FilterExecutor(self.device, self._shares_memory) for _ in range(missing)]
        for executor in found:
            executor.alone = count == 1
        return found

    def _return_executors(self, executors: list[FilterExecutor]) -> None:
        with self._lock:
            if not self._closed:
                self._spare += executors
                return
        for executor in executors:
            executor.close()

    def _picture(
        self, frame: ImageLike, width: int | None, height: int | None, call: str
    ) -> SourceImage:
        if isinstance(frame, bytes | bytearray | memoryview):
            width = self.width if width is None else width
            height = self.height if height is None else height
        picture = read(frame, width, height, call)
        rows, columns = picture.shape[:2]
        if columns > self.width or rows > self.height:
            raise ShapeMismatch.invalid(
                call,
                "frame",
                f"at most {self.width} x {self.height} pixels",
                f"{columns} x {rows}",
                f"Use start_pipeline({columns}, {rows}).",
            )
        return picture

    # plans ------------------------------------------------------------------------------------
    @property
    def passes(self) -> int:
        """The number of passes over memory of the last frame; 0 before the first."""
        return self._executor.passes

    @property
    def last_filters(self) -> list[Filter]:
        """The filters of the last frame; an empty list before the first.

        >>> with FramePipeline(8, 8, device="cpu") as p:
        ...     p.last_filters
        []
        """
        return list(self._filters)

    def explain(self) -> str:
        """Return the plan of the last frame: stages, passes, bytes and times."""
        with self._lock:
            self._check_open("FramePipeline.explain")
            return self._executor.explain()

    def export_web(
        self, folder: PathLike, filters: Filters | None = None, **options: WebOption
    ) -> WebExport:
        """Export filters as a web page that runs on the visitor's GPU.

        Args:
            folder: where to write; a path that ends in ``.html`` makes one file.
            filters: the filters; those of the last frame by default.
            options: as :func:`dala.web.export` takes them: ``title``, ``picture``, ``sliders``.

        Raises:
            ParameterError: there was no frame yet, or a filter cannot be exported.
        """
        from dala.extensions import web_module

        self._check_open("FramePipeline.export_web")
        return web_module().export(
            self.last_filters if filters is None else filters, folder, **options
        )

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        return f"<FramePipeline {self.width}x{self.height} on {self.device}{state}>"

    # closing ----------------------------------------------------------------------------------
    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the pipeline was stopped. Start a new one.")

    def close(self) -> None:
        """Free all buffers; results stay valid. Closing twice has no effect."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            resources.untrack("frame pipeline", self.device, 0)
            for executor in (self._executor, *self._spare):
                executor.close()
            self._spare = []
            self._filters = []  # they may hold pictures

    def __del__(self) -> None:
        with suppress(Exception):  # __init__ may have failed; at exit modules may be gone
            self._close()


def _moment(frame: ImageLike, number: int) -> Instant:
    """Return the facts of a frame for kernels: its time, if it has one, and its number."""
    time = frame.time if isinstance(frame, Frame) else None
    return Instant(float(time or 0), number)


def _apply(
    executor: FilterExecutor,
    picture: SourceImage,
    filters: Filters,
    out: NDArray | None,
    call: str,
    moment: Instant,
) -> ImageLike:
    steps = plan(filters, picture.shape, picture.dtype, call)
    if not steps:
        steps = [Step(SAME, (PICTURE,), picture.shape, picture.dtype)]
    if out is not None and wants_given_dtype(picture, out, steps[-1].shape):
        np.copyto(out, np.asarray(executor.run(picture, steps, None, moment)))
        return out
    if out is not None:
        check_out(out, picture.kind, steps[-1].shape, steps[-1].dtype, call)
    return executor.run(picture, steps, out, moment)
