"""Filter a video's native planes: from the decoder's to the encoder's in one pipeline.

Conversion to RGB, the filters and the conversion back are stages of one pipeline, so that 1.5 bytes
per pixel cross to the device and back instead of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from dala.errors import FreedError
from dala.gpu.compute import Buffer, buffer_zeros, from_dlpack
from dala.gpu.compute.call.instant import Instant
from dala.gpu.compute.kernel import get
from dala.media.filters.executor import FilterExecutor, overlapped
from dala.media.filters.plans import PICTURE, Filter, Step, plan, remember
from dala.media.frame import PLANAR, Frame
from dala.media.images import SourceImage, host_memory, read
from dala.media.video.encode import QUEUE_SIZE
from dala.resources import Closing
from dala.typing import NDArray

_CALL = "video filters"
#: Results in flight: those queued for the encoder, the one it encodes, and two in between.
_RESULTS = QUEUE_SIZE + 3


class VideoChain(Closing):
    """A list of filters for a sequence of frames; "nv12" and "i420" frames are returned as "i420".

    Frames of other formats keep their format. If the filters produce an odd size, for which there
    is no 4:2:0, the result is RGB.

    Args:
        filters: names, or pairs of a name and its parameters, as for ``FramePipeline``; or a
            function from a frame to such a list, which is called for each frame.
        device: where to run; by default the current device.
        workers: frames processed at once. One is enough on the CPU, where a frame uses all cores;
            on a GPU a second overlaps uploads and downloads.
        range: "limited" or "full", for the resulting planes; by default the frame's own.

    Example::

        with VideoChain([("blur", {"radius": 3})]) as chain:
            for frame in chain.stream(reader):
                writer.write(frame, copy=False)
    """

    def __init__(
        self,
        filters: Sequence[Filter] | Callable[[Frame], Sequence[Filter]],
        *,
        device: str | None = None,
        workers: int | None = None,
        range: str | None = None,
    ) -> None:
        with buffer_zeros(1, "u8", device=device) as probe:
            #: The id of the device in use.
            self.device = probe.device
            shares = host_memory(probe) is not None
        self._filters = filters
        self._range = range
        #: What the steps of the last frame depend on, the steps, and the range of the result.
        self._known: tuple[tuple[object, ...], list[Step], str | None] = (), [], None
        # GPUs want aligned 4-byte pixels; the CPU is as fast with 3, in less memory.
        self._channels = 3 if shares else 4
        count = (1 if shares else 2) if workers is None else workers
        if not callable(filters) and remember(filters):
            count = 1
        self._executors = [FilterExecutor(self.device, shares, _RESULTS) for _ in [None] * count]
        for executor in self._executors:
            executor.alone = count == 1
        self._closed = False

    def stream(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield the filtered frames. A source's error is raised after the frames before it."""
        if self._closed:
            raise FreedError(f"{_CALL}: the chain is closed. Create another.")
        if len(self._executors) == 1:
            return map(partial(self._filtered, self._executors[0]), enumerate(frames))
        return overlapped(enumerate(frames), self._executors, self._filtered, "dala-video")

    def _filtered(self, executor: FilterExecutor, numbered: tuple[int, Frame]) -> Frame:
        number, frame = numbered
        if frame.format not in PLANAR:
            picture = read(frame, None, None, _CALL)
            steps = plan(self._list(frame), picture.shape, picture.dtype, _CALL)
        else:
            steps, span = self._between_planes(frame)
            picture = _Planes(frame, span)
        made = executor.run(
            picture, steps, None, Instant(float((frame.pts or 0) * frame.time_base), number)
        )
        assert isinstance(made, Frame)
        return made

    def _between_planes(self, frame: Frame) -> tuple[list[Step], str | None]:
        """Return the steps from planes to planes, and the range of the result (None: RGB)."""
        key = frame.height, frame.width, frame.format, frame.matrix, frame.range
        known = self._known
        if key == known[0] and not callable(self._filters):
            return known[1:]
        shape = frame.height, frame.width, self._channels
        inner = plan(self._list(frame), shape, "u8", _CALL)
        height, width = inner[-1].shape[:2] if inner else (0, 0)
        span = None if height % 2 or width % 2 else self._range or frame.range
        steps = _between_planes(frame, shape, inner, span)
        self._known = key, steps, span
        return steps, span

    def _list(self, frame: Frame) -> Sequence[Filter]:
        return self._filters(frame) if callable(self._filters) else self._filters

    @property
    def passes(self) -> int:
        """Number of passes over the last frame."""
        return self._executors[0].passes

    def explain(self) -> str:
        """Return the plan of the last frame."""
        return self._executors[0].explain()

    def close(self) -> None:
        """Free all buffers; results stay valid. Closing twice is fine."""
        self._closed = True
        for executor in self._executors:
            executor.close()


class _Planes(SourceImage):
    """Planes in; planes of ``range`` out, or RGB if it is None."""

    __slots__ = ("_frame", "_range")

    def __init__(self, frame: Frame, range: str | None) -> None:
        super().__init__("frame", frame.pixels, frame)
        self._frame = frame
        self._range = range

    def give(self, result: Buffer | NDArray, device: str | None = None) -> Frame:
        """Return a result with the time and color of the input."""
        made = result if isinstance(result, Buffer) else from_dlpack(result, device=device)
        given, planar = self._frame, self._range is not None
        names = ("pts", "time_base", "matrix", "primaries", "transfer", "tags")
        facts: Any = {name: getattr(given, name) for name in names}
        siting = "left" if planar else given.siting
        return Frame(
            made, format="i420" if planar else None, range=self._range, siting=siting, **facts
        )


def _between_planes(
    frame: Frame, shape: tuple[int, ...], inner: Sequence[Step], range: str | None
) -> list[Step]:
    """Return the steps from planes to RGB, through the filters, and back to planes of ``range``."""
    decode = {"matrix": frame.matrix, "range": frame.range, "format": frame.format}
    steps = [Step(get("yuv_to_rgb"), (PICTURE,), shape, "u8", decode)]
    steps += [step.moved(1) for step in inner]
    if range is not None:
        height, width = steps[-1].shape[:2]
        encode = {"matrix": frame.matrix, "range": range, "format": "i420"}
        planes = (height * 3 // 2, width)
        steps.append(Step(get("rgb_to_yuv"), (len(steps) - 1,), planes, "u8", encode))
    return steps
