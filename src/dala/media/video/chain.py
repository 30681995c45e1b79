"""Filters over a video's own planes: from the decoder's to the encoder's in one pipeline.

Luma and chroma become RGB, go through the filters and become luma and chroma again as stages of one
pipeline. What crosses to a device and back is a byte and a half a pixel instead of four.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dala.errors import FreedError
from dala.gpu.compute import Buffer, buffer_zeros, from_dlpack
from dala.gpu.compute.kernel import get
from dala.media.filters.executor import Lane, Parts
from dala.media.filters.plans import PICTURE, Filter, Step, plan
from dala.media.frame import PLANAR, Frame
from dala.media.images import NDArray, read, shared
from dala.media.video.encode import WAITING
from dala.media.video.lent import Lent
from dala.resources import Closing

_CALL = "video filters"
#: Results that may be out: those that wait for the encoder, the one it has, and one in between.
_RESULTS = WAITING + 2


class VideoChain(Closing):
    """A list of filters for frames in order; "nv12" and "i420" ones come back as "i420".

    Other frames come back as they came. So do planes that the filters bring to an odd size: there
    is no 4:2:0 of that, and you get RGB.

    Args:
        filters: names, or pairs of a name and its parameters, as for ``FramePipeline``.
        device: where to work; the current device where left out.
        workers: frames at work at once. On the CPU one uses all cores by itself; on a GPU a second
            is brought in and a third handed out meanwhile.
        range: "limited" or "full", of the planes that come back; the frame's own where left out.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        *,
        device: str | None = None,
        workers: int | None = None,
        range: str | None = None,
    ) -> None:
        with buffer_zeros(1, "u8", device=device) as probe:
            #: Id of the device that is used.
            self.device = probe.device
            #: Whether the device works in the host's memory, so that planes can be lent to it.
            self.sees = sees = shared(probe) is not None
        self._filters = filters
        self._range = range
        # Words of four bytes suit a GPU; the CPU is as fast with three, in less memory.
        self._channels = 3 if sees else 4
        count = (1 if sees else 2) if workers is None else workers
        self._lanes = [Lane(self.device, sees, _RESULTS) for _ in [None] * count]
        self._closed = False
        #: What steps depend on of a frame, and those of the last one.
        self._known: tuple[tuple[Any, ...], tuple[list[Step], str | None]] | None = None

    def stream(self, frames: Iterable[Frame | Lent]) -> Iterator[Frame]:
        """Frames through the filters; what goes wrong in reading one comes after those before."""
        if self._closed:
            raise FreedError(f"{_CALL}: the chain was closed. Make another.")
        if len(self._lanes) == 1:
            return self._one_by_one(iter(frames))
        return self._overlapped(iter(frames))

    def _one_by_one(self, frames: Iterator[Frame | Lent]) -> Iterator[Frame]:
        # No name here holds on to a frame: its memory is then free for the next.
        while (frame := next(frames, None)) is not None:
            made = [self._through(self._lanes[0], frame)]
            del frame
            yield made.pop()

    def _overlapped(self, frames: Iterator[Frame | Lent]) -> Iterator[Frame]:
        from concurrent.futures import Future, ThreadPoolExecutor

        idle = list(self._lanes)

        def work(frame: Frame | Lent) -> Frame:
            lane = idle.pop()
            try:
                return self._through(lane, frame)
            finally:
                idle.append(lane)

        pending: deque[Future[Frame]] = deque()
        pool = ThreadPoolExecutor(len(self._lanes), "dala-video")
        failed: Exception | None = None
        try:
            while failed is None:
                try:
                    frame = next(frames)
                except StopIteration:
                    break
                except Exception as error:
                    failed = error
                    break
                pending.append(pool.submit(work, frame))
                if len(pending) > len(self._lanes):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
            if failed is not None:
                raise failed
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _through(self, lane: Lane, frame: Frame | Lent) -> Frame:
        if isinstance(frame, Frame) and frame.format not in PLANAR:
            picture = read(frame, None, None, _CALL)
            steps = plan(self._filters, picture.shape, picture.dtype, _CALL)
        else:
            steps, span = self._between_planes(frame)
            picture = _Planes(frame, span)
        made: Frame = lane.run(picture, steps, None)
        return made

    def _between_planes(self, frame: Frame | Lent) -> tuple[list[Step], str | None]:
        """Steps from planes to planes, and their range: None for RGB, where there are none."""
        size, parts = (frame.height, frame.width), len(_parts(frame))
        facts = size, parts, frame.format, frame.matrix, frame.range
        known = self._known
        if known is not None and known[0] == facts:
            return known[1]
        shape = (*size, self._channels)
        inner = plan(self._filters, shape, "u8", _CALL)
        height, width = inner[-1].shape[:2] if inner else (0, 0)
        span = None if height % 2 or width % 2 else self._range or frame.range
        found = _between_planes(frame, shape, inner, span), span
        # Pictures and tables among the filters may be others by the next frame.
        if all(isinstance(i, int) for step in inner for i in step.inputs):
            self._known = facts, found
        return found

    @property
    def passes(self) -> int:
        """Passes of the last frame."""
        return self._lanes[0].passes

    def explain(self) -> str:
        """The plan of the last frame."""
        return self._lanes[0].explain()

    def close(self) -> None:
        """Frees all buffers; results stay. Closing twice is fine."""
        self._closed = True
        for lane in self._lanes:
            lane.close()


class _Planes(Parts):
    """Planes that were handed in; planes of a range are handed back, or RGB if there is none."""

    __slots__ = ("_range",)

    def __init__(self, frame: Frame | Lent, range: str | None) -> None:
        super().__init__("frame", _parts(frame), frame)
        self._range = range

    def give(self, result: Buffer | NDArray, device: str | None = None) -> Any:
        """A result with the time and the colour of what was handed in."""
        made = result if isinstance(result, Buffer) else from_dlpack(result, device=device)
        given: Frame | Lent = self.given
        planar = self._range is not None
        return Frame(
            made,
            format="i420" if planar else None,
            pts=given.pts,
            time_base=given.time_base,
            range=self._range,
            matrix=given.matrix,
            primaries=given.primaries,
            transfer=given.transfer,
            siting="left" if planar else given.siting,
        )


def _parts(frame: Frame | Lent) -> tuple[Buffer, ...]:
    return frame.parts if isinstance(frame, Lent) else (frame.pixels,)


def _between_planes(
    frame: Frame | Lent, shape: tuple[int, ...], inner: Sequence[Step], range: str | None
) -> list[Step]:
    """Steps from planes to RGB, through the filters, and back to planes of a range, if any."""
    decode = {"matrix": frame.matrix, "range": frame.range, "format": frame.format}
    inputs = tuple(PICTURE - i for i, _ in enumerate(_parts(frame)))
    steps = [Step(get("yuv_to_rgb"), inputs, shape, "u8", decode)]
    for step in inner:
        # PICTURE is -1, so that the number after it is that of the first step.
        moved = tuple(i + 1 if isinstance(i, int) else i for i in step.inputs)
        steps.append(Step(step.kernel, moved, step.shape, step.dtype, step.params))
    if range is not None:
        height, width = steps[-1].shape[:2]
        encode = {"matrix": frame.matrix, "range": range, "format": "i420"}
        planes = (height * 3 // 2, width)
        steps.append(Step(get("rgb_to_yuv"), (len(steps) - 1,), planes, "u8", encode))
    return steps
